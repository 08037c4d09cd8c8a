"""What the strategies give is valid, is what the options ask for, and shrinks to little."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.core.messages import Message
from harness.core.pairing import breaches
from harness.fakes.script import Reply
from harness.fakes.tool_spec import Hangs, ToolSpec
from harness.runner.files.load import load_text
from harness.runner.files.spell import spell_text
from harness.runner.scenario import Scenario, Turn
from harness.testing.strategies import (
    chunkings,
    histories,
    messages,
    replies,
    scenarios,
    tools,
)
from tests.runner.scenarios import bare


@pytest.mark.parametrize(
    ("strategy", "told"),
    [
        (lambda: scenarios(max_turns=0), "max_turns is a whole number from 1 on; found 0"),
        (lambda: scenarios(max_turns=1.5), "max_turns is a whole number from 1 on; found 1.5"),
        (lambda: scenarios(max_steps=0), "max_steps is a whole number from 1 on; found 0"),
        (lambda: scenarios(loops="turn"), "loops is a list of names; found 'turn', write ['turn']"),
        (lambda: scenarios(loops=["trun"]), "loops: unknown name 'trun' (did you mean 'turn'?)"),
        (lambda: scenarios(loops=["fsm", "fsm"]), "loops names 'fsm' twice"),
        (lambda: scenarios(level="radio"), "unknown level 'radio'; known: model, http, server"),
        (lambda: histories(max_turns=-1), "max_turns is a whole number from 0 on; found -1"),
        (lambda: histories(max_steps=0), "max_steps is a whole number from 1 on; found 0"),
        (lambda: messages(roles=()), "roles names nothing; name one at least"),
        (lambda: messages(roles=["boss"]), "roles: unknown name 'boss'; known: user, assistant"),
        (lambda: tools(names=[]), "names names nothing; name one at least"),
        (lambda: replies(tools="clock"), "tools is a list of names; found 'clock'"),
    ],
)
def test_options_that_cannot_be_are_told_before_anything_is_drawn(strategy: Any, told: str) -> None:
    with pytest.raises(UsageError) as found:
        strategy()
    assert told in str(found.value)


def test_a_reply_may_ask_though_there_are_no_tools() -> None:
    asks = find(replies(tools=(), asks=True, faults=False), lambda _reply: True)
    assert {call.tool for call in asks.calls} == {"nosuch"}


texts = st.text(max_size=20)


def loads(*turns: Turn, specs: Sequence[ToolSpec] = ()) -> bool:
    """Whether a file of these turns is read as it was meant."""
    scenario = Scenario("file", "About it.", tools=tuple(specs), turns=turns)
    return bare(load_text(spell_text(scenario), "file.yaml")) == bare(scenario)


@given(messages())
def test_a_message_is_of_its_role(message: Message) -> None:
    assert (message.tool_call_id is not None) == (message.role == "tool")
    assert message.role == "assistant" or not message.calls
    assert message.content


@given(st.data())
def test_messages_are_of_the_roles_that_are_asked_for(data: st.DataObject) -> None:
    assert data.draw(messages(roles=["user", "tool"])).role in ("user", "tool")


@given(histories())
def test_a_history_is_one_that_a_provider_accepts(history: tuple[Message, ...]) -> None:
    assert breaches(history) == ()
    assert not history or history[0].role in ("user", "system")
    assert all(message.content for message in history)


@given(histories(systems=False, max_turns=2, max_steps=1))
def test_a_history_is_as_long_as_its_options_allow(history: tuple[Message, ...]) -> None:
    assert len(history) <= 4
    assert {message.role for message in history} <= {"user", "assistant"}


@given(replies(tools=["clock"]), st.lists(tools(names=["clock"]), min_size=1, max_size=1))
def test_a_reply_and_a_tool_are_what_a_file_can_hold(reply: Reply, specs: list[ToolSpec]) -> None:
    assert loads(Turn("Go.", (reply,)), specs=specs)


@given(replies(asks=True, faults=False), replies(asks=False))
def test_a_reply_asks_or_fails_as_its_options_say(asking: Reply, other: Reply) -> None:
    assert asking.calls
    assert asking.fault is None
    assert not other.calls


@given(tools())
def test_a_tool_comes_back(spec: ToolSpec) -> None:
    cases = [case.behaviour for case in spec.cases]
    for behaviour in (spec.behaviour, *spec.calls, *cases):
        assert not isinstance(behaviour.action, Hangs)


@given(st.data(), texts, st.binary(max_size=20), st.booleans())
def test_a_chunking_makes_the_whole_again(
    data: st.DataObject, text: str, octets: bytes, empty: bool
) -> None:
    pieces = data.draw(chunkings(text, empty=empty))
    assert "".join(pieces) == text
    assert empty or all(pieces)
    assert b"".join(data.draw(chunkings(octets, empty=empty))) == octets


@given(scenarios(cancels=False, faults=False, trims=False, max_turns=2, max_steps=2, loops=()))
def test_a_scenario_has_what_its_options_allow(scenario: Scenario) -> None:
    assert scenario.loops == ()
    assert "context_window_tokens" not in scenario.config
    assert len(scenario.turns) <= 2
    for turn in scenario.turns:
        assert turn.cancel is None
        assert 1 <= len(turn.replies) <= 2
        assert all(reply.fault is None for reply in turn.replies)


@settings(max_examples=25)
@given(scenarios(loops=("fsm",), trims=False, max_turns=1))
def test_without_windows_nothing_is_summed_up(scenario: Scenario) -> None:
    assert "window_tokens" not in scenario.config.get("fsm", {})
    assert all(aside.name != "summary" for aside in scenario.also)


def has_fault(scenario: Scenario) -> bool:
    return any(reply.fault for turn in scenario.turns for reply in turn.replies)


def has_cancel(scenario: Scenario) -> bool:
    return any(turn.cancel for turn in scenario.turns)


def calls_two(scenario: Scenario) -> bool:
    return any(len(reply.calls) > 1 for turn in scenario.turns for reply in turn.replies)


def hands_on(scenario: Scenario) -> bool:
    return any(also.name == "helper" for also in scenario.also)


def cuts_what_was_handed_on(scenario: Scenario) -> bool:
    return hands_on(scenario) and has_cancel(scenario)


def has(setting: str) -> Any:
    return lambda scenario: setting in scenario.config.get("fsm", {})


@pytest.mark.parametrize(
    ("wanted", "lines", "loops"),
    [
        (lambda _: True, 5, ()),
        (has_cancel, 6, ()),
        (has_fault, 5, ()),
        (calls_two, 9, ()),
        (lambda _: True, 6, ("fsm",)),
        (has_cancel, 7, ("fsm",)),
        (hands_on, 20, ("fsm",)),
        (cuts_what_was_handed_on, 21, ("fsm",)),
        (has("max_nudges"), 9, ("fsm",)),
        (has("window_tokens"), 18, ("fsm",)),
        (has("plan_mode"), 11, ("fsm",)),
        (has("async_tools"), 11, ("turn", "fsm")),
    ],
)
def test_what_a_person_reads_is_small(wanted: Any, lines: int, loops: Sequence[str]) -> None:
    small = spell_text(
        find(
            scenarios(loops=loops),
            wanted,
            settings=settings(
                max_examples=500,
                database=None,
                derandomize=True,
                phases=[Phase.generate, Phase.shrink],
            ),
        )
    )
    print(small)
    assert len(small.splitlines()) <= lines
