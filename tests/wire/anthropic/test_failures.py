"""Failures are told in the provider's words, and read again."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from harness.wire.codec import Failure, Limit, ProviderError
from harness.wire.http import Response, retry_after
from tests.wire.anthropic.answers import CODEC


def told(response: Response) -> Failure:
    with pytest.raises(ProviderError) as raised:
        CODEC.read_answer(response)
    return raised.value.failure


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (402, "billing_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (409, "conflict_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "api_error"),
        (504, "timeout_error"),
        (529, "overloaded_error"),
    ],
)
def test_a_status_has_its_kind(status: int, kind: str) -> None:
    response = CODEC.failure(Failure(status, "No."))
    body = json.loads(response.body)
    assert response.status == status
    assert body["type"] == "error"
    assert body["error"] == {"type": kind, "message": "No."}
    assert body["request_id"] == response.header("request-id")
    assert body["request_id"].startswith("req_")
    assert response.header("x-should-retry") == ("false" if status == 400 else None)
    assert replace(told(response), headers=()) == Failure(status, "No.", kind)


def test_a_failure_is_read_with_all_that_was_told() -> None:
    failure = Failure(
        429,
        "Slow down.",
        "rate_limit_error",
        "enforced_spend_limit_reached",
        None,
        (*retry_after(2.5), ("x-should-retry", "true")),
    )
    response = CODEC.failure(failure)
    assert json.loads(response.body)["error"]["details"] == {
        "error_code": "enforced_spend_limit_reached"
    }
    assert told(response) == failure
    stubborn = Failure(400, "Again.", headers=(("x-should-retry", "true"),))
    names = [name for name, _ in CODEC.failure(stubborn).headers]
    assert names.count("x-should-retry") == 1


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        (b"<html>", Failure(502, "status 502")),
        (b"[]", Failure(502, "status 502")),
        (b'"bad gateway"', Failure(502, "bad gateway")),
        (b'{"error": "no"}', Failure(502, "no")),
        (b'{"error": {"type": 7, "details": []}}', Failure(502, "status 502", "7")),
    ],
)
def test_a_failure_in_other_words_is_one(body: bytes, failure: Failure) -> None:
    assert told(Response(502, (), body)) == failure


def test_an_error_under_a_good_status_is_one() -> None:
    body = b'{"type": "error", "error": {"type": "api_error", "message": "Oh."}}'
    assert told(Response(200, (), body)) == Failure(200, "Oh.", "api_error")


def test_limits_are_told_in_headers() -> None:
    limits = [Limit("requests", 50, 49, 1.5), Limit("input-tokens", 9, 0)]
    assert CODEC.headers("req_1", limits, now=1_700_000_000) == (
        ("request-id", "req_1"),
        ("anthropic-ratelimit-requests-limit", "50"),
        ("anthropic-ratelimit-requests-remaining", "49"),
        ("anthropic-ratelimit-requests-reset", "2023-11-14T22:13:22Z"),
        ("anthropic-ratelimit-input-tokens-limit", "9"),
        ("anthropic-ratelimit-input-tokens-remaining", "0"),
        ("anthropic-ratelimit-input-tokens-reset", "2023-11-14T22:13:20Z"),
    )
