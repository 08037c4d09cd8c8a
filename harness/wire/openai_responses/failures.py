"""Errors as this protocol tells them; a whole response tells them as Chat Completions do."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from harness.core.json_text import Json
from harness.wire import openai_failures as common
from harness.wire.codec import Failure, Unreadable
from harness.wire.http import headers

Failing: TypeAlias = Literal["nested", "flat", "failed"]
"""How a stream tells of a failure: by an event with an error in it, as the live service does; by an
event that is the error, as the vendor's documents have it; or by a response that has failed.
"""


def refused(message: str, place: str | None) -> Unreadable:
    """The error for a request that is not what it should be at `place`."""
    code = "invalid_value" if message.startswith("Invalid value: ") else None
    return common.refused(message, place, code)


def written_event(failure: Failure, failing: Literal["nested", "flat"]) -> dict[str, Any]:
    """What an event of the type ``error`` holds besides."""
    error: dict[str, Any] = common.written_error(failure)
    if failing == "flat":
        return {key: error[key] for key in ("code", "message", "param")}
    told = {"headers": dict(failure.headers)} if failure.headers else {}
    return {"error": {**error, **told}}


def written_failed(failure: Failure) -> dict[str, Any]:
    """What of a response is otherwise when it has failed."""
    code = failure.code or "server_error"
    return {"status": "failed", "error": {"code": code, "message": failure.message}}


def told_by(event: dict[str, Any]) -> Failure:
    """The failure that an event tells of, of either kind."""
    told: Json = event if event.get("error") is None else event["error"]
    sent = told.get("headers") if isinstance(told, dict) else None
    pairs = sent.items() if isinstance(sent, dict) else ()
    kept = headers([(key, str(value)) for key, value in pairs])
    if told is event:
        told = {**event, "type": None}
    return common.told_failure(told, 200, kept)
