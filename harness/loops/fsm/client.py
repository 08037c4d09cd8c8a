"""What the loop asks of a model's client. Every wait for a model happens in one of its methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from harness.core.json_text import Json
from harness.loops.fsm.messages import Message, ToolCall

CancelCheck: TypeAlias = Callable[[], bool]
"""Says whether the run that asked is cancelled by now."""


class Usage(Struct, frozen=True):
    """What a reply cost, in tokens; 0 where the provider did not say."""

    input_tokens: int = 0
    output_tokens: int = 0


class RequestOptions(Struct, frozen=True, kw_only=True):
    """What goes with each request of the main loop, or of sub-agents."""

    temperature: float | None = 0.0
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    stream: bool = True


class Client(Protocol):
    """A client of one model. May also have ``clone()``, a client of its own for a sub-agent, and
    ``close()``; one without ``clone`` is shared.
    """

    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Json] | None,
        system: str | None,
        options: RequestOptions,
        on_delta: Callable[[str], None] | None,
        cancel_check: CancelCheck,
        on_retry: Callable[[], None] | None,
    ) -> tuple[Message, Usage]:
        """Ask for the next reply; `tools` are specs of functions, None where tools are off.

        `messages` is the loop's live list and must not be kept. Raises where no reply came.
        """
        ...

    def chat_sync(
        self,
        messages: Sequence[Message],
        *,
        system: str,
        temperature: float | None = None,
        cancel_check: CancelCheck | None = None,
    ) -> Message:
        """Ask once, without tools and without streaming."""
        ...

    def abort(self) -> None:
        """Break off what is being asked, from any thread."""
        ...


def unsound(message: Any, usage: Any) -> str | None:
    """What a client gave instead of a model's message and its usage, in words; None where it gave
    those, with every part of the kind that it should be.

    >>> unsound(Message("assistant", 5), Usage())
    'a Message with content 5'
    """
    if not (isinstance(message, Message) and isinstance(usage, Usage)):
        return f"{type(message).__name__} and {type(usage).__name__}"
    kinds = (
        ("role", message.role, message.role == "assistant"),
        ("content", message.content, isinstance(message.content, str | list | None)),
        ("reasoning", message.reasoning, isinstance(message.reasoning, str | None)),
        ("tool_calls", message.tool_calls, _are_calls(message.tool_calls)),
        ("input_tokens", usage.input_tokens, isinstance(usage.input_tokens, int | None)),
    )
    wrong = [f"a Message with {name} {value!r}" for name, value, sound in kinds if not sound]
    return wrong[0] if wrong else None


def _are_calls(calls: Any) -> bool:
    return calls is None or (isinstance(calls, list | tuple) and all(map(_is_call, calls)))


def _is_call(call: Any) -> bool:
    return isinstance(call, ToolCall) and all(
        isinstance(each, str) for each in (call.id, call.name)
    )
