"""The fakes of a run as a synchronous agent uses them: each call waits, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from harness.core.choices import Choices
from harness.core.errors import UsageError, unknown
from harness.core.json_text import Json, copy, loads
from harness.core.messages import ModelRequest, ToolSchema
from harness.core.reply import ReplyPart
from harness.core.trace import Recorder
from harness.fakes.model import FakeModel, ReplyStream
from harness.fakes.place import Stage
from harness.fakes.tool_spec import ToolSpec
from harness.fakes.tools import FakeTools
from harness.runner.blocking import Blocking
from harness.sim.clock import VirtualClock
from harness.sim.kernel import Kernel


class RunModel:
    """The fake model; implements `harness.core.ports.SyncModel`."""

    def __init__(self, model: FakeModel, blocking: Blocking) -> None:
        self._model = model
        self._blocking = blocking

    def generate(self, request: ModelRequest) -> RunReply:
        """Answer `request`, as `FakeModel.generate` does."""
        stream = self._blocking.call(lambda: self._model.generate(request), abortable=True)
        return RunReply(stream, self._blocking)


class RunReply:
    """One reply as it comes: an iterator over its parts, with `close`."""

    def __init__(self, stream: ReplyStream, blocking: Blocking) -> None:
        self._stream = stream
        self._blocking = blocking

    def __iter__(self) -> RunReply:
        return self

    def __next__(self) -> ReplyPart:
        try:
            return self._blocking.call(self._stream.__anext__, abortable=True)
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self) -> None:
        """Read no more; this takes no time, and no cancel can come between."""
        with suppress(StopIteration):
            self._stream.aclose().send(None)


class RunTools(FakeTools):
    """The fake tools; implements the whole of `harness.core.ports.Tools`."""

    def __init__(
        self,
        specs: Iterable[ToolSpec],
        stage: Stage,
        recorder: Recorder,
        choices: Choices,
        blocking: Blocking,
    ) -> None:
        super().__init__(specs, stage, recorder, choices)
        self._blocking = blocking
        self._written: dict[str, list[Any]] = {}

    def schemas(self, provider: str = "neutral") -> Sequence[Any]:
        """What to tell a model about the tools, sorted by name: in the neutral form, or as what a
        request of a protocol (`openai_chat`, `anthropic`, …) has under its `tools`.
        """
        if provider == "neutral":
            return super().schemas()
        written = self._written.get(provider)
        if written is None:
            written = self._written[provider] = _written(provider, tuple(super().schemas()))
        return [*copy(written)]

    def call_sync(self, name: str, args: Json, call_id: str | None = None) -> Json:
        """Run a tool, as `call` does, and wait for it."""
        return self._blocking.call(lambda: self.call(name, args, call_id), abortable=True)

    def start(self, name: str, args: Json, call_id: str | None = None) -> RunningTool:
        """Have a tool run beside the agent, in a task of its own."""
        values: list[Json] = []

        async def run() -> None:
            values.append(await self.call(name, args, call_id))

        async def begin() -> asyncio.Task[None]:
            return asyncio.create_task(run())

        return RunningTool(self._blocking.call(begin, abortable=True), values, self._blocking)


def _written(provider: str, tools: tuple[ToolSchema, ...]) -> list[Any]:
    """The tools as a protocol writes them."""
    from harness.wire import CODECS  # only for agents that speak one
    from harness.wire.codec import Asked

    codec = next((each for each in CODECS if each.name == provider), None)
    if codec is None:
        names = ["neutral", *[each.name for each in CODECS]]
        raise UsageError(unknown("provider", provider, names))
    body = loads(codec.write(Asked(ModelRequest("m", "", (), tools))).body)
    return body.get("tools", [])  # type: ignore[no-any-return]


class RunningTool:
    """A tool that runs beside the agent; `values` gets its one value.

    To asyncio, a task that is cancelled as it ends is cancelled, though it has its value.
    """

    def __init__(
        self, task: asyncio.Task[None], values: Sequence[Json], blocking: Blocking
    ) -> None:
        self._task = task
        self._values = values
        self._blocking = blocking

    def wait(self) -> Json:
        """Wait until the tool has ended and give its value; raises what it raised."""
        self.join()
        return self.result()

    def join(self) -> None:
        """Wait until the tool has ended, however it does."""
        if not self._task.done():
            self._blocking.call(lambda: asyncio.wait([self._task]), abortable=True)

    def result(self) -> Json:
        """The value of a tool that has ended; raises what it raised."""
        if self._values:
            return self._values[0]
        return self._task.result()

    def then(self, told: Callable[[], None]) -> None:
        """Call `told` as soon as the tool has ended."""
        self._task.add_done_callback(lambda _task: told())

    def done(self) -> bool:
        """Whether the tool has ended."""
        return self._task.done()

    def cancel(self) -> None:
        """Tell the tool to stop; how it does, is its own affair."""
        self._task.cancel()


class RunClock(VirtualClock):
    """The virtual clock, with a wait for synchronous agents."""

    __slots__ = ("_blocking",)

    def __init__(self, kernel: Kernel, blocking: Blocking) -> None:
        super().__init__(kernel)
        self._blocking = blocking

    def wait(self, nanoseconds: int) -> None:
        """Wait; 0 still lets others run."""
        self._blocking.call(lambda: self.sleep(nanoseconds), abortable=True)
