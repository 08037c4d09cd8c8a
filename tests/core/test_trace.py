"""The trace: what is stored, what is rebuilt, what is the same at every level."""

from copy import deepcopy
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.events import (
    CancelDelivered,
    Delta,
    LogRow,
    ReplyEnded,
    RequestSent,
    RunStopped,
    TaskLeaked,
    ToolStarted,
    TurnStarted,
)
from harness.core.messages import ModelRequest, ToolCall, ToolSchema, assistant, tool_result, user
from harness.core.rows import TurnStartRow
from harness.core.trace import Recorder, Trace, common_prefix


def recorder(times=None):
    clock = iter(times or range(10_000))
    return Recorder(lambda: next(clock), lambda: "1")


def request(*messages, system="s", tools=()):
    return ModelRequest("m", system, messages, tools)


histories = st.lists(
    st.lists(st.sampled_from([user("a"), user("b"), assistant("c")]), max_size=6), max_size=6
)


@given(histories, st.lists(st.sampled_from(["main", "title"]), min_size=6, max_size=6))
def test_every_request_is_rebuilt_whole(histories, names):
    record = recorder()
    sent = []
    for number, (messages, name) in enumerate(zip(histories, names, strict=False)):
        sent.append(request(*messages, system=f"system {number // 3}"))
        record.record_request(name, f"{number}", sent[-1])
    assert record.trace().requests() == sent


def test_a_request_stores_only_what_is_new():
    record = recorder()
    record.record_request("main", "1.1", request(user("a")))
    record.record_request("main", "1.2", request(user("a"), assistant("b")))
    second = record.entries[1].event
    assert isinstance(second, RequestSent)
    assert (second.kept, second.added, second.head) == (1, (assistant("b"),), None)


def test_equal_requests_have_equal_digests_however_they_came_about():
    straight, detour = recorder(), recorder()
    straight.record_request("main", "1.1", request(user("a"), assistant("b")))
    detour.record_request("main", "1.1", request(user("a"), user("x")))
    detour.record_request("main", "1.1", request(user("a"), assistant("b")))
    assert straight.entries[-1].event.digest == detour.entries[-1].event.digest
    detour.record_request("main", "1.1", request(user("a"), assistant("b"), system="t"))
    assert straight.entries[-1].event.digest != detour.entries[-1].event.digest


def test_a_digest_covers_lone_surrogates():
    record = recorder()
    for text in ("\ud800", "\ud801"):
        record.record_request("main", "1.1", request(user(text)))
    first, second = (entry.event.digest for entry in record.entries)
    assert first != second


@given(st.lists(st.integers(0, 1), max_size=9), st.lists(st.integers(0, 1), max_size=9))
def test_common_prefix_is_the_longest(before, now):
    length = common_prefix(before, now)
    assert before[:length] == now[:length]
    assert length == min(len(before), len(now)) or before[length] != now[length]


def test_what_an_agent_does_to_its_messages_later_does_not_change_the_trace():
    record, args = recorder(), {"city": ["Paris"]}
    record.record_request("main", "1.1", request(assistant("", ToolCall("c", "t", args))))
    args["city"].append("Oslo")
    assert record.trace().requests()[0].messages[0].calls[0].args == {"city": ["Paris"]}


def test_what_an_agent_changes_in_what_it_sent_is_sent_again():
    record, args = recorder(), {"city": ["Paris"]}
    asked = assistant("", ToolCall("c", "t", args))
    record.record_request("main", "1.1", request(user("a"), asked))
    args["city"].append("Oslo")
    record.record_request("main", "1.2", request(user("a"), asked, tool_result("c", "ok")))
    first, second = record.trace().requests()
    assert first.messages[1].calls[0].args == {"city": ["Paris"]}
    assert second.messages[1].calls[0].args == {"city": ["Paris", "Oslo"]}
    assert [entry.event.kept for entry in record.entries] == [0, 1]
    whole = recorder()
    whole.record_request("main", "1.2", request(user("a"), asked, tool_result("c", "ok")))
    assert whole.entries[0].event.digest == record.entries[1].event.digest


ways = st.one_of(
    st.tuples(st.just("asks"), st.integers(0, 1)),
    st.tuples(st.just("says"), st.integers(0, 1)),
    st.tuples(st.just("cuts"), st.integers(0, 3)),
    st.tuples(st.just("changes"), st.integers(0, 3)),
    st.tuples(st.just("copies"), st.integers(0, 3)),
)


def go_on(history, way, number):
    """What an agent may do with its messages between two requests; the messages after that."""
    at = number % len(history) if history else 0
    match way:
        case "asks":
            return [*history, assistant("", ToolCall("c", "t", {"n": [number]}))]
        case "says":
            return [*history, user(f"{number}")]
        case "cuts":
            return history[:at] + history[at + 1 :]
        case "changes":
            for call in history[at].calls if history else ():
                call.args["n"].append(number)
            return history
        case "copies":
            return history[:at] + deepcopy(history[at:])


