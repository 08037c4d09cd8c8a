"""HTTP messages as values: what a codec reads and writes, whoever carries it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, urlsplit

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
        return urlsplit(self.url).path

    @property
    def query(self) -> dict[str, str]:
        """The parameters behind the path; the last of several with one name."""
        return dict(parse_qsl(urlsplit(self.url).query, keep_blank_values=True))

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


def json_response(status: int, value: Json, more: Headers = ()) -> Response:
    """A response whose body is JSON."""
    kind = (("content-type", "application/json"),)
    return Response(status, (*kind, *more), bytes_of(value))
