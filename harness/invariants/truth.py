"""What the model is told of its calls, held against what the tools did."""

from __future__ import annotations

import re

from harness.core.events import CancelRequested, ToolStarted, TurnEnded
from harness.core.json_text import dumps
from harness.core.messages import Message
from harness.invariants.conversation import in_quotes
from harness.invariants.invariant import Facts
from harness.invariants.reader import Here, on
from harness.invariants.steps import EMPTY, Run, Slot, Step, StepFold

NEVER_RAN = re.compile(
    r"\bbefore (?:execution|it (?:ran|was run|started|could (?:run|start)))\b"
    r"|(?<!may )(?<!might )\b(?:not|never) (?:been )?(?:run|ran|executed|started)\b(?! to\b)",
    re.IGNORECASE,
)
"""What a result says of a call that it claims never to have run. An open question ("it may have
run") is none of these.
"""

NO_SUCCESS = re.compile(
    r"error|exception|fail|cancel|abort|interrupt|stop|halt|kill|skip|omit|discard|supersede|"
    r"den(?:y|ied)|refus|reject|invalid|unknown|missing|lost|pending|running|unfinished|incomplete|"
    r"declin|block|approv|permission|policy|forbid|wrong|"
    r"unavailable|unable|time[d -]*out|without|n't\b|n\u2019t\b|\b(?:no|not|never|cannot)\b",
    re.IGNORECASE,
)
"""What makes a result anything but a claim of success: it is read in the agent's favour."""

OWN_LIMIT = re.compile(r"time[d -]*out|time limit|too l(?:ong|arge)", re.IGNORECASE)
"""How an agent says that it gave up on a tool, or on its value, by a rule of its own."""


class _Told(StepFold):
    """Judges answers, knowing when turns were cancelled and when they ended, in virtual time, and
    of which tools the runs were matched with calls by their arguments alone.
    """

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.cancelled: dict[int, int] = {}
        self.ended: dict[int, int] = {}
        self.inferred: set[str] = set()

    @on(CancelRequested)
    def cancel(self, event: CancelRequested) -> None:
        """Remember a cancel."""
        self.cancelled.setdefault(event.turn, self.here.entry.at)

    @on(TurnEnded)
    def end(self, event: TurnEnded) -> None:
        """Remember a turn's end."""
        self.ended[event.turn] = self.here.entry.at

    @on(ToolStarted)
    def started(self, event: ToolStarted) -> None:
        """Remember a run that was given no call id."""
        if event.inferred:
            self.inferred.add(event.name)

    def touched(self, step: Step) -> list[Slot]:
        """The calls that came to grief without a cancel, though not alone: they may have taken
        their siblings with them.
        """
        if len(step.slots) < 2 or step.turn in self.cancelled:
            return []
        return [slot for slot in step.slots if slot.ended and slot.ended.end != "returned"]

    def falsified(self, step: Step, slot: Slot) -> bool:
        """Whether a call that returned in time is shown as an error."""
        if slot.answer is None or slot.shared or not _shows_error(slot.answer):
            return False
        runs = [run for run in slot.runs if run.ended and run.ended.end == "returned"]
        return bool(runs) and not any(self.excused(step, slot.answer, run) for run in runs)

    def excused(self, step: Step, answer: Message, run: Run) -> bool:
        """Whether there is a reason not to show what a run returned: it came too late, it is
        nothing, it reads as an error itself, or the agent has a limit of its own.
        """
        cancelled = self.cancelled.get(step.turn)
        ended = self.ended.get(step.turn)
        return (
            (cancelled is not None and cancelled <= run.ended_at)
            or (ended is not None and ended < run.ended_at)
            or run.ended is None
            or run.ended.value in EMPTY
            or "error" in _own_text(run).lower()
            or OWN_LIMIT.search(answer.text) is not None
        )


