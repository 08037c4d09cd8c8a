"""Errors as this protocol tells them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.core.json_text import Json
from harness.wire.codec import Failure, Garbled, Unreadable
from harness.wire.http import Headers, first

_KINDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""The usual status word of an error, by its number; dossier section 5.3."""
_TYPES = "type.googleapis.com/google.rpc."


def written_failure(failure: Failure) -> dict[str, Any]:
    """The body of a failure, and the frame that tells of one: `error` is its first key, since the
    vendor's library looks for it there.
    """
    usual = "INTERNAL" if failure.status >= 500 else "INVALID_ARGUMENT"
    error: dict[str, Any] = {
        "code": failure.status,
        "message": failure.message,
        "status": failure.kind or _KINDS.get(failure.status, usual),
    }
    if details := list(_details(failure)):
        error["details"] = details
    return {"error": error}


def told_failure(body: Json, status: int, headers: Headers = ()) -> Failure:
    """The failure that a body tells of, whatever the body is; some servers put it in a list."""
    if isinstance(body, list) and body:
        body = body[0]
    told = body.get("error") if isinstance(body, dict) else body
    kept = tuple([each for each in headers if each[0] == "retry-after"])
    if not isinstance(told, dict):
        return Failure(status, str(told) if told else f"status {status}", headers=kept)
    given = told.get("code")
    if isinstance(given, int) and 400 <= given < 600:
        status = given
    kind, message = told.get("status"), told.get("message")
    code: str | None = None
    param: str | None = None
    details = told.get("details")
    for each in details if isinstance(details, list) else ():
        match each:
            case {"reason": str(reason)}:
                code = reason
            case {"fieldViolations": [{"field": str(place)}, *_]}:
                param = place
    return Failure(
        status,
        str(message) if message else f"status {status}",
        None if kind is None else str(kind),
        code,
        param,
        kept,
    )


def refused(message: str, place: str) -> Unreadable:
    """A request of a wrong form."""
    told = f"Invalid value at '{place}': {message}" if place else message
    return Unreadable(Failure(400, told, "INVALID_ARGUMENT", None, place or None))


def garbled(message: str, place: str) -> Garbled:
    """A reply of a wrong form."""
    return Garbled(f"{place or 'the reply'}: {message}")


def _details(failure: Failure) -> Iterator[Json]:
    if failure.code is not None:
        info = {"reason": failure.code, "domain": "googleapis.com"}
        yield {"@type": f"{_TYPES}ErrorInfo", **info}
    if failure.param is not None:
        violation = {"field": failure.param, "description": failure.message}
        yield {"@type": f"{_TYPES}BadRequest", "fieldViolations": [violation]}
    seconds = first(failure.headers, "retry-after")
    if seconds is not None and seconds.replace(".", "", 1).isdigit():
        yield {"@type": f"{_TYPES}RetryInfo", "retryDelay": f"{seconds}s"}
