"""Cassettes in use: while a block runs, clients are answered from one, or recorded into it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from re import Pattern
from types import MappingProxyType
from typing import Final

from harness.core.durations import SECOND
from harness.core.errors import HarnessError, UsageError, unknown
from harness.core.wording import an
from harness.fakes.script import Fault
from harness.transport.cassettes.form import Cassette, Interaction
from harness.transport.cassettes.keeping import MODES, Kept, Mode
from harness.transport.cassettes.matching import Library
from harness.transport.cassettes.missing import in_mode
from harness.transport.cassettes.playing import Player, Timing
from harness.transport.cassettes.session import Session
from harness.transport.rules import NO_RULES, Rules

__all__ = ["Mode", "Session", "Unused", "cassette"]

_RECORD_MODES: Final[dict[Mode, str]] = {
    "replay": "none",
    "missing": "new_episodes",
    "all": "all",
    "drift": "all",
}
"""The modes in vcrpy's words."""

_NAMED: Final = 5
"""How many interactions are named that nobody asked for."""


class Unused(HarnessError):
    """A cassette has interactions that nobody asked for."""


@contextmanager
def cassette(  # noqa: PLR0913 - an argument for each thing that can be asked of a cassette
    path: str | os.PathLike[str],
    mode: Mode = "replay",
    *,
    rules: Rules = NO_RULES,
    timing: Timing = "zero",
    split: int | None = None,
    faults: Mapping[int, Fault] = MappingProxyType({}),
    source: str = "",
    ignore_hosts: Sequence[str | Pattern[str]] = (),
    allow_unused: bool = False,
    now: Callable[[], int] | None = None,
) -> Iterator[Session]:
    """Answer the clients of this process from a cassette while the block runs, or record them.

    `replay` reaches no network: a request that the cassette does not have is a CassetteMiss, raised
    where it is made and, unless it is taken out of the session's `missed`, at the end; interactions
    that nobody asked for are Unused at a good end. `missing` plays what is there and records the
    rest, and asks again for what failed at the provider; `all` records everything anew; both write
    the file at the end. `drift` has the real provider answer, writes ``<name>.drift.yaml`` beside
    the file, and tells in the session's `drift` what has changed. A session that ends in an
    exception is written as far as it came, except over a cassette that was there: then it stands
    beside, in ``<name>.partial.yaml``; what it broke off is not kept where it would be missing the
    next time.
    UsageError where there is no file to replay, FileError where the one that is there cannot be
    read, and nothing is ever written over that; Changed where somebody else has written it
    meanwhile.

    `timing`, `split` and `faults` are how it is played, as for a Player. `rules` are added to those
    of the file. Requests to `ignore_hosts`, names or patterns of whole names, go on as before; so
    do those in a run whose provider is scripted. Clients of other libraries than httpx and httpx2
    are vcrpy's: it records and plays an answer whole, and none that failed. `now` gives
    nanoseconds; without it a clock of this machine does.
    """
    if mode not in MODES:
        raise UsageError(unknown("mode", str(mode), MODES))
    if not isinstance(rules, Rules):
        raise UsageError(
            f"rules is {an(type(rules).__name__)}; expected Rules(ignore=('...',)), or others"
        )
    if isinstance(ignore_hosts, str) or not all(
        isinstance(each, str | Pattern) for each in ignore_hosts
    ):
        raise UsageError(f"ignore_hosts is {ignore_hosts!r}; expected a list of hosts")
    if not isinstance(source, str):
        raise UsageError(f"source is {source!r}; expected a few words on who is asked")
    kept = Kept(Path(path), mode, rules, source)
    loaded = kept.loaded
    library = Library(loaded.interactions, loaded.rules, str(path), skipped=kept.again)
    player = None
    if mode in ("replay", "missing"):
        player = Player(library, timing=timing, split=split, faults=faults, now=_seconds)
    recording = mode != "replay"
    session = Session(library, player, now or _now, recording=recording, ignore_hosts=ignore_hosts)
    with session.open(str(path), loaded.rules, _RECORD_MODES[mode]):
        try:
            yield session
        except BaseException as error:
            try:
                kept.end(session, error)
            except HarnessError as trouble:  # what went wrong first is what is raised
                error.add_note(str(trouble))
            error.add_note(session.said)
            raise
        kept.end(session)
    if session.missed:
        raise session.missed[0]
    if mode == "replay" and not allow_unused and (unused := session.unused()):
        raise Unused(f"{session.said}; {_unused(loaded, unused)}")


def _unused(loaded: Cassette, unused: Sequence[Interaction]) -> str:
    """Words for what nobody asked for."""
    places = {id(each): at for at, each in enumerate(loaded.interactions, 1)}
    named = [
        f"number {places[id(each)]} (line {each.line}, {each.request.method} {each.request.path})"
        for each in unused[:_NAMED]
    ]
    more = f" and {len(unused) - _NAMED} more" if len(unused) > _NAMED else ""
    return (
        f"nobody asked for {', '.join(named)}{more}; record all anew "
        f"{in_mode('all')}, or allow it with allow_unused=True"
    )


def _now() -> int:
    """Nanoseconds of a clock that only goes on; in a run they are virtual."""
    return time.monotonic_ns()


def _seconds() -> float:
    """Seconds since 1970, for faults that tell of dates."""
    return time.time_ns() / SECOND
