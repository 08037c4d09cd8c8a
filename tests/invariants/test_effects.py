"""EFFECT-ONCE, rule by rule."""

from harness.core.events import ToolEffect
from harness.core.outcome import COMPLETED
from harness.invariants.effects import EffectOnce
from harness.invariants.judge import judge
from tests.invariants.traces import ASK, ended, found, replied, sent, started, trace

EFFECT = ToolEffect("c1", "t")


def test_one_effect_a_call_is_fine() -> None:
    assert found(EffectOnce, started(), sent(), replied("complete", ASK), EFFECT) == []


def test_a_second_effect_of_one_call_is_found() -> None:
    [violation] = found(EffectOnce, started(), sent(), replied("complete", ASK), EFFECT, EFFECT)
    assert violation.message == ("t took effect 2 times for call c1, which was asked for 1 time(s)")
    assert (violation.entry, violation.turn) == (4, 1)


def test_equal_ids_are_as_many_calls() -> None:
    twice = replied("complete", ASK, ASK)
    assert found(EffectOnce, started(), sent(), twice, EFFECT, EFFECT) == []


def test_a_tool_may_run_before_its_reply_has_been_read_to_the_end() -> None:
    whole = replied("complete", ASK)
    assert found(EffectOnce, started(), sent(), EFFECT, whole, ended(COMPLETED)) == []
    [violation] = found(EffectOnce, started(), sent(), EFFECT, EFFECT, whole)
    assert (violation.entry, violation.turn) == (3, 1)


def test_an_effect_that_no_reply_asked_for_is_found() -> None:
    assert len(found(EffectOnce, started(), sent(), EFFECT, replied())) == 1
    assert len(found(EffectOnce, started(), sent(), EFFECT)) == 1
    assert len(found(EffectOnce, started(), EFFECT)) == 1


def test_it_is_not_judged_where_no_tool_took_effect() -> None:
    assert judge(trace(started(), ended(COMPLETED)), [EffectOnce]).not_judged == ("EFFECT-ONCE",)
