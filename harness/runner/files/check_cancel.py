"""Finds cancels that can never fire."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import get_args, get_type_hints

from msgspec import Struct

from harness.core.errors import hint, nearest, unknown
from harness.core.events import ReplyEnded
from harness.core.located import shortened
from harness.core.rows import ROW_KINDS
from harness.fakes.tool_spec import Behaviour, Hangs, ToolSpec
from harness.runner.files.fault_format import FAULT_NAMES
from harness.runner.files.reach import DELTA_KINDS, Reach, times
from harness.runner.scenario import Cancel
from harness.sim.cancel import Point

ENDS: tuple[str, ...] = get_args(get_type_hints(ReplyEnded)["end"])


class Around(Struct, frozen=True):
    """What a cancel stands in."""

    turn: int
    replies: int
    """How many replies the turn itself has."""
    reach: Reach
    also: tuple[str, ...]
    """The names of the `also` entries."""
    tools: Mapping[str, ToolSpec] | None
    """The declared tools; None where the file's own list cannot be read."""
    loop_events: tuple[str, ...]
    states: tuple[str, ...]
    """What the scenario's loops report; empty where that is not known."""


def impossible(cancel: Cancel, around: Around) -> str | None:
    """Why the cancel can never fire, or None."""
    if cancel.point is not None:
        return _point(Point.parse(cancel.point), around.turn)
    name, nth, reach = cancel.name, cancel.nth, around.reach
    match cancel.after:
        case "turn_started":
            return _nameless("turn_started", name) or _times("turn_started", nth, 1)
        case "trimmed" | "compacted" | "salvaged" as kind:
            return _nameless(kind, name)
        case "request_sent":
            return _request(name, nth, around)
        case "delta":
            return _of("delta", name, DELTA_KINDS) or _times(
                _named("delta", name), nth, _most_deltas(reach, name)
            )
        case "reply_ended":
            return _of("reply_ended", name, ENDS) or _times(
                "reply_ended", nth, nth if reach.again else reach.replies
            )
        case "fault_injected":
            return _of("fault_injected", name, FAULT_NAMES) or _times(
                _named("fault_injected", name), nth, times(reach.faults, name)
            )
        case "tool_started" | "tool_effect" | "tool_ended" | "result_synthesized" as kind:
            return _tool(kind, name, nth, around)
        case "log_row":
            return _of("log_row", name, ROW_KINDS)
        case "loop_event":
            return _of("loop_event", name, around.loop_events)
        case "state_entered":
            return _of("state_entered", name, around.states)
        case _:
            return None


def not_called(name: str, calls: Collection[str]) -> str:
    """Say that a turn does not call a tool, and which it calls."""
    guess = hint(nearest(name, calls))
    they_call = f"they call {', '.join(calls)}" if calls else "they call no tool"
    return f"this turn's replies do not call {shortened(name)}{guess}; {they_call}"


def _named(kind: str, name: str | None) -> str:
    return f"{kind} {name}" if name else kind


def _nameless(kind: str, name: str | None) -> str | None:
    return f"{kind} has no name to wait for; remove {shortened(repr(name))}" if name else None


def _of(kind: str, name: str | None, names: Sequence[str]) -> str | None:
    if name is None or not names or name in names:
        return None
    return unknown(f"{kind} name", shortened(name), names)


def _times(what: str, nth: int, most: int) -> str | None:
    if nth <= most:
        return None
    if most == 0:
        return f"{what} never happens in this turn's script"
    times = "once" if most == 1 else f"{most} times"
    return f"{what} happens {times} in this turn's script, so not {nth} times"


def _request(name: str | None, nth: int, around: Around) -> str | None:
    if name is None:
        reach = around.reach
        return _times("request_sent", nth, nth if reach.again else reach.replies)
    place = name.partition("~")[0]  # ~2 marks a reply that is asked for again
    places = [f"{around.turn}.{step + 1}" for step in range(around.replies)]
    if place in places or place.rpartition(".")[0] in around.also:
        return None
    if len(places) > 8:
        places[3:-1] = ["…"]
    also = [f"{entry}.1" for entry in around.also]
    return unknown("place of a request of this turn", shortened(name), (*places, *also))


def _most_deltas(reach: Reach, name: str | None) -> int:
    most = times(reach.deltas, name)
    return most * 1_000_000 if reach.again else most


def _tool(kind: str, name: str | None, nth: int, around: Around) -> str | None:
    calls = around.reach.calls
    if name is not None and name not in calls:
        return not_called(name, calls)
    if name is not None and around.tools is not None and kind != "result_synthesized":
        spec = around.tools.get(name)
        if spec is None:
            return f"{name} is not declared, so it never starts"
        if kind == "tool_effect" and not any(map(_takes_effect, _behaviours(spec))):
            return f"{name} never takes effect"
    return _times(_named(kind, name), nth, times(calls, name))


def _behaviours(spec: ToolSpec) -> list[Behaviour]:
    return [*(case.behaviour for case in spec.cases), *(spec.calls or (spec.behaviour,))]


def _takes_effect(behaviour: Behaviour) -> bool:
    match behaviour.effect:
        case "start":
            return True
        case "end":
            return not isinstance(behaviour.action, Hangs)
        case "none":
            return False


def _point(point: Point, turn: int) -> str | None:
    root = point.path.split(".")[0]
    if root.isdecimal() and root != str(turn):
        return f"the task {point.path} belongs to turn {root}, but this is turn {turn}"
    return None
