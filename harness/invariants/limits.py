"""What a turn may spend: requests, tool runs, tools at a time, and the same again and again."""

from __future__ import annotations

from harness.core.events import RequestSent, ToolEnded, ToolStarted, TurnEnded, TurnStarted
from harness.core.outcome import StepLimit
from harness.invariants.conversation import in_quotes, said
from harness.invariants.invariant import Facts, Fold
from harness.invariants.reader import Here, on
from harness.invariants.requests import RequestFold, Sent
from harness.invariants.steps import Step, StepFold


class Limit(Fold):
    """A turn takes no more steps than its budget has, and ends as step_limit only when that is
    spent.

    A request that is sent again for the same place in the script is no step of its own.
    """

    id = "LIMIT"
    needs = (RequestSent, ToolStarted, TurnEnded, TurnStarted)

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        assert facts.budget.steps is not None
        self.steps = facts.budget.steps
        self.places: set[str] = set()
        """The places in the script that the turn's requests have come to."""
        self.runs = 0

    @classmethod
    def applies(cls, facts: Facts) -> bool:
        """Where there is a budget of steps."""
        return facts.budget.steps is not None

    @on(TurnStarted)
    def begin(self, _event: TurnStarted) -> None:
        """Count anew."""
        self.runs = 0
        self.places.clear()

    @on(ToolStarted)
    def started(self, _event: ToolStarted) -> None:
        """Count the tools, which may have a budget too."""
        self.runs += 1

    @on(RequestSent)
    def requested(self, event: RequestSent) -> None:
        """Count the steps of the main conversation."""
        if event.conversation == "main":
            before = len(self.places)
            self.places.add(event.reply.partition("~")[0])
            if before == self.steps < len(self.places):
                self.report_here(f"a step more than the {self.steps} of the budget")

    @on(TurnEnded)
    def end(self, event: TurnEnded) -> None:
        """Judge a turn that says it had no more steps."""
        if isinstance(event.outcome, StepLimit) and not self.spent():
            taken = f"{len(self.places)} of {self.steps} steps"
            self.report_here(f"the turn ended as step_limit after {taken}")

    def spent(self) -> bool:
        """Whether a budget is spent that a turn may end for."""
        calls = self.facts.budget.tool_calls
        return len(self.places) >= self.steps or (calls is not None and self.runs >= calls)


class Count(Fold):
    """A turn runs no more tools than its budget of tool calls, however many it asks for at once."""

    id = "COUNT"
    needs = (ToolStarted,)

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        assert facts.budget.tool_calls is not None
        self.budget = facts.budget.tool_calls
        self.runs = 0

    @classmethod
    def applies(cls, facts: Facts) -> bool:
        """Where there is a budget of tool calls."""
        return facts.budget.tool_calls is not None

    @on(TurnStarted)
    def begin(self, _event: TurnStarted) -> None:
        """Count anew."""
        self.runs = 0

    @on(ToolStarted)
    def started(self, event: ToolStarted) -> None:
        """Count the tools that start in each turn."""
        self.runs += 1
        if self.runs > self.budget:
            which = f"run number {self.runs}, and the budget is {self.budget} tool calls"
            self.report_here(f"{event.name} is {which}")


class _Running(Fold):
    """Knows which tools of the turn are running when one starts; `most` may run at once."""

    needs = (ToolStarted,)

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        assert facts.budget.parallel_tools is not None
        self.most = facts.budget.parallel_tools
        self.running: list[ToolStarted] = []

    @on(TurnStarted)
    def begin(self, _event: TurnStarted) -> None:
        """Tools that a turn left behind do not count in the next one."""
        self.running.clear()

    @on(ToolStarted)
    def started(self, event: ToolStarted) -> None:
        """Judge how many run now."""
        self.running.append(event)
        if len(self.running) > self.most:
            self.report_here(self.breach(event))

    @on(ToolEnded)
    def ended(self, event: ToolEnded) -> None:
        """One less is running."""
        for at, each in enumerate(self.running):
            if each.call_id == event.call_id and each.name == event.name:
                del self.running[at]
                break

    def breach(self, started: ToolStarted) -> str:
        """What is wrong with the tool that has just started, the last of those that run."""
        raise NotImplementedError


class Cap(_Running):
    """No more tools run at once than may; where only one may, SERIAL judges."""

    id = "CAP"

    @classmethod
    def applies(cls, facts: Facts) -> bool:
        """Where a number of tools may run at once."""
        return facts.budget.parallel_tools not in (None, 1)

    def breach(self, started: ToolStarted) -> str:
        """Say how many run."""
        return f"{started.name} started as number {len(self.running)} at once, {self.most} may run"


class Serial(_Running):
    """Where one tool may run at a time, the next one starts only when the one before has ended."""

    id = "SERIAL"

    @classmethod
    def applies(cls, facts: Facts) -> bool:
        """Where one tool may run at a time."""
        return facts.budget.parallel_tools == 1

    def breach(self, started: ToolStarted) -> str:
        """Say what runs beside it."""
        return f"{started.name} started while {self.running[-2].name} was running"


REPEATS = 10
"""How often a turn may do the same in a row."""


class LoopDetect(StepFold, RequestFold):
    """A turn does not make the same calls with the same results more than 10 times in a row, nor
    does it answer replies without calls with the same words of its own more than 10 times.
    """

    id = "LOOP-DETECT"
    severity = "soft"

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.last: object = None
        self.times = 0
        self.nudges: dict[str, _Nudges] = {}

    def take(self, step: Step) -> None:
        """Count steps that are the same as the one before."""
        if not step.went_on:
            self.last = None
            return
        self.judged = True
        done = [
            (slot.call.name, slot.call.raw, slot.call.args, slot.answer.text)
            for slot in step.slots
            if slot.answer is not None
        ]
        this = (step.turn, done) if len(done) == len(step.slots) else None
        self.times = self.times + 1 if this is not None and this == self.last else 1
        self.last = this
        if self.times == REPEATS + 1:
            names = ", ".join([slot.call.name for slot in step.slots])
            self.report(
                f"{names} was called {self.times} times in a row, with the same result",
                step.answered_at,
                step.turn,
            )

    def request(self, sent: Sent) -> None:
        """Count requests that end with the same words of the loop as the one before."""
        nudges = self.nudges.setdefault(sent.event.conversation, _Nudges())
        text = nudges.take(sent)
        if text is not None:
            self.judged = True
            if nudges.times == REPEATS + 1:
                what = f"says for the {nudges.times}th time in a row {in_quotes(text)}"
                self.tell(sent, f"{what}, and the replies ask for no tools")


class _Nudges:
    """How often in a row a conversation was gone on with by the same words of the loop."""

    def __init__(self) -> None:
        self.times = 0
        self._last: tuple[int, str] | None = None
        """The turn and the words."""

    def take(self, sent: Sent) -> str | None:
        """The words that the next request adds to replies without calls, if it adds any; one that
        adds nothing is sent again.
        """
        conversation = sent.conversation
        added = conversation.added
        if not (added or conversation.removed):
            return None
        grown = conversation.kept > 0 and not conversation.removed
        worked = any(message.calls or message.role == "tool" for message in added)
        text = None
        if grown and not worked and added[-1].role == "user":
            text = said(added[-1]) if sent.voices.made_by_the_loop(added[-1]) else None
        this = None if text is None else (sent.turn, text)
        self.times = self.times + 1 if this is not None and this == self._last else 1
        self._last = this
        return text
