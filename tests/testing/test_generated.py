"""A generated scenario that fails is told whole: what broke, the file, the line that runs it."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings

from harness.fakes.script import Reply, ScriptedCall
from harness.fakes.tool_spec import ToolSpec
from harness.runner.adapters import from_function
from harness.runner.agents import find_loop, loop_subject
from harness.runner.files.load import load_text
from harness.runner.scenario import Cancel, Scenario, Turn
from harness.testing.generated import GeneratedFailure, check_generated, subject_told, telling
from harness.testing.strategies import scenarios
from tests.subjects.hand_loop import HandLoop, MendedHandLoop

REPOSITORY = Path(__file__).parents[2]

ASKS = Turn("Go.", (Reply(calls=(ScriptedCall("clock"),)), Reply(say="Gone.")))
CUT = Scenario(
    "generated",
    "Generated.",
    tools=(ToolSpec("clock"),),
    turns=(Turn(ASKS.user, ASKS.replies, Cancel("tool_started")),),
    source="generated.yaml",
)


def test_what_is_well_gives_the_result() -> None:
    assert check_generated(CUT, MendedHandLoop).ok


def test_without_an_agent_it_runs_on_the_loop_that_the_scenario_names() -> None:
    scenario = Scenario("generated", "Generated.", ("turn",), turns=(Turn("Hi.", (Reply("Ho."),)),))
    assert check_generated(scenario).subject.name == "turn (safe)"
    reference = loop_subject(find_loop("turn"), scenario, "reference")
    assert check_generated(scenario, reference).subject.name == "turn (reference)"


def test_what_fails_is_told_with_commands_that_show_it_again(tmp_path: Path) -> None:
    with pytest.raises(GeneratedFailure) as failed:
        check_generated(CUT, HandLoop)
    told = str(failed.value)
    assert told.startswith("RESUME\n")
    assert "RESUME in turn 2: the request after a cancelled turn is not valid" in told
    commands = told[told.index("cat > generated.yaml") :]
    assert commands.endswith(
        "\nharness run generated.yaml --agent tests.subjects.hand_loop:HandLoop"
    )
    done = subprocess.run(
        ["sh", "-e", "-c", commands],
        cwd=tmp_path,
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "RESUME in turn 2" in done.stdout


def answers(messages: object) -> str:
    return "Gone."


def test_no_command_is_told_that_would_find_another_agent() -> None:
    made = from_function(answers)
    assert subject_told(HandLoop, CUT).options == ("--agent", "tests.subjects.hand_loop:HandLoop")
    assert subject_told(made, CUT).options == ()
    assert subject_told(partial(HandLoop), CUT).options == ()
    with pytest.raises(GeneratedFailure) as failed:
        check_generated(CUT, made)
    assert str(failed.value).endswith("\nrun(generated, answers)")


def test_an_assertion_of_ones_own_is_told_with_the_scenario() -> None:
    with pytest.raises(GeneratedFailure) as failed, telling(CUT, HandLoop):
        assert CUT.turns == (), "too many turns"
    told = str(failed.value)
    assert told.startswith("too many turns\n")
    assert "cat > generated.yaml <<'END'\nabout: Generated.\n" in told


def test_a_property_test_that_fails_shows_the_scenario_as_a_file() -> None:
    @settings(max_examples=100, derandomize=True, database=None, phases=[Phase.generate])
    @given(scenarios(loops=()))
    def the_hand_loop_is_clean(scenario: Scenario) -> None:
        check_generated(scenario, HandLoop)

    with pytest.raises(GeneratedFailure) as failed:
        the_hand_loop_is_clean()
    file = str(failed.value).partition("<<'END'\n")[2].partition("END\n")[0]
    assert load_text(file, "generated.yaml").about == "Generated."
