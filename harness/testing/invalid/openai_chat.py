"""What breaks each rule of Chat Completions, and those of DeepSeek, which speaks the same."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from harness.core.json_text import Json
from harness.testing.invalid.fault import ODD, Fault, Faults, call_ids, long_name, some
from harness.testing.strategies_values import below, pick

MODEL, REASONS = "gpt-4o", ("o3", "o3-mini", "gpt-5-mini")
GO: Json = {"role": "user", "content": "Go on."}
SAID: Json = {"role": "assistant", "content": "Well."}
THINKING: Json = {"type": "enabled"}


def called(*ids: str, name: str = "f") -> Json:
    """A reply that calls."""
    calls: list[Json] = [
        {"id": each, "type": "function", "function": {"name": name, "arguments": "{}"}}
        for each in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str) -> Json:
    """What a tool gave."""
    return {"role": "tool", "tool_call_id": call_id, "content": "ok"}


def _tool(**more: Json) -> Json:
    return {"type": "function", "function": {"name": "f", **more}}


def _no_messages(_draw: DrawFn) -> Fault:
    return Fault(place="alone")


def _no_calls(_draw: DrawFn) -> Fault:
    return Fault(({"role": "assistant", "content": "Well.", "tool_calls": []},))


def _no_content(draw: DrawFn) -> Fault:
    return Fault(({"role": pick(draw, ("assistant", "user")), "content": None},))


def _long_id(draw: DrawFn) -> Fault:
    call_id = long_name(draw, 40)
    return Fault((called(call_id), result(call_id)))


def _odd_name(draw: DrawFn) -> Fault:
    name = draw(ODD)
    if draw(st.booleans()):
        return Fault((called("bad_1", name=name), result("bad_1")))
    return Fault((GO,), {"tools": [_tool(name=name)]})


def _long_name(draw: DrawFn) -> Fault:
    return Fault((GO,), {"tools": [_tool(name=long_name(draw, 64))]})


def _long_description(draw: DrawFn) -> Fault:
    return Fault((GO,), {"tools": [_tool(description=long_name(draw, 1024))]})


def _without_tools(draw: DrawFn) -> Fault:
    return Fault((GO,), pick(draw, ({"tool_choice": "auto"}, {"parallel_tool_calls": False})))


def _temperature(draw: DrawFn) -> Fault:
    return Fault((GO,), {"temperature": draw(below(2)) / 2}, model=pick(draw, REASONS))


def _max_tokens(draw: DrawFn) -> Fault:
    return Fault((GO,), {"max_tokens": draw(below(100)) + 1}, model=pick(draw, REASONS))


def _orphan(draw: DrawFn) -> Fault:
    return Fault((pick(draw, (GO, SAID)), *map(result, call_ids(draw))))


def _unasked(draw: DrawFn) -> Fault:
    ids = call_ids(draw)
    return Fault((called(*ids), *map(result, ids), result("stranger")))


def _answered_twice(draw: DrawFn) -> Fault:
    ids = call_ids(draw)
    return Fault((called(*ids), *map(result, ids), result(pick(draw, ids))))


def _unanswered(draw: DrawFn) -> Fault:
    ids = call_ids(draw)
    return Fault((called(*ids), *map(result, some(draw, ids)), GO))


def _thought_missing(draw: DrawFn) -> Fault:
    ids = call_ids(draw)
    more: dict[str, Json] = {"thinking": THINKING}
    return Fault((GO, called(*ids), *map(result, ids)), more, "last")


FAULTS: Faults = {
    "C1": _no_messages,
    "C7": _no_calls,
    "C8": _no_content,
    "C9": _long_id,
    "C10": _odd_name,
    "C10b": _long_name,
    "C11": _long_description,
    "C12": _without_tools,
    "C13": _temperature,
    "C13b": _max_tokens,
    "C2": _orphan,
    "C6": _unasked,
    "C5": _answered_twice,
    "C3": _unanswered,
}
DEEPSEEK: Faults = {"D2": _orphan, "D3": _unanswered, "D1": _thought_missing}
