"""What becomes of calls is judged alike in every style: right loops trip no invariant of it, on any
scenario that comes with the package.
"""

from functools import cache
from pathlib import Path

import pytest

from harness.core.budget import Budget
from harness.core.ports import Agent
from harness.invariants import INVARIANTS
from harness.runner.files.load import find, load
from harness.runner.run import run
from tests.subjects.styles import STYLES

FOLDER = Path(__file__).parents[2] / "scenarios"
SCENARIOS = [each for each in map(load, find([FOLDER])) if each.budget == Budget()]
FILES = ("calls", "completeness", "effects", "fake", "limits", "ordering", "pairing")
OF_CALLS = {each.id for each in INVARIANTS if each.__module__.rpartition(".")[2] in FILES}
OF_CALLS -= {"RESUME"}  # a loop without a limit of steps runs out of script


@cache
def broken(style: type[Agent]) -> list[tuple[str, str]]:
    """What is found of a style in all scenarios: the invariant, and its words for it."""
    return [
        (violation.invariant, f"{scenario.name}: {violation.message}")
        for scenario in SCENARIOS
        for violation in run(scenario, style).verdict.violations
        if violation.severity == "hard"
    ]


@pytest.mark.parametrize("style", STYLES)
def test_a_right_loop_breaks_nothing_in_any_style(style: type[Agent]) -> None:
    assert [each for each in broken(style) if each[0] in OF_CALLS] == []


OF_HISTORIES = {
    each.id
    for each in INVARIANTS
    if each.__module__.rpartition(".")[2] in ("shape", "truth", "durability", "trimming")
}
NOT_SO_RIGHT = {
    "OneByOne": {"SHAPE"},
    "ForgetsOldTurns": {"EFFECT-KEPT", "DURABLE"},
    "UndoesACutTurn": {"EFFECT-KEPT", "DURABLE", "SHAPE"},
    "WritesPlainText": {"EFFECT-KEPT", "DURABLE"},
    "SortsItsHistory": {"EFFECT-KEPT", "DURABLE"},
}
"""Styles that lose signed reasoning, or what a turn has done where it is cut short, and what says
so of them.
"""
EMPTY = "says nothing"
"""All of them send an empty reply back as it came, which some providers refuse."""


@pytest.mark.parametrize("style", STYLES)
def test_a_right_loop_keeps_its_history_in_any_style(style: type[Agent]) -> None:
    lost = NOT_SO_RIGHT.get(style.__name__, set())
    found = [each for each in broken(style) if each[0] in OF_HISTORIES]
    assert {name for name, _message in found} >= lost
    others = [each for each in found if each[0] not in lost and EMPTY not in each[1]]
    assert others == []
