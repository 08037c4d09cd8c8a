"""What a turn may spend: requests, tool runs, tools at a time, and the same again and again."""

from __future__ import annotations

from typing import ClassVar

from harness.core.events import RequestSent, ToolEnded, ToolStarted, TurnEnded, TurnStarted
from harness.core.outcome import StepLimit
from harness.core.trace import Entry
from harness.invariants.invariant import EventType, Facts, Fold
from harness.invariants.steps import Step, StepFold


class Limit(Fold):
    """A turn takes no more steps than its budget has, and ends as step_limit only when that is
    spent.

    A request that is sent again for the same place in the script is no step of its own.
    """

    id = "LIMIT"
    reads: ClassVar[tuple[EventType, ...]] = (TurnStarted, RequestSent, ToolStarted, TurnEnded)
    needs: ClassVar[tuple[EventType, ...]] = ()

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.turn = 0
        self.places: set[str] = set()
        """The places in the script that the turn's requests have come to."""
        self.runs = 0

    def step(self, index: int, entry: Entry) -> None:
        """Count the steps of the main conversation in each turn."""
        steps = self.facts.budget.steps
        if steps is None:
            return
        self.judged = True
        match entry.event:
            case TurnStarted(turn=turn):
                self.turn, self.runs = turn, 0
                self.places.clear()
            case ToolStarted():
                self.runs += 1
            case RequestSent(conversation="main", reply=reply):
                before = len(self.places)
                self.places.add(reply.partition("~")[0])
                if before == steps < len(self.places):
                    self.report(f"a step more than the {steps} of the budget", index, self.turn)
            case TurnEnded(outcome=StepLimit()) if not self.spent(steps):
                self.report(
                    f"the turn ended as step_limit after {len(self.places)} of {steps} steps",
                    index,
                    self.turn,
                )

    def spent(self, steps: int) -> bool:
        """Whether a budget is spent that a turn may end for."""
        calls = self.facts.budget.tool_calls
        return len(self.places) >= steps or (calls is not None and self.runs >= calls)


class Count(Fold):
    """A turn runs no more tools than its budget of tool calls, however many it asks for at once."""

    id = "COUNT"
    reads: ClassVar[tuple[EventType, ...]] = (TurnStarted, ToolStarted)
    needs: ClassVar[tuple[EventType, ...]] = ()

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.turn = 0
        self.runs = 0

    def step(self, index: int, entry: Entry) -> None:
        """Count the tools that start in each turn."""
        budget = self.facts.budget.tool_calls
        match entry.event:
            case TurnStarted(turn=turn):
                self.turn, self.runs = turn, 0
            case ToolStarted(name=name) if budget is not None:
                self.judged = True
                self.runs += 1
                if self.runs > budget:
                    self.report(
                        f"{name} is run number {self.runs}, and the budget is {budget} tool calls",
                        index,
                        self.turn,
                    )


class _Running(Fold):
    """Knows which tools of the turn are running when one starts; `most` is None where that is
    nothing to judge by.
    """

    reads: ClassVar[tuple[EventType, ...]] = (TurnStarted, ToolStarted, ToolEnded)
    needs: ClassVar[tuple[EventType, ...]] = ()
    most: int | None

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.turn = 0
        self.running: list[ToolStarted] = []

    def step(self, index: int, entry: Entry) -> None:
        """Keep the running tools; those that a turn left behind do not count in the next one."""
        if self.most is None:
            return
        event = entry.event
        if isinstance(event, TurnStarted):
            self.turn = event.turn
            self.running.clear()
        elif isinstance(event, ToolStarted):
            self.judged = True
            self.running.append(event)
            if len(self.running) > self.most:
                self.tell(index, event)
        elif isinstance(event, ToolEnded):
            for at, each in enumerate(self.running):
                if each.call_id == event.call_id and each.name == event.name:
                    del self.running[at]
                    break

    def tell(self, index: int, started: ToolStarted) -> None:
        """Report the tool that has just started, the last of those that run."""
        raise NotImplementedError


class Cap(_Running):
    """No more tools run at once than may; where only one may, SERIAL judges."""

    id = "CAP"

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        most = facts.budget.parallel_tools
        self.most = None if most == 1 else most

    def tell(self, index: int, started: ToolStarted) -> None:
        """Report how many run."""
        self.report(
            f"{started.name} started as number {len(self.running)} at once, {self.most} may run",
            index,
            self.turn,
        )


class Serial(_Running):
    """Where one tool may run at a time, the next one starts only when the one before has ended."""

    id = "SERIAL"

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.most = 1 if facts.budget.parallel_tools == 1 else None

    def tell(self, index: int, started: ToolStarted) -> None:
        """Report what runs beside it."""
        before = self.running[-2].name
        self.report(f"{started.name} started while {before} was running", index, self.turn)


REPEATS = 10
"""How often a turn may do the same in a row."""


class LoopDetect(StepFold):
    """A turn does not make the same calls with the same results more than 10 times in a row."""

    id = "LOOP-DETECT"
    severity = "soft"

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.last: object = None
        self.times = 0

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
