"""One run from one side at a time: what each view shows, when it applies, what is normalised."""

import pytest

from harness.core.events import (
    Compacted,
    LogRow,
    LoopEvent,
    ReplyEnded,
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
)
from harness.core.messages import ToolCall, assistant, tool_result, user
from harness.core.outcome import CANCELLED, COMPLETED, Error
from harness.core.rows import ToolCallRow, ToolResultRow, TurnEndRow, TurnStartRow, UserRow
from harness.core.trace import Entry, Trace
from harness.report import text
from harness.report.views import VIEWS, View
from tests.invariants.traces import HEAD, trace
from tests.report.samples import HEAD as LONG_HEAD
from tests.report.samples import TRACE

BY_NAME: dict[str, View] = {view.name: view for view in VIEWS}
FIRST = ToolCall("call_1_1_1", "weather", {"city": "Paris"})
SECOND = ToolCall("call_1_1_2", "clock", {})


def shown(view: str, *events: object) -> list[str]:
    return BY_NAME[view].text(trace(*events)).splitlines()


def request(reply: str, kept: int, *added: object, head: object = None) -> RequestSent:
    return RequestSent("main", reply, kept, added, "d", head)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_view_applies_where_it_has_a_text(view: View) -> None:
    assert view.about
    assert not view.applies(Trace(()))
    assert view.text(Trace(())) == ""
    assert view.applies(TRACE)
    assert view.text(TRACE).endswith("\n")


def test_an_agent_that_reports_nothing_has_no_log_and_no_trims() -> None:
    events = [
        TurnStarted(1, "Go."),
        request("1.1", 0, user("Go."), head=HEAD),
        ReplyEnded("1.1", "complete", assistant("Gone.")),
        TurnEnded(1, COMPLETED),
    ]
    assert [view.name for view in VIEWS if view.applies(trace(*events))] == [
        "terminals",
        "requests",
        "trace",
    ]


def test_the_log_has_rows_events_and_states_in_order_below_their_turn() -> None:
    assert shown(
        "log",
        TurnStarted(1, "Go."),
        LogRow(TurnStartRow("turn-0")),
        StateEntered("asking"),
        LoopEvent("text", {"delta": "Gone."}),
        TurnEnded(1, COMPLETED),
        TurnStarted(2, "Nothing is reported here."),
        TurnStarted(3, None),
        LogRow(TurnEndRow("turn-1", CANCELLED)),
    ) == [
        'turn 1 "Go."',
        "  row   turn_start turn#1",
        "  state asking",
        '  told  text {"delta":"Gone."}',
        "turn 3 resume",
        "  row   turn_end turn#2 cancelled",
    ]


def test_terminals_have_what_the_run_and_what_the_loop_says() -> None:
    assert shown(
        "terminals",
        TurnStarted(1, "Go."),
        TurnEnded(1, COMPLETED),
        TurnStarted(2, "Go."),
        StateEntered("busy"),
        LogRow(TurnEndRow("turn-1", CANCELLED)),
        StateEntered("idle"),
        TurnEnded(2, Error("stream", "it broke")),
        RunStopped("time_limit", "an hour is over"),
        TurnStarted(3, "Go."),
        RunStopped("deadlock", "nothing can go on", ("3: waits at /a/b/agent.py:12 in fetch",)),
    ) == [
        "turn 1: completed",
        'turn 2: error stream "it broke"; state idle; row cancelled',
        'after turn 2: stopped, time_limit "an hour is over"',
        'turn 3: stopped, deadlock "nothing can go on" | "3: waits at agent.py in fetch"',
    ]


def test_a_trim_shows_its_numbers_and_how_the_request_begins() -> None:
    assert shown(
        "trims",
        TurnStarted(1, "One."),
        request("1.1", 0, user("One."), head=HEAD),
        TurnStarted(2, "Two."),
        Trimmed(1, 20, 2, 100),
        request("2.1", 0, user("[cut]"), user("Two."), assistant("So.")),
        request("2.2", 3, user("Three.")),
        Trimmed(3, 60, 1, 100),
        TurnEnded(2, CANCELLED),
    ) == [
        "turn 2: removed 1 messages of ~20 tokens, kept 2, budget 100",
        "  request 2.1 of 3 messages begins with",
        '    [user "[cut]"]',
        '    [user "Two."]',
        "turn 2: removed 3 messages of ~60 tokens, kept 1, budget 100",
    ]


