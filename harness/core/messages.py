"""The conversation, in a form that belongs to no provider."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from harness.core.json_text import Json

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class Text(Struct, frozen=True, tag="text"):
    """A piece of text; lone surrogates survive."""

    text: str


class Thinking(Struct, frozen=True, tag="thinking"):
    """A piece of the model's reasoning; `signature` is opaque and must come back byte for byte."""

    text: str
    signature: str | None = None


class ToolCall(Struct, frozen=True, tag="tool_call"):
    """The model's wish to run a tool.

    `args` is any JSON value. Where the model wrote arguments that are not JSON, `raw` holds what
    it wrote and `args` is None.
    """

    id: str
    name: str
    args: Json = None
    raw: str | None = None


class Image(Struct, frozen=True, tag="image"):
    """A picture, by reference; `width` and `height` in pixels (any number a client reports)."""

    attachment_id: str = ""
    media_type: str = ""
    width: float = 0
    height: float = 0


Block: TypeAlias = Text | Thinking | ToolCall | Image


class Message(Struct, frozen=True):
    """One message of a conversation.

    A tool's result has the role ``tool``, the id of the call that it answers, and `is_error`.
    """

    role: Role
    content: tuple[Block, ...] = ()
    tool_call_id: str | None = None
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text blocks, joined without a separator."""
        return "".join([block.text for block in self.content if type(block) is Text])

    @property
    def calls(self) -> list[ToolCall]:
        """The tool calls, in the model's order."""
        return [block for block in self.content if type(block) is ToolCall]


class Usage(Struct, frozen=True):
    """Token counts of one reply, or sums of them; a count that a provider left out is 0."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cache_read: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.total_tokens + other.total_tokens,
            self.cache_read + other.cache_read,
            self.reasoning_tokens + other.reasoning_tokens,
        )


class ToolSchema(Struct, frozen=True):
    """What a model is told about a tool; `parameters` is a JSON Schema."""

    name: str
    description: str = ""
    parameters: Json = None


class ModelRequest(Struct, frozen=True):
    """One request to a model."""

    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None


def user(text: str) -> Message:
    """A user's message of one text block."""
    return Message("user", (Text(text),))


def assistant(text: str = "", *calls: ToolCall) -> Message:
    """A model's message: its text (left out where empty), then its calls."""
    return Message("assistant", (*((Text(text),) if text else ()), *calls))


def tool_result(call_id: str, text: str, *, is_error: bool = False) -> Message:
    """A tool's answer to the call `call_id`."""
    return Message("tool", (Text(text),), call_id, is_error)
