"""One turn: its steps, what ends each of them, and its one way out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from harness.core.messages import ModelRequest
from harness.core.outcome import CANCELLED, COMPLETED, INTERRUPTED, STEP_LIMIT, Error, Outcome
from harness.loops.turn.cancel import Cancellation, Failed, Job
from harness.loops.turn.config import AgentConfig, Texts
from harness.loops.turn.context import Seams
from harness.loops.turn.dispatch import Dispatch
from harness.loops.turn.failure import message_of
from harness.loops.turn.journal import Journal
from harness.loops.turn.policy import Policy
from harness.loops.turn.reader import Reader
from harness.loops.turn.usage import UsageTracker


class Turn:
    """One turn being played; use it once.

    `request` gives the next request. The turn's task waits in two places only: once a step for the
    reply, once a batch for its tools.
    """

    def __init__(
        self,
        seams: Seams,
        journal: Journal,
        cancellation: Cancellation,
        usage: UsageTracker | None,
        request: Callable[[], ModelRequest],
        config: AgentConfig,
        policy: Policy,
        texts: Texts,
    ) -> None:
        self._seams = seams
        self._journal = journal
        self._cancellation = cancellation
        self._usage = usage
        self._request = request
        self._config = config
        self._policy = policy
        self._texts = texts

    async def play(self, text: str | None) -> Outcome:
        """Play the turn and give its outcome; the end is written, and then told, exactly once.

        What a seam throws where it must not ends the turn as an error and is raised again; so is
        the CancelledError of the turn's own task, once the rows are written.
        """
        cancellation = self._cancellation
        turn_id = self._seams.log.next_turn_id()
        try:
            self._journal.started(turn_id, text)
            outcome = await self._steps()
        except Exception as error:
            # The seam that threw may be the log or the consumer and throw again: its first
            # error is the one to hear of.
            with suppress(Exception):
                self._journal.ended(turn_id, Error("generate", message_of(error)))
            if cancellation.native is not None:
                raise cancellation.native from error
            raise
        self._journal.ended(turn_id, outcome)
        if cancellation.native is not None:
            raise cancellation.native
        return outcome

    async def _steps(self) -> Outcome:
        limit, taken = self._config.max_steps, 0
        while True:
            spent = 0 < limit <= taken
            if spent and not (self._cancellation.stopped() and self._policy.cancel_before_limit):
                return STEP_LIMIT
            if self._cancellation.stopped():
                return CANCELLED
            taken += 1
            outcome = await self._step()
            if outcome is not None:
                return outcome

    async def _step(self) -> Outcome | None:
        """Ask the model once and run what it asks for; None where the turn goes on."""
        request = self._request()
        if not self._policy.begin_after_abort and await self._cancellation.stopped_by_now():
            return CANCELLED
        reader = await self._read(request)
        if self._cancellation.native is not None or not reader.ended:
            if self._policy.keep_announced and reader.done is not None:
                self._keep(reader, self._texts.cancelled_before_execution)
            return CANCELLED
        if reader.done is None:
            return reader.terminal or INTERRUPTED
        if not reader.calls:
            self._journal.reply(reader.texts, reader.signed)
            return reader.terminal or COMPLETED
        if reader.terminal is not None:
            if self._policy.keep_announced:
                self._keep(reader, self._texts.reply_failed)
            return reader.terminal
        if self._policy.keep_text_beside_calls and reader.has_text:
            self._journal.reply(reader.texts, reader.signed)
        dispatch = Dispatch(
            self._seams.tools, self._journal, self._cancellation, self._policy, self._texts
        )
        ran = await dispatch.run(reader.calls, self._config.max_parallel_tool_calls)
        return None if ran else CANCELLED

    async def _read(self, request: ModelRequest) -> Reader:
        """Let one task ask and read; what it had read when the turn was stopped still counts."""
        cancellation = self._cancellation
        reader = Reader(self._seams.model, self._journal, self._usage, cancellation, self._policy)
        job = Job(
            lambda: reader.read(request),
            noticed=lambda: reader.noticed,
            begins_anyway=self._policy.begin_after_abort,
        )
        await cancellation.settle([job])
        match job.ended:
            case Failed(error=Exception() as error):
                raise error
            case Failed(error=error) if not (reader.ended or cancellation.stopped()):
                reader.fail("generate", error)
            case _:
                pass
        reader.flush()
        if reader.done is not None:
            self._journal.done(reader.done)
        return reader

    def _keep(self, reader: Reader, why: str) -> None:
        """Write down a reply that the consumer was told of, though nothing more comes of it.

        Its calls were told too, as part of the reply: each gets its row and, since a call without
        a result would poison the conversation, a result that says `why` it did not run.
        """
        if reader.has_text or not reader.calls:
            self._journal.reply(reader.texts, reader.signed)
        for call in reader.calls:
            self._journal.called(call)
        for call in reader.calls:
            self._journal.synthesized(call, why)
