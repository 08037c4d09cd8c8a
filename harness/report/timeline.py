"""One run as a time line: what model, tools and log did, beside each other in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Literal, TypeAlias, assert_never

from msgspec import Struct
from rich.text import Text

from harness.core.durations import format_duration
from harness.core.events import (
    AnyEvent,
    CancelDelivered,
    CancelRequested,
    Compacted,
    Delta,
    ErrorUnseen,
    Estimated,
    FaultInjected,
    GeneratorAbandoned,
    InteractionUnused,
    LogRow,
    LoopEvent,
    Mismatch,
    NetworkReached,
    Received,
    ReplyEnded,
    RequestMissed,
    RequestSent,
    ResultSynthesized,
    RunStopped,
    Salvaged,
    StateEntered,
    TaskLeaked,
    ToolEffect,
    ToolEnded,
    ToolStarted,
    Trimmed,
    TurnEnded,
    TurnStarted,
    UsageCounted,
)
from harness.core.trace import Entry, Trace
from harness.core.wording import counted
from harness.report.text import facts
from harness.report.values import outcome_text, printable, quote, row_text, word

Lane: TypeAlias = Literal["run", "model", "tools", "log"]

LANES: tuple[Lane, ...] = ("model", "tools", "log")
STYLES: dict[Lane, str] = {"run": "bold", "model": "cyan", "tools": "yellow", "log": "green"}
SIDE_BY_SIDE_FROM = 72
"""From this width on, in columns, the lanes stand beside each other."""
_TIME = 9
_WHOLE = "whole lines: --plain"


_LEFT_OUT = (LoopEvent, Estimated, UsageCounted)


class Mark(Struct, frozen=True):
    """One thing to show, and in which lane; lane `run` goes across all of them."""

    at: int
    lane: Lane
    text: str
    alarm: bool


def marks(trace: Trace) -> Iterator[Mark]:
    """What to show of a run; the deltas of a reply that follow each other are one mark.

    What a loop tells its consumer is left out, since the same things happen in the other lanes,
    and so is what it counts.
    """
    shown = [entry for entry in trace if not isinstance(entry.event, _LEFT_OUT)]
    for _, group in groupby(enumerate(shown), _reply_or_index):
        entries = [entry for _, entry in group]
        event = entries[0].event
        if isinstance(event, Delta):
            text = "".join([each.event.text for each in entries if isinstance(each.event, Delta)])
            event = Delta(event.reply, event.kind, text)
        yield Mark(entries[0].at, *mark(event))


def _reply_or_index(place: tuple[int, Entry]) -> tuple[str, str] | int:
    index, entry = place
    event = entry.event
    return (event.reply, event.kind) if isinstance(event, Delta) else index


def mark(event: AnyEvent) -> tuple[Lane, str, bool]:  # noqa: C901, PLR0911, PLR0912 - one case a kind
    """An event's lane, its words, and whether it is an alarm."""
    match event:
        case TurnStarted(turn=turn, text=text, default=default):
            said = "resume" if text is None else quote(text)
            by = " (added by the runner)" if default else ""
            return "run", f"turn {turn}: {said}{by}", False
        case TurnEnded(turn=turn, outcome=outcome):
            return "run", f"turn {turn} ends: {outcome_text(outcome)}", False
        case CancelRequested(by=by, trigger=trigger):
            return "run", f"cancel by {by}: {printable(trigger)}", True
        case CancelDelivered():
            return "run", "cancel delivered", True
        case TaskLeaked(path=path, where=where, owner=owner, started=started):
            what = "task" if started is None else "thread" if where else "pool"
            at = printable(where or f"made at {started}")
            return "run", f"{what} {path} of the {owner} is left: {at}", True
        case GeneratorAbandoned(name=name):
            return "run", f"async generator {word(name)} is left open", True
        case NetworkReached(message=message):
            return "run", f"reached for the network: {printable(message)}", True
        case RequestMissed(message=message):
            return "run", f"not in the cassette: {printable(message.splitlines()[0])}", True
        case InteractionUnused(message=message):
            return "run", f"of the cassette was never asked for: {printable(message)}", True
        case ErrorUnseen(message=message):
            return "run", f"nobody saw: {printable(message)}", True
        case RunStopped(reason=reason, detail=detail):
            return "run", f"stopped, {reason}: {printable(detail)}", True
        case Mismatch(error=error, message=message):
            return "run", f"{word(error)}: {printable(message)}", True
        case RequestSent(reply=reply, kept=kept, added=added):
            return "model", f"→ {word(reply)}, {counted(kept + len(added), 'message')}", False
        case Received(rule=rule):
            return "model", f"over HTTP: {facts(event)}", rule is not None
        case Delta(kind=kind, text=text):
            return "model", f"{'says' if kind == 'text' else 'thinks'} {quote(text)}", False
        case ReplyEnded():
            return "model", f"← {_reply_end(event)}", event.end != "complete"
        case FaultInjected():
            return "model", f"fault {facts(event)}", True
        case ToolStarted(name=name, args=args):
            return "tools", f"▶ {word(name)} {quote(args)}", False
        case ToolEffect(name=name, told=told):
            return "tools", f"● {word(name)} takes effect", told
        case ToolEnded():
            return "tools", _tool_end(event), event.end != "returned"
        case LogRow(row=row):
            return "log", f"{event.subject} {row_text(row)}", False
        case LoopEvent():
            return "log", f"tells {facts(event)}", False
        case StateEntered(state=state):
            return "log", f"state {word(state)}", False
        case Estimated() | UsageCounted():
            return "log", f"counts {facts(event)}", False
        case Trimmed(removed_messages=messages):
            return "log", f"trims {counted(messages, 'message')}", False
        case Compacted(failed=failed):
            return "log", f"sums up {facts(event)}", failed is not None
        case Salvaged(removed_messages=messages):
            return "log", f"drops {counted(messages, 'message')} of a cut round", True
        case ResultSynthesized(name=name, error=error):
            return "log", f"answers for {word(name)}: {quote(error)}", True
        case _:
            assert_never(event)


