"""How the events of a run reach the methods that read them."""

from typing import get_args, get_type_hints

import pytest

from harness.core.events import AnyEvent, TurnEnded, TurnStarted
from harness.core.outcome import COMPLETED
from harness.invariants import INVARIANTS
from harness.invariants.invariant import Fold
from harness.invariants.judge import judge
from harness.invariants.reader import Reader, on
from harness.invariants.requests import Requests
from harness.invariants.step_reader import Steps
from tests.invariants.traces import ended, found, started, trace


@pytest.mark.parametrize("reader", [*INVARIANTS, Requests, Steps])
def test_each_method_takes_the_events_that_it_is_marked_for(reader: type[Reader]) -> None:
    for kind, name in reader.reads.items():
        hints = get_type_hints(getattr(reader, name))
        [event] = [hint for of, hint in hints.items() if of != "return"]
        assert kind in (get_args(event) or (event,)), name


class Both(Fold):
    id = "BOTH"

    @on(TurnStarted, TurnEnded)
    def tell(self, event: AnyEvent) -> None:
        self.report_here(type(event).__name__)


class Later(Both):
    id = "LATER"

    @on(TurnEnded)
    def end(self, _event: TurnEnded) -> None:
        self.report_here("the end", "soft")


def test_a_breach_is_of_the_entry_that_is_read_and_of_its_turn() -> None:
    breaches = found(Both, started(7), ended(COMPLETED, 7))
    assert [(each.entry, each.turn) for each in breaches] == [(0, 7), (1, 7)]
    assert [each.message for each in breaches] == ["TurnStarted", "TurnEnded"]


def test_a_subclass_may_read_an_event_with_another_method() -> None:
    breaches = found(Later, started(), ended(COMPLETED))
    assert [(each.message, each.severity) for each in breaches] == [
        ("TurnStarted", "hard"),
        ("the end", "soft"),
    ]
    assert set(Both.reads.values()) == {"tell"}


def test_findings_are_in_the_order_of_the_run_and_then_of_the_invariants() -> None:
    verdict = judge(trace(started(), ended(COMPLETED)), [Later, Both])
    assert [(each.entry, each.invariant) for each in verdict.violations] == [
        (0, "LATER"),
        (0, "BOTH"),
        (1, "LATER"),
        (1, "BOTH"),
    ]
