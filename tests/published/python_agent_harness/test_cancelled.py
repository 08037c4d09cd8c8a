"""The published agent cancelled at every point, and its threads in other orders."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from harness.exploration.sweep_report import SweepMode
from harness.loops.fsm.agent import KIND
from harness.report.sweep import Sweep
from harness.runner.exploring import explore, sweep
from harness.runner.files.load import load, load_text
from harness.runner.scenario import Scenario

if find_spec("python_agent_harness") is None:
    pytest.skip("python-agent-harness is not installed: make agents", allow_module_level=True)

from tests.published.python_agent_harness.subject import KNOWN, published

FSM = Path(__file__).parents[3] / "scenarios" / "fsm"
MODES: tuple[SweepMode, ...] = ("start", "early", "late", "mid")
SHOWS = {
    "tool_round": ("CANCEL", "EFFECT-KEPT"),
    "two_in_the_background": ("CANCEL", "EFFECT-KEPT"),
    "one_id_for_two_calls": ("CANCEL", "EFFECT-KEPT", "RESUME"),
    "nudged_twice": ("CANCEL",),
    "compaction": ("CANCEL",),
    "title": ("CANCEL",),
    "subagent": ("CANCEL",),
    "two_subagents": ("CANCEL",),
}
"""Scenarios with what some cancel of them breaks; nothing else is broken."""

STRICT = """
about: A round of three tools, whose provider refuses a call without its result.
strict: true
config: {fsm: {async_tools: [build]}}
tools:
  look: {returns: seen, takes: 1s}
  build: {returns: built, takes: 5s}
  mail: {returns: sent, takes: 1s}
turns:
  - user: Look, build and mail.
    model:
      - calls: [look, build, mail]
      - say: It is done.
"""


def swept(scenario: Scenario) -> Sweep:
    return sweep(scenario, published(scenario), modes=MODES).check()


@pytest.mark.parametrize("name", SHOWS)
def test_cancels_break_what_is_known_and_nothing_else(name: str) -> None:
    found = swept(load(FSM / f"{name}.yaml"))
    messages = {group.message for group in found.report.tolerated}
    known = {each for each, why in KNOWN.items() if f"{each}, {why}" in messages}
    assert known == set(SHOWS[name])


def test_what_is_known_of_it_is_what_is_known_of_our_recorded_policy() -> None:
    assert KNOWN.keys() == KIND.known["reference"].keys()


def test_a_tool_round_that_is_cancelled_leaves_a_history_that_a_strict_provider_takes() -> None:
    found = swept(load_text(STRICT, "strict.yaml"))
    assert not [group for group in found.report.tolerated if group.message.startswith("RESUME")]


@pytest.mark.parametrize("name", ["two_in_the_background", "two_subagents"])
def test_its_threads_may_take_turns_as_they_like(name: str) -> None:
    scenario = load(FSM / f"{name}.yaml")
    explore(scenario, published(scenario), runs=150, seconds=None).check()
