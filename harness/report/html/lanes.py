"""Which lane of a picture each line of a run belongs to, and which lines begin and end a span.

Read from the canonical text (report/text.py), which is all that is kept of most runs. The steps of
a function, which has no events, are in a lane of their task.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from harness.core import json_text
from harness.core.durations import parse_duration
from harness.core.events import (
    INSIDE,
    CancelDelivered,
    CancelRequested,
    Delta,
    ErrorUnseen,
    FaultInjected,
    GeneratorAbandoned,
    InteractionUnused,
    Mismatch,
    NetworkReached,
    OutsideEvent,
    Received,
    ReplyEnded,
    RequestMissed,
    RequestSent,
    RunStopped,
    TaskLeaked,
    ToolEffect,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    event_kind,
)
from harness.core.json_text import Json
from harness.report.values import printable

TASK_CANCELLED = "task_cancelled"
"""The fault that a sweep injects where it tells a task itself to stop."""

Kind: TypeAlias = Literal["user", "model", "tool", "log", "cancel", "run", "task"]
"""What a lane shows; `run` is what the whole run has to say, `task` the steps of one task."""

_ORDER: tuple[Kind, ...] = ("user", "model", "tool", "task", "log", "cancel", "run")
_DEEPEST = 6
"""How many spans of a lane stand below each other at most."""

_HOMES: tuple[tuple[Kind, tuple[type[OutsideEvent], ...]], ...] = (
    ("user", (TurnStarted, TurnEnded)),
    ("model", (RequestSent, Received, Delta, ReplyEnded, FaultInjected)),
    ("tool", (ToolStarted, ToolEffect, ToolEnded)),
    ("cancel", (CancelRequested, CancelDelivered)),
    (
        "run",
        (
            TaskLeaked,
            GeneratorAbandoned,
            NetworkReached,
            RequestMissed,
            InteractionUnused,
            ErrorUnseen,
            RunStopped,
            Mismatch,
        ),
    ),
)
_LANES: dict[str, Kind] = {
    **{event_kind(each): lane for lane, kinds in _HOMES for each in kinds},
    **{event_kind(each): "log" for each in INSIDE},
}
_ALARMING = frozenset(
    {"cancel_requested", "cancel_delivered", "fault_injected", "salvaged", "cancelled"}
)
_GOOD_ENDS = {"reply_ended": (1, "complete"), "tool_ended": (2, "returned")}
"""Which word of an end says that all is well, and what it is then."""
_SPANS = {
    "turn_started": "turn_ended",
    "request_sent": "reply_ended",
    "tool_started": "tool_ended",
    "cancel_requested": "cancel_delivered",
    "begins": "ended",
}
_ENDS = {end: start for start, end in _SPANS.items()}
_WITHIN = {"delta": "request_sent", "tool_effect": "tool_started", "received": "request_sent"}
_LINE = re.compile(r"(\S+) +(\S+) +(\S+) *(.*)", re.DOTALL)
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')


class Lane(Struct, frozen=True):
    """A lane: what it shows, what it is called, how many spans stand below each other in it."""

    kind: Kind
    name: str
    rows: int = 1


class Picture(Struct, frozen=True):
    """The lines of a run as marks; line n is mark n.

    `at` are virtual nanoseconds, `lane` indexes into `lanes`. A span is (the line that begins it,
    the line that ends it or -1, its row in the lane). `alarms` are the lines to be alarmed by.
    """

    lanes: tuple[Lane, ...]
    at: tuple[int, ...]
    lane: tuple[int, ...]
    spans: tuple[tuple[int, int, int], ...]
    rows: tuple[tuple[int, int], ...]
    """Lines that stand in a row below the first one, within a span, and in which."""
    alarms: tuple[int, ...]

    def plain(self, marked: Iterable[int] = ()) -> Json:
        """What the page's script draws; `marked` are the lines that show what is wrong."""
        passed = [now - before for before, now in zip((0, *self.at), self.at, strict=False)]
        return {
            "lanes": [[lane.kind, printable(lane.name), lane.rows] for lane in self.lanes],
            "passed": passed,
            "lane": self.lane,
            "spans": self.spans,
            "rows": self.rows,
            "alarms": self.alarms,
            "marked": sorted(set(marked)),
        }


def picture(lines: Sequence[str]) -> Picture:
    """Read the lines of a run."""
    drawing = _Drawing()
    for line in lines:
        drawing.take(line)
    return drawing.done()


