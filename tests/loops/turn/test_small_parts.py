from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given

from harness.core.errors import AgentError, UsageError
from harness.core.messages import ToolCall, ToolSchema, Usage
from harness.core.outcome import CANCELLED, COMPLETED, INTERRUPTED, STEP_LIMIT, Error
from harness.core.ports import ToolFailed
from harness.core.rows import (
    AssistantRow,
    Row,
    ThinkingRow,
    ToolCallRow,
    ToolResultRow,
    TurnEndRow,
    TurnStartRow,
    UserRow,
)
from harness.loops.turn import events, sse
from harness.loops.turn.config import AgentConfig, default_config
from harness.loops.turn.context import (
    LOG,
    MODEL,
    Context,
    Plugin,
    Token,
    find_seams,
    mount_plugins,
)
from harness.loops.turn.events import EndTold, TextTold, ThinkingTold
from harness.loops.turn.failure import message_of
from harness.loops.turn.registry import (
    ALLOW,
    Allow,
    Ask,
    Decision,
    Deny,
    Guard,
    ToolOutput,
    ToolRegistry,
)
from harness.loops.turn.row_text import read_row, write_row
from harness.loops.turn.usage import UsageTracker
from tests.loops.turn.some_rows import some_rows

# --- settings


def test_settings_can_be_replaced_in_part() -> None:
    config = default_config(max_steps=2, context_trim_threshold=1)
    assert (config.max_steps, config.context_trim_threshold) == (2, 1.0)
    assert config.max_parallel_tool_calls == AgentConfig().max_parallel_tool_calls


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"max_step": 2}, "unknown setting 'max_step' (did you mean 'max_steps'?)"),
        ({"max_steps": "two"}, "wrong type: Expected `int`, got `str` - at `$.max_steps`"),
    ],
)
def test_a_wrong_setting_is_the_callers_mistake(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        default_config(**overrides)
    assert message in str(caught.value)


# --- context


def test_a_scope_sees_its_parent_and_keeps_its_own() -> None:
    token: Token[str] = Token("thing")
    parent = Context()
    parent.provide(token, "old")
    child = parent.scoped()
    assert child.get(token) == "old"
    child.provide(token, "mine")
    parent.provide(token, "new")
    assert (child.get(token), parent.get(token)) == ("mine", "new")


def test_a_later_plugin_wins_and_tokens_are_told_apart_by_identity() -> None:
    one: Token[int] = Token("number")
    other: Token[int] = Token("number")
    context = Context()
    numbers = [
        Plugin(str(number), lambda ctx, number=number: ctx.provide(one, number))
        for number in (1, 2)
    ]
    mount_plugins(context, numbers)
    assert (context.get(one), context.get(other)) == (2, None)


def test_the_first_missing_service_is_named() -> None:
    context = Context()
    with pytest.raises(AgentError, match=r"^missing LlmService in context$"):
        find_seams(context)
    provided: Any = object()
    context.provide(MODEL, provided)
    with pytest.raises(AgentError, match=r"^missing SessionLog service in context$"):
        find_seams(context)
    context.provide(LOG, provided)
    with pytest.raises(AgentError, match=r"^missing ToolRegistryService in context$"):
        find_seams(context)


# --- tools


async def double(wanted: ToolCall) -> Any:
    if wanted.args == "refuse":
        raise ToolFailed("I will not")
    if wanted.args == "break":
        raise ValueError("broken")
    return wanted.args * 2


def registry(*guards: Guard) -> ToolRegistry:
    tools = ToolRegistry(guards)
    tools.register(ToolSchema("twice"), double)
    tools.register(ToolSchema("double"), double)
    return tools


def dispatch(tools: ToolRegistry, name: str, args: Any) -> ToolOutput:
    async def main() -> ToolOutput:
        return await tools.dispatch(ToolCall("c1", name, args))

    return asyncio.run(main())


def test_schemas_are_sorted_by_name() -> None:
    assert [schema.name for schema in registry().schemas()] == ["double", "twice"]


def test_a_tools_value_and_its_error_are_outputs() -> None:
    assert dispatch(registry(), "twice", 4) == ToolOutput("c1", 8, decision=ALLOW)
    refused = ToolOutput("c1", error="I will not", decision=ALLOW)
    assert dispatch(registry(), "twice", "refuse") == refused


def test_what_a_tool_breaks_with_is_left_to_the_loop() -> None:
    with pytest.raises(ValueError, match="broken"):
        dispatch(registry(), "twice", "break")


def test_an_unknown_tool_is_denied() -> None:
    output = dispatch(registry(), "half", 4)
    assert (output.error, type(output.decision)) == ("unknown tool: half", Deny)


@pytest.mark.parametrize(
    ("decisions", "error", "decision"),
    [
        ([Allow(), Deny("no"), Ask("hm")], "denied: no", Deny("no")),
        ([Ask("hm"), Deny("no")], "ask: hm", Ask("hm")),
        ([Allow(), Allow()], None, Allow()),
    ],
)
def test_the_first_guard_that_does_not_allow_decides(
    decisions: list[Decision], error: str | None, decision: Decision
) -> None:
    guards: list[Guard] = [lambda _call, given=given: given for given in decisions]
    output = dispatch(registry(*guards), "twice", 1)
    assert (output.error, output.decision) == (error, decision)


# --- usage


def test_every_report_counts_and_what_was_given_out_stays() -> None:
    tracker = UsageTracker()
    assert (tracker.latest(), tracker.total()) == (Usage(), Usage())
    tracker.record(Usage(1, 2, 3, 4, 5))
    before = tracker.total()
    tracker.record(Usage(10))
    assert (tracker.latest(), tracker.total()) == (Usage(10), Usage(11, 2, 3, 4, 5))
    assert before == Usage(1, 2, 3, 4, 5)


# --- events and frames


def test_a_result_is_ok_where_it_has_no_error_not_even_an_empty_one() -> None:
    row, told = events.answered("c1", ToolOutput("other", 1, "shown", "", Ask("r")))
    assert row == ToolResultRow("c1", 1, "")
    name, payload = sse.frame(told)
    assert (name, payload) == (
        "tool_result",
        {"id": "c1", "ok": False, "value": 1, "render": "shown", "error": "", "decision": "ask"},
    )


@pytest.mark.parametrize(
    ("outcome", "payload"),
    [
        (COMPLETED, {"outcome": "completed", "error": None}),
        (CANCELLED, {"outcome": "cancelled", "error": None}),
        (STEP_LIMIT, {"outcome": "step_limit", "error": None}),
        (INTERRUPTED, {"outcome": "interrupted", "error": None}),
        (Error("stream", "gone"), {"outcome": "error", "error": "stream: gone"}),
    ],
)
def test_the_last_frame_names_the_outcome(outcome: Any, payload: Any) -> None:
    assert sse.frame(EndTold(outcome)) == ("turn_end", payload)


def test_deltas_are_frames_of_their_own() -> None:
    assert sse.frame(TextTold("a")) == ("text", {"delta": "a"})
    assert sse.frame(ThinkingTold("b")) == ("thinking", {"delta": "b"})


def test_a_character_that_two_deltas_split_is_whole_in_the_row() -> None:
    assert events.burst(["\ud83d", "\ude00"]) == ThinkingRow("😀")
    assert events.reply(["\ud83d", "\ude00"], ()) == AssistantRow("😀")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("boom"), "boom"),
        (ValueError(""), ""),
        (TimeoutError(), "TimeoutError"),
        (asyncio.CancelledError(), "CancelledError"),
    ],
)
def test_an_error_says_its_message_or_else_its_class(error: BaseException, message: str) -> None:
    assert message_of(error) == message