@given(st.lists(st.tuples(ways, st.booleans()), max_size=20))
def test_whatever_an_agent_does_to_its_messages_what_was_sent_is_stored_once(doings):
    record, history, sent = recorder(), [], []
    for (way, number), sends in doings:
        history = go_on(history, way, number)
        if sends:
            record.record_request("main", "1.1", request(*history))
            sent.append(deepcopy(tuple(history)))
    assert [each.messages for each in record.trace().requests()] == sent
    kept = [common_prefix(before, now) for before, now in pairwise([(), *sent])]
    assert [entry.event.kept for entry in record.entries] == kept


def test_what_an_agent_changes_in_its_tools_is_sent_again():
    record, schema = recorder(), {"type": "object"}
    tools = (ToolSchema("t", "d", schema),)
    record.record_request("main", "1.1", request(user("a"), tools=tools))
    schema["required"] = ["city"]
    record.record_request("main", "1.2", request(user("a"), tools=tools))
    first, second = record.trace().requests()
    assert first.tools[0].parameters == {"type": "object"}
    assert second.tools[0].parameters == {"type": "object", "required": ["city"]}
    assert record.entries[0].event.digest != record.entries[1].event.digest


def test_lines_and_back():
    record = recorder()
    record.record(TurnStarted(1, "Hi \ud800"))
    record.record(LogRow(TurnStartRow("turn-0")))
    record.record_request(
        "main", "1.1", request(user("a"), tools=(ToolSchema("t", "d", {"type": "object"}),))
    )
    trace = record.trace()
    assert Trace.from_lines(trace.lines()) == trace
    assert Trace.from_lines(trace.lines()).digest == trace.digest
    assert hash(trace) == hash(Trace.from_lines(trace.lines()))


def test_a_line_that_is_no_entry_is_named():
    with pytest.raises(ValueError, match="line 2 is not a trace entry"):
        Trace.from_lines(
            ['{"at":0,"task":"1","event":{"type":"turn_started","turn":1,"text":""}}', "{}"]
        )


def test_neutral_leaves_out_what_differs_between_levels():
    def played(call_id, pieces):
        record = recorder(range(0, 10_000, len(pieces)))
        for piece in pieces:
            record.record(Delta("1.1", "text", piece))
        call = ToolCall(call_id, "t", {"id": "kept"})
        record.record(ReplyEnded("1.1", "complete", assistant("ab", call)))
        record.record(ToolStarted(call_id, "t", {"id": "kept"}))
        record.record(LogRow(TurnStartRow("turn-0")))
        record.record_request("main", "1.2", request(tool_result(call_id, "ok")))
        return record.trace()

    one, other = played("call_1", ["a", "b"]), played("toolu_9", ["ab"])
    assert one != other
    assert one.neutral() == other.neutral()
    assert [event["type"] for event in one.neutral()] == [
        "delta",
        "reply_ended",
        "tool_started",
        "request_sent",
    ]
    assert one.neutral()[2]["args"] == {"id": "kept"}


def test_neutral_keeps_what_a_call_is_given_whatever_it_is_called():
    def played(args):
        record = recorder()
        record.record(ReplyEnded("1.1", "complete", assistant("", ToolCall("c", "t", args))))
        record.record(ToolStarted("c", "t", args))
        return record.trace().neutral()

    for key in ("path", "where", "digest", "call_id", "detail"):
        assert played({key: "a"}) != played({key: "b"})


def test_neutral_leaves_out_which_tasks_there_were():
    def played(path):
        record = recorder()
        record.record(CancelDelivered(1, "task", (path,)))
        record.record(TaskLeaked(1, path, f"loop.py:{len(path)}", "agent"))
        record.record(RunStopped("deadlock", "nothing will", (f"{path}: waits",)))
        return record.trace()

    assert played("1.2").neutral() == played("1.2.3").neutral()


def test_a_watcher_sees_each_entry_when_it_is_recorded():
    record = recorder()
    seen = []
    record.watch = lambda entry: seen.append((entry, len(record.entries)))
    record.record(TurnStarted(1, None))
    assert seen == [(record.entries[0], 1)]


def test_the_stop_of_a_run_is_the_last_thing_that_stopped_it():
    record = recorder()
    assert record.trace().stop is None
    stopped = RunStopped("deadlock", "1 task will never be woken")
    record.record(TurnStarted(1, "a", False))
    record.record(stopped)
    record.record(TaskLeaked(1, "1.1", "a.py:1", "agent"))
    assert record.trace().stop == (1, stopped)