def test_notifications_are_what_was_told_below_their_turn() -> None:
    assert shown(
        "notifications",
        TurnStarted(1, "Go."),
        LoopEvent("text", {"delta": "Gone."}),
        StateEntered("asking"),
        LoopEvent("done", None),
        TurnStarted(2, "Nothing is told here."),
        TurnStarted(3, None),
        LoopEvent("error", "down"),
    ) == [
        'turn 1 "Go."',
        '  text {"delta":"Gone."}',
        "  done null",
        "turn 3 resume",
        '  error "down"',
    ]


def test_states_have_a_line_a_turn_and_one_for_each_task_beside_it() -> None:
    events = [
        ("1", TurnStarted(1, "Go.")),
        ("1", StateEntered("ASK")),
        ("1.2", StateEntered("ASK")),
        ("1", StateEntered("SAY it")),
        ("1.2", StateEntered("DONE")),
        ("1", TurnEnded(1, COMPLETED)),
        ("2", TurnStarted(2, "Again.")),
        ("3", TurnStarted(3, "And again.")),
        ("3", StateEntered("ASK")),
        ("3", TurnEnded(3, CANCELLED)),
    ]
    run = Trace(Entry(0, task, event) for task, event in events)
    assert BY_NAME["states"].text(run).splitlines() == [
        'turn 1: ASK "SAY it"',
        "beside turn 1: ASK DONE",
        "turn 3: ASK",
    ]
    assert BY_NAME["terminals"].text(run).splitlines() == [
        'turn 1: completed; state "SAY it"',
        "turn 3: cancelled; state ASK",
    ]


def test_each_try_to_sum_up_shows_how_the_conversation_begins_afterwards() -> None:
    summary = RequestSent("summary", "summary.1", 0, (user("sum up"),), "d", HEAD)
    again = RequestSent("summary", "summary.2", 0, (user("sum up more"),), "d")
    assert shown(
        "compactions",
        TurnStarted(1, "One."),
        request("1.1", 0, user("One."), head=HEAD),
        TurnStarted(2, "Two."),
        summary,
        Compacted(90, 30),
        again,
        Compacted(30, 30, "the summary is empty"),
        request("2.1", 0, user("[sum]"), user("One."), user("Two.")),
        request("2.2", 3, assistant("So.")),
        TurnEnded(2, COMPLETED),
        TurnStarted(3, "Three."),
        Compacted(80, 20),
        TurnEnded(3, CANCELLED),
        TurnStarted(4, "Four."),
        request("4.1", 0, user("[sum]")),
        Compacted(20, 20, "down"),
        request("4.2", 1, user("Five.")),
        TurnEnded(4, COMPLETED),
    ) == [
        "turn 2: ~90 tokens, now ~30",
        'turn 2: ~30 tokens, now ~30, failed: "the summary is empty"',
        "  request 2.1 of 3 messages begins with",
        '    [user "[sum]"]',
        '    [user "One."]',
        "turn 3: ~80 tokens, now ~20",
        'turn 4: ~20 tokens, now ~20, failed: "down"',
        "  request 4.2 of 2 messages begins with",
        '    [user "[sum]"]',
        '    [user "Five."]',
    ]


def test_a_salvage_shows_what_stood_there_and_how_the_next_turn_asks() -> None:
    assert shown(
        "salvage",
        TurnStarted(1, "Go."),
        request("1.1", 0, user("Go."), head=HEAD),
        ReplyEnded("1.1", "complete", assistant("", FIRST, SECOND)),
        Salvaged(1, 2, ("call_1_1_2",)),
        RequestSent("title", "title.1", 0, (user("Name it."),), "d", HEAD),
        TurnEnded(1, CANCELLED),
        TurnStarted(2, "And now?"),
        request("2.1", 1, user("And now?")),
        request("2.2", 2, assistant("So.")),
        ReplyEnded("9.9", "complete", assistant("", ToolCall("call_9_9_1", "clock", {}))),
        Salvaged(0, 1, ("call_9_9_1",)),
        Salvaged(0, 3, ("call_8_8_8",)),
        TurnEnded(2, CANCELLED),
    ) == [
        "turn 1: removed 2 messages, kept 1, unanswered call#2",
        "  removed",
        '    [assistant call weather call#1 {"city":"Paris"}, call clock call#2 {}]',
        "    and 1 message that no request has shown",
        "  request 2.1 of 2 messages ends with",
        '    [user "Go."]',
        '    [user "And now?"]',
        "turn 2: removed 1 message, kept 0, unanswered call#3",
        "  removed",
        "    [assistant call clock call#3 {}]",
        "turn 2: removed 3 messages, kept 0, unanswered call_8_8_8",
        "  removed",
        "    and 3 messages that no request has shown",
    ]


