"""What a model's stream is made of: the parts of one reply, in the order they come.

There is no part for a tool call: calls come as blocks of the message in `ReplyDone`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from harness.core.messages import Message, Usage


class TextDelta(Struct, frozen=True, tag="text"):
    """A piece of the reply's text."""

    text: str


class ThinkingDelta(Struct, frozen=True, tag="thinking"):
    """A piece of the reply's reasoning."""

    text: str


class UsageReport(Struct, frozen=True, tag="usage"):
    """What the provider counted; several in one reply all count."""

    usage: Usage


class ReplyDone(Struct, frozen=True, tag="done"):
    """The whole message; the only source of what becomes history."""

    message: Message


class ReplyFailed(Struct, frozen=True, tag="failed"):
    """The provider reported a failure; `kind` says whether it was the request or the stream."""

    kind: Literal["generate", "stream"]
    message: str


class ReplyInterrupted(Struct, frozen=True, tag="interrupted"):
    """The provider reported that it stopped before the end."""


ReplyPart: TypeAlias = (
    TextDelta | ThinkingDelta | UsageReport | ReplyDone | ReplyFailed | ReplyInterrupted
)
