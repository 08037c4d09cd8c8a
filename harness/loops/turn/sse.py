"""A turn's events as server-sent events: the event's name and its JSON payload."""

from __future__ import annotations

from harness.core.json_text import Json
from harness.core.outcome import Error, outcome_name
from harness.loops.turn.events import (
    CallTold,
    DoneTold,
    EndTold,
    ResultTold,
    TextTold,
    ThinkingTold,
    TurnEvent,
)


def frame(event: TurnEvent) -> tuple[str, Json]:
    """The frame of one event; what wraps it (turn, sequence number) is the host's.

    >>> frame(TextTold("hi"))
    ('text', {'delta': 'hi'})
    """
    match event:
        case TextTold(delta=delta):
            return "text", {"delta": delta}
        case ThinkingTold(delta=delta):
            return "thinking", {"delta": delta}
        case CallTold():
            return "tool", _call(event)
        case ResultTold():
            return "tool_result", {
                "id": event.call_id,
                "ok": event.ok,
                "value": event.value,
                "render": event.render,
                "error": event.error,
                "decision": event.decision,
            }
        case DoneTold(text=text, calls=calls):
            return "done", {"text": text, "tool_calls": [_call(call) for call in calls]}
        case EndTold(outcome=outcome):
            error = f"{outcome.kind}: {outcome.message}" if isinstance(outcome, Error) else None
            return "turn_end", {"outcome": outcome_name(outcome), "error": error}


def _call(call: CallTold) -> Json:
    return {"id": call.id, "name": call.name, "args": call.args}
