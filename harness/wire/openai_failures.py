"""Errors and limits as OpenAI tells them, in each of its protocols."""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.json_text import Json
from harness.wire.codec import Failure, Garbled, Limit, ProviderError, Unreadable
from harness.wire.http import Headers, Response
from harness.wire.reading import NOTHING, Field, json_of

_KINDS = {
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}
"""The usual type and code of an error, by its status; dossier section 2.3."""


def written_error(failure: Failure) -> Json:
    """The object that tells of a failure, in a body or in a chunk."""
    usual = _KINDS.get(
        failure.status,
        ("server_error", None) if failure.status >= 500 else ("invalid_request_error", None),
    )
    return {
        "message": failure.message,
        "type": failure.kind or usual[0],
        "param": failure.param,
        "code": failure.code or usual[1],
    }


def told_failure(told: Json, status: int, headers: Headers = ()) -> Failure:
    """The failure that such an object tells of; what it leaves out is None."""
    if not isinstance(told, dict):
        return Failure(status, str(told) if told else f"status {status}", headers=headers)
    words = {key: told.get(key) for key in ("message", "type", "code", "param")}
    text = {key: None if value is None else str(value) for key, value in words.items()}
    message = text["message"] or f"status {status}"
    return Failure(status, message, text["type"], text["code"], text["param"], headers)


def refused(message: str, place: str | None, code: str | None = None) -> Unreadable:
    """The error for a request that is not what it should be at `place`."""
    if place and message.endswith(f"but got {NOTHING} instead"):
        message, code = f"Missing required parameter: '{place}'.", "missing_required_parameter"
    elif place and message.startswith("expected "):
        message, code = f"Invalid type for '{place}': {message}.", "invalid_type"
    return Unreadable(Failure(400, message, "invalid_request_error", code, place or None))


def garbled(message: str, place: str) -> Garbled:
    """The error for a reply that is not what it should be at `place`."""
    return Garbled(f"{place or 'the reply'}: {message}")


def body_of(response: Response) -> Field:
    """The body of a whole reply; ProviderError where it tells of a failure."""
    try:
        found = json_of(response.body)
    except ValueError:
        found = None
    told = found.get("error") if isinstance(found, dict) else None
    if response.status >= 400 or told is not None:
        raise ProviderError(told_failure(told, response.status, response.headers))
    return Field(found, "", garbled)


def written_headers(request_id: str, limits: Sequence[Limit]) -> Headers:
    """The request's id, and how much of each limit is left."""
    sent = [("x-request-id", request_id)]
    for each in limits:
        sent += [
            (f"x-ratelimit-limit-{each.what}", str(each.limit)),
            (f"x-ratelimit-remaining-{each.what}", str(each.remaining)),
            (f"x-ratelimit-reset-{each.what}", duration(each.reset)),
        ]
    return tuple(sent)


def duration(seconds: float) -> str:
    """A span of time as Go writes it, to the millisecond.

    >>> duration(0.12), duration(50.529), duration(360), duration(3601), duration(0)
    ('120ms', '50.529s', '6m0s', '1h0m1s', '0s')
    """
    milliseconds = round(seconds * 1000)
    if 0 < milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    whole, part = divmod(rest, 1000)
    tail = f"{whole}.{part:03}".rstrip("0") if part else str(whole)
    before = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{before}{tail}s"
