"""One use of a cassette: what is played, what is recorded, and what there is to say of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import count
from re import Pattern

from harness.core.errors import CassetteMiss
from harness.transport.cassettes.comparing import Comparison
from harness.transport.cassettes.form import Interaction
from harness.transport.cassettes.matching import Library
from harness.transport.cassettes.playing import Course, Player
from harness.transport.cassettes.recording import Take
from harness.transport.cassettes.shelf import Shelf
from harness.transport.rules import Rules
from harness.wire.http import Request


class Session:
    """What has happened so far with a cassette that is in use; any thread and any task may ask.

    `missed` are the requests that replay had nothing for. Whoever expects one takes it out: those
    that are left are raised again at the end, since agents catch what goes wrong. At the end `said`
    tells in words what was done, and `drift` what has changed since the cassette was recorded,
    where that was asked for.
    """

    def __init__(
        self,
        library: Library,
        player: Player | None,
        now: Callable[[], int],
        *,
        recording: bool,
        ignore_hosts: Sequence[str | Pattern[str]] = (),
    ) -> None:
        self.missed: list[CassetteMiss] = []
        self.drift: Comparison | None = None
        self.said = ""
        self._library = library
        self._player = player
        self._recording = recording
        self._ignored = tuple(ignore_hosts)
        self._clock = now
        self._began = now()
        self._numbers = count()
        self._played: dict[int, Interaction] = {}
        self._recorded: dict[int, Interaction] = {}
        self._open: dict[int, Take] = {}
        self._shelf = Shelf(library.interactions, self._number, self.now, library.skipped)

    @property
    def interactions(self) -> tuple[Interaction, ...]:
        """What was played or recorded so far, in the order in which the requests came; before it
        what clients of other libraries played.
        """
        ours = {id(each) for each in self._played.values()}
        others = [
            each
            for at, each in enumerate(self._library.interactions)
            if self._shelf.count(at) and id(each) not in ours
        ]
        done = {**self._played, **self._all_recorded()}
        return (*others, *[done[number] for number in sorted(done)])

    @property
    def recorded(self) -> tuple[Interaction, ...]:
        """What was recorded so far, in the order in which the requests went out."""
        done = self._all_recorded()
        return tuple([done[number] for number in sorted(done)])

    def unused(self) -> tuple[Interaction, ...]:
        """What is in the cassette and was not played yet."""
        index = self._library.index_of
        return tuple(
            [each for each in self._library.unused() if not self._shelf.count(index(each))]
        )

    # --- what the stand-ins ask

    def ignores(self, host: str) -> bool:
        """Whether requests to a host are nothing to it; at its end none is anything to it."""
        return self._shelf.over or any(
            host == each if isinstance(each, str) else each.fullmatch(host) is not None
            for each in self._ignored
        )

    def find(self, request: Request) -> Course | None:
        """What to play; None where the request is to go out, CassetteMiss where it is not to."""
        if self._player is None:
            return None
        number = self._number()
        try:
            while True:
                course = self._player.course(request)
                at = course.number - 1
                if self._shelf.tell(at):  # else a client of another library has had it
                    break
        except CassetteMiss as miss:
            if self._recording:
                return None
            self.missed.append(miss)
            raise
        self._played[number] = self._library.interactions[at]
        return course

    def begin(self, request: Request) -> Take:
        """What records a request that goes out now."""
        number = self._number()
        take = Take(request, partial(self._keep, number), self.now)
        self._open[number] = take
        return take

    def now(self) -> int:
        """Nanoseconds since the session began."""
        return self._clock() - self._began

    # --- how it is used

    def open(self, name: str, rules: Rules, record_mode: str) -> AbstractContextManager[None]:
        """Have all clients of this process come here while the block runs; the mode is vcrpy's."""
        return self._shelf.open(self, name, rules, record_mode, self._ignored)

    def end(self) -> None:
        """What still goes on has ended, as far as this session sees."""
        for take in list(self._open.values()):
            take.left()

    def _number(self) -> int:
        return next(self._numbers)

    def _keep(self, number: int, interaction: Interaction) -> None:
        self._recorded[number] = interaction
        self._open.pop(number, None)

    def _all_recorded(self) -> dict[int, Interaction]:
        return {**self._recorded, **dict(self._shelf.recorded())}
