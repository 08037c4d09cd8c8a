"""The threads of a run, seen from inside: whose code is at work, and how it waits.

An actor is a thread whose code runs while nothing else of the run does. It waits by handing over to
the kernel, which does the waiting in virtual time and gives it back its turn. One that was told to
end gets `Unfinished` from each call.
"""

from __future__ import annotations

import threading
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from harness.sim import where
from harness.sim.where import Line

if TYPE_CHECKING:
    from harness.sim.locks import Lock
    from harness.sim.threads import Threads

Work: TypeAlias = Callable[[], Awaitable[Any]]
"""What is awaited in an actor's place, under the kernel."""

_here = threading.local()


class Unfinished(BaseException):
    """Raised in code whose run is over: what it waits for does not come.

    Code that catches it gets it again from its next call.
    """


class Actor:
    """A thread of a run, at `path`.

    `switches` counts the places at which others could go first. While `inside` is not 0 its code is
    within one operation of a lock, a queue or their like, which has been such a place as a whole.
    `held` are the locks that it has acquired, `wanted` is one that it waits for and did not lock.
    `loop` is what `asyncio.get_event_loop` gives it.
    """

    def __init__(self, kernel: Threads, path: str) -> None:
        self.kernel = kernel
        self.path = path
        self.inside = 0
        self.switches = 0
        self.held: dict[Lock, None] = {}
        self.wanted: Lock | None = None
        self.loop: AbstractEventLoop | None = None
        self.loop_was_set = False

    def call(self, work: Work, *, abortable: bool = False) -> Any:
        """Hand over, have `work` awaited, and give what it gives; raises what it raises.

        What is `abortable` may be broken off, by an actor that knows how.
        """
        raise NotImplementedError

    def child_path(self) -> str:
        """A path for a thread that this one starts."""
        raise NotImplementedError

    def switch(self) -> None:
        """Let others go first, if it is their turn.

        Where the run is over nobody else has one, and code that ends may take locks that are free.
        Nor has anybody where a module is loaded: later runs would go another way.
        """
        if not (self.inside or where.loads(2) or self.at_end()):
            self.switches += 1
            if not self.passes():
                self.call(self._moment)

    def passes(self) -> bool:
        """Whether nobody could go first, and nothing is to happen here; then it has gone on."""
        raise NotImplementedError

    def steps(self) -> bool:
        """The same where it is a call that only lets others go on."""
        return self.passes()

    def at_end(self) -> bool:
        """Whether the run is over for it, and was not asked for too often since."""
        raise NotImplementedError

    def _moment(self) -> Awaitable[None]:
        return self.kernel.moment(self)


def current() -> Actor | None:
    """The actor whose own code is at work in this thread; None in the kernel, and outside."""
    return getattr(_here, "actor", None)


def become(actor: Actor | None) -> Actor | None:
    """From here on the code of this thread is the actor's; gives the one whose it was before."""
    before = getattr(_here, "actor", None)
    _here.actor = actor
    return before


class Shown(Generator[Any, Any, Any]):
    """What is awaited for an actor; those who follow the chain of awaits see the actor's line."""

    def __init__(self, actor: Actor, line: Line | None, awaited: Awaitable[Any]) -> None:
        self.actor = actor
        self.move(line)
        self.gi_yieldfrom = awaited
        self._steps = awaited.__await__()

    def move(self, line: Line | None) -> None:
        """The actor is at another line by now."""
        self.gi_frame = None if line is None else _Line(*line)

    def __await__(self) -> Shown:
        return self

    def send(self, value: Any) -> Any:
        """Go on."""
        return self._steps.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise something in what is awaited."""
        return self._steps.throw(*error)


class _Line(Struct, frozen=True):
    """The line of the actor that waits, where a report looks for a frame."""

    f_code: Any
    f_lasti: int
