"""What Anthropic refuses of calls, their results, and tools."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.wire.anthropic_words import OTHERS, is_own
from harness.wire.strict.anthropic_turns import (
    Block,
    Turn,
    answered,
    blocks_of,
    objects_in,
    text_in,
    turns_of,
)
from harness.wire.strict.rule import Breach, Case

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def unanswered(case: Case) -> Breach | None:
    """A1: a call that the next turn has no result for."""
    for turn, after in answered(case):
        results = set(_ids(after.of("tool_result"), "tool_use_id") if after else ())
        missing = [each for each in _ids(turn.of("tool_use"), "id") if each not in results]
        if missing:
            return _not_answered(turn, missing)
    return None


def result_not_first(case: Case) -> Breach | None:
    """A2: something stands before a result."""
    for turn, after in answered(case):
        others = False
        for block in after.blocks if after else ():
            if block.kind == "tool_result" and others:
                return _not_answered(turn, [block.text("tool_use_id")])
            others = others or block.kind != "tool_result"
    return None


def said_after_call(case: Case) -> Breach | None:
    """A3: something that is no call stands after a call in the same turn."""
    for turn, _ in answered(case):
        called: list[str] = []
        for block in turn.blocks:
            if block.kind == "tool_use":
                called.append(block.text("id"))
            elif called and block.kind not in OTHERS:
                return _not_answered(turn, called)
    return None


def unasked(case: Case) -> Breach | None:
    """A4: a result without a call in the turn before; of a provider's own tool, anywhere before."""
    asked: set[str] = set()
    served: set[str] = set()
    for turn in turns_of(case):
        for block in turn.blocks:
            call_id = block.text("tool_use_id")
            if block.kind == "server_tool_use":
                served.add(block.text("id"))
            elif block.kind == "tool_result" and turn.role == "user" and call_id not in asked:
                where = "`tool_use` block in the previous message"
                return _unexpected(block, where)
            elif block.kind.endswith("_tool_result") and call_id not in served:
                return _unexpected(block, "`server_tool_use` block before it")
        used = turn.of("tool_use") if turn.role == "assistant" else []
        asked = set(_ids(used, "id"))
    return None


def answered_twice(case: Case) -> Breach | None:
    """A5: two results for one call."""
    for _, after in answered(case):
        twice = _repeated(after.of("tool_result") if after else (), "tool_use_id")
        if twice is not None:
            single = "each tool_use must have a single result. Found multiple `tool_result` blocks"
            return Breach(f"{twice.place}: {single} with id: {twice.text('tool_use_id')}")
    return None


def repeated_id(case: Case) -> Breach | None:
    """A6: two calls with one id."""
    twice = _repeated(_calls(case), "id")
    return None if twice is None else Breach(f"{twice.place}: `tool_use` ids must be unique")


def odd_id(case: Case) -> Breach | None:
    """A7: an id of characters that are not allowed."""
    for block in _calls(case):
        if not _ID.fullmatch(block.text("id")):
            pattern = "String should match pattern '^[a-zA-Z0-9_-]+$'"
            return Breach(f"{block.place}.tool_use.id: {pattern}")
    return None


def tool_names(case: Case) -> Breach | None:
    """A20: two tools of one name, or a name that is not allowed."""
    tools = objects_in(case.body.get("tools"))
    names = [text_in(tool, "name") for tool in tools]
    for number, (tool, name) in enumerate(zip(tools, names, strict=True)):
        if is_own(tool) and not _NAME.fullmatch(name):
            pattern = "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
            return Breach(f"tools.{number}.custom.name: {pattern}")
    named = [name for name in names if name]
    return Breach("tools: Tool names must be unique.") if len(set(named)) < len(named) else None


def wrong_role(case: Case) -> Breach | None:
    """A23: a call of the user's, or a result of the model's."""
    for turn in turns_of(case):
        kind, role = "tool_use", "assistant"
        if turn.role == "assistant":
            kind, role = "tool_result", "user"
        for block in turn.of(kind):
            return Breach(f"{block.place}: `{kind}` blocks can only be in `{role}` messages")
    return None


def _calls(case: Case) -> list[Block]:
    return [block for block in blocks_of(case, "assistant") if block.kind == "tool_use"]


def _ids(blocks: Iterable[Block], key: str) -> list[str]:
    return [block.text(key) for block in blocks]


def _repeated(blocks: Iterable[Block], key: str) -> Block | None:
    """The first block that has the same text as one before it."""
    seen: set[str] = set()
    for block in blocks:
        if block.text(key) in seen:
            return block
        seen.add(block.text(key))
    return None


def _not_answered(turn: Turn, ids: list[str]) -> Breach:
    found = "`tool_use` ids were found without `tool_result` blocks immediately after"
    must = "Each `tool_use` block must have a corresponding `tool_result` block in the next message"
    return Breach(f"messages.{turn.last + 1}: {found}: {', '.join(ids)}. {must}.")


def _unexpected(block: Block, where: str) -> Breach:
    found = f"unexpected `tool_use_id` found in `{block.kind}` blocks: {block.text('tool_use_id')}"
    return Breach(
        f"{block.place}: {found}. Each `{block.kind}` block must have a corresponding {where}."
    )
