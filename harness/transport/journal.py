"""What came to a server, and what became of it: one record a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TextIO, TypeAlias

from msgspec import Struct

from harness.core.durations import SECOND
from harness.core.json_text import Json, dumps, loads
from harness.transport import redact
from harness.transport.http1 import Malformed
from harness.wire import codec_for
from harness.wire.http import Headers, Request, first

Ending: TypeAlias = Literal[
    "", "whole", "gone", "cut", "stalled", "torn", "reset", "dropped", "refused", "malformed"
]
"""How an answer ended: "" is still going on, whole, the client went away, the server was ended, the
client did not read, the connection was broken in one of four ways, the request was none.
"""

_ERROR = 2000
"""How many bytes of an error that a client was told are kept."""


class Record(Struct, kw_only=True):
    """A request and what became of it; filled in while it is answered.

    `at`, `answered_at`, `ended_at` and `client_gone_at` are nanoseconds since the server began, and
    None where it has not come to that. `retry` is how often the client says that it has asked
    before. `frames` are chunks of the body. `rule` is what a strict provider refuses the history
    for.
    """

    number: int
    at: int
    connection: int
    request: Request
    protocol: str = ""
    place: str = ""
    retry: int = 0
    status: int | None = None
    answered: Headers = ()
    error: str = ""
    rule: str = ""
    frames: int = 0
    bytes: int = 0
    ending: Ending = ""
    answered_at: int | None = None
    ended_at: int | None = None
    client_gone_at: int | None = None

    @property
    def method(self) -> str:
        """The request's method."""
        return self.request.method

    @property
    def path(self) -> str:
        """The request's path, without the query and secrets."""
        return redact.path(self.request)

    @property
    def headers(self) -> Headers:
        """The request's headers, without secrets."""
        return redact.headers(self.request.headers)

    @property
    def url(self) -> str:
        """The request's path and query, without secrets."""
        return redact.url(self.request)

    @property
    def body(self) -> Json:
        """The request's body, without secrets: the value where it is JSON, else the text."""
        return redact.body(self.request)

    def as_json(self) -> Json:
        """The record as a line of the journal has it; times in seconds."""
        return {
            "number": self.number,
            "at": _seconds(self.at),
            "connection": self.connection,
            "method": self.method,
            "path": self.url,
            "protocol": self.protocol,
            "place": self.place,
            "retry": self.retry,
            "headers": [list(pair) for pair in self.headers],
            "body": self.body,
            "status": self.status,
            "error": self.error,
            "rule": self.rule,
            "frames": self.frames,
            "bytes": self.bytes,
            "ended": self.ending,
            "answered_at": _seconds(self.answered_at),
            "ended_at": _seconds(self.ended_at),
            "client_gone_at": _seconds(self.client_gone_at),
        }


class Journal:
    """The records of a server, in the order of the requests.

    `now` gives nanoseconds since the server began. Where there is a `file`, each record is written
    there when its answer has ended, as a line of JSON.
    """

    def __init__(self, now: Callable[[], int], file: TextIO | None = None) -> None:
        self.now = now
        self.records: list[Record] = []
        self._file = file
        self.failed: OSError | None = None
        """Why the file could not be written; what came after that is not in it."""

    def begin(self, connection: int, request: Request) -> Record:
        """A request has come."""
        codec = codec_for(request)
        record = Record(
            number=len(self.records) + 1,
            at=self.now(),
            connection=connection,
            request=request,
            protocol="" if codec is None else codec.name,
            retry=_number(first(request.headers, "x-stainless-retry-count")),
        )
        self.records.append(record)
        return record

    def tell(self, record: Record, data: bytes) -> None:
        """An error is being told: keep what it says, without secrets."""
        try:
            told = loads(data[:_ERROR])["error"]["message"]
        except (ValueError, LookupError, TypeError, RecursionError):
            told = data[:_ERROR].decode(errors="replace")
        record.error = redact.text(str(told))

    def end(self, record: Record, ending: Ending) -> None:
        """The answer to a request is over."""
        record.ending = ending
        record.ended_at = self.now()
        if self._file is None or self.failed is not None:
            return
        try:
            self._file.write(dumps(record.as_json()) + "\n")
            self._file.flush()
        except OSError as error:
            self.failed = error

    def malformed(self, connection: int, error: Malformed) -> None:
        """Bytes have come that are no request."""
        record = self.begin(connection, Request("", ""))
        record.status, record.error = error.status, str(error)
        self.end(record, "malformed")


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else round(nanoseconds / SECOND, 6)


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 9 else 0