class Rows:
    """Which rows of lanes are taken by spans that have not ended."""

    def __init__(self) -> None:
        self.counts: dict[tuple[Kind, str], int] = {}
        """How many rows each lane has, by first use."""
        self._busy: dict[tuple[Kind, str], set[int]] = {}

    def use(self, lane: tuple[Kind, str]) -> None:
        """Let there be a lane."""
        self.counts.setdefault(lane, 1)

    def take(self, lane: tuple[Kind, str]) -> int:
        """The first row of a lane that is free; the deepest where none is."""
        busy = self._busy.setdefault(lane, set())
        row = next(row for row in range(_DEEPEST) if row not in busy or row == _DEEPEST - 1)
        busy.add(row)
        self.counts[lane] = max(self.counts[lane], row + 1)
        return row

    def free(self, lane: tuple[Kind, str], row: int) -> None:
        """Have a row back."""
        self._busy[lane].discard(row)


class _Drawing:
    """A picture as far as the lines have come."""

    def __init__(self) -> None:
        self._at: list[int] = []
        self._keys: list[tuple[Kind, str]] = []
        self._rows = Rows()
        self._open: dict[tuple[str, str], list[tuple[int, int]]] = {}
        """Spans that have begun, by what begins them and the words that tell them apart: the
        line, the row."""
        self._spans: list[tuple[int, int, int]] = []
        self._below: list[tuple[int, int]] = []
        self._alarms: list[int] = []

    def take(self, line: str) -> None:
        """Go on by one line."""
        found = _LINE.fullmatch(line)
        assert found is not None, f"a line of a run has a time, a task, and what it says: {line!r}"
        time, task, kind, facts = found.groups()
        index = len(self._at)
        words = [each[0] for _, each in zip(range(3), _WORD.finditer(facts), strict=False)]
        lane = _lane(task, kind, words)
        self._at.append(parse_duration(time))
        self._keys.append(lane)
        self._rows.use(lane)
        if _is_alarm(lane[0], kind, words):
            self._alarms.append(index)
        told = _told_apart(task, kind, words)
        row = 0
        if kind in _SPANS:
            row = self._begin(index, lane, (kind, told))
        elif kind in _ENDS:
            row = self._end(index, lane, (_ENDS[kind], told))
        elif kind in _WITHIN:
            row = next((row for _, row in self._open.get((_WITHIN[kind], told), ())), 0)
        if row and kind not in _SPANS:
            self._below.append((index, row))

    def _begin(self, index: int, lane: tuple[Kind, str], key: tuple[str, str]) -> int:
        row = self._rows.take(lane)
        self._open.setdefault(key, []).append((index, row))
        return row

    def _end(self, index: int, lane: tuple[Kind, str], key: tuple[str, str]) -> int:
        begun = self._open.get(key)
        if not begun:
            return 0
        start, row = begun.pop(0)
        self._rows.free(lane, row)
        self._spans.append((start, index, row))
        return row

    def done(self) -> Picture:
        """The picture; spans that nothing has ended go on to its end."""
        left = [(start, -1, row) for open_ in self._open.values() for start, row in open_]
        lanes = in_order(self._rows.counts)
        places = {lane: index for index, lane in enumerate(lanes)}
        return Picture(
            tuple([Lane(*lane, self._rows.counts[lane]) for lane in lanes]),
            tuple(self._at),
            tuple([places[key] for key in self._keys]),
            tuple(sorted(self._spans + left)),
            tuple(self._below),
            tuple(self._alarms),
        )


def in_order(lanes: Iterable[tuple[Kind, str]]) -> list[tuple[Kind, str]]:
    """Each lane once: the user's, the model's, those of tools by first use, what else there is."""
    return sorted(dict.fromkeys(lanes), key=lambda lane: _ORDER.index(lane[0]))


def _lane(task: str, kind: str, words: Sequence[str]) -> tuple[Kind, str]:
    if kind == "fault_injected" and words[0] == TASK_CANCELLED:
        return "cancel", "cancel"
    lane = _LANES.get(kind)
    if lane is None:
        return "task", f"task {task}"
    return lane, _name(words[0]) if lane == "tool" else lane


def _is_alarm(lane: Kind, kind: str, words: Sequence[str]) -> bool:
    if kind in _GOOD_ENDS:
        at, good = _GOOD_ENDS[kind]
        return words[at].rstrip(",") != good
    return lane == "run" or kind in _ALARMING


def _name(word: str) -> str:
    """A name as it is, which a line has in quotes where it is not a plain word."""
    return str(json_text.loads(word)) if word.startswith('"') else word


def _told_apart(task: str, kind: str, words: Sequence[str]) -> str:
    """What is the same in the lines of one span, and in no other that is open."""
    if kind in _LANES:
        return " ".join(words[:1] if _LANES[kind] == "model" else words[:2])
    return task
