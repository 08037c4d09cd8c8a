"""The turn loop with one thing gone wrong at one of its seams, truthfully reported all the same.

Each is to be noticed by snapshots of a run in which the loop as it is does well.
"""

from collections.abc import Sequence

from harness.core.cancel_signal import CancelSignal
from harness.core.events import InsideEvent, LogRow
from harness.core.messages import Message
from harness.core.outcome import CANCELLED, COMPLETED, Outcome
from harness.core.ports import Env
from harness.core.rows import Row, ToolResultRow
from harness.loops.turn.agent import registry_of
from harness.loops.turn.config import default_config
from harness.loops.turn.log import MemoryLog
from harness.loops.turn.loop import Bindings, create_loop
from harness.loops.turn.trim import Trimmed, TrimOutcome, trim

CONFIG = default_config(context_window_tokens=200, context_keep_recent=1, system_prompt="")


class ReportingLog(MemoryLog):
    """A log that itself reports the rows that it holds, as it holds them."""

    def __init__(self, env: Env) -> None:
        super().__init__()
        self._env = env

    def append(self, row: Row) -> None:
        super().append(row)
        self._env.observe(LogRow(row))


class Sound:
    """The turn loop, put together from its seams; nothing is wrong with it."""

    make_log = ReportingLog
    trim = None

    def __init__(self, env: Env) -> None:
        self._env = env
        self._log = self.make_log(env)
        self._tools = registry_of(env.tools)
        self._signal = CancelSignal()

    async def turn(self, text: str | None) -> Outcome:
        bindings = Bindings(signal=self._signal, observe=self._observe, trim=self.trim)
        loop = create_loop(self._env.model, self._log, self._tools, CONFIG, bindings)
        try:
            return await loop.run(text)
        finally:
            self._signal = CancelSignal()

    def cancel(self) -> None:
        self._signal.abort()

    def _observe(self, event: InsideEvent) -> None:
        if not isinstance(event, LogRow):  # the log does that
            self._env.observe(event)


class SwappingLog(ReportingLog):
    """Holds the first of two results back until the second is written."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._held: list[Row] = []

    def append(self, row: Row) -> None:
        if isinstance(row, ToolResultRow) and not self._held:
            self._held = [row]
            return
        after = isinstance(row, ToolResultRow)
        for each in (row, *self._held) if after else (*self._held, row):
            super().append(each)
        self._held = []


class SwapsTwoRows(Sound):
    """Writes the results of two parallel calls in the other order."""

    make_log = SwappingLog


class SaysCompleted(Sound):
    """Ends a cancelled turn as a completed one."""

    async def turn(self, text: str | None) -> Outcome:
        outcome = await super().turn(text)
        return COMPLETED if outcome == CANCELLED else outcome


class CutsOneTooMuch(Sound):
    """Cuts its history one message after the place where it should."""

    @staticmethod
    def trim(
        messages: Sequence[Message], system: int, window: int, threshold: float, keep: int
    ) -> Trimmed:
        kept, outcome = trim(messages, system, window, threshold, keep)
        if not outcome.trimmed:
            return kept, outcome
        removed = TrimOutcome(outcome.removed_messages + 1, outcome.removed_tokens, trimmed=True)
        return (kept[0], *kept[2:]), removed


class ForgetfulLog(ReportingLog):
    """Does not write a result that is an error."""

    def append(self, row: Row) -> None:
        if not (isinstance(row, ToolResultRow) and row.error is not None):
            super().append(row)


class MissesASynthesizedRow(Sound):
    """Says that a call was answered in the tool's place, and does not write it down."""

    make_log = ForgetfulLog
