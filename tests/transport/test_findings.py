"""What a client did wrong: each kind of it, and what is nothing wrong."""

from __future__ import annotations

from typing import Any

import pytest

from harness.core.events import Delta, FaultInjected, Mismatch, ReplyEnded, RequestSent
from harness.core.messages import assistant, user
from harness.core.trace import Entry, Trace
from harness.transport.findings import RETRIES, Finding, find
from harness.transport.journal import Record
from harness.wire.http import Request

SECOND = 1_000_000_000


def record(number: int, body: bytes = b"{}", **fields: Any) -> Record:
    fields = {"status": 200, "ending": "whole", "at": number * SECOND, **fields}
    fields.setdefault("answered_at", fields["at"])
    return Record(number=number, connection=1, request=Request("POST", "/x", (), body), **fields)


def trace(*events: Any) -> Trace:
    return Trace([Entry(0, "server", event) for event in events])


def kinds(found: tuple[Finding, ...]) -> list[tuple[str, int | None]]:
    return [(each.kind, each.request) for each in found]


def test_nothing_is_wrong() -> None:
    assert find([record(1), record(2)], trace(), []) == ()


def test_what_is_refused() -> None:
    records = [
        record(1, status=400, error="orphan", rule="C1"),
        record(2, status=400, error="no model"),
        record(3, status=404, error="nobody"),
        record(4, status=400, error="scripted"),
        record(5, status=400, error="of a place", place="1.1"),
        record(6, status=400, error="bytes", ending="malformed"),
        record(7, status=500, error="broke"),
    ]
    events = trace(Mismatch("NoPlace", "nobody"), ReplyEnded("1.1", "failed", error="scripted"))
    found = find(records, events, ["reply 2 of turn 1"])
    assert kinds(found)[:4] == [("refused", 1), ("refused", 2), ("no place", 3), ("malformed", 6)]
    assert str(found[0]) == "request 1: refused: orphan (C1)"
    assert str(found[-1]) == "reply 2 of turn 1 was never asked for"


def sent(reply: str, *texts: str) -> RequestSent:
    messages = (user("Go"), *[assistant(text) for text in texts])
    return RequestSent("main", reply, 0, messages, "")


HALF = (Delta("1.1", "text", "It is "), Delta("1.1", "thinking", "x"), Delta("1.1", "text", "sun"))


@pytest.mark.parametrize("end", ["torn", "failed"])
def test_a_reply_that_broke_off_is_taken_as_whole(end: Any) -> None:
    events = trace(
        *HALF, ReplyEnded("1.1", end), sent("1.2", "It is sun"), sent("1.3", "It is sun")
    )
    found = find([record(1, place="1.1"), record(2, place="1.2", body=b"2")], events, [])
    assert [str(each) for each in found] == [
        "request 2: takes reply 1.1, which broke off, as whole: 'It is sun'"
    ]


@pytest.mark.parametrize(
    "events",
    [
        (*HALF, ReplyEnded("1.1", "closed"), sent("1.2", "It is sun")),  # what a cancel salvages
        (*HALF, ReplyEnded("1.1", "torn"), sent("1.1~2"), sent("1.2", "It is sunny")),
        (*HALF, ReplyEnded("1.1", "torn"), ReplyEnded("1.1~2", "complete"), sent("2", "It is sun")),
        (ReplyEnded("1.1", "torn"), sent("1.2", "")),
    ],
)
def test_a_reply_that_broke_off_and_is_not_taken_as_whole(events: Any) -> None:
    assert find([], trace(*events), []) == ()


def failed(number: int, *headers: tuple[str, str], **fields: Any) -> Record:
    return record(number, status=429, place="1.1", answered=headers, **fields)


@pytest.mark.parametrize(
    ("header", "early"),
    [
        (("retry-after", "2"), True),
        (("retry-after-ms", "1500"), True),
        (("retry-after-ms", "900"), False),
        (("retry-after", "inf"), False),
        (("retry-after", "Tue, 14 Nov 2023 22:13:23 GMT"), False),
    ],
)
def test_asking_again_sooner_than_was_told(header: tuple[str, str], early: bool) -> None:
    found = find([failed(1, header), record(2)], trace(), [])
    assert kinds(found) == ([("retried", 2)] if early else [])
    if early:
        assert "asks again after 1 s, though told to wait" in str(found[0])


def test_asking_again_and_again() -> None:
    records = [failed(number, answered_at=None) for number in range(1, RETRIES + 3)]
    found = find(records, trace(), [])
    assert kinds(found) == [("retried", RETRIES + 2)]
    assert str(found[0]).endswith("asks the same again for the 6th time; 5 are enough")
    assert find(records[: RETRIES + 1], trace(), []) == ()
    others = [record(number, str(number).encode(), status=429, place="1") for number in range(20)]
    assert find(others, trace(), []) == ()
    assert find([record(number) for number in range(20)], trace(), []) == ()


def test_asking_the_same_at_once_is_no_retry() -> None:
    wait = ("retry-after", "2")
    first, second = failed(1, wait, answered_at=3 * SECOND), failed(2, wait, answered_at=4 * SECOND)
    assert find([first, second], trace(), []) == ()
    assert kinds(find([first, second, record(4)], trace(), [])) == [("retried", 4)]


def test_no_secret_is_in_a_finding() -> None:
    events = trace(
        Mismatch("NoPlace", "no sk-0123456789"), ReplyEnded("1.1", "failed", error="password: x1")
    )
    records = [
        record(1, status=400, error="no [redacted]"),
        record(2, status=400, error="password: [redacted]"),
        record(3, status=400, error="not sk-0123456789"),
    ]
    found = find(records, events, [])
    assert kinds(found) == [("no place", 1), ("refused", 3)]
    assert str(found[1]) == "request 3: refused: not [redacted]"


def test_streams_that_are_left_open() -> None:
    records = [
        record(1, ending="cut", frames=1),
        record(2, b"2", ending=""),
        record(3, b"3", ending="stalled"),
        record(4, b"4", place="1.4"),
        record(5, b"5", ending="gone"),
    ]
    found = find(records, trace(ReplyEnded("1.4", "abandoned")), [])
    assert kinds(found) == [("left open", number) for number in (1, 3, 4)]
    assert "neither read to its end nor closed, after 1 chunk" in str(found[0])


def test_a_date_to_wait_for_is_known_from_the_script() -> None:
    date = (("retry-after", "Tue, 14 Nov 2023 22:13:23 GMT"),)
    first = record(1, status=429, place="1.1", answered=date)
    told = trace(FaultInjected("http", "1.1", 429, retry_after=2 * SECOND))
    assert kinds(find([first, record(2)], told, [])) == [("retried", 2)]
    assert find([first, record(3)], told, []) == ()
