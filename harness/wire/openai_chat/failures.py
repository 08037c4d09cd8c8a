"""Errors as this protocol tells them."""

from __future__ import annotations

from harness.core.json_text import Json
from harness.wire.codec import Failure, Garbled, Unreadable

_KINDS = {
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}
"""The usual type and code of an error, by its status; dossier section 2.3."""


def written_error(failure: Failure) -> Json:
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


def told_failure(told: Json, status: int) -> Failure:
    if not isinstance(told, dict):
        return Failure(status, str(told) if told else f"status {status}")
    words = {key: told.get(key) for key in ("message", "type", "code", "param")}
    text = {key: None if value is None else str(value) for key, value in words.items()}
    message = text["message"] or f"status {status}"
    return Failure(status, message, text["type"], text["code"], text["param"])


def refused(message: str, place: str | None, code: str | None = None) -> Unreadable:
    if place and message.startswith("expected "):
        message = f"Invalid type for '{place}': {message}."
        code = code or "invalid_type"
    return Unreadable(Failure(400, message, "invalid_request_error", code, place or None))


def garbled(message: str, place: str) -> Garbled:
    return Garbled(f"{place or 'the reply'}: {message}")