def _reply_end(event: ReplyEnded) -> str:
    if event.end != "complete":
        return event.end if event.error is None else f"{event.end}: {printable(event.error)}"
    calls = event.message.calls if event.message else []
    return f"asks for {', '.join([word(call.name) for call in calls])}" if calls else "done"


def _tool_end(event: ToolEnded) -> str:
    match event.end:
        case "returned":
            return f"✓ {word(event.name)} {quote(event.value)}"
        case "error" | "raised":
            return f"✗ {word(event.name)} {event.end}: {printable(event.error or '')}"
        case "cancelled":
            return f"✗ {word(event.name)} cancelled"
        case end:
            assert_never(end)


def timeline(trace: Trace, width: int) -> list[Text]:
    """The lines of a time line, none wider than `width` columns.

    A lane in which nothing happens has no column. Long lines end in an ellipsis, and then the last
    line says how to see them whole.
    """
    items = list(marks(trace))
    lanes = [lane for lane in LANES if any(item.lane == lane for item in items)]
    wide = width >= SIDE_BY_SIDE_FROM and bool(lanes)
    column = (width - _TIME) // len(lanes) if wide else 0
    result = [_header(lanes, column)] if wide else []
    cut = False
    for item in items:
        line = Text()
        line.append(f"{format_duration(item.at):<{_TIME}}", "dim")
        text = Text(item.text, "red" if item.alarm else STYLES[item.lane])
        room = width
        if wide and item.lane != "run":
            lane = lanes.index(item.lane)
            line.append(" " * (lane * column))
            if lane < len(lanes) - 1:
                room = line.cell_len + column - 1
        elif item.lane != "run":
            line.append(f"{item.lane:<6}", "dim")
        line.append_text(text)
        cut = cut or line.cell_len > room
        result.append(_fitted(line, room))
    if cut:
        result.append(_fitted(Text(_WHOLE, "dim"), width))
    return result


def _header(lanes: list[Lane], column: int) -> Text:
    names = "".join([name.ljust(column) for name in lanes])
    return Text(f"{'time':<{_TIME}}{names}".rstrip(), style="bold")


def _fitted(text: Text, width: int) -> Text:
    text.truncate(max(width, 1), overflow="ellipsis")
    return text
