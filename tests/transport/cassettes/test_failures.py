"""What failed at the provider while it was recorded: it is told, played, and asked again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from harness.transport.cassettes import file
from harness.transport.cassettes.failures import failure, renewed, unanswered
from harness.transport.cassettes.form import Interaction
from harness.transport.cassettes.use import cassette
from harness.transport.rules import NO_RULES
from harness.wire.http import Request
from tests.transport.cassettes.raw import raw, whole
from tests.transport.cassettes.tapes import Heard, ask

NOWHERE = "http://127.0.0.1:9"


def post(url: str, text: str) -> Heard:
    return ask("httpx2", "sync", f"{url}/ask", content=text.encode())


def post_by_requests(url: str, text: str) -> Heard:
    heard, answer = Heard(), requests.post(f"{url}/ask", data=text, timeout=10)
    heard.status, heard.chunks = answer.status_code, [answer.content]
    return heard


def told(how: str) -> str:
    return f"failed at the provider: {how}; the mode missing asks again"


def test_what_reached_no_provider_is_asked_again_and_stands_where_it_stood(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    with raw([whole(b"two")]) as server, cassette(path, "all") as session:
        for _ in range(2):
            post(NOWHERE, "one")
        post(server.url, "two")
    assert session.said == f"{path}: 0 of 0 played, 3 recorded; 2 requests {told('refused')}"
    with cassette(path) as session:
        assert post(NOWHERE, "one").error is not None
        assert post(NOWHERE, "one").error is not None
        post(NOWHERE, "two")
    with raw([whole(b"one")]) as server, cassette(path, "missing") as session:
        assert post(server.url, "one").body == b"one"
        assert post(server.url, "two").body == b"two"
        assert len(session.interactions) == 2
    assert session.said == f"{path}: 1 of 3 played, 1 recorded"
    one, two = file.load(path).interactions
    assert (one.body, two.body) == (b"one", b"two")
    assert two.begun >= one.begun + one.ended_at
    with cassette(path):
        post(NOWHERE, "one")
        post(NOWHERE, "two")


@pytest.mark.parametrize("asking", [post, post_by_requests])
def test_a_wrong_key_is_asked_again(tmp_path: Path, asking: Callable[..., Heard]) -> None:
    path = tmp_path / "c.yaml"
    wrong = whole(b"no", status="401 Unauthorized")
    with raw([wrong], [whole(b"yes")]) as server:
        with cassette(path, "missing") as session:
            assert asking(server.url, "one").status == 401
        assert session.said.endswith(f"1 recorded; 1 request {told('status 401')}")
        with cassette(path, "missing") as session:
            assert asking(server.url, "one").body == b"yes"
    assert session.said == f"{path}: 0 of 1 played, 1 recorded"
    assert [each.body for each in file.load(path).interactions] == [b"yes"]


def test_what_was_answered_when_it_was_asked_again_is_played(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    with raw([], [whole(b"one")]) as server, cassette(path, "all") as session:
        post(server.url, "one")
        post(server.url, "one")
    assert session.said == f"{path}: 0 of 0 played, 2 recorded"
    with cassette(path, "missing") as session:
        assert post(NOWHERE, "one").error is not None
        assert post(NOWHERE, "one").body == b"one"
    assert session.said == f"{path}: 2 of 2 played, nothing recorded"


def test_drift_tells_of_it_too(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    with raw([whole(b"one")]) as server, cassette(path, "all"):
        post(server.url, "one")
    with cassette(path, "drift") as session:
        post(NOWHERE, "one")
    assert session.said.endswith("c.drift.yaml; 1 request failed at the provider: refused")


def made(
    text: str, status: int | None = 200, ended: Any = "complete", took: int = 1
) -> Interaction:
    asked = Request("POST", "http://provider.test/ask", (), text.encode())
    return Interaction(request=asked, status=status, ended=ended, ended_at=took)


@pytest.mark.parametrize(
    ("given", "how"),
    [
        (made("", 403), "status 403"),
        (made("", 407), "status 407"),
        (made("", 404), ""),
        (made("", 200, "torn"), ""),
        (made("", None, "timeout"), "timeout"),
        (made("", None, "reset"), "reset"),
        (made("", None, "cancelled"), ""),
    ],
)
def test_what_is_a_failure(given: Interaction, how: str) -> None:
    assert failure(given) == how
    assert unanswered([given], NO_RULES) == ({0} if how else set())


def test_what_comes_again_takes_the_first_places_and_what_is_more_goes_behind() -> None:
    lost, other = made("one", None, "refused"), made("other", None, "refused")
    good, busy = made("one", 200, took=9), made("one", 503, took=5)
    before = [lost, made("two"), other, lost]
    found = renewed(before, unanswered(before, NO_RULES), [busy, good], NO_RULES)
    assert [(each.status, each.request.body) for each in found] == [
        (503, b"one"), (200, b"two"), (None, b"other"), (200, b"one"),
    ]  # fmt: skip
    assert [each.begun for each in found] == [0, 4, 4, 4]
    found = renewed([lost], {0}, [busy, good], NO_RULES)
    assert [(each.status, each.begun) for each in found] == [(503, 0), (200, 5)]
