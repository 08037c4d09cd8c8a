"""Goals of a search: which run reaches which, and what cannot be one."""

from __future__ import annotations

import pytest

from harness.core.errors import UsageError
from harness.core.events import ToolEnded, ToolStarted, TurnStarted
from harness.core.trace import Entry, Trace
from harness.runner.goals import Goals

TRACE = Trace(
    [
        Entry(0, "1", TurnStarted(1, "Go.")),
        Entry(0, "1.1", ToolStarted("c1", "slow", {})),
        Entry(0, "1.1", ToolEnded("c1", "slow", "returned")),
    ]
)


@pytest.mark.parametrize(
    ("goal", "reached"),
    [
        ("turn_started", True),
        ("tool_ended", True),
        ("tool_ended slow", True),
        (" tool_ended  slow ", True),
        ("tool_ended quick", False),
        ("turn_started 1", False),
        ("tool_effect", False),
        ("reached the end", True),
        (" reached  the end ", True),
        ("reached the beginning", False),
    ],
)
def test_an_event_or_a_named_place_is_a_goal(goal: str, reached: bool) -> None:
    assert (goal in Goals([goal]).reached(TRACE, {"the end"})) is reached


def test_places_are_told_though_nobody_asked() -> None:
    assert Goals().reached(TRACE, {"b", "a"}) == {"reached a", "reached b"}


def test_one_event_may_reach_several_goals() -> None:
    goals = ("tool_ended slow", "tool_ended", "tool_ended quick")
    assert Goals(goals).reached(TRACE, ()) == {"tool_ended slow", "tool_ended"}


@pytest.mark.parametrize(
    ("goal", "says"),
    [
        (
            "tool_endd slow",
            r"'tool_endd slow' is no goal \(did you mean 'tool_ended'\?\); a goal is an event that",
        ),
        ("", "'' is no goal; a goal is an event that some run must have, .*; events are turn_star"),
        ("reached", "'reached' is no goal .*, or 'reached <name>' for what calls sometimes"),
        ("reachd x", r"is no goal \(did you mean 'reached'\?\)"),
        ("tool_effect qick", r"goal 'tool_effect qick': unknown tool 'qick' \(did you mean 'quic"),
    ],
)
def test_what_is_no_goal_is_refused(goal: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Goals([goal], ["slow", "quick"])


def test_what_is_no_tool_may_be_any_other_subject() -> None:
    Goals(["reply_ended done", "tool_ended", "tool_ended slow", "reached slwo"], ["slow"])
