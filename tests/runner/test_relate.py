"""What is judged between runs: which runs are made, what cannot be compared, what is accepted."""

import asyncio

import pytest
from msgspec.structs import replace

from harness.core.choices import Choices
from harness.core.events import Delta
from harness.core.outcome import COMPLETED
from harness.fakes.script import Also, AlsoWhen, Reply, ScriptedCall, Torn
from harness.fakes.tool_spec import Behaviour, Returns, ToolSpec
from harness.invariants.relations import (
    RELATIONS,
    Determinism,
    Monotonic,
    Parity,
    Relation,
    Replay,
    Variant,
)
from harness.runner import relate as module
from harness.runner.agents import at_level, subject_of
from harness.runner.relate import relate, with_relations
from harness.runner.run import run
from harness.runner.scenario import Allow, Cancel, Scenario, Turn
from tests.bugs.planted_relations import CountsItsSessions, RollsBackALateCancel, TidiesEachPiece
from tests.subjects.hand_loop import HandLoop, MendedHandLoop

MS = 1_000_000
QUICK = ToolSpec("quick", Behaviour(Returns("ok"), takes=10 * MS))
ASKS = (Reply(calls=(ScriptedCall("quick"),)), Reply(say="It is gone.", each=MS))
GO = Turn("Go.", ASKS)


def scenario(*turns, **more):
    return Scenario("case", turns=turns, tools=(QUICK,), **more)


def variants(monkeypatch, relation: type[Relation], given: Scenario) -> list[list[Variant]]:
    """The runs that a relation is given to judge."""
    seen = []
    monkeypatch.setattr(relation, "judge", classmethod(lambda _cls, runs: seen.append(list(runs))))
    relate(given, MendedHandLoop, [relation])
    return seen


OVER_HTTP = ("RECHUNK", "NOISE", "ASSEMBLE", "TOTAL-PARSER")
"""What is judged only where an agent's requests go over HTTP."""


def test_a_loop_that_is_right_keeps_all_relations():
    verdict = relate(scenario(GO, GO), MendedHandLoop)
    assert (verdict.violations, verdict.not_judged, verdict.status) == ((), OVER_HTTP, "PASS")


def test_the_same_run_is_made_twice(monkeypatch):
    [[first, again]] = variants(monkeypatch, Determinism, scenario(GO))
    assert first.trace == again.trace == run(scenario(GO), MendedHandLoop).trace


def test_replies_come_whole_and_in_single_characters_without_waits(monkeypatch):
    also = (Also("title", AlsoWhen(system_contains="title"), (Reply(say="x", each=MS),)),)
    [[whole, pieces], _levels] = variants(monkeypatch, Parity, scenario(GO, also=also))
    texts = [
        [entry.event.text for entry in each.trace if isinstance(entry.event, Delta)]
        for each in (whole, pieces)
    ]
    assert texts == [["It is gone."], list("It is gone.")]
    assert whole.trace.entries[-1].at == pieces.trace.entries[-1].at


def test_replies_come_from_the_model_and_over_http(monkeypatch):
    [_pieces, levels] = variants(monkeypatch, Parity, scenario(GO))
    assert [(each.how, each.neutral) for each in levels] == [
        ("with the model itself", False),
        ("at the level http", True),
        ("at the level server", True),
        ("at the level http::whole", True),
    ]
    assert len({tuple(map(str, each.trace.neutral())) for each in levels}) == 1


@pytest.mark.parametrize(
    "given",
    [
        scenario(replace(GO, replies=(replace(ASKS[0], fault=Torn(0)), *ASKS))),
        scenario(GO, also=(Also("t", AlsoWhen(model="x"), (Reply(say="x", fault=Torn(0)),)),)),
        scenario(replace(GO, cancel=Cancel(after="request_sent"))),
    ],
    ids=["a fault", "a fault beside the turns", "a cancel on the way"],
)
def test_levels_are_not_compared_where_they_may_differ(monkeypatch, given):
    assert len(variants(monkeypatch, Parity, given)) == 1


def test_levels_are_not_compared_where_one_was_chosen(monkeypatch):
    seen = []
    judge = classmethod(lambda _cls, runs: seen.append([run.how for run in runs]))
    monkeypatch.setattr(Parity, "judge", judge)
    relate(scenario(GO), at_level(subject_of(MendedHandLoop), "http"), [Parity])
    assert seen == [["in one piece", "in single characters"]]


@pytest.mark.parametrize(
    ("cancel", "judged"),
    [
        (Cancel(after="tool_started"), True),
        (Cancel(after="request_sent", mode="late"), True),
        (Cancel(after="delta"), False),
        (Cancel(after="loop_event"), False),
        (Cancel(at=5 * MS), False),
        (Cancel(point="1#1/late"), False),
    ],
    ids=str,
)
def test_pieces_are_not_compared_where_a_cancel_may_fall_between_them(cancel, judged):
    cut = scenario(Turn("Go.", ASKS, cancel))
    assert relate(cut, MendedHandLoop, [Parity]).not_judged == (() if judged else ("PARITY",))


