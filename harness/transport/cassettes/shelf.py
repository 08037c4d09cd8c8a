"""A cassette as vcrpy has it: what its stand-ins for other libraries play from and record into."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from re import Pattern
from threading import RLock
from typing import Any, Final
from unittest import mock

from msgspec.structs import replace

from harness.sim.swaps import Swaps
from harness.transport import google
from harness.transport.cassettes.clients import Desk, patches
from harness.transport.cassettes.form import Interaction
from harness.transport.cassettes.matching import Matcher, request_of
from harness.transport.cassettes.real_names import RealNames
from harness.transport.cassettes.vcr_form import from_vcr, to_vcr
from harness.transport.rules import Rules

_OURS = ("httpx", "httpx2")
"""The libraries for which vcrpy's stand-ins are not used."""
_SOUGHT = {"boto3": "botocore", "httplib2": "httplib2", "tornado": "tornado"}
"""Libraries that vcrpy looks for on the disk at each use, and modules of them: it has loaded those,
where they are installed.
"""


def skipped() -> tuple[str, ...]:
    """The libraries that vcrpy is to leave alone: ours, and those that are not there."""
    missing = [name for name, module in _SOUGHT.items() if module not in sys.modules]
    return (*_OURS, *missing)


def _hush() -> None:
    """Have vcrpy log no addresses and whole answers, which hold secrets, unless it is told to."""
    logger = logging.getLogger("vcr")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)


_REAL_NAMES: Final = RealNames()
_CHANGING: Final = RLock()
"""Held while stand-ins are placed or lifted."""
_PLACED: Final[list[tuple[Shelf, ExitStack]]] = []
"""Whose stand-ins are in their places, and what lifts them; the last are asked first."""


class Shelf:
    """The interactions that were loaded, and those that vcrpy records beside ours.

    `number` gives the next number in the order of requests, `now` nanoseconds since the session
    began. What has no answer, and what is skipped, is nothing to vcrpy.
    """

    def __init__(
        self,
        loaded: Sequence[Interaction],
        number: Callable[[], int],
        now: Callable[[], int],
        skipped: Collection[int] = (),
    ) -> None:
        answered = [
            at for at, each in enumerate(loaded) if each.status is not None and at not in skipped
        ]
        self._places = {at: place for place, at in enumerate(answered)}
        self._loaded = loaded
        self._number = number
        self._now = now
        self._stamps: list[tuple[int, int]] = []
        self._cassette: Any = None
        self._lock = RLock()
        self.over = False
        """Whether it is used no more."""

    @contextmanager
    def open(
        self,
        desk: Desk,
        name: str,
        rules: Rules,
        record_mode: str,
        ignore_hosts: Sequence[str | Pattern[str]],
    ) -> Iterator[None]:
        """Have all clients of this process come here, or to `desk`, while the block runs."""
        from vcr import VCR  # type: ignore[import-untyped]

        _hush()
        with ExitStack() as stack, _CHANGING:
            made: Any = VCR(
                record_mode=record_mode,
                match_on=("harness",),
                before_record_response=self._stamp,
                ignore_hosts=ignore_hosts,
                skip_patchers=skipped(),
                custom_patches=patches(desk),
            )
            made.register_matcher("harness", Matcher(rules))
            made.register_persister(self)
            stack.enter_context(_placed(google.swaps()))
            stack.enter_context(mock.patch("vcr.patch.force_reset", _REAL_NAMES))
            cassette = stack.enter_context(made.use_cassette(name))
            cassette.data = [to_vcr(self._loaded[at]) for at in self._places]
            cassette.play_response = self._alone(cassette.play_response)
            cassette.append = self._alone(cassette.append)
            self._cassette = cassette
            if cassette.write_protected:
                can_play = cassette.can_play_response_for
                cassette.can_play_response_for = partial(_must_play, desk, cassette, can_play)
            _PLACED.append((self, stack.pop_all()))
        try:
            yield
        finally:
            self.over = True
            _lift()

    def load_cassette(self, *_args: Any, **_options: Any) -> tuple[tuple[()], tuple[()]]:
        """Nothing, for vcrpy: it copies all that it loads."""
        return (), ()

    def save_cassette(self, *_args: Any, **_options: Any) -> None:
        """Nothing, for vcrpy: the session saves at its end, with all that came besides."""

    def count(self, at: int) -> int:
        """How often an interaction was played, by its place."""
        return int(self._cassette.play_counts[self._places[at]]) if at in self._places else 0

    def tell(self, at: int) -> bool:
        """Tell vcrpy that an interaction is played now; False where it was played already."""
        with self._lock:
            if self.count(at):
                return False
            if at in self._places:
                self._cassette.play_counts[self._places[at]] += 1
            return True

    def recorded(self) -> list[tuple[int, Interaction]]:
        """What vcrpy has recorded, each with its number."""
        added = self._cassette.data[len(self._places) :]
        return [
            (number, replace(from_vcr(*pair), begun=begun))
            for (number, begun), pair in zip(self._stamps, added, strict=False)
        ]

    def _alone(self, do: Callable[..., Any]) -> Callable[..., Any]:
        """What vcrpy does in several steps, done by one thread at a time."""

        def done(*given: Any) -> Any:
            with self._lock:
                return do(*given)

        return done

    def _stamp(self, response: Any) -> Any:
        """Note when vcrpy keeps a response; nothing tells when its request went out."""
        self._stamps.append((self._number(), self._now()))
        return response


def _must_play(desk: Desk, cassette: Any, can_play: Callable[[Any], Any], request: Any) -> object:
    """Whether vcrpy has an answer to a request; CassetteMiss where it lets none out either."""
    possible = can_play(request)
    if not possible and (filtered := cassette.filter_request(request)):
        desk.find(request_of(filtered))
    return possible


def _lift() -> None:
    """Take away the stand-ins that are wanted no more. Those that others were placed over since
    stay until these go: they would take them along, and come back with them.
    """
    with _CHANGING:
        while _PLACED and _PLACED[-1][0].over:
            _REAL_NAMES.leave()
            _PLACED.pop()[1].close()


@contextmanager
def _placed(swaps: Sequence[Swaps]) -> Iterator[None]:
    """Stand-ins in their places while the block runs."""
    for each in swaps:
        each.place()
    try:
        yield
    finally:
        for each in swaps:
            each.lift()
