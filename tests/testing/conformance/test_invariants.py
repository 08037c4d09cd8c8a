"""Every invariant keeps the laws of all, shown by its planted bugs; each law is broken by some."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from harness.core.errors import UsageError
from harness.core.events import LoopEvent, RequestSent, Trimmed, TurnEnded
from harness.fakes.script import Reply
from harness.invariants import INVARIANTS
from harness.invariants.invariant import Fold, Invariant
from harness.invariants.reader import on
from harness.runner.files.load import load
from harness.runner.result import Result
from harness.runner.run import run
from harness.runner.scenario import Scenario, Turn
from harness.testing.conformance import check_invariant
from harness.testing.conformance.invariants import LAWS
from tests.bugs.planted import PLANTED as BUGS
from tests.doc_blocks import REPOSITORY
from tests.testing.conformance.broken import broken_laws

JUDGED_IN = {
    "LOG-HISTORY": "scenarios/basics/plain_answer.yaml",
    "TRIM": "scenarios/trim/long_history.yaml",
    "ESTIMATE": "scenarios/trim/first_question_many_rounds.yaml",
}
"""A scenario of the turn loop, where the agent that stands beside the bug has nothing to judge."""


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: invariant.id)
def test_every_invariant_conforms(invariant: Invariant) -> None:
    bugs = [bug for bug in BUGS if bug.caught_by == invariant.id]
    broken = [run(bug.scenario, bug.build, cassette=bug.cassette()) for bug in bugs]
    kept = [
        run(bug.scenario, bug.mended, cassette=bug.cassette())
        for bug in bugs
        if invariant.id not in bug.too
    ]
    if invariant.id in JUDGED_IN:
        kept.append(run(load(REPOSITORY / JUDGED_IN[invariant.id]), "turn"))
    check_invariant(invariant, broken=broken, kept=kept)


class Says(Fold):
    """The model is asked once at most."""

    id = "ONCE"
    needs = (TurnEnded,)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.asked = 0

    @on(RequestSent)
    def _asked(self, _event: RequestSent) -> None:
        self.asked += 1
        if self.asked > 1:
            self.report_here("the model is asked again")


class Whispers(Says):
    """No sentence"""

    id = "once or so"
    severity: ClassVar[Any] = "deadly"


class TakesAnothersName(Says):
    """The model is asked once at most."""

    id = "PAIR"


class SeesNothing(Fold):
    """The model is asked once at most."""

    id = "ONCE"


class SeesGhosts(Says):
    """The model is asked never."""

    @on(RequestSent)
    def _asked(self, _event: RequestSent) -> None:
        self.report_here("the model is asked")


class JudgesNothing(Says):
    """The model is asked once at most."""

    needs = ()


class PointsNowhere(Says):
    """The model is asked once at most."""

    @on(RequestSent)
    def _asked(self, _event: RequestSent) -> None:
        self.asked += 1
        if self.asked > 1:
            self.report("", entry=10_000, turn=99)


class WantsAnEnd(Says):
    """A run ends with a turn."""

    ended = False

    @on(TurnEnded)
    def _ended(self, _event: TurnEnded) -> None:
        self.ended = True

    def finish(self) -> None:
        assert self.ended, "the run has no end"


class ReportsAnyway(Says):
    """Something happens."""

    def finish(self) -> None:
        if self.asked == 0:
            self.report("nothing has happened")


class Marks(Says):
    """The model is asked once at most; what is told is marked as seen."""

    @on(LoopEvent)
    def _told(self, event: LoopEvent) -> None:
        if isinstance(event.payload, dict):
            event.payload["seen"] = event.payload.get("seen", 0) + 1


class Remembers(Says):
    """No two runs ask the model."""

    seen: ClassVar[list[int]] = []

    @on(RequestSent)
    def _asked(self, event: RequestSent) -> None:
        super()._asked(event)
        self.seen.append(1)
        if len(self.seen) % 3 == 0:
            self.report_here("the model was asked before")


class MeetsAgain(Says):
    """No request is sent that was sent in another run."""

    met: ClassVar[dict[int, object]] = {}

    @on(RequestSent)
    def _asked(self, event: RequestSent) -> None:
        super()._asked(event)
        if self.met.setdefault(id(event), self) is not self:
            self.report_here("the request was met before")


class JudgesUndeclared(Says):
    """The model is asked once at most."""

    needs = (Trimmed,)


class SaysItTwice(Says):
    """The model is asked once at most."""

    @on(RequestSent)
    def _asked(self, event: RequestSent) -> None:
        for _ in range(2):
            super()._asked(event)


class Exclaims(Says):
    """The model is asked once at most."""

    def report_here(self, message: str, severity: Any = None) -> None:
        super().report_here(message, "awful")  # type: ignore[arg-type]


def asked(times: int) -> Result:
    turns = tuple([Turn(f"Go {n}.", (Reply("Gone."),)) for n in range(times)])
    return run(Scenario("asked", loops=("turn",), turns=turns))


BROKEN, KEPT = (asked(2),), (asked(1),)

PLANTED: dict[Any, set[str]] = {
    Whispers: {"is_named"},
    TakesAnothersName: {"is_named"},
    SeesNothing: {"finds_what_is_broken", "leaves_alone_what_is_kept"},
    SeesGhosts: {"leaves_alone_what_is_kept"},
    JudgesNothing: {"leaves_alone_what_is_kept"},
    PointsNowhere: {"points_where_it_is"},
    WantsAnEnd: {"judges_any_beginning"},
    ReportsAnyway: {"judges_any_beginning"},
    MeetsAgain: {"judges_the_same_every_time"},
    JudgesUndeclared: {"points_where_it_is", "leaves_alone_what_is_kept"},
    SaysItTwice: {"points_where_it_is"},
    Exclaims: {"points_where_it_is"},
    Remembers: {"judges_the_same_every_time"},
}


def test_an_invariant_of_ones_own_conforms() -> None:
    check_invariant(Says, broken=BROKEN, kept=KEPT)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.__name__)
def test_what_has_gone_wrong_is_found(planted: Any) -> None:
    found = broken_laws(lambda: check_invariant(planted, broken=BROKEN, kept=KEPT))
    assert found >= PLANTED[planted]


def test_what_changes_the_run_that_it_judges_is_found() -> None:
    found = broken_laws(lambda: check_invariant(Marks, broken=[asked(2)], kept=[asked(1)]))
    assert found == {"judges_the_same_every_time"}


def test_what_nothing_shows_to_work_does_not_conform() -> None:
    assert broken_laws(lambda: check_invariant(Says, broken=(), kept=())) == {"is_shown_to_work"}


@pytest.mark.parametrize("nonsense", [None, "PAIR", object, Fold])
def test_what_is_no_invariant_is_said_to_be_none(nonsense: Any) -> None:
    with pytest.raises(UsageError, match="expected an invariant, a subclass of Fold with an id"):
        check_invariant(nonsense, broken=BROKEN, kept=KEPT)


@pytest.mark.parametrize("nonsense", [BROKEN[0], [BROKEN[0].trace]], ids=["one", "traces"])
def test_what_are_no_runs_is_said_to_be_none(nonsense: Any) -> None:
    with pytest.raises(UsageError, match=r"expected a list of results, as harness\.run gives them"):
        check_invariant(Says, broken=nonsense, kept=KEPT)


def test_every_law_is_broken_by_something() -> None:
    named = {"is_shown_to_work"}.union(*PLANTED.values())
    assert {law.__name__ for law in LAWS} == named
