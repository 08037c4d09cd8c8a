"""Cancels in scenario files: their spellings, and those that can never fire."""

from __future__ import annotations

import pytest

from harness.core.events import INSIDE, OUTSIDE
from harness.runner.scenario import Cancel
from tests.runner.files.loading import errors, read

MS = 1_000_000
SECOND = 1000 * MS


def cancel(text: str) -> Cancel | None:
    scenario = read(
        "about: x\ntools: {clock: {}, my tool: {}}\nloops: [fsm]\n"
        "turns: [{user: u, model: [{think: x, say: y, calls: [clock, my tool, clock]}], "
        f"cancel: {text}}}]"
    )
    return scenario.turns[0].cancel


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{after: tool_started clock, nth: 2}", Cancel("tool_started", "clock", 2)),
        ("{after: tool_ended my tool}", Cancel("tool_ended", "my tool")),
        ("{after: '  delta   text '}", Cancel("delta", "text")),
        (
            "{after: request_sent 1.1~2, by: task, mode: late}",
            Cancel("request_sent", "1.1~2", by="task", mode="late"),
        ),
        (
            "{after: log_row user_message, mode: early}",
            Cancel("log_row", "user_message", mode="early"),
        ),
        ("{after: loop_event anything}", Cancel("loop_event", "anything")),
        ("{after: state_entered planning}", Cancel("state_entered", "planning")),
        ("{at: 1.5s, by: agent}", Cancel(at=1500 * MS, by="agent")),
        ("{at: 0s}", Cancel(at=0)),
        ("{point: 1.2#3/late}", Cancel(point="1.2#3/late")),
        ("{point: x1#0/start, by: task}", Cancel(point="x1#0/start", by="task")),
    ],
)
def test_cancels(text: str, expected: Cancel) -> None:
    found = cancel(text)
    assert found is not None
    assert found.line == 4
    assert found == Cancel(
        expected.after,
        expected.name,
        expected.nth,
        expected.at,
        expected.point,
        expected.by,
        expected.mode,
        line=4,
    )


SCRIPT = "tools: {clock: {}}\nturns: [{user: u, model: [%s], cancel: {after: %s}}]\nabout: x\n"


@pytest.mark.parametrize(
    ("model", "after", "reason"),
    [
        ("{say: x}", "turn_started, nth: 2", "turn_started happens once in this turn's script"),
        ("{say: x}", "turn_started now", "turn_started has no name to wait for; remove 'now'"),
        ("{say: x}", "request_sent, nth: 2", "request_sent happens once"),
        ("{say: x}", "request_sent 1.2", "unknown place of a request of this turn '1.2'"),
        ("{say: x}", "reply_ended, nth: 2", "reply_ended happens once"),
        ("{say: x}", "reply_ended done", "unknown reply_ended name 'done'"),
        ("{say: x}", "delta, nth: 2", "delta happens once"),
        ("{say: x}", "delta words", "unknown delta name 'words'"),
        ("{say: x}", "fault_injected", "fault_injected never happens"),
        ("{say: x, fault: torn}", "fault_injected hang", "fault_injected hang never happens"),
        ("{say: x, fault: torn}", "fault_injected, nth: 2", "fault_injected happens once"),
        ("{say: x}", "tool_started", "tool_started never happens"),
        ("{say: x, calls: [clock]}", "result_synthesized clok", "did you mean 'clock'?"),
        (
            "{calls: [{tool: nosuch, undeclared: true}]}",
            "tool_started nosuch",
            "nosuch is not declared, so it never starts",
        ),
        (
            "{calls: [clock], fault: generate_fails, fault_times: always}",
            "tool_started clock",
            "this turn's replies do not call clock; they call no tool",
        ),
    ],
)
def test_a_cancel_that_can_never_fire_is_refused(model: str, after: str, reason: str) -> None:
    [found] = errors(SCRIPT % (model, after))
    assert "this cancel can never fire: " in found
    assert reason in found


@pytest.mark.parametrize(
    ("model", "after"),
    [
        ("{say: x, fault: torn}", "request_sent, nth: 2"),
        ("{say: x, fault: torn}", "delta text, nth: 2"),
        ("{say: x, fault: torn, fault_times: always}", "fault_injected torn, nth: 9"),
        ("{say: x, fault: late_thinking}", "delta thinking"),
        ("{say: x, calls: [clock], fault: generate_fails}", "tool_started clock"),
        ("{say: x, calls: [{tool: nosuch, undeclared: true}]}", "result_synthesized nosuch"),
    ],
)
def test_a_cancel_that_may_fire_after_a_second_try_is_taken(model: str, after: str) -> None:
    assert read(SCRIPT % (model, after)).turns[0].cancel is not None


def test_replies_in_plain_order_may_come_in_any_turn() -> None:
    text = (
        "about: x\norder: %s\ntools: {clock: {}}\nturns:\n"
        "  - {user: a, model: [{say: x}], cancel: {after: tool_started clock}}\n"
        "  - {user: b, model: [{calls: [clock]}]}\n"
    )
    assert read(text % "calls").turns[0].cancel is not None
    assert len(errors(text % "place")) == 1


def test_replies_beside_the_conversation_count_too() -> None:
    also = "also: [{name: sub, when: {model: m}, model: [{calls: [clock]}]}]\n"
    for after in ("tool_started clock", "request_sent sub.1", "request_sent, nth: 2"):
        text = SCRIPT % ("{say: x}", after)
        assert len(errors(text)) == 1
        assert read(text + also).turns[0].cancel is not None


def test_every_kind_of_event_is_waited_for_or_refused() -> None:
    for event in (*OUTSIDE, *INSIDE):
        kind = event.__struct_config__.tag
        assert isinstance(kind, str)
        [found] = errors(SCRIPT % ("{say: x, fault: torn, calls: [clock]}", f"{kind}, at: 1s"))
        over = "is over by then" in found
        late = ("turn_ended", "cancel_requested", "cancel_delivered", "task_leaked", "run_stopped",
                "generator_abandoned", "mismatch", "error_unseen", "usage_counted",
                "network_reached", "request_missed", "interaction_unused")  # fmt: skip
        assert over == (kind in late)
