"""Every line of a run has its lane, and what begins and ends is one span."""

from __future__ import annotations

import pytest

from harness.core.events import (
    INSIDE,
    OUTSIDE,
    FaultInjected,
    ReplyEnded,
    ToolEnded,
    ToolStarted,
    event_kind,
)
from harness.exploration.probe import Run
from harness.report.html.lanes import Lane, picture
from harness.report.text import lines
from tests.report.html.items import HOSTILE, many, small, trace_of
from tests.report.samples import TRACE


def test_each_kind_of_event_has_a_lane_and_none_falls_through() -> None:
    drawn = picture(lines(TRACE))
    kinds = {type(entry.event) for entry in TRACE}
    assert kinds == {*OUTSIDE, *INSIDE}, "the sample has one of each"
    assert [lane.kind for lane in drawn.lanes] == ["user", "model", "tool", "log", "cancel", "run"]
    by_lane = {lane.kind: set() for lane in drawn.lanes}
    for entry, lane in zip(TRACE, drawn.lane, strict=True):
        by_lane[drawn.lanes[lane].kind].add(event_kind(type(entry.event)))
    assert by_lane["user"] == {"turn_started", "turn_ended"}
    assert by_lane["tool"] == {"tool_started", "tool_effect", "tool_ended"}
    assert by_lane["cancel"] == {"cancel_requested", "cancel_delivered"}
    assert by_lane["log"] == {event_kind(each) for each in INSIDE}


def test_spans_are_paired_and_stand_below_each_other_where_they_overlap() -> None:
    drawn = picture(lines(small()))
    assert drawn.lanes == (
        Lane("user", "user"),
        Lane("model", "model"),
        Lane("tool", "weather", 2),
        Lane("log", "log"),
    )
    assert drawn.spans == ((0, 10, 0), (1, 3, 0), (4, 8, 0), (5, 7, 1))
    assert drawn.rows == ((6, 1), (7, 1))
    assert drawn.alarms == (8,)
    assert drawn.at[-1] == 100_000_000


def test_what_never_ends_goes_on_and_what_never_began_is_a_mark() -> None:
    text = lines(small())
    assert picture(text[:6]).spans == ((0, -1, 0), (1, 3, 0), (4, -1, 0), (5, -1, 0 + 1))
    assert picture([text[8]]).spans == ()


def test_spans_are_only_so_deep() -> None:
    started = [(0, ToolStarted(f"c{number}", "clock", {})) for number in range(9)]
    drawn = picture(lines(trace_of(*started)))
    assert drawn.lanes == (Lane("tool", "clock", 6),)
    assert [row for _, _, row in drawn.spans] == [0, 1, 2, 3, 4, 5, 5, 5, 5]


def test_a_tool_has_its_name_whatever_that_is() -> None:
    drawn = picture(lines(small("x", tool=HOSTILE)))
    assert drawn.lanes[2].name == HOSTILE


def test_a_cancel_of_a_sweep_is_a_cancel_and_other_faults_are_of_the_model() -> None:
    text = lines(
        trace_of(
            (0, FaultInjected("task_cancelled", "1.1#0/start:task")), (0, FaultInjected("x", "1.1"))
        )
    )
    assert [lane.kind for lane in picture(text).lanes] == ["model", "cancel"]


def test_a_call_that_fails_alarms_whatever_its_name() -> None:
    drawn = picture(
        lines(
            trace_of(
                (0, ToolEnded("returned", "complete", "error", None, "no")),
                (0, ToolEnded("complete", "returned", "returned", 1)),
                (0, ReplyEnded("complete", "cut")),
                (0, ReplyEnded("cut", "complete")),
            )
        )
    )
    assert drawn.alarms == (0, 2)


def test_the_steps_of_functions_are_in_lanes_of_their_tasks() -> None:
    drawn = picture(
        (
            "0s       1      begins",
            "0s       1.1    begins",
            "0s       1.1    waits     #1 at a.py:3 in f",
            "1s       1.1    cancelled by 1.1#1/late:task",
            "1s       1.1    ended     well",
        )
    )
    assert drawn.lanes == (Lane("task", "task 1"), Lane("task", "task 1.1"))
    assert drawn.spans == ((0, -1, 0), (1, 4, 0))
    assert drawn.alarms == (3,)
    assert drawn.at == (0, 0, 0, 1_000_000_000, 1_000_000_000)


def test_the_drawing_takes_as_long_as_the_run() -> None:
    drawn = picture(lines(many(10_000)))
    assert len(drawn.at) == 10_000
    plain = drawn.plain([3, 3, 2])
    assert plain["marked"] == [2, 3]
    assert sum(plain["passed"]) == drawn.at[-1]


def test_no_line_is_no_picture() -> None:
    assert picture(Run("d").lines).lanes == ()
    with pytest.raises(AssertionError, match="a line of a run has a time"):
        picture(["nonsense"])