def test_each_turn_is_cancelled_at_each_of_its_moments(monkeypatch):
    first, second = variants(monkeypatch, Monotonic, scenario(Turn("Hi.", (Reply(say="Ho."),)), GO))
    assert [run.how for run in first] == [
        "after turn_started",
        "after request_sent",
        "after delta",
        "after reply_ended",
    ]
    assert {run.turn for run in first} == {1}
    assert [run.how for run in second] == [
        "after turn_started",
        "after request_sent",
        "after reply_ended",
        "after tool_started",
        "after tool_effect",
        "after tool_ended",
        "after request_sent number 2",
        "after delta",
        "after reply_ended number 2",
    ]
    assert all(run.trace.entries[-1].event.outcome == COMPLETED for run in (*first, *second))


def test_the_script_of_a_turn_that_is_cut_ends_where_it_is_cut(monkeypatch):
    cut = Turn("Go.", ASKS[:1], Cancel(after="tool_started"))
    [runs] = variants(monkeypatch, Monotonic, scenario(cut))
    assert runs[-1].how == "after tool_ended"


def test_a_long_turn_is_thinned_out(monkeypatch):
    monkeypatch.setattr(module, "CANCELS_MOST", 4)
    [runs] = variants(monkeypatch, Monotonic, scenario(GO))
    assert [run.how for run in runs] == [
        "after turn_started",
        "after tool_started",
        "after request_sent number 2",
    ]


def test_a_turn_that_never_ends_has_no_moments_to_compare():
    class Waits(MendedHandLoop):
        async def turn(self, text):
            await asyncio.get_running_loop().create_future()

    assert relate(scenario(GO), Waits).not_judged == ("REPLAY", *OVER_HTTP, "MONOTONIC")


def test_a_history_that_a_cancel_has_broken_is_monotonic_all_the_same():
    assert relate(scenario(GO), HandLoop).violations == ()


def test_a_recording_is_not_held_against_a_run_that_had_reason_to_be_another():
    for cancel, not_judged in (
        (Cancel(after="reply_ended"), ("REPLAY",)),
        (Cancel(after="tool_started"), ()),
        (Cancel(at=MS), ()),
        (None, ()),
    ):
        verdict = relate(scenario(replace(GO, cancel=cancel)), MendedHandLoop, [Replay])
        assert (verdict.violations, verdict.not_judged) == ((), not_judged)


def test_a_recording_of_a_run_that_fits_no_scenario_is_not_compared():
    lacking = scenario(Turn("Go.", ASKS[:1]))
    assert relate(lacking, MendedHandLoop, [Replay]).not_judged == ("REPLAY",)


class AsksTwice(MendedHandLoop):
    """Asks twice at once, and takes the first answer."""

    async def ask(self):
        return (await asyncio.gather(super().ask(), super().ask()))[0]


def test_a_recording_of_whole_replies_at_once_is_not_compared():
    turn = Turn("Go.", (Reply(say="One."), Reply(say="Two.")))
    for level, not_judged in (("http", ()), ("http::whole", ("REPLAY",))):
        subject = at_level(subject_of(AsksTwice), level)
        verdict = relate(scenario(turn, order="calls"), subject, [Replay])
        assert (verdict.violations, verdict.not_judged) == ((), not_judged)


def test_nothing_is_compared_with_a_loop_that_differs_by_itself():
    verdict = relate(scenario(GO), CountsItsSessions)
    assert [violation.invariant for violation in verdict.violations] == ["DETERMINISM"]
    assert verdict.not_judged == ("PARITY", "REPLAY", *OVER_HTTP, "MONOTONIC")


@pytest.mark.parametrize("build", [MendedHandLoop, TidiesEachPiece, RollsBackALateCancel])
def test_a_result_is_completed_with_what_holds_between_runs(build):
    single = run(scenario(GO, GO), build, Choices())
    names = [relation.id for relation in RELATIONS]
    assert single.verdict.not_judged[-len(names) :] == tuple(names)
    both = with_relations(single)
    assert both.trace is single.trace
    assert both.verdict.violations == relate(scenario(GO, GO), build).violations
    assert both.ok is (build is MendedHandLoop)
    assert {*names} & {*both.verdict.not_judged} == {*OVER_HTTP}


def test_a_known_finding_is_accepted_and_one_that_is_none_is_told():
    known = scenario(GO, GO, allow=(Allow("PARITY", "words are run together", line=7),))
    assert run(known, TidiesEachPiece).failures == ()
    both = with_relations(run(known, TidiesEachPiece))
    assert both.ok
    assert [each.why for each in both.verdict.accepted] == ["words are run together"]
    [failure] = with_relations(run(known, MendedHandLoop)).failures
    assert (failure.kind, failure.line) == ("unused allow", 7)