# --- rows as text


@given(some_rows)
def test_a_row_reads_back_as_it_was_written(row: Row) -> None:
    line = write_row(row)
    assert "\n" not in line
    assert line.startswith('{"type":')
    assert read_row(line) == row


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (TurnStartRow("turn-0"), '{"type":"turn_start","id":"turn-0"}'),
        (UserRow(""), '{"type":"user_message","text":""}'),
        (
            ToolCallRow("c", "t", {"b": 1.0, "a": 1e21}, parent_id="p"),
            '{"type":"tool_call","id":"c","name":"t","args":{"a":1e21,"b":1},"parent_id":"p"}',
        ),
        (
            ToolResultRow("c"),
            '{"type":"tool_result","id":"c","value":null,"error":null}',
        ),
        (
            TurnEndRow("turn-0", Error("stream", "x")),
            '{"type":"turn_end","id":"turn-0","outcome":{"error":{"kind":"stream","message":"x"}}}',
        ),
    ],
)
def test_the_text_of_a_row(row: Row, line: str) -> None:
    assert write_row(row) == line


def test_an_end_without_an_outcome_is_completed() -> None:
    assert read_row('{"type":"turn_end","id":"turn-0"}') == TurnEndRow("turn-0", COMPLETED)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("7", "a row is a JSON object with a type, not 7"),
        ('{"type":["song"]}', "a row is a JSON object with a type"),
        ('{"type":"user"}', "unknown kind of row 'user'.*; a newer version"),
        ('{"type":"turn_start","id":"t","by":1}', "unknown key of a turn_start row 'by'; known:"),
        ('{"type":"turn_start"}', "is not a row"),
        ('{"type":"user_message"}', "is not a row: .*`text`"),
        ('{"type":"user_message","text":7}', "is not a row: Expected `str`"),
        ('{"type":"user_message","text":"","attachments":7}', "is not a row"),
        ('{"type":"user_message","text":"","attachments":[7]}', "is not a row"),
        ('{"type":"user_message","text":"","attachments":[{"size":7}]}', "key in attachments"),
        ('{"type":"assistant_message","text":"","thinking":[{"by":7}]}', "key in thinking 'by'"),
        ('{"type":"assistant_message","text":"","thinking":[{}]}', "is not a row: .*`text`"),
        ('{"type":"turn_end","id":7,"outcome":"completed"}', "is not a row"),
        ('{"type":"turn_end","id":"t","outcome":7}', "7 is not an outcome"),
        ('{"type":"turn_end","id":"t","outcome":"fine"}', "is not a row"),
        ('{"type":"turn_end","id":"t","outcome":{"error":{"kind":"k"}}}', "is not a row"),
        (
            '{"type":"turn_end","id":"t","outcome":{"error":{"kind":"k","message":"m","at":1}}}',
            "unknown key of an error 'at'",
        ),
        (
            '{"type":"turn_end","id":"t","outcome":{"error":{"kind":"k","message":"m"},"at":1}}',
            "unknown key of an outcome 'at'",
        ),
    ],
)
def test_what_is_no_row_is_refused(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_row(line)
