"""Strategies for the two things that a script is made of: tools, and what the model replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from msgspec.structs import replace

from harness.core.messages import Message
from harness.fakes.parts import stream_parts
from harness.fakes.script import (
    DoneTwice,
    Fault,
    GenerateFails,
    Hang,
    LateThinking,
    Reply,
    ScriptedCall,
    StreamFails,
    Torn,
)
from harness.fakes.tool_spec import (
    Action,
    Answers,
    Behaviour,
    CancelsItself,
    Case,
    Hangs,
    Raises,
    Returns,
    ToolSpec,
)
from harness.fakes.wire_faults import SEARCHED
from harness.testing.strategies_values import (
    ARGUMENTS,
    AT_TIMES,
    BOTH,
    MS,
    SPANS,
    TEXTS,
    TOOL_NAMES,
    USAGES,
    VALUES,
    below,
    check_names,
    pick,
    weighted,
)

UNDECLARED = "nosuch"
"""A tool that no scenario declares."""

_FAILURES: SearchStrategy[Action | None] = weighted(
    (None, 12), (Answers("no such city"), 2), (Raises("out of order"), 2), (CancelsItself(), 1)
)
_EFFECTS: SearchStrategy[Literal["start", "end", "none"]] = weighted(
    ("end", 4), ("start", 2), ("none", 1)
)
_ON_CANCEL: SearchStrategy[Literal["honour", "cleanup", "ignore"]] = weighted(
    ("honour", 6), ("cleanup", 1), ("ignore", 1)
)
_VARIANTS = weighted(("always", 8), ("case", 1), ("in turn", 1))
_CALLS = weighted(("plain", 18), ("undeclared", 1), ("value", 1), ("raw", 1))
_IDS = weighted((None, 12), ("one", 1), ("", 1))
_MORE = weighted((0, 4), (1, 3), (2, 1), (3, 1))
_CHUNKS = weighted((None, 3), (1, 1), (5, 1))
_EACH = weighted((0, 3), (10 * MS, 1))
_FAULTS = (GenerateFails, StreamFails, Torn, DoneTwice, LateThinking, None)
"""None is one on the wire."""


def tools(*, names: Sequence[str] = TOOL_NAMES) -> SearchStrategy[ToolSpec]:
    """A fake tool with one of `names`, which comes back by itself; UsageError where it has none."""
    check_names("names", names)
    return _tools(tuple(names))


@st.composite
def _tools(draw: DrawFn, names: Sequence[str]) -> ToolSpec:
    name = pick(draw, names)
    match draw(_VARIANTS):
        case "always":
            return ToolSpec(name, _behaviour(draw))
        case "case":
            case = Case({"city": "Oslo"}, _behaviour(draw))
            return ToolSpec(name, _behaviour(draw), (case,))
        case _:
            return ToolSpec(name, calls=(_behaviour(draw), _behaviour(draw)))


def draw_stuck_tool(draw: DrawFn, name: str) -> ToolSpec:
    """The tool `name`, which never comes back by itself."""
    return ToolSpec(name, replace(_behaviour(draw), action=Hangs(), takes=0))


def _behaviour(draw: DrawFn) -> Behaviour:
    action = draw(_FAILURES) or Returns(draw(VALUES))
    on_cancel = draw(_ON_CANCEL)
    cleanup = 10 * MS if on_cancel == "cleanup" else 0
    return Behaviour(action, draw(SPANS), draw(_EFFECTS), on_cancel, cleanup)


def replies(
    *,
    tools: Sequence[str] = TOOL_NAMES,
    asks: bool | None = None,
    faults: bool = True,
) -> SearchStrategy[Reply]:
    """What the model replies, once.

    `asks` says whether it calls some of `tools` (None: it may; of none: ``nosuch``), `faults`
    whether something may go wrong with it; it never hangs.
    """
    check_names("tools", tools, least=0)
    return _replies(tuple(tools), asks, faults)


@st.composite
def _replies(draw: DrawFn, tools: Sequence[str], asks: bool | None, faults: bool) -> Reply:  # noqa: FBT001
    reply = draw_reply(draw, tools, asks=draw(BOTH) if asks is None else asks)
    return draw_faulty(draw, reply) if faults and draw(AT_TIMES) else reply


def draw_reply(draw: DrawFn, tools: Sequence[str], *, asks: bool) -> Reply:
    """A reply that comes whole; where it `asks`, it calls up to four tools, at times all of them by
    one id.
    """
    calls: tuple[ScriptedCall, ...] = ()
    if asks:
        call_id = draw(_IDS)
        calls = tuple([_call(draw, tools, call_id) for _ in range(draw(_MORE) + 1)])
    think = draw(TEXTS) if draw(AT_TIMES) else ""
    return Reply(
        say="" if asks and not draw(BOTH) else draw(TEXTS),
        think=think,
        signature="signed" if think and draw(BOTH) else None,
        calls=calls,
        usage=draw(USAGES),
        chunk=draw(_CHUNKS),
        takes=draw(SPANS),
        each=draw(_EACH),
    )


def _call(draw: DrawFn, tools: Sequence[str], call_id: str | None) -> ScriptedCall:
    """A call, with ordinary arguments most of the time."""
    tool = pick(draw, tools) if tools else UNDECLARED
    match draw(_CALLS):
        case "undeclared":
            return ScriptedCall(UNDECLARED, draw(ARGUMENTS), id=call_id)
        case "value":
            return ScriptedCall(tool, pick(draw, [["Paris"], "Paris", None, 1]), id=call_id)
        case "raw":
            return ScriptedCall(tool, None, pick(draw, ['{"city": ', ""]), call_id)
        case _:
            return ScriptedCall(tool, draw(ARGUMENTS), id=call_id)


def draw_faulty(draw: DrawFn, reply: Reply) -> Reply:
    """`reply` with something that goes wrong, at any of its parts."""
    kind = pick(draw, _FAULTS)
    fault: Fault
    parts = parts_before_end(reply)
    if kind is StreamFails:  # as often right before and after the end signal as elsewhere
        after = pick(draw, [*range(parts), *[parts, parts + 1] * (1 + parts // 2)])
        fault = StreamFails(after, reported=draw(BOTH))
    elif kind is Torn:
        fault = Torn(draw(below(parts + 1)))
    elif kind is None:
        early = [each for each in SEARCHED if parts or getattr(each, "after", 0) == 0]
        fault = pick(draw, early)
    else:
        fault = kind()
    return replace(reply, fault=fault)


def draw_hanging(draw: DrawFn, reply: Reply) -> Reply:
    """`reply`, which hangs at any of its parts, or before it begins."""
    after = draw(below(parts_before_end(reply) + 3)) - 1
    return replace(reply, fault=Hang(None if after < 0 else after))


def parts_before_end(reply: Reply) -> int:
    """How many parts the reply has before its end signal."""
    return len(stream_parts(reply, Message("assistant"), 0, None)[0]) - 1
