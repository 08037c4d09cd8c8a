"""A trace as every level has it: what an agent saw and did, whoever carried its requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from harness.core.events import (
    OUTSIDE,
    AnyEvent,
    Delta,
    GeneratorAbandoned,
    Mismatch,
    Received,
    ReplyEnded,
    RequestSent,
    TurnEnded,
)
from harness.core.json_text import Json
from harness.core.messages import Message, ModelRequest
from harness.core.outcome import Error, outcome_name

_OF_A_LEVEL = ("path", "where", "scheduled", "waits", "detail")
"""Fields of events in which levels differ: which tasks there were."""


def neutral_events(events: Iterable[AnyEvent], requests: Sequence[ModelRequest]) -> list[Json]:
    """What is the same whatever the level: outside events without times, task paths and what
    waited where, deltas joined per reply and kind at the place of the first, call ids renamed by
    first use. Generators that were left open are left out, since a client's library makes its own.

    What some provider's protocol cannot say is left out too: of requests the reasoning, whether a
    tool failed, limits, temperatures, how text and calls mix, and whether a system message before
    the others is the system prompt; of replies their signatures. So are the words of errors, which
    are the client's.
    """
    texts: dict[tuple[str, str], list[str]] = {}
    spelled: list[dict[str, Any]] = []
    renamed: dict[str, str] = {}
    before: dict[str, dict[str, Any]] = {}
    sent = iter(requests)
    for event in events:
        if isinstance(event, Delta):
            key = (event.reply, event.kind)
            if key in texts:
                texts[key].append(event.text)
                continue
            texts[key] = [event.text]
        if isinstance(event, RequestSent):
            whole = neutral_request(next(sent), renamed)
            spelled.append(_sent(event, whole, before.get(event.conversation)))
            before[event.conversation] = whole
        elif isinstance(event, OUTSIDE) and not isinstance(event, GeneratorAbandoned | Received):
            spelled.append(_event(event, renamed))
    for each in spelled:
        if each["type"] == "delta":
            each["text"] = "".join(texts[each["reply"], each["kind"]])
    return spelled


def _event(event: AnyEvent, renamed: dict[str, str]) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(event)
    for field in _OF_A_LEVEL:
        told.pop(field, None)
    match event:
        case ReplyEnded(message=Message() as message) if event.end != "torn":
            told |= {"message": _message(message, renamed), "error": None}
        case ReplyEnded():
            told |= {"message": None, "error": None}
        case TurnEnded(outcome=outcome):
            told["outcome"] = outcome_name(outcome)
            if isinstance(outcome, Error):
                told["kind"] = outcome.kind
        case Mismatch():
            told.pop("message")
        case _:
            pass
    if "call_id" in told:
        told["call_id"] = _renamed(told["call_id"], renamed)
    return told


def _sent(
    event: RequestSent, whole: dict[str, Any], before: dict[str, Any] | None
) -> dict[str, Any]:
    """A request by what is new in it, as in the trace."""
    messages, head = whole["messages"], whole["head"]
    old = [] if before is None else before["messages"]
    pairs = zip(old, messages, strict=False)
    shared = min(len(old), len(messages))
    kept = next((at for at, (one, other) in enumerate(pairs) if one != other), shared)
    return {
        "type": "request_sent",
        "conversation": event.conversation,
        "reply": event.reply,
        "kept": kept,
        "added": messages[kept:],
        "head": None if before is not None and before["head"] == head else head,
    }


def neutral_request(request: ModelRequest, renamed: dict[str, str]) -> dict[str, Any]:
    """What every protocol can say of a request; `renamed` has the names of the call ids so far."""
    messages = list(request.messages)
    system = [request.system] if request.system else []
    while messages and messages[0].role == "system":
        system.append(messages.pop(0).text)
    tools = [[tool.name, tool.description] for tool in request.tools]
    head = {"model": request.model, "system": "\n\n".join(system), "tools": tools}
    return {"head": head, "messages": [_message(message, renamed) for message in messages]}


def _message(message: Message, renamed: dict[str, str]) -> dict[str, Any]:
    blocks = msgspec.to_builtins(message.content)
    told: dict[str, Any] = {"role": message.role}
    told["text"] = message.text
    others = [block for block in blocks if block["type"] not in ("text", "thinking")]
    for block in others:
        if block["type"] == "tool_call":
            block["id"] = _renamed(block["id"], renamed)
    if others:
        told["blocks"] = others
    if message.tool_call_id is not None:
        told["tool_call_id"] = _renamed(message.tool_call_id, renamed)
    return told


def _renamed(call_id: str, renamed: dict[str, str]) -> str:
    return renamed.setdefault(call_id, f"id{len(renamed) + 1}")
