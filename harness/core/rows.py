"""The rows of a session log: what a loop writes down so that the conversation can go on."""

from __future__ import annotations

from typing import TypeAlias, get_args

from msgspec import UNSET, Struct, UnsetType

from harness.core.json_text import Json
from harness.core.messages import Image, Thinking
from harness.core.outcome import COMPLETED, Outcome


class TurnStartRow(Struct, frozen=True, tag_field="type", tag="turn_start"):
    """A turn began; `id` is ``turn-<n>``, never reused."""

    id: str


class UserRow(Struct, frozen=True, tag_field="type", tag="user_message", omit_defaults=True):
    """What the user said; written for the empty text too."""

    text: str
    attachments: tuple[Image, ...] = ()


class ThinkingRow(Struct, frozen=True, tag_field="type", tag="thinking_delta"):
    """One contiguous burst of the model's reasoning."""

    text: str


class AssistantRow(Struct, frozen=True, tag_field="type", tag="assistant_message"):
    """What the model answered; only ever from a finished message. `thinking` holds the reasoning
    that the provider signed and wants back unchanged.
    """

    text: str
    thinking: tuple[Thinking, ...] | UnsetType = UNSET


class ToolCallRow(Struct, frozen=True, tag_field="type", tag="tool_call"):
    """A call that the model asked for; `raw` where its arguments were not JSON."""

    id: str
    name: str
    args: Json
    parent_id: str | UnsetType = UNSET
    raw: str | UnsetType = UNSET


class ToolResultRow(Struct, frozen=True, tag_field="type", tag="tool_result"):
    """The one answer to a call; `error` is None where the tool succeeded."""

    id: str
    value: Json = None
    error: str | None = None
    parent_id: str | UnsetType = UNSET


class TurnEndRow(Struct, frozen=True, tag_field="type", tag="turn_end"):
    """A turn ended; a row read without an outcome counts as completed."""

    id: str
    outcome: Outcome = COMPLETED


Row: TypeAlias = (
    TurnStartRow | UserRow | ThinkingRow | AssistantRow | ToolCallRow | ToolResultRow | TurnEndRow
)

ROW_KINDS: tuple[str, ...] = tuple(str(row.__struct_config__.tag) for row in get_args(Row))
"""The kinds of rows, as scenarios and logs spell them."""
