"""The reference loops keep the laws of all; each law is broken by a loop with one thing changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from harness.core.errors import UsageError
from harness.core.ports import Agent, Env
from harness.loops import LOOPS
from harness.loops.kind import LoopKind
from harness.loops.turn.agent import KIND as TURN
from harness.testing.conformance import NotConforming, check_loop
from harness.testing.conformance.loops import LAWS
from tests.subjects.hand_loop import HandLoop, MendedHandLoop
from tests.testing.conformance.broken import broken_of


@pytest.mark.parametrize("kind", LOOPS, ids=lambda kind: kind.name)
def test_every_reference_loop_conforms(kind: LoopKind) -> None:
    check_loop(kind)


def by_hand(env: Env, config: Mapping[str, Any], policy: str) -> Agent:
    return (HandLoop if policy == "classic" else MendedHandLoop)(env)


def shorter_when_told(env: Env, config: Mapping[str, Any], policy: str) -> Agent:
    loop = MendedHandLoop(env)
    if config:
        loop.request = lambda: replace(MendedHandLoop.request(loop), system="")  # type: ignore[method-assign]
    return loop


HAND = LoopKind("hand", {"limit": 3}, ("sound",), by_hand)


def test_a_loop_of_ones_own_conforms() -> None:
    check_loop(replace(HAND, policies=("sound", "strict", "lenient")))


PLANTED = {
    "is_named": replace(HAND, name="by hand"),
    "is_named, as another": replace(HAND, name="turn"),
    "is_named, twice": replace(HAND, policies=("sound", "sound")),
    "is_named, no file": replace(HAND, settings={"limit": {1, 2}}),  # type: ignore[dict-item]
    "knows_what_it_breaks": replace(HAND, known={"other": {"PAIR": "It does."}}),
    "knows_what_it_breaks, no such": replace(HAND, known={"sound": {"PEAR": "It does."}}),
    "knows_what_it_breaks, why": replace(HAND, known={"sound": {"PAIR": ""}}),
    "usual_settings_change_nothing": replace(HAND, build=shorter_when_told),
    "tells_what_it_says_it_tells": replace(TURN, events=("turn_start",)),
    "tells_what_it_says_it_tells, states": replace(LOOPS[1], states=("WAIT",), policies=("safe",)),
    "does_as_agents_do": replace(HAND, policies=("classic",)),
    "breaks_only_what_is_known": replace(HAND, policies=("sound", "classic")),
}


@pytest.mark.parametrize("named", PLANTED)
def test_what_has_gone_wrong_is_found(named: str) -> None:
    law = named.partition(",")[0]
    assert broken_of(PLANTED[named], LAWS, {law}) == {law}


def test_what_is_told_of_a_loop_of_ones_own_names_no_command_that_would_not_find_it() -> None:
    with pytest.raises(NotConforming) as found:
        check_loop(PLANTED["breaks_only_what_is_known"])
    told = str(found.value)
    assert "cat > without_words.yaml <<'END'\n" in told
    assert "\nreplay('h1." in told
    assert "--loop" not in told


@pytest.mark.parametrize("nonsense", [None, "turn", HandLoop])
def test_what_is_no_kind_of_loop_is_said_to_be_none(nonsense: Any) -> None:
    with pytest.raises(UsageError, match="expected a kind of loop, a LoopKind; found"):
        check_loop(nonsense)


def test_every_law_is_broken_by_something() -> None:
    assert {law.__name__ for law in LAWS} == {name.partition(",")[0] for name in PLANTED}
