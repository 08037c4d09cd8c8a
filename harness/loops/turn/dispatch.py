"""Running the calls of one reply: in batches, each call answered exactly once."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Sequence
from functools import partial

from harness.core.messages import ToolCall
from harness.loops.turn.cancel import Cancellation, Failed, Job, Ok
from harness.loops.turn.config import Texts
from harness.loops.turn.failure import message_of
from harness.loops.turn.journal import Journal
from harness.loops.turn.policy import Policy
from harness.loops.turn.registry import Dispatcher, ToolOutput


class Dispatch:
    """Runs the calls of one reply and writes what they came to, in the model's order."""

    def __init__(
        self,
        tools: Dispatcher,
        journal: Journal,
        cancellation: Cancellation,
        policy: Policy,
        texts: Texts,
    ) -> None:
        self._tools = tools
        self._journal = journal
        self._cancellation = cancellation
        self._policy = policy
        self._texts = texts
        self._answered: set[str] = set()
        """The ids under which results were written."""

    async def run(self, calls: Sequence[ToolCall], limit: int) -> bool:
        """Run `calls`, at most `limit` at once (1 or more); False where the turn was stopped.

        All calls are written before the first one starts. A batch is written when all of it is
        over, so the order in which its calls end is not seen.
        """
        for call in calls:
            self._journal.called(call)
        size = max(1, limit)
        for start in range(0, len(calls), size):
            if not self._policy.begin_after_abort and await self._cancellation.stopped_by_now():
                self._answer_rest(calls, start)
                return False
            if not await self._batch(calls[start : start + size]):
                self._answer_rest(calls, start + size)
                return False
        return True

    async def _batch(self, calls: Sequence[ToolCall]) -> bool:
        """Run one batch; False where the turn was stopped before all of it was over."""
        work = [self._refusal(call) or self._job(call) for call in calls]
        jobs = [job for job in work if isinstance(job, Job)]
        settled = await self._cancellation.settle(jobs)
        if settled or self._policy.results_per_call:
            for call, done in zip(calls, work, strict=True):
                if isinstance(done, Job):
                    self._answer(call, done)
                else:
                    self._journal.synthesized(call, done)
        return settled

    def _job(self, call: ToolCall) -> Job[ToolOutput]:
        dispatch = partial(self._tools.dispatch, call)
        return Job(dispatch, begins_anyway=self._policy.begin_after_abort)

    def _refusal(self, call: ToolCall) -> str | None:
        """Why the call cannot be run, or None."""
        if not self._policy.refuse_bad_arguments:
            return None
        if call.raw is not None:
            return self._texts.arguments_not_json
        if not isinstance(call.args, dict | None):
            return self._texts.arguments_no_object
        return None

    def _answer(self, call: ToolCall, job: Job[ToolOutput]) -> None:
        """Write what became of one call."""
        match job.ended:
            case Ok(value=output):
                self._record(call, output)
            case Failed(error=error) if not (job.given_up and isinstance(error, CancelledError)):
                self._record(call, ToolOutput(call.id, error=message_of(error)))
            case _:
                texts = self._texts
                self._journal.synthesized(
                    call, texts.interrupted if job.started else texts.cancelled_before_execution
                )

    def _record(self, call: ToolCall, output: ToolOutput) -> None:
        call_id = call.id if self._policy.results_per_call else output.call_id
        self._answered.add(call_id)
        self._journal.answered(call_id, output)

    def _answer_rest(self, calls: Sequence[ToolCall], done: int) -> None:
        """Answer what an abandoned step left open, of which `done` calls were in a batch."""
        if self._policy.results_per_call:
            self._answer_unstarted(calls[done:])
        else:
            self._answer_unstarted([call for call in calls if call.id not in self._answered])

    def _answer_unstarted(self, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            self._journal.synthesized(call, self._texts.cancelled_before_execution)
