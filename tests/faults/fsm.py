"""Faults of the state-machine loop, in what it sums up and in what its sub-agents do."""

from __future__ import annotations

from collections.abc import Sequence

from harness.loops.fsm.loop import Loop
from harness.loops.fsm.machine import Transition
from harness.loops.fsm.messages import Message


class KeepsTheLastResult(Loop):
    """Keeps the last message beside a summary, though it answers a call that is gone."""

    def _replace(self, messages: list[Message]) -> None:
        super()._replace([*messages, self.messages[-1]])


class SumsItsTaskUp(Loop):
    """Has the summary stand for all, also for what the user wants."""

    def _replace(self, messages: list[Message]) -> None:
        super()._replace(messages[:1])


class SaysItsSummary(Loop):
    """Puts its own words where the user's stand first."""

    def _replace(self, messages: list[Message]) -> None:
        super()._replace([Message("assistant", messages[0].content), *messages[1:]])


class SumsUpSummaries(Loop):
    """Keeps each summary beside the next."""

    def _replace(self, messages: list[Message]) -> None:
        header = self.session.texts.compact_header
        earlier = [each for each in self.messages if each.text().startswith(header)]
        super()._replace([*earlier, *messages])


class SumsUpAgain(Loop):
    """Compacts again where the last time was of no use."""


class TakesAnySummary(Loop):
    """Takes a summary that is longer than what it sums up."""


class EndsASubagentInSilence(Loop):
    """Says nothing of a sub-agent that has used up its rounds."""

    def done(self) -> None:
        super().done()
        if not self.top_level and self.info.budget:
            self.result = ""


class LeavesItsSubagents(Loop):
    """Stops, and lets its sub-agents work on."""

    def cancelled(self) -> bool:
        return self.top_level and super().cancelled()

    def transitions(self) -> Sequence[Transition[Loop]]:
        rows = super().transitions()
        return rows if self.top_level else [row for row in rows if row.test is not Loop.cancelled]
