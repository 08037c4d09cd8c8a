"""A trace as far as a run that is played again from a recording can have the same."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from harness.core import json_text
from harness.core.events import (
    OUTSIDE,
    Delta,
    FaultInjected,
    GeneratorAbandoned,
    Received,
    ReplyEnded,
)
from harness.core.trace import Trace


def by_task(trace: Trace) -> dict[str, list[tuple[int, str]]]:
    """What happened in each task, as text, with the entries; without what a recording cannot know:
    why something failed, how a reply was meant that did not come so, and the pieces of one that is
    not streamed.
    """
    found: dict[str, list[tuple[int, str]]] = {}
    streamed: set[str] = set()
    for index, entry in enumerate(trace.entries):
        event = entry.event
        match event:
            case Received(reply=reply, streamed=True):
                streamed.add(reply)
            case Delta(reply=reply) if reply not in streamed:
                continue
            case ReplyEnded(reply=reply, end=end):
                event = ReplyEnded(reply, "torn" if end == "failed" else end)
            case FaultInjected() | GeneratorAbandoned():
                continue
            case _:
                pass
        if isinstance(event, OUTSIDE):
            told = json_text.dumps(msgspec.to_builtins(replace(entry, event=event)))
            found.setdefault(entry.task, []).append((index, told))
    return found
