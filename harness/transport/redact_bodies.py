"""Requests and interactions without their secrets, as they may be written into a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from harness.transport.cassettes.form import Chunk, Interaction
from harness.transport.rules import Rules
from harness.transport.secrets import heads, spelling
from harness.transport.secrets.bodies import body
from harness.transport.secrets.finder import Finder, steady
from harness.wire.http import Headers, Request

_Value = TypeVar("_Value")


def interaction(given: Interaction, rules: Rules) -> Interaction:
    """An interaction without secrets: in headers, address, cookies and both bodies.

    What stands as a secret in one place is not left in another. As many chunks come at the same
    times; those without a secret are the same bytes. Given what it gave, it gives the same.
    """
    finder = Finder(rules)
    asked = _settled(finder, partial(_request, given.request))
    return replace(_settled(finder, partial(_reply, given)), request=asked)


def request(given: Request, rules: Rules) -> Request:
    """A request without secrets, just as `interaction` has it."""
    return _settled(Finder(rules), partial(_request, given))


def _settled(finder: Finder, redact: Callable[[Finder], tuple[_Value, int]]) -> _Value:
    """What is redacted, gone through again where a secret became known on the way: `redact` also
    gives how many it knew when it began with the body.
    """
    found, before = redact(finder)
    if len(finder.known) > before:
        found, _ = redact(finder)
    return found


def _request(given: Request, finder: Finder) -> tuple[Request, int]:
    heads.learn(given.headers, finder)
    url = steady(partial(heads.address, finder=finder), given.url)
    known = len(finder.known)
    headers = heads.headers(given.headers, finder)
    (shown,) = _body((given.body,), given.headers, finder, reply=False)
    return Request(given.method, url, _sized(headers, given.body, shown), shown), known


def _reply(given: Interaction, finder: Finder) -> tuple[Interaction, int]:
    heads.learn(given.headers, finder)
    known = len(finder.known)
    headers = heads.headers(given.headers, finder)
    pieces = [chunk.data for chunk in given.chunks]
    shown = _body(pieces, given.headers, finder, reply=True)
    chunks = tuple([Chunk(a.at, data) for a, data in zip(given.chunks, shown, strict=True)])
    headers = _sized(headers, b"".join(pieces), b"".join(shown))
    reason = finder.redacted(given.reason)
    return replace(given, reason=reason, headers=headers, chunks=chunks), known


def _sized(headers: Headers, before: bytes, after: bytes) -> Headers:
    """Headers whose length is as far from the body's as it was."""
    more = len(after) - len(before)
    if not more:
        return headers
    return tuple(
        [
            (name, str(max(0, int(value) + more)))
            if name.lower() == "content-length" and value.isdecimal() and len(value) < 20
            else (name, value)
            for name, value in headers
        ]
    )


def _body(
    pieces: Sequence[bytes], headers: Headers, finder: Finder, *, reply: bool
) -> Sequence[bytes]:
    """The pieces of a body without its secrets."""

    def redact(given: Sequence[bytes]) -> Sequence[bytes]:
        data = b"".join(given)
        spelled, edits = body(data, headers, finder, reply=reply)
        return spelling.cut(given, spelled.in_bytes(edits)) if edits else given

    return steady(redact, pieces) if any(pieces) else pieces
