"""Errors as this protocol tells them."""

from __future__ import annotations

import math
from email.utils import formatdate, parsedate
from hashlib import blake2b
from typing import Any

from harness.core.json_text import Json
from harness.wire.codec import Failure, Garbled, Limit, Unreadable
from harness.wire.http import Headers, first, should_retry
from harness.wire.reading import NOTHING

_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""The usual type of an error, by its status; dossier section 4.2."""
_EXPECTED = {
    "a string": "valid string",
    "an array": "valid list",
    "an object": "valid dictionary",
    "a number": "valid number",
    "an integer": "valid integer",
    "a boolean": "valid boolean",
}
_TOLD = ("retry-after", "x-should-retry", "anthropic-ratelimit-")
"""How headers begin that tell a client whether and when to ask again."""


def written_failure(failure: Failure) -> dict[str, Any]:
    """The body of a failure, and the data of an event that tells of one."""
    error: dict[str, Any] = {
        "type": failure.kind or _KINDS.get(failure.status, "api_error"),
        "message": failure.message,
    }
    if failure.code is not None:
        error["details"] = {"error_code": failure.code}
    return {"type": "error", "error": error, "request_id": request_id(failure.message)}


def failure_headers(failure: Failure) -> Headers:
    """The headers of a failure: clients shall not send the same again that was refused."""
    told = first(failure.headers, "x-should-retry") is not None
    usual = () if told or failure.status != 400 else should_retry(flag=False)
    return (("request-id", request_id(failure.message)), *usual, *failure.headers)


def limit_headers(limit: Limit, now: float) -> Headers:
    """One limit as headers tell it."""
    name = f"anthropic-ratelimit-{limit.what}"
    return (
        (f"{name}-limit", str(limit.limit)),
        (f"{name}-remaining", str(limit.remaining)),
        (f"{name}-reset", instant(now + limit.reset)),
    )


def instant(second: float) -> str:
    """A second since 1970 as RFC 3339 has it, rounded up.

    >>> instant(1_700_000_000.5)
    '2023-11-14T22:13:21Z'
    """
    parts = parsedate(formatdate(math.ceil(second)))
    assert parts is not None
    year, month, day, hour, minute, sec = parts[:6]
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{sec:02}Z"


def request_id(text: str) -> str:
    """An id for what answers with a text: the same for the same text."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return f"req_{digest}"


def told_failure(body: Json, status: int, headers: Headers = ()) -> Failure:
    """The failure that a body tells of, whatever the body is."""
    told = body.get("error") if isinstance(body, dict) else body
    kept = tuple([each for each in headers if each[0].startswith(_TOLD)])
    if not isinstance(told, dict):
        message = str(told) if told else f"status {status}"
        return Failure(status, message, headers=kept)
    details = told.get("details")
    code = details.get("error_code") if isinstance(details, dict) else None
    message = _text(told.get("message")) or f"status {status}"
    return Failure(status, message, _text(told.get("type")), _text(code), headers=kept)


def refused(message: str, place: str) -> Unreadable:
    """A request of a wrong form, in the words of the provider's own checker."""
    place = place.replace("[", ".").replace("]", "")
    if message.startswith("expected "):
        expected, _, found = message.removeprefix("expected ").partition(", but got ")
        message = f"Input should be a {_EXPECTED[expected]}"
        if found.startswith(NOTHING):
            message = "Field required"
    told = f"{place}: {message}" if place else message
    return Unreadable(Failure(400, told, "invalid_request_error"))


def garbled(message: str, place: str) -> Garbled:
    """A reply of a wrong form."""
    return Garbled(f"{place or 'the reply'}: {message}")


def _text(value: Json) -> str | None:
    return None if value is None else str(value)
