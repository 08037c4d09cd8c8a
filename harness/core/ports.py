"""The seams: what a loop is given, and what a user's agent looks like."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from harness.core.events import InsideEvent
from harness.core.json_text import Json
from harness.core.messages import Message, ModelRequest
from harness.core.reply import ReplyPart
from harness.core.rows import Row

T = TypeVar("T")


class Model(Protocol):
    """A language model, for asynchronous loops."""

    def generate(self, request: ModelRequest) -> Awaitable[AsyncIterator[ReplyPart]]:
        """Ask for a reply; the awaitable fails where the request does, the iterator where the
        stream does.
        """
        ...


class SyncReply(Iterator[ReplyPart], Protocol):
    """The parts of one reply, for synchronous loops."""

    def close(self) -> None:
        """Read no more; harmless where the reply has ended."""
        ...


class SyncModel(Protocol):
    """A language model, for synchronous loops."""

    def generate(self, request: ModelRequest) -> SyncReply:
        """Ask for a reply; fails where the request does, the iterator where the stream does."""
        ...


class Started(Protocol):
    """A tool that runs beside a synchronous loop."""

    def wait(self) -> Json:
        """Wait until it has ended and give its value, as `result` does."""
        ...

    def join(self) -> None:
        """Wait until it has ended, however it does."""
        ...

    def result(self) -> Json:
        """What it gave, once it has ended; raises what a tool that fails raises, CancelledError
        where it was told to stop.
        """
        ...

    def then(self, told: Callable[[], None]) -> None:
        """Call `told` as soon as it has ended."""
        ...

    def done(self) -> bool:
        """Whether it has ended."""
        ...

    def cancel(self) -> None:
        """Tell it to stop."""
        ...


class Tools(Protocol):
    """The tools of a run."""

    async def call(self, name: str, args: Json, call_id: str | None = None) -> Json:
        """Run a tool and give its value; a tool that fails raises.

        An agent that knows the id of the model's call passes it, so that two equal calls are
        told apart.
        """
        ...

    def call_sync(self, name: str, args: Json, call_id: str | None = None) -> Json:
        """Run a tool, as `call` does, for synchronous loops."""
        ...

    def start(self, name: str, args: Json, call_id: str | None = None) -> Started:
        """Have a tool run beside a synchronous loop."""
        ...

    def functions(self) -> Mapping[str, Callable[..., Awaitable[Json]]]:
        """The tools as plain async functions of keyword arguments, for frameworks that want
        functions.
        """
        ...

    def schemas(self, provider: str = "neutral") -> Sequence[Any]:
        """What to tell a model about the tools, sorted by name."""
        ...


class ToolFailed(Exception):
    """What `Tools.call` raises where a tool answers with an error; the text is the tool's own."""


class ProviderFailed(Exception):
    """What a model raises where its provider fails, at the request or in the stream."""


class Aborted(Exception):
    """What a synchronous loop's call raises where `Env.abort` broke it off."""


class SessionLog(Protocol):
    """What a turn loop remembers; append-only, synchronous."""

    def append(self, row: Row) -> None:
        """Write a row."""
        ...

    def rows(self) -> Sequence[Row]:
        """All rows so far, as a copy."""
        ...

    def derive_messages(self) -> tuple[Message, ...]:
        """The conversation that the rows mean, as a model should see it."""
        ...

    def next_turn_id(self) -> str:
        """A fresh id, ``turn-<n>``; never one that was given before, even after `clear`."""
        ...

    def clear(self) -> None:
        """Forget all rows."""
        ...


class Clock(Protocol):
    """Time, real or virtual."""

    def now(self) -> int:
        """Nanoseconds since an arbitrary point; never goes back."""
        ...

    async def sleep(self, nanoseconds: int) -> None:
        """Wait."""
        ...

    def wait(self, nanoseconds: int) -> None:
        """Wait, in a synchronous loop."""
        ...


class Agent(Protocol):
    """An agent under test. Only `turn` is required.

    Optional: ``cancel()``, its native stop, callable from anywhere; ``outcome(value)``, to say
    what a turn's returned value means; ``close()``.
    """

    def turn(self, text: str | None) -> Any:
        """Play one user turn; None resumes. A coroutine function runs under the kernel; a plain
        one runs in the runner's own frame, and waits by what the env has for that.
        """
        ...


class Env(Protocol):
    """What an agent is given, fresh for every run."""

    @property
    def model(self) -> Model:
        """The fake model, at the neutral port."""
        ...

    @property
    def model_sync(self) -> SyncModel:
        """The fake model, for synchronous loops."""
        ...

    @property
    def tools(self) -> Tools:
        """The fake tools."""
        ...

    @property
    def clock(self) -> Clock:
        """The run's virtual clock."""
        ...

    @property
    def base_url(self) -> str:
        """The address of the run's provider, without a path; for `http` any other does as well."""
        ...

    def http(self, library: str = "httpx2", *, sync: bool = False) -> Any:
        """A client of `httpx2` or `httpx`, to hand to a provider's SDK: what it is asked for, the
        run's provider answers from the script, in virtual time and without a network.

        An AsyncClient, or with `sync` a Client, for the turn of a synchronous agent and threads.
        """
        ...

    def observe(self, event: InsideEvent) -> None:
        """Report what happens inside the loop; optional, and judged where it is there. In the
        code of a synchronous loop, others go on for a moment.
        """
        ...

    def block(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do what is asynchronous, in a synchronous loop's turn, and wait for it."""
        ...

    def abort(self) -> None:
        """Break off the calls to the model, to a tool or the clock that a synchronous loop's turn
        and its threads wait for; callable from anywhere, as from `Agent.cancel`.
        """
        ...


Build: TypeAlias = Callable[[Env], Agent]
"""Builds an agent anew for one run; what the agent stores lives through that run's turns."""
