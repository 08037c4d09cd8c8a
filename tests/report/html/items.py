"""Things to show on a page: runs, a sweep, a search, a session; and texts that would break out."""

from __future__ import annotations

from collections.abc import Iterator

from harness.core.events import (
    AnyEvent,
    Delta,
    LogRow,
    ReplyEnded,
    RequestSent,
    ToolEffect,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from harness.core.messages import ToolCall, assistant, user
from harness.core.outcome import COMPLETED
from harness.core.rows import AssistantRow
from harness.core.trace import Entry, Trace
from harness.core.verdict import Verdict, Violation
from harness.report.conversation import Conversation, Said, Section
from harness.report.terminal import Report

HOSTILE = (
    "</script></pre><script>window.hit=1</script><img src=x onerror='window.hit=2'>"
    '<!--\u2028\u202e\ud800 &lt; "` ${window.hit=3}'
)
"""A text that ends elements, begins others, hides itself, and is not even Unicode."""

MS = 1_000_000


def report(
    trace: Trace, *wrong: Violation, name: str = "scenarios/case", about: str = ""
) -> Report:
    """A run as it is shown."""
    rerun = f"harness run {name}.yaml --loop turn"
    return Report(
        name,
        about,
        f"{name}.yaml",
        "turn (safe)",
        (COMPLETED,),
        trace,
        Verdict(wrong, ("ESTIMATE",)),
        (),
        (3,),
        rerun,
    )


def small(text: str = "Time and weather?", tool: str = "weather") -> Trace:
    """One turn with two calls of one tool at a time; `text` and `tool` are whatever you like."""
    calls = [ToolCall(f"c{number}", tool, {"q": text}) for number in (1, 2)]
    return trace_of(
        (0, TurnStarted(1, text)),
        (0, RequestSent("main", "1.1", 0, (user(text),), "d")),
        (5, Delta("1.1", "text", text)),
        (10, ReplyEnded("1.1", "complete", assistant(text, *calls))),
        (10, ToolStarted("c1", tool, {"q": text})),
        (10, ToolStarted("c2", tool, {"q": text})),
        (40, ToolEffect("c2", tool)),
        (40, ToolEnded("c2", tool, "returned", text)),
        (90, ToolEnded("c1", tool, "error", None, text)),
        (95, LogRow(AssistantRow(text))),
        (100, TurnEnded(1, COMPLETED)),
    )


def trace_of(*events: tuple[int, AnyEvent]) -> Trace:
    """A trace of events at milliseconds."""
    return Trace(Entry(at * MS, "1", event) for at, event in events)


def many(count: int) -> Trace:
    """A trace of many turns, cut after `count` events."""
    events = [event for turn in range(1, count // 10) for event in _turn(turn)]
    return trace_of(*events[:count])


def _turn(turn: int) -> Iterator[tuple[int, AnyEvent]]:
    at, reply, tool = turn * 1_000, f"{turn}.1", f"tool{turn % 5}"
    yield at, TurnStarted(turn, f"Question {turn}?")
    yield at, RequestSent("main", reply, turn, (user("q"),), "d")
    for piece in range(12):
        yield at + piece, Delta(reply, "text", f"piece {piece} of {turn}")
    yield at + 20, ReplyEnded(reply, "complete", assistant("ok"))
    yield at + 20, ToolStarted(f"call_{turn}", tool, {"turn": turn})
    yield at + 50, ToolEffect(f"call_{turn}", tool)
    yield at + 60, ToolEnded(f"call_{turn}", tool, "returned", "fine")
    yield at + 70, TurnEnded(turn, COMPLETED)


def session(text: str = "Hello") -> Conversation:
    """A recorded session in which all kinds of things are said, at times and without."""
    return Conversation(
        "session.yaml · 2 interactions",
        (
            Section(
                "turn 1",
                (
                    Said("user", text, 0),
                    Said("asks", f"request 1: {text}", 0),
                    Said("thinks", text, 300 * MS),
                    Said("says", f"{text}\nand more", 300 * MS),
                    Said("calls", f'weather {{"city":"{text}"}}', 400 * MS, "weather"),
                    Said("gives", f"weather: {text}", tool="weather"),
                    Said("gives", "clock: nobody asked", tool="clock"),
                    Said("asks", "request 2", 500 * MS),
                    Said("wrong", "429: too much", 600 * MS),
                ),
            ),
            Section("turn 2", (Said("user", "And now?"), Said("asks", "request 3"))),
            Section("not read", (Said("note", "interaction 4: no protocol", 700 * MS),)),
        ),
    )
