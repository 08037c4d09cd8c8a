"""Interactions as the values that stand in a cassette's file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from harness.core.json_text import Json
from harness.core.yaml_blocks import Line
from harness.transport.cassettes.bodies import readable, text_or_bytes
from harness.transport.cassettes.form import Interaction
from harness.transport.rules import Rules
from harness.wire.http import Headers, Request

Values: TypeAlias = dict[str, Any]
"""A mapping of values that YAML can hold, bytes among them."""


def entry(given: Interaction, views: Sequence[Mapping[str, Json]]) -> Values:
    """An interaction that has an answer; `views` are what its chunks say."""
    answer = {
        "status": Line(code=given.status, message=given.reason),
        "headers": _headers(given.headers),
        "body": {"string": text_or_bytes(given.body)},
        "harness": {**_harness(given), "chunks": _rows(given, views)},
    }
    return {"request": _request(given.request), "response": answer}


def lost(given: Interaction, at: int) -> Values:
    """An interaction without an answer, which is the one `at` in the order of all."""
    return {"at": at, "request": _request(given.request), "harness": _harness(given)}


def rules(given: Rules) -> Values:
    """Rules, but for the secrets themselves."""
    named = {
        "ignore": given.ignore,
        "volatile": given.volatile,
        "names": given.names,
        "harmless": given.harmless,
        "patterns": given.patterns,
    }
    return {name: list(texts) for name, texts in named.items() if texts}


def _harness(given: Interaction) -> Values:
    """What is ours: when it was, and how it ended."""
    values: Values = {"protocol": given.protocol} if given.protocol else {}
    values["begun"] = _seconds(given.begun)
    if given.status is not None:
        values["head"] = _seconds(given.head_at)
    return {**values, "ended": given.ended, "took": _seconds(given.ended_at)}


def _rows(given: Interaction, views: Sequence[Mapping[str, Json]]) -> list[Line]:
    return [
        Line(at=_seconds(chunk.at), bytes=len(chunk.data), **view)
        for chunk, view in zip(given.chunks, views, strict=True)
    ]


def _request(given: Request) -> Values:
    return {
        "method": given.method,
        "uri": given.url,
        "headers": _headers(given.headers),
        "body": text_or_bytes(readable(given.body)),
    }


def _headers(given: Headers) -> Values:
    values: Values = {}
    for name, value in given:
        values.setdefault(name, []).append(value)
    return values


def _seconds(nanoseconds: int) -> float:
    return nanoseconds // 1000 / 1_000_000