class OutcomeTruth(_Told):
    """What a request says of a call agrees with its tool: what returned is no error, what never
    came back is no success, and what had started is not said never to have run.

    How a value is spelled is the agent's business. A tool's own failure is FAIL-VISIBLE's, a
    sibling's is SIBLING's, and an id that several calls share is SLOT's to judge.
    """

    id = "OUTCOME-TRUTH"

    def take(self, step: Step) -> None:
        """Judge each answer that the next request shows."""
        for slot in step.slots:
            if slot.answer is None or slot.shared:
                continue
            self.judged = True
            untrue = self.untrue(step, slot, slot.answer)
            if untrue:
                # Where no tool ran, the agent may answer from what it knows: a cache, a rule.
                severity = self.severity if slot.runs else "soft"
                self.report(f"{slot.name} {untrue}", step.answered_at, step.turn, severity)

    def untrue(self, step: Step, slot: Slot, answer: Message) -> str | None:
        """What is wrong with an answer, or None."""
        if not slot.runs:
            success = self.would_be_seen(slot.call.name) and _shows_success(answer)
            return "is shown as a success, but no tool ran for it" if success else None
        if NEVER_RAN.search(answer.text) and not any(
            NEVER_RAN.search(_own_text(run)) for run in slot.runs
        ):
            return f"is said never to have run ({in_quotes(answer.text)}), but its tool had started"
        ends = {run.ended.end if run.ended else None for run in slot.runs}
        if ends <= {None, "cancelled"}:
            success = _shows_success(answer)
            return "is shown as a success, but its tool never came back" if success else None
        if not self.touched(step) and self.falsified(step, slot):
            return f"returned, but is shown as an error ({in_quotes(answer.text)})"
        return None

    def would_be_seen(self, tool: str) -> bool:
        """Whether a run of a tool for a call could not have escaped notice: the tool is one of the
        scenario's, and its runs are never matched with another call that is like it.
        """
        return tool in (self.facts.tools or ()) and tool not in self.inferred


class Sibling(_Told):
    """A call that fails or is cancelled by itself takes nothing from the others of its reply: what
    they returned is shown as it is, and none of them is cancelled for it while the turn goes on.

    A reply that is gone as a whole is EFFECT-KEPT's or DURABLE's to judge, a call that is shown
    without an answer PAIR's.
    """

    id = "SIBLING"

    def take(self, step: Step) -> None:
        """Judge the siblings of calls that came to grief."""
        touched = self.touched(step)
        for slot in step.slots:
            others = [other for other in touched if other is not slot]
            if not others or not slot.runs:
                continue
            self.judged = True
            wrong = self.wrong(step, slot, others)
            if wrong:
                self.report(f"{slot.name} {wrong}", step.answered_at, step.turn)

    def wrong(self, step: Step, slot: Slot, others: list[Slot]) -> str | None:
        """What a call lost to its siblings, or None."""
        because = f"{others[0].name} {_ended(others[0])}"
        if self.falsified(step, slot):
            return f"returned, but is shown as an error since {because}"
        ended = slot.ended
        if ended is None or slot.shared:
            return None
        gone = step.structured and slot.shown is None and slot.answer is None
        if gone and ended.end == "returned":
            return f"returned, but the next request does not show it since {because}"
        if ended.end == "cancelled" and step.went_on and not step.disturbed:
            at = slot.runs[-1].ended_at
            for other in others:
                if _ended(other) == "failed" and other.runs[-1].ended_at == at:
                    return f"was cancelled when {other.name} failed"
        return None


def _ended(slot: Slot) -> str:
    assert slot.ended is not None
    return "was cancelled" if slot.ended.end == "cancelled" else "failed"


def _shows_error(answer: Message) -> bool:
    return answer.is_error or answer.text.lstrip(" [<({\"'").lower().startswith("error")


def _shows_success(answer: Message) -> bool:
    return (
        not answer.is_error and answer.text.strip() != "" and NO_SUCCESS.search(answer.text) is None
    )


def _own_text(run: Run) -> str:
    """What the tool itself said, as a value or as an error."""
    ended = run.ended
    if ended is None:
        return ""
    if ended.error is not None:
        return ended.error
    return ended.value if isinstance(ended.value, str) else dumps(ended.value)
