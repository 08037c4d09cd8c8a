"""What can be set on a turn loop: numbers, names and the texts that it writes itself."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from harness.core.errors import UsageError, unknown

SYSTEM_PROMPT = (
    "You are a helpful assistant. Use the tools where they help, and say so plainly when one of "
    "them did not work."
)


class AgentConfig(Struct, frozen=True, kw_only=True):
    """The settings of a turn loop.

    `max_steps` counts model calls of one turn, 0 or less is no limit; at most
    `max_parallel_tool_calls` (1 or more; less counts as 1) tools run at once. The history is cut
    where it is larger than `context_trim_threshold` of `context_window_tokens` (0: never), if
    possible to its last `context_keep_recent` messages. A cancelled turn waits `cancel_grace`
    nanoseconds for the work that it gave up.
    """

    model: str = "example-model"
    system_prompt: str = SYSTEM_PROMPT
    max_steps: int = 16
    max_parallel_tool_calls: int = 4
    context_window_tokens: int = 65536
    context_trim_threshold: float = 0.8
    context_keep_recent: int = 10
    cancel_grace: int = 0


class Texts(Struct, frozen=True, kw_only=True):
    """What the loop says in its own words, to the model or in a result."""

    trim_marker: str = (
        "[context-trimmed] The start of this conversation, {messages} message(s) of ~{tokens} "
        "tokens, was left out to stay within the context window. Go on from what follows, and ask "
        "when something from before is needed."
    )
    """Stands where the history was cut; `{messages}` and `{tokens}` are filled in."""

    cancelled_before_execution: str = "cancelled before execution"
    """The error of a call that never started."""

    interrupted: str = "interrupted while running; it may have taken effect"
    """The error of a call that had started when the turn was cancelled."""

    process_ended: str = "no result before the process ended; it may have taken effect"
    """The error of a call that the log holds no answer for, and whose process is gone."""

    reply_failed: str = "cancelled before execution: the reply failed after it had asked for this"
    """The error of a call whose reply broke after its done part."""

    arguments_not_json: str = "not executed: the arguments are not valid JSON"
    """The error of a call whose arguments could not be read."""

    arguments_no_object: str = "not executed: the arguments are not a JSON object"
    """The error of a call whose arguments are a list, a number or the like."""

    derive_unanswered: str = "Error: no result was recorded for this call; it may have run"
    """The whole result of a call that the log holds no answer for."""


TEXTS = Texts()


def default_config(**overrides: Any) -> AgentConfig:
    """The default settings with some of them replaced.

    UsageError where a setting is not known or its value is of the wrong type.

    >>> default_config(max_steps=2).max_steps
    2
    """
    names = AgentConfig.__struct_fields__
    for name in overrides:
        if name not in names:
            raise UsageError(unknown("setting", name, names))
    try:
        return msgspec.convert(overrides, AgentConfig)
    except msgspec.ValidationError as error:
        raise UsageError(f"a setting of the turn loop has a wrong type: {error}") from None