def test_requests_show_what_is_new_and_what_was_refused() -> None:
    assert shown(
        "requests",
        request("1.1", 0, user("Go."), head=LONG_HEAD),
        RequestSent("title", "title.1", 0, (user("Name it."),), "d", HEAD),
        request("1.1~2", 1),
        request("2.1", 0, user("Again."), user("Go.")),
        ReplyEnded("2.1", "refused", None, None, "no"),
        ReplyEnded("2.2", "torn"),
    ) == [
        "request 1.1 of main",
        '  model "test-model"',
        '  system "Be brief."',
        '  tool clock "Tells the time." {"type":"object"}',
        "  max_tokens 64",
        "  temperature 0.5",
        '    [user "Go."]',
        "request title.1 of title",
        '  model "m"',
        '  system ""',
        '    [user "Name it."]',
        'request "1.1~2" of main',
        "  1 of 1 messages as before",
        "request 2.1 of main",
        "  0 of 1 messages as before",
        '    [user "Again."]',
        '    [user "Go."]',
        '  refused: "no"',
    ]


def test_synthesis_says_what_the_loop_reports_writes_and_sends() -> None:
    assert shown(
        "synthesis",
        TurnStarted(1, "Go."),
        ReplyEnded("1.1", "complete", assistant("", FIRST, SECOND)),
        ToolStarted("call_1_1_1", "weather", {"city": "Paris"}),
        ToolEnded("call_1_1_1", "weather", "cancelled"),
        LogRow(ToolResultRow("call_1_1_1", None, "cut off")),
        ResultSynthesized("call_1_1_1", "weather", "cut off"),
        ResultSynthesized("call_1_1_2", "clock", "not begun"),
        ResultSynthesized("call_9", "ghost", "who?"),
        TurnStarted(2, "And now?"),
        request("2.1", 0, tool_result("call_1_1_1", "Error: cut off", is_error=True), head=HEAD),
        request("2.2", 0, tool_result("call_1_1_1", "said again")),
    ) == [
        'turn 1: weather call#1 {"city":"Paris"}, cancelled',
        '  report "cut off"',
        '  row    error "cut off"',
        '  sent   [tool call#1 error "Error: cut off"]',
        "turn 1: clock call#2 {}, never started",
        '  report "not begun"',
        "turn 1: ghost call_9, never started",
        '  report "who?"',
    ]


@pytest.mark.parametrize(
    ("fates", "fate"),
    [
        ([], "never started"),
        ([ToolStarted("call_1_1_1", "weather", {})], "still running"),
        (
            [ToolStarted("call_1_1_1", "weather", {}), ToolEffect("call_1_1_1", "weather")],
            "still running after its effect",
        ),
        ([ToolEnded("call_1_1_1", "weather", "cancelled")], "cancelled"),
        ([ToolEnded("call_1_1_1", "weather", "returned", "sunny")], None),
        ([ToolEnded("call_1_1_1", "weather", "error", None, "no")], None),
        ([ToolEnded("call_1_1_1", "weather", "raised", None, "no")], None),
    ],
)
def test_of_an_agent_that_reports_nothing_the_next_request_shows_it(
    fates: list[object], fate: str | None
) -> None:
    lines = shown(
        "synthesis",
        TurnStarted(1, "Go."),
        ReplyEnded("1.1", "complete", assistant("", FIRST)),
        *fates,
        TurnStarted(2, "And now?"),
        request("2.1", 0, user("Go."), tool_result("call_1_1_1", "cut off"), head=HEAD),
        request("2.2", 2, tool_result("call_7_7_7", "of a call that nobody made")),
    )
    expected = [
        f'turn 2: weather call#1 {{"city":"Paris"}}, {fate}',
        '  sent   [tool call#1 "cut off"]',
    ]
    assert lines == (expected if fate else [])


