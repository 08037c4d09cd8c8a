"""Is what an agent sends a request at all? Python would only notice much later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from harness.core.errors import UsageError
from harness.core.messages import Block, Message, Role

_BLOCKS = get_args(Block)
_ROLES = get_args(Role)


def check_messages(messages: Sequence[Any], first: int) -> None:
    """UsageError where one of `messages` is none; `first` is the index of the first of them."""
    for index, message in enumerate(messages, first):
        wrong = _wrong(message)
        if wrong:
            raise UsageError(
                f"messages[{index}] {wrong}; make messages with user(text), assistant(text, "
                "*calls), tool_result(call_id, text), or Message(role, blocks)"
            )


def _wrong(message: Any) -> str | None:
    if not isinstance(message, Message):
        return f"is a {type(message).__name__}, not a Message"
    return _wrong_field(message)


def _wrong_field(message: Any) -> str | None:
    """What is wrong inside a message, whose fields hold whatever they were given."""
    if message.role not in _ROLES:
        return f"has the role {message.role!r}; the roles are {', '.join(_ROLES)}"
    if not isinstance(message.content, tuple | list):
        return f"has {type(message.content).__name__} content, not a tuple of blocks"
    for block in message.content:
        if not isinstance(block, _BLOCKS):
            return f"holds a {type(block).__name__}, which is no block"
        text: Any = getattr(block, "text", "")
        if not isinstance(text, str):
            return f"has the text {text!r}, which is {type(text).__name__}, not str"
        call_id: Any = getattr(block, "id", "")
        if not isinstance(call_id, str):
            return f"has a call with the id {call_id!r}, which is not str"
    if message.role == "tool" and not isinstance(message.tool_call_id, str):
        return f"is a tool's result for the call {message.tool_call_id!r}; its id is a str"
    return None
