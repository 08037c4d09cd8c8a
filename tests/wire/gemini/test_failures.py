"""Failures are told in the provider's words, and read again."""

from __future__ import annotations

import json

import pytest

from harness.wire.codec import Failure, Limit, ProviderError
from harness.wire.http import Response, retry_after
from tests.wire.gemini.answers import CODEC


def told(response: Response) -> Failure:
    with pytest.raises(ProviderError) as raised:
        CODEC.read_answer(response)
    return raised.value.failure


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "INVALID_ARGUMENT"),
        (401, "UNAUTHENTICATED"),
        (403, "PERMISSION_DENIED"),
        (404, "NOT_FOUND"),
        (413, "INVALID_ARGUMENT"),
        (429, "RESOURCE_EXHAUSTED"),
        (500, "INTERNAL"),
        (502, "INTERNAL"),
        (503, "UNAVAILABLE"),
        (504, "DEADLINE_EXCEEDED"),
    ],
)
def test_a_status_has_its_word(status: int, kind: str) -> None:
    response = CODEC.failure(Failure(status, "No."))
    assert response.status == status
    body = json.loads(response.body)
    assert body == {"error": {"code": status, "message": "No.", "status": kind}}
    assert told(response) == Failure(status, "No.", kind)


def test_a_failure_is_read_with_all_that_was_told() -> None:
    failure = Failure(
        429, "Slow down.", "FAILED_PRECONDITION", "RATE_LIMIT_EXCEEDED", "model", retry_after(17)
    )
    response = CODEC.failure(failure)
    info, violations, retry = json.loads(response.body)["error"]["details"]
    assert info["reason"] == "RATE_LIMIT_EXCEEDED"
    assert violations["fieldViolations"] == [{"field": "model", "description": "Slow down."}]
    assert retry == {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}
    assert told(response) == failure
    dated = Failure(503, "Wait.", "UNAVAILABLE", headers=retry_after(2, "date"))
    assert "details" not in json.loads(CODEC.failure(dated).body)["error"]
    assert told(CODEC.failure(dated)) == dated


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        (b"<html>", Failure(502, "status 502")),
        (b"[]", Failure(502, "status 502")),
        (b'"bad gateway"', Failure(502, "bad gateway")),
        (b'{"error": "no"}', Failure(502, "no")),
        (
            b'{"error": {"code": 503, "status": "X", "details": {}}}',
            Failure(503, "status 503", "X"),
        ),
        (b'{"error": {"code": 7, "details": [{}, 1]}}', Failure(502, "status 502")),
        (b'[{"error": {"message": "In a list."}}]', Failure(502, "In a list.")),
    ],
)
def test_a_failure_in_other_words_is_one(body: bytes, failure: Failure) -> None:
    assert told(Response(502, (), body)) == failure


def test_an_error_under_a_good_status_is_one() -> None:
    body = b'{"error": {"code": 500, "message": "Oh.", "status": "INTERNAL"}}'
    assert told(Response(200, (), body)) == Failure(500, "Oh.", "INTERNAL")


def test_neither_requests_nor_limits_are_told_of() -> None:
    assert CODEC.headers("req_1", [Limit("requests", 50, 49)], now=1) == ()