def test_a_result_in_the_place_of_the_tool_s_own_is_shown_as_such() -> None:
    assert shown(
        "synthesis",
        TurnStarted(1, "Go."),
        ReplyEnded("1.1", "complete", assistant("", FIRST)),
        LogRow(ToolResultRow("call_1_1_1", "sunny")),
        ToolEnded("call_1_1_1", "weather", "returned", "sunny"),
        ResultSynthesized("call_1_1_1", "weather", "cancelled"),
    ) == [
        'turn 1: weather call#1 {"city":"Paris"}, returned',
        '  report "cancelled"',
        '  row    "sunny"',
    ]


def test_an_id_that_is_given_again_belongs_to_the_newer_call() -> None:
    assert shown(
        "synthesis",
        TurnStarted(1, "Go."),
        ReplyEnded("1.1", "complete", assistant("", FIRST)),
        ToolEnded("call_1_1_1", "weather", "returned", "sunny"),
        ReplyEnded("1.2", "complete", assistant("", ToolCall("call_1_1_1", "clock", {}))),
        ResultSynthesized("call_1_1_1", "clock", "cancelled"),
    ) == ["turn 1: clock call#1 {}, never started", '  report "cancelled"']


def test_the_whole_trace_is_the_canonical_text_with_times() -> None:
    events = (TurnStarted(1, "Go."), (1500, TurnEnded(1, COMPLETED)))
    assert BY_NAME["trace"].text(trace(*events)) == text.render(trace(*events))
    assert shown("trace", *events)[1].startswith("1.5s ")


def test_ids_are_renamed_by_order_of_first_use_in_every_place() -> None:
    assert shown(
        "trace",
        LogRow(TurnStartRow("turn-7")),
        LogRow(ToolCallRow("toolu_2", "clock", {})),
        LogRow(ToolCallRow("toolu_21", "clock", {"like": "toolu_2"})),
        LogRow(ToolResultRow("toolu_2", "not (toolu_21), nor toolu_22, nor my-toolu_2")),
        LoopEvent("turn", {"id": "turn-7", "turn-8": "toolu_2."}),
        request("1.1", 0, tool_result('odd "id" 1', "x"), head=HEAD),
        LogRow(UserRow('odd "id" 1')),
    )[:] == [
        "0s       1      log_row             turn_start turn#1",
        "1ms      1      log_row             tool_call clock call#1 {}",
        '2ms      1      log_row             tool_call clock call#2 {"like":"call#1"}',
        '3ms      1      log_row             tool_result call#1 "not (call#2), nor toolu_22, '
        'nor my-toolu_2"',
        '4ms      1      loop_event          turn {"id":"turn#1","turn-8":"call#1."}',
        '5ms      1      request_sent        1.1 main: kept 0, added [tool "call#3" "x"]; '
        'model "m", system ""',
        '6ms      1      log_row             user_message "call#3"',
    ]


@pytest.mark.parametrize("chosen", ["call", "c1", "1234", "a-b"])
def test_an_id_that_could_be_a_word_of_any_text_stays(chosen: str) -> None:
    assert shown("log", TurnStarted(1, None), LogRow(ToolCallRow(chosen, "clock", {}))) == [
        "turn 1 resume",
        f"  row   tool_call clock {chosen} {{}}",
    ]


@pytest.mark.parametrize(
    ("where", "cut"),
    [
        ("agent.py:12 in fetch", "agent.py in fetch"),
        ("src/pkg/agent.py:12 in A.fetch", "agent.py in A.fetch"),
        ("C:/x y/agent.py:3 in f", "C:/x agent.py in f"),
        ("see agent.py:12", "see agent.py:12"),
        ("an unknown place", "an unknown place"),
    ],
)
def test_a_place_in_code_is_cut_to_file_and_function(where: str, cut: str) -> None:
    lines = shown("trace", TaskLeaked(1, "1.2", where, "agent"))
    assert lines[0].endswith(f'turn 1 task 1.2 of the agent: "{cut}"')


def test_long_texts_without_a_space_are_read_in_one_pass() -> None:
    long = "a/b.py:" * 200_000
    lines = shown("log", TurnStarted(1, None), LogRow(UserRow(long)))
    assert lines[1] == f'  row   user_message "{long}"'
