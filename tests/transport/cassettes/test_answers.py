"""Answers of many kinds: recorded, written to a file, read from it, and replayed the same."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from harness.transport.cassettes import file
from harness.transport.cassettes.use import cassette
from tests.transport.cassettes.raw import LAST, STREAMED, Step, chunk, head, raw, whole
from tests.transport.cassettes.tapes import CLIENTS, Heard, Ticking, ask

TEXT = "data: caf\u00e9 \u2603\n\ndata: more\n\n".encode()
BINARY = bytes(range(256)) * 3
SNOWMAN = "\u2603".encode()
HIDDEN = {"transfer-encoding", "content-encoding", "content-length", "connection"}
"""Headers that are about how bytes were carried."""

CLOSING = "connection: close"
ANSWERS: dict[str, list[Step]] = {
    "json": [whole(b'{"a": 1}', "content-type: application/json")],
    "text": [whole(TEXT, "content-type: text/plain; charset=utf-8")],
    "binary": [whole(BINARY, "content-type: audio/mpeg")],
    "binary in chunks": [STREAMED, chunk(BINARY), chunk(BINARY[::-1]), LAST],
    "characters cut in two": [STREAMED, chunk(SNOWMAN[:1]), chunk(SNOWMAN[1:]), LAST],
    "lines of every kind": [whole(b"\r\na\r\n\tb \n\n\rc\x85\xe2\x80\xa8 \n  d\n")],
    "gzip": [whole(gzip.compress(TEXT), "content-encoding: gzip")],
    "gzip twice, in two headers": [
        whole(
            gzip.compress(gzip.compress(TEXT)), "content-encoding: gzip", "Content-Encoding: gzip"
        )
    ],
    "spoilt gzip": [head("content-encoding: gzip", "content-length: 3", CLOSING), b"abc"],
    "gzip in chunks": [
        head("content-encoding: gzip", "transfer-encoding: chunked"),
        *[chunk(gzip.compress(TEXT)[at : at + 9]) for at in range(0, len(gzip.compress(TEXT)), 9)],
        LAST,
    ],
    "until it closes": [head(CLOSING), TEXT],
    "nothing": [head(CLOSING, status="204 No Content")],
    "empty": [whole(b"")],
    "an error": [whole(b'{"error": {"message": "no"}}', status="529 Overloaded")],
    "no reason": [whole(b"x", status="200 ")],
    "headers": [
        whole(b"x", "X-Twice: a", "X-Twice: b", "X-Latin: caf\xe9", "X-Empty:", "X-Colon: a: b")
    ],
}


def same(live: Heard, again: Heard) -> None:
    assert again.body == live.body
    assert again.status == live.status
    assert type(again.error) is type(live.error)
    kept = [pair for pair in live.headers if pair[0] not in HIDDEN]
    assert [pair for pair in again.headers if pair[0] not in HIDDEN] == kept


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize(("library", "kind"), CLIENTS)
def test_what_was_answered_is_answered_again(
    library: str, kind: str, answer: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.yaml"
    options: dict[str, Any] = {"raw": "gzip" not in answer or "spoilt" in answer}
    with raw(ANSWERS[answer]) as server:
        with cassette(path, "all", now=Ticking()) as session:
            live = ask(library, kind, server.url, **options)
        url = server.url
    assert live.error is None
    [kept] = session.recorded
    [stored] = file.load(path).interactions
    assert (stored.chunks, stored.reason) == (kept.chunks, kept.reason)
    with cassette(path):
        same(live, ask(library, kind, url, **options))


@pytest.mark.parametrize(("library", "kind"), CLIENTS)
def test_a_head_is_answered_again(library: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    with raw([head("content-encoding: gzip", "content-length: 120", CLOSING)]) as server:
        with cassette(path, "all"):
            live = ask(library, kind, server.url, method="HEAD", raw=False)
        url = server.url
    with cassette(path):
        again = ask(library, kind, url, method="HEAD", raw=False)
    assert live.error is None
    assert [pair for pair in live.headers if pair[0] != "connection"] == [
        pair for pair in again.headers if pair[0] != "connection"
    ]
    same(live, again)


@pytest.mark.parametrize(("library", "kind"), CLIENTS)
def test_a_client_that_is_sent_elsewhere_goes_there_again(
    library: str, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.yaml"
    moved = whole(b"", "location: /there", status="307 Temporary Redirect")
    with raw([moved], [whole(b"there")]) as server:
        with cassette(path, "all") as session:
            live = ask(library, kind, server.url, content=b"x", follow_redirects=True)
        url = server.url
    assert [each.status for each in session.recorded] == [307, 200]
    with cassette(path):
        again = ask(library, kind, url, content=b"x", follow_redirects=True)
    assert live.body == b"there"
    same(live, again)
