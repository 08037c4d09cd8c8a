"""The journal: what it keeps of a request, and what it must not."""

from __future__ import annotations

import io

from harness.core.json_text import loads
from harness.transport.http1 import Malformed
from harness.transport.journal import Journal
from harness.transport.rules import REDACTED
from harness.wire.http import Request

ASKED = Request(
    "POST",
    "/v1/chat/completions?a=1",
    (("authorization", "Bearer sk-1"), ("x-stainless-retry-count", "2"), ("cookie", "sk-2")),
    b'{"model": "m", "n": [1, {"x": null}]}',
)


def test_a_request_is_a_line_when_it_is_answered() -> None:
    file, times = io.StringIO(), iter([1_500_000_000, 2_000_000_001])
    journal = Journal(lambda: next(times), file)
    record = journal.begin(3, ASKED)
    assert (record.method, record.path, record.ending, file.getvalue()) == (
        "POST",
        "/v1/chat/completions",
        "",
        "",
    )
    record.status, record.place, record.frames, record.bytes = 200, "1.1", 4, 99
    journal.end(record, "whole")
    assert file.getvalue().endswith("}\n")
    assert "sk-" not in file.getvalue()
    assert loads(file.getvalue()) == {
        "number": 1,
        "at": 1.5,
        "connection": 3,
        "method": "POST",
        "path": "/v1/chat/completions?a=1",
        "protocol": "openai_chat",
        "place": "1.1",
        "retry": 2,
        "headers": [
            ["authorization", REDACTED],
            ["x-stainless-retry-count", "2"],
            ["cookie", REDACTED],
        ],
        "body": {"model": "m", "n": [1, {"x": None}]},
        "status": 200,
        "error": "",
        "rule": "",
        "frames": 4,
        "bytes": 99,
        "ended": "whole",
        "answered_at": None,
        "ended_at": 2,
        "client_gone_at": None,
    }


def test_bodies_that_are_no_json_and_none() -> None:
    journal = Journal(lambda: 0)
    for body, kept in ((b"", None), (b"{\xff", "{�"), (b"[" * 5000, "[" * 5000)):
        assert journal.begin(1, Request("POST", "/", (), body)).body == kept


def test_a_retry_count_that_is_none() -> None:
    journal = Journal(lambda: 0)
    for text in ("-1", "x", "9" * 30):
        assert (
            journal.begin(1, Request("GET", "/", (("x-stainless-retry-count", text),))).retry == 0
        )


def test_what_an_error_says() -> None:
    journal = Journal(lambda: 0)
    record = journal.begin(1, ASKED)
    for body, said in (
        (b'{"error": {"message": "no"}}', "no"),
        (b'{"error": 1}', '{"error": 1}'),
        (b"<html>", "<html>"),
        (b"[" * 3000, "[" * 2000),
    ):
        journal.tell(record, body)
        assert record.error == said


def test_bytes_that_are_no_request() -> None:
    journal = Journal(lambda: 0)
    journal.malformed(4, Malformed(400, "no request"))
    (record,) = journal.records
    assert (record.connection, record.status, record.error) == (4, 400, "no request")
    assert (record.ending, record.url, record.protocol) == ("malformed", "", "")
