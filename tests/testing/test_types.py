"""Hypothesis knows our types as soon as it is imported, and draws choices while a run goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from harness import Choices, ModelRequest, Scenario
from harness.core.messages import Message, ToolCall
from harness.core.pairing import breaches
from harness.fakes.script import Reply, ScriptedCall
from harness.fakes.tool_spec import Behaviour, Returns, ToolSpec
from harness.runner.exploring import replay
from harness.runner.scenario import Turn
from harness.runner.token import Token
from harness.testing.generated import GeneratedFailure, check_generated
from harness.testing.strategies import choices
from harness.testing.strategies_types import STRATEGIES, register
from tests.subjects.hand_loop import MendedHandLoop

REPOSITORY = Path(__file__).parents[2]
MS = 1_000_000

register()  # as the entry point does, where the package is installed


@pytest.mark.parametrize("drawn", STRATEGIES, ids=lambda drawn: drawn.__name__)
def test_a_type_by_itself_says_how_it_is_drawn(drawn: type[Any]) -> None:
    @settings(max_examples=5, phases=[Phase.generate])
    @given(st.from_type(drawn))
    def draws(value: Any) -> None:
        assert isinstance(value, drawn)

    draws()


@given(st.from_type(ModelRequest))
def test_a_request_is_one_that_a_provider_takes(request: ModelRequest) -> None:
    assert breaches(request.messages) == ()


@given(...)
def test_an_annotation_is_enough(scenario: Scenario, call: ToolCall, message: Message) -> None:
    assert scenario.turns
    assert isinstance(call.args, dict)
    assert message.role


def test_hypothesis_is_told_by_an_entry_point_that_imports_little() -> None:
    code = (
        "import sys, hypothesis; from importlib.metadata import entry_points;"
        "told = [e.value for e in entry_points(group='hypothesis')];"
        "assert 'harness.testing.strategies_types:register' in told, told;"
        "assert 'harness.core.messages' in sys.modules;"
        "heavy = {'yaml', 'httpx2', 'httpx', 'rich', 'typer', 'pytest', 'vcr', 'respx'};"
        "print(sorted(heavy & set(sys.modules)), 'harness.testing.strategies' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[] False\n", "")


# --- choices

TWO = ("quick", "slow")
RACE = Scenario(
    "race",
    "Two tools are asked for.",
    tools=(
        ToolSpec("quick", Behaviour(Returns("ok"), takes=10 * MS)),
        ToolSpec("slow", Behaviour(Returns("ok"), takes=50 * MS)),
    ),
    turns=(Turn("Go.", (Reply(calls=tuple(map(ScriptedCall, TWO))), Reply("Gone."))),),
    source="race.yaml",
)


class AnswersAsTheyCome(MendedHandLoop):
    """Fails where the second tool is done first: which nobody sees in the ordinary case."""

    async def run_tool(self, call: ToolCall) -> Message:
        result = await super().run_tool(call)
        done = self.__dict__.setdefault("done", [])
        done.append(call.name)
        if done[0] != "quick":
            raise RuntimeError("the slow one was first")
        return result


def test_choices_are_drawn_until_something_breaks_and_the_rest_shrinks_away() -> None:
    check_generated(RACE, AnswersAsTheyCome)

    @settings(
        max_examples=50,
        derandomize=True,
        database=None,
        phases=[Phase.generate, Phase.shrink],
    )
    @given(choices())
    def whatever_comes_first_is_well(drawn: Choices) -> None:
        check_generated(RACE, AnswersAsTheyCome, choices=drawn)

    with pytest.raises(GeneratedFailure) as failed:
        whatever_comes_first_is_well()
    words = str(failed.value).rpartition("\n")[2].split()
    assert words[:2] == ["harness", "replay"]
    assert words[3:] == ["race.yaml", "--agent", "tests.testing.test_types:AnswersAsTheyCome"]
    assert len(Token.parse(words[2]).tape) == 1
    again = replay(words[2], RACE, AnswersAsTheyCome)
    assert "the slow one was first" in str(again)


def test_a_loop_that_is_well_is_well_whatever_is_drawn() -> None:
    @settings(max_examples=10)
    @given(choices())
    def well(drawn: Choices) -> None:
        check_generated(RACE, MendedHandLoop, choices=drawn)

    well()
