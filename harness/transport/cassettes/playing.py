"""Recorded interactions, played again: to asynchronous clients as answers, to others as steps.

How an interaction goes on is told once, by `Course`: wait until then, these bytes, it breaks so.
`Playing` follows that on the loop that runs it, in virtual time as in real; whoever serves a
synchronous client follows the same steps with its own clock.

What ended by a time limit of the client ends by that again: nothing comes any more, and the client
waits as long as it likes. What the client broke off waits for it to go. Without any waiting the
first raises TimeoutError, which carriers make the client's own timeout of, and the second is torn.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias, get_args

from msgspec import Struct

from harness.core.durations import SECOND
from harness.core.errors import UsageError
from harness.core.wording import an
from harness.fakes.line import fault_name
from harness.fakes.script import Fault
from harness.transport.cassettes.form import Interaction
from harness.transport.cassettes.laying import is_stream, laid_over, resized, scaled
from harness.transport.exchange import Broken
from harness.wire.http import Headers, Request, first

Timing: TypeAlias = Literal["recorded", "zero"] | float
"""How fast it goes: as it was recorded, without any waiting, or so many times as slowly."""


class Wait(Struct, frozen=True):
    """Wait until so many nanoseconds after the request; None: until the client has gone."""

    until: int | None


Step: TypeAlias = Wait | bytes | Broken | TimeoutError
"""What comes next of an interaction; nothing comes behind the last two."""


class Recorded(Protocol):
    """Where recorded interactions are found: `harness.transport.cassettes.matching.Library`."""

    @property
    def interactions(self) -> Sequence[Interaction]:
        """All of them, in the order in which their requests went out."""
        ...

    def take(self, request: Request) -> Interaction:
        """The one that answers a request now."""
        ...

    def index_of(self, interaction: Interaction) -> int:
        """Its place in the order in which requests went out, from 0."""
        ...


class Course:
    """How one interaction goes on; `number` is its place among the recorded ones, from 1, and
    `fault` what was laid over it. `at_once` leaves out waiting that takes no time.
    """

    def __init__(
        self,
        given: Interaction,
        *,
        at_once: bool = False,
        number: int = 0,
        fault: Fault | None = None,
    ) -> None:
        self.given = given
        self.number = number
        self.fault = fault
        self._at_once = at_once

    def head(self) -> Iterator[Step]:
        """What comes before the head of the answer; where there is none, how that ends."""
        if self.given.status is None:
            yield from self._end()
        else:
            yield from self._until(self.given.head_at)

    def body(self) -> Iterator[Step]:
        """The chunks of the body, and how it ends."""
        for chunk in self.given.chunks:
            yield from self._until(chunk.at)
            yield chunk.data
        yield from self._end()

    def _until(self, at: int) -> Iterator[Wait]:
        if at or not self._at_once:
            yield Wait(at)

    def _end(self) -> Iterator[Step]:
        given = self.given
        if not given.chunks or given.ended_at > given.chunks[-1].at:
            yield from self._until(given.ended_at)
        match given.ended:
            case "complete":
                return
            case "timeout":
                yield TimeoutError("no more was recorded") if self._at_once else Wait(None)
            case "cancelled":
                yield Broken("torn", "no more was recorded") if self._at_once else Wait(None)
            case how:
                yield Broken(how, f"the recorded connection was {how}")


class Playing:
    """An interaction on its way to a client, from now on; an Exchange."""

    rule = ""

    def __init__(self, course: Course, place: str = "") -> None:
        given = course.given
        self.status = given.status or 0
        self.headers: Headers = given.headers
        whole = first(given.headers, "content-length") is not None or len(given.chunks) < 2
        self.streamed = is_stream(given.headers) or not whole
        self.place = place
        self._began = asyncio.get_running_loop().time()
        self._gone = asyncio.Event()
        self._course = course
        self._steps = course.body()
        self._next: Step | None = None

    async def begin(self) -> None:
        """Wait for the head of the answer; Broken or TimeoutError where there is none."""
        for step in self._course.head():
            await self._do(step)
        self._next = next(self._steps, None)

    def __aiter__(self) -> Playing:
        return self

    async def __anext__(self) -> bytes:
        """The next chunk, when it comes; Broken where the connection breaks."""
        while (step := self._next) is not None and not self._gone.is_set():
            if isinstance(step, bytes):
                self._next = next(self._steps, None)
                return step
            await self._do(step)
            self._next = next(self._steps, None)
        raise StopAsyncIteration

    def ready(self) -> bytes | None:
        """The next chunk where it is there already, b"" behind the last one; else None."""
        while isinstance(step := self._next, Wait):
            if step.until is None or self._left(step.until) > 0:
                return None
            self._next = next(self._steps, None)
        if step is None:
            return b""
        if not isinstance(step, bytes):
            return None
        self._next = next(self._steps, None)
        return step

    async def aclose(self) -> None:
        """The client wants no more."""
        self._next = None
        self._gone.set()

    async def _do(self, step: Step) -> None:
        match step:
            case Wait(until=None):
                await self._gone.wait()
            case Wait(until=int(until)):
                await asyncio.sleep(self._left(until))
            case Broken() | TimeoutError():
                raise step
            case _:
                raise AssertionError("bytes are given, not done")

    def _left(self, until: int) -> float:
        """How many seconds it still is."""
        return max(until / SECOND - (asyncio.get_running_loop().time() - self._began), 0)


class Player:
    """Answers requests with what was recorded.

    `split` cuts every body into chunks of so many bytes. `faults` happen to interactions, by their
    place in the cassette, from 1. `now` gives seconds since 1970, for faults that tell of dates.
    UsageError where any of these makes no sense.
    """

    def __init__(
        self,
        library: Recorded,
        *,
        timing: Timing = "recorded",
        split: int | None = None,
        faults: Mapping[int, Fault] = MappingProxyType({}),
        now: Callable[[], float],
    ) -> None:
        check(timing, split, faults)
        for number, fault in faults.items():
            _check_place(library.interactions, number, fault)
        self._library = library
        self._factor = _factor(timing)
        self._split = split
        self._faults = faults
        self._now = now

    def course(self, request: Request) -> Course:
        """How the interaction goes on that answers a request now; CassetteMiss without one."""
        given = self._library.take(request)
        number = self._library.index_of(given) + 1
        played = scaled(given, self._factor)
        fault = self._faults.get(number)
        if fault is not None:
            played = laid_over(played, fault, self._now())
        if self._split is not None:
            played = resized(played, self._split)
        return Course(played, at_once=self._factor == 0, number=number, fault=fault)

    async def answer(self, request: Request) -> Playing:
        """Answer a request when the recorded answer began, counted from now.

        CassetteMiss where nothing was recorded for it, Broken or TimeoutError where no answer was.
        """
        playing = Playing(self.course(request))
        await playing.begin()
        return playing


def check(timing: Timing, split: int | None, faults: Mapping[int, Fault]) -> None:
    """Raise UsageError where options of a Player make no sense, whatever is played."""
    _factor(timing)
    if split is not None and (type(split) is not int or split < 1):
        raise UsageError(f"split is {split!r}; expected a number of bytes, from 1")
    if not isinstance(faults, Mapping):
        raise UsageError(
            f"faults is {an(type(faults).__name__)}; expected them by number: {{1: ...}}"
        )
    for number, fault in faults.items():
        if not isinstance(fault, get_args(Fault)):
            raise UsageError(
                f"the fault of interaction {number} is {fault!r}; expected a fault as in "
                "harness.fakes.wire_faults, such as Refused()"
            )


def _check_place(interactions: Sequence[Interaction], number: int, fault: Fault) -> None:
    """Raise UsageError where a fault cannot happen to the interaction of this number."""
    if number not in range(1, len(interactions) + 1):
        raise UsageError(
            f"there is no interaction {number!r} for the fault {fault_name(fault)}; "
            f"the cassette has {len(interactions)}, counted from 1"
        )
    laid_over(interactions[number - 1], fault)


def _factor(timing: Timing) -> float:
    match timing:
        case "recorded":
            return 1
        case "zero":
            return 0
        case int() | float() if 0 <= timing < math.inf:
            return timing
        case _:
            raise UsageError(
                f"timing is {timing!r}; expected recorded, zero, or a number from 0 by which the "
                "recorded times are multiplied"
            )
