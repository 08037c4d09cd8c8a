"""Reading one reply of the model: what each part does, and what the reply has come to."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from harness.core.messages import Message, ModelRequest, Thinking, ToolCall
from harness.core.outcome import INTERRUPTED, Error, Interrupted
from harness.core.ports import Model
from harness.core.reply import (
    ReplyDone,
    ReplyFailed,
    ReplyInterrupted,
    ReplyPart,
    TextDelta,
    ThinkingDelta,
    UsageReport,
)
from harness.loops.turn.cancel import Cancellation, drop
from harness.loops.turn.failure import message_of
from harness.loops.turn.journal import Journal
from harness.loops.turn.policy import Policy
from harness.loops.turn.usage import UsageTracker


class Reader:
    """Asks the model and takes in its reply, part by part, in one task.

    Its state is the reply so far, and stays readable however the reading ended: `ended` says
    whether the reply came to an end before the turn was stopped, `noticed` whether the reader saw
    that stop and reads no more, `terminal` whether the end was a failure, `done` is the last whole
    message, `texts` and `calls` are what counts of it.
    """

    def __init__(
        self,
        model: Model,
        journal: Journal,
        usage: UsageTracker | None,
        cancellation: Cancellation,
        policy: Policy,
    ) -> None:
        self.ended = False
        self.noticed = False
        self.terminal: Error | Interrupted | None = None
        self.done: Message | None = None
        self.texts: list[str] = []
        self.calls: list[ToolCall] = []
        self.signed: list[Thinking] = []
        self._thinking: list[str] = []
        self._model = model
        self._journal = journal
        self._usage = usage
        self._cancellation = cancellation
        self._policy = policy

    @property
    def has_text(self) -> bool:
        """Whether the done message says anything that must be kept, beside its calls."""
        return any(self.texts) or bool(self.signed)

    async def read(self, request: ModelRequest) -> None:
        """Ask, and read until the reply's end, its failure or the turn's stop.

        Raises what `generate` raises when it is called (not when it is awaited), and what log or
        consumer raise.
        """
        stream = await self._ask(request)
        if stream is None:
            return
        try:
            await self._pump(stream)
        finally:
            failed = self.terminal is not None and self._policy.close_stopped_streams
            if failed or not self.ended:
                await _close(stream)

    def fail(self, kind: str, error: BaseException) -> None:
        """The reply broke with `error`."""
        self.terminal = Error(kind, message_of(error))
        self.ended = True

    def flush(self) -> None:
        """End the burst of reasoning, if there is one."""
        if any(self._thinking):
            self._journal.burst(self._thinking)
        self._thinking = []

    async def _ask(self, request: ModelRequest) -> AsyncIterator[ReplyPart] | None:
        work = self._model.generate(request)
        if self._notice():
            drop(work)
            return None
        try:
            return await work
        except CancelledError as error:
            if not self._cancellation.stopped():
                self.fail("generate", error)
            raise
        except Exception as error:
            if not self._cancellation.stopped():
                self.fail("generate", error)
            return None

    async def _pump(self, stream: AsyncIterator[ReplyPart]) -> None:
        cancellation = self._cancellation
        parts = aiter(stream)
        while not self._notice():
            part: ReplyPart | None = None
            try:
                part = await anext(parts)
            except StopAsyncIteration:
                pass
            except CancelledError as error:
                if not cancellation.stopped():
                    self.fail("stream", error)
                raise
            except Exception as error:
                if not cancellation.stopped():
                    self.fail("stream", error)
                return
            if self._notice():
                return
            if part is None or self._take(part):
                self.ended = True
                return

    def _notice(self) -> bool:
        """Whether the turn was stopped, and so nothing more is read."""
        self.noticed = self._cancellation.stopped()
        return self.noticed

    def _take(self, part: ReplyPart) -> bool:
        """Handle one part; True where nothing after it is read."""
        match part:
            case TextDelta(text=text):
                self.flush()
                self._journal.text(text)
            case ThinkingDelta(text=text):
                self._thinking.append(text)
                self._journal.thinking(text)
            case UsageReport(usage=usage):
                if self._usage is not None:
                    self._usage.record(usage)
            case ReplyDone(message=message):
                self.flush()
                self._finish(message)
            case ReplyFailed(kind=kind, message=message):
                self.flush()
                self.terminal = Error(kind, message)
                return True
            case ReplyInterrupted():
                self.flush()
                self.terminal = INTERRUPTED
                return True
        return False

    def _finish(self, message: Message) -> None:
        if self._policy.last_done_counts:
            self.texts, self.calls, self.signed = [], [], []
        self.done = message
        self.texts.append(message.text)
        self.calls += message.calls
        if self._policy.keep_signed_thinking:
            self.signed += [
                block
                for block in message.content
                if isinstance(block, Thinking) and block.signature is not None
            ]


async def _close(stream: Any) -> None:
    """Close a stream that is not read to its end; its failure to close is nobody's."""
    close = getattr(stream, "aclose", None)
    if close is not None:
        with suppress(Exception):
            await close()
