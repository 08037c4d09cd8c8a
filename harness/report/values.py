"""How single values are spelled on one line: texts, messages, rows, outcomes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import assert_never

from msgspec import UNSET

from harness.core import json_text
from harness.core.events import RequestHead, TurnStarted
from harness.core.json_text import Json
from harness.core.messages import Block, Image, Message, Text, Thinking, ToolCall, ToolSchema, Usage
from harness.core.outcome import Error, Outcome, outcome_name
from harness.core.rows import (
    AssistantRow,
    Row,
    ThinkingRow,
    ToolCallRow,
    ToolResultRow,
    TurnEndRow,
    TurnStartRow,
    UserRow,
)
from harness.core.trace import Trace

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]"
)
"""What a terminal or an editor would act on, or not show."""
_BARE = re.compile(r"[\w.:#/@+-]+", re.ASCII)


def printable(text: str) -> str:
    r"""Escape what cannot be seen, and keep all else as it is.

    >>> print(printable("a 'café'\x1b[0m"))
    a 'café'\u001b[0m
    """
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def quote(value: Json) -> str:
    r"""Write a JSON value on one line, with all that cannot be seen escaped.

    >>> print(quote("café\u2028\x1b[0m\ud800"), quote({"a": [1, None]}))
    "café\u2028\u001b[0m\ud800" {"a":[1,null]}
    """
    return printable(json_text.dumps(value))


def word(name: str) -> str:
    """Write a name bare where it is one plain word, quoted where it is not.

    >>> word("call_1_1"), word("two words"), word("")
    ('call_1_1', '"two words"', '""')
    """
    return name if _BARE.fullmatch(name) else quote(name)


def outcome_text(outcome: Outcome) -> str:
    """An outcome, with kind and message where it is an error."""
    if isinstance(outcome, Error):
        return f"error {word(outcome.kind)} {quote(outcome.message)}"
    return outcome_name(outcome)


def outcomes_text(outcomes: Sequence[Outcome], trace: Trace) -> str:
    """How each turn ended; apart from them the turn that the runner added to see what was left."""
    added = {
        entry.event.turn
        for entry in trace
        if isinstance(entry.event, TurnStarted) and entry.event.default
    }
    names = list(enumerate(map(outcome_name, outcomes), 1))
    own = ", ".join([name for turn, name in names if turn not in added])
    return " ".join([own, *[f"(+{name})" for turn, name in names if turn in added]])


def usage_text(usage: Usage) -> str:
    """Token counts: asked, answered, their sum; the rest where there is any."""
    text = f"usage {usage.prompt_tokens} + {usage.completion_tokens} = {usage.total_tokens}"
    if usage.cache_read:
        text += f", {usage.cache_read} from the cache"
    if usage.reasoning_tokens:
        text += f", {usage.reasoning_tokens} for reasoning"
    return text


def message_text(message: Message) -> str:
    """A whole message in brackets: role, what it answers, its blocks."""
    head: str = message.role
    if message.tool_call_id is not None:
        head += f" {word(message.tool_call_id)}"
    if message.is_error:
        head += " error"
    return f"[{' '.join([head, ', '.join(map(block_text, message.content))]).rstrip()}]"


def block_text(block: Block) -> str:
    """One block of a message."""
    match block:
        case Text(text):
            return quote(text)
        case Thinking(text, None):
            return f"thinking {quote(text)}"
        case Thinking(text, signature):
            return f"thinking {quote(text)} signed {quote(signature)}"
        case ToolCall(id=call_id, name=name, args=args, raw=raw):
            return f"call {call_text(call_id, name, args, raw)}"
        case Image(attachment_id=name, media_type=media, width=width, height=height):
            return f"image {quote(name)} {quote(media)} {quote(width)}x{quote(height)}"
        case _:
            assert_never(block)


def call_text(call_id: str, name: str, args: Json, raw: str | None = None) -> str:
    """A call: the tool, the id, the arguments or what stands in their place."""
    text = f"{word(name)} {word(call_id)}"
    if raw is None:
        return f"{text} {quote(args)}"
    return f"{text} raw {quote(raw)}" + ("" if args is None else f" {quote(args)}")


def head_texts(head: RequestHead) -> Iterator[str]:
    """What stands beside the messages of a request, one by one."""
    yield f"model {quote(head.model)}"
    yield f"system {quote(head.system)}"
    for tool in head.tools:
        yield f"tool {_tool_text(tool)}"
    for name, value in (("max_tokens", head.max_tokens), ("temperature", head.temperature)):
        if value is not None:
            yield f"{name} {quote(value)}"


def _tool_text(tool: ToolSchema) -> str:
    """What a model is told about a tool."""
    text = word(tool.name)
    if tool.description:
        text += f" {quote(tool.description)}"
    if tool.parameters is not None:
        text += f" {quote(tool.parameters)}"
    return text


def row_text(row: Row) -> str:
    """What a row of a session log holds beside its kind."""
    match row:
        case TurnStartRow(turn):
            return word(turn)
        case UserRow(text, attachments):
            return ", ".join([quote(text), *map(block_text, attachments)])
        case ThinkingRow(text) | AssistantRow(text):
            return quote(text)
        case ToolCallRow(id=call_id, name=name, args=args, parent_id=parent, raw=raw):
            text = call_text(call_id, name, args, None if raw is UNSET else raw)
            return text if parent is UNSET else f"{text} under {word(parent)}"
        case ToolResultRow(id=call_id, value=value, error=error, parent_id=parent):
            text = word(call_id)
            if error is None or value is not None:
                text += f" {quote(value)}"
            if error is not None:
                text += f" error {quote(error)}"
            return text if parent is UNSET else f"{text} under {word(parent)}"
        case TurnEndRow(turn, outcome):
            return f"{word(turn)} {outcome_text(outcome)}"
        case _:
            assert_never(row)
