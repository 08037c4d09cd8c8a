"""Agents that are sound keep the laws of all; each law is broken by an agent with one bug."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from harness.core.errors import UsageError
from harness.core.messages import ModelRequest
from harness.runner.agents import command_subject
from harness.runner.exploring import replay
from harness.runner.files.load import load_text
from harness.testing.conformance import NotConforming, check_agent
from harness.testing.conformance.agents import LAWS, does_the_same_twice
from harness.testing.conformance.agents import goes_on_after_a_cancel_anywhere as goes_on
from harness.wire import CODECS
from tests.subjects.hand_loop import HandLoop, MendedHandLoop
from tests.testing.conformance.broken import broken_laws

LEVELS = ["model", *[f"http:{codec.name}" for codec in CODECS], "server:anthropic"]


@pytest.mark.parametrize("level", LEVELS)
def test_an_agent_that_is_sound_conforms(level: str) -> None:
    check_agent(MendedHandLoop, levels=[level])


def test_an_agent_may_be_named() -> None:
    check_agent("tests.subjects.hand_loop:MendedHandLoop")


class DoesNothing(MendedHandLoop):
    async def turn(self, text: str | None) -> None:
        pass


class Counts(MendedHandLoop):
    """Says in each request how many there have been, in this process."""

    counter = count()

    def request(self) -> ModelRequest:
        asked = super().request()
        return ModelRequest(f"model-{next(self.counter)}", "", asked.messages, asked.tools)


class Stumbles(MendedHandLoop):
    async def turn(self, text: str | None) -> None:
        raise KeyError("choices")


PLANTED: dict[Any, set[str]] = {
    HandLoop: {"plays_what_all_play", "goes_on_after_a_cancel_anywhere"},
    DoesNothing: {"plays_what_all_play"},
    Counts: {"does_the_same_twice"},
    Stumbles: {"plays_what_all_play"},
}


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.__name__)
def test_what_has_gone_wrong_is_found(planted: Any) -> None:
    assert broken_laws(lambda: check_agent(planted)) >= PLANTED[planted]


def test_every_law_is_broken_by_something() -> None:
    assert {law.__name__ for law in LAWS} == set().union(*PLANTED.values())


def test_what_is_broken_is_told_with_the_scenario_and_the_line_that_runs_it() -> None:
    with pytest.raises(NotConforming) as found:
        check_agent(HandLoop)
    told = str(found.value)
    assert told.startswith("the agent HandLoop breaks 2 laws\nplays_what_all_play: It comes")
    assert "cat > stopped.yaml <<'END'\n" in told
    assert "harness run stopped.yaml --agent tests.subjects.hand_loop:HandLoop" in told
    swept = told[told.index("goes_on_after_a_cancel_anywhere") :]
    assert "cat > side_by_side.yaml <<'END'\n" in swept
    [again] = [line for line in swept.splitlines() if line.startswith("harness replay ")]
    assert again.endswith(" side_by_side.yaml --agent tests.subjects.hand_loop:HandLoop")
    file = swept.partition("<<'END'\n")[2].partition("END")[0]
    replayed = replay(again.split()[2], load_text(file, "side_by_side.yaml"), HandLoop)
    assert "RESUME" in str(replayed)


@pytest.mark.parametrize("nonsense", [None, 3])
def test_what_is_no_agent_is_said_to_be_none(nonsense: Any) -> None:
    with pytest.raises(UsageError, match="expected the function that builds an agent, its name"):
        check_agent(nonsense)


@pytest.mark.parametrize("nonsense", ["model", ()])
def test_levels_are_a_list(nonsense: Any) -> None:
    with pytest.raises(UsageError, match="expected a list of levels; found"):
        check_agent(MendedHandLoop, levels=nonsense)


def test_a_program_is_neither_played_twice_nor_swept() -> None:
    program = command_subject("node agent.mjs")
    assert [*does_the_same_twice(program), *goes_on(program)] == []
