"""Hypothesis strategies for messages, histories, replies, tools and whole scenarios.

They draw data only: in which order things happen, and when, is a matter of `Choices`. What they
give is valid by construction and shrinks to what a person reads. Options are given by keyword.

    @given(scenarios())
    def test_my_agent_keeps_the_rules(scenario):
        check_generated(scenario, MyAgent)  # of harness.testing.generated
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import AnyStr

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from harness.core.choices import Choices
from harness.core.messages import (
    Block,
    Message,
    ModelRequest,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolSchema,
    Usage,
    tool_result,
    user,
)
from harness.fakes.script import ScriptedCall
from harness.testing.strategies_scenarios import scenarios
from harness.testing.strategies_script import replies, tools
from harness.testing.strategies_values import (
    ARGUMENTS,
    AT_TIMES,
    BOTH,
    SELDOM,
    TEXTS,
    TOOL_NAMES,
    USAGES,
    below,
    check_count,
    check_names,
    pick,
    weighted,
)

__all__ = [
    "calls",
    "choices",
    "chunkings",
    "histories",
    "messages",
    "replies",
    "requests",
    "scenarios",
    "scripted_calls",
    "tools",
    "usages",
]

ROLES: tuple[Role, ...] = ("user", "assistant", "tool", "system")
_CALLS = weighted((1, 3), (2, 2), (3, 1))
_NAMES = st.sampled_from(TOOL_NAMES)
_CALL_IDS = st.sampled_from(["call_0", "call_1", "call_2"])


def messages(*, roles: Sequence[Role] = ROLES) -> SearchStrategy[Message]:
    """One message of one of `roles`; by itself, so a tool's answers a call that is not there.

    UsageError for what is no role.
    """
    check_names("roles", roles, ROLES)
    return _messages(tuple(roles))


@st.composite
def _messages(draw: DrawFn, roles: Sequence[Role]) -> Message:
    match pick(draw, roles):
        case "assistant":
            return _reply(draw, [f"call_{n}" for n in range(draw(below(4)))])
        case "tool":
            return _result(draw, "call_0")
        case role:
            return Message(role, (Text(draw(TEXTS)),))


def histories(
    *, max_turns: int = 4, max_steps: int = 3, systems: bool = True
) -> SearchStrategy[tuple[Message, ...]]:
    """A conversation that a provider accepts as it stands: every call is answered right after it.

    It is as long as `max_turns` turns of up to `max_steps` replies each, ends after any message
    but an unanswered one, and where `systems` is true may hold system messages between turns.
    UsageError for fewer than no turns, or than one step.
    """
    check_count("max_turns", max_turns, 0)
    check_count("max_steps", max_steps, 1)
    return _histories(max_turns, max_steps, systems)


@st.composite
def _histories(
    draw: DrawFn,
    max_turns: int,
    max_steps: int,
    systems: bool,  # noqa: FBT001 - given by `histories` alone
) -> tuple[Message, ...]:
    history: list[Message] = []
    for turn in range(draw(below(max_turns + 1))):
        if systems and draw(SELDOM):
            history.append(Message("system", (Text(draw(TEXTS)),)))
        history.append(user(draw(TEXTS)))
        for step in range(draw(below(max_steps))):
            count = draw(_CALLS)
            same = draw(SELDOM)
            ids = [f"call_{turn}_{step}_{0 if same else n}" for n in range(count)]
            history.append(_reply(draw, ids))
            history += [_result(draw, call_id) for call_id in ids]
        if draw(BOTH):
            history.append(_reply(draw, []))
    return tuple(history)


def _reply(draw: DrawFn, ids: Sequence[str]) -> Message:
    content: list[Block] = []
    if draw(SELDOM):
        content.append(Thinking(draw(TEXTS), "signed"))
    text = draw(TEXTS)
    if text or not ids:
        content.append(Text(text))
    content += [ToolCall(call_id, pick(draw, TOOL_NAMES), draw(ARGUMENTS)) for call_id in ids]
    return Message("assistant", tuple(content))


def _result(draw: DrawFn, call_id: str) -> Message:
    return tool_result(call_id, draw(TEXTS), is_error=draw(AT_TIMES))


def calls() -> SearchStrategy[ToolCall]:
    """A model's wish to run a tool."""
    return st.builds(ToolCall, _CALL_IDS, _NAMES, ARGUMENTS)


def scripted_calls() -> SearchStrategy[ScriptedCall]:
    """A call of a scripted reply."""
    return st.builds(ScriptedCall, _NAMES, ARGUMENTS)


def usages() -> SearchStrategy[Usage]:
    """What a provider counted for one reply."""
    return USAGES.map(lambda usage: usage or Usage())


def requests() -> SearchStrategy[ModelRequest]:
    """A request to a model, whose history a provider accepts as it stands."""
    tools = st.sampled_from([(), (ToolSchema("clock", "Tells the time.", {"type": "object"}),)])
    systems = st.sampled_from(["", "Be brief."])
    return st.builds(ModelRequest, st.just("some-model"), systems, histories(systems=False), tools)


@st.composite
def choices(draw: DrawFn) -> Choices:
    """What decides all that a scenario leaves open: how long each thing takes, how replies are cut.

    It is drawn while a scenario is run with it, so that Hypothesis looks for the course of events
    that breaks something, and shrinks to the ordinary case all that does not matter. For one run.
    """
    data: st.DataObject = draw(st.data())

    def decide(source: str, label: str, bound: int) -> int:
        return data.draw(below(bound), label=f"{source} {label}")

    return Choices(picker=decide)


@st.composite
def chunkings(draw: DrawFn, whole: AnyStr, *, empty: bool = False) -> tuple[AnyStr, ...]:
    """A way to cut a text, or bytes, into pieces that make it whole again.

    Where `empty` is true, some pieces may be empty.
    """
    cuts: list[int] = draw(st.lists(st.integers(0, len(whole)), max_size=8))
    bounds = [0, *sorted(cuts), len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(bounds)]
    return tuple([piece for piece in pieces if piece or empty])
