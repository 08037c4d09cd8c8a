"""HTTP messages as values: what a codec reads and writes, whoever carries it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from email.utils import formatdate
from typing import Literal
from urllib.parse import SplitResult, parse_qsl, urlsplit

from msgspec import Struct

from harness.core.json_text import Json
from harness.wire.writing import bytes_of

Headers = tuple[tuple[str, str], ...]
"""Names and values in their order; names in lower case."""


class Request(Struct, frozen=True):
    """A request; `url` may be a whole address or begin with the path."""

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""

    @property
    def path(self) -> str:
        """The path, without the query.

        >>> Request("POST", "http://127.0.0.1:9/v1/messages?beta=true").path
        '/v1/messages'
        """
        return _split(self.url).path

    @property
    def host(self) -> str:
        """The host, without its port, in lower case; "" where none is told."""
        return _split(self.url).hostname or ""

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The parameters behind the path, in their order."""
        return parse_qsl(_split(self.url).query, keep_blank_values=True)

    @property
    def query(self) -> dict[str, str]:
        """The parameters behind the path; the last of several with one name."""
        return dict(self.parameters)

    def header(self, name: str) -> str | None:
        """The first value of a header; None without one."""
        return first(self.headers, name)


class Response(Struct, frozen=True):
    """A whole response."""

    status: int
    headers: Headers = ()
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The first value of a header; None without one."""
        return first(self.headers, name)


def _split(url: str) -> SplitResult:
    """The parts of an address; one that begins with the path has no host, one that is none has
    nothing.
    """
    if not url.startswith("/"):
        try:
            return urlsplit(url)
        except ValueError:
            return SplitResult("", "", "", "", "")
    path, _mark, query = url.partition("#")[0].partition("?")
    return SplitResult("", "", path, query, "")


def first(headers: Headers, name: str) -> str | None:
    """The first value of a header; None without one."""
    wanted = name.lower()
    return next((value for each, value in headers if each == wanted), None)


def headers(given: Mapping[str, str] | Iterable[tuple[str, str]]) -> Headers:
    """Headers with their names in lower case.

    >>> headers({"Content-Type": "text/plain"})
    (('content-type', 'text/plain'),)
    """
    pairs = given.items() if isinstance(given, Mapping) else given
    return tuple([(name.lower(), value) for name, value in pairs])


def retry_after(
    seconds: float,
    spelling: Literal["seconds", "milliseconds", "date"] = "seconds",
    *,
    now: float = 0,
) -> Headers:
    """When a client may ask again, in one of the three ways in which providers say it.

    A date is whole seconds after `now`, which is a second since 1970.

    >>> retry_after(2.5), retry_after(2.5, "milliseconds")
    ((('retry-after', '2.5'),), (('retry-after-ms', '2500'),))
    >>> retry_after(2.5, "date", now=1_700_000_000)
    (('retry-after', 'Tue, 14 Nov 2023 22:13:23 GMT'),)
    """
    match spelling:
        case "seconds":
            return (("retry-after", _decimal(seconds)),)
        case "milliseconds":
            return (("retry-after-ms", _decimal(seconds * 1000)),)
        case _:
            return (("retry-after", formatdate(math.ceil(now + seconds), usegmt=True)),)


def should_retry(flag: bool) -> Headers:  # noqa: FBT001 - it is all that the function says
    """Whether a client should ask again, whatever the status makes it think.

    >>> should_retry(False)
    (('x-should-retry', 'false'),)
    """
    return (("x-should-retry", "true" if flag else "false"),)


def _decimal(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def json_response(status: int, value: Json, more: Headers = ()) -> Response:
    """A response whose body is JSON."""
    kind = (("content-type", "application/json"),)
    return Response(status, (*kind, *more), bytes_of(value))
