"""HTTP/1.1 as bytes: reads requests from pieces that are cut anywhere, writes answers.

There is no input and no output here: a server on sockets and a loopback in memory both carry it.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Literal, TypeAlias
from urllib.parse import unquote

from msgspec import Struct

from harness.core.wording import counted
from harness.transport import redact
from harness.transport.exchange import Broken, Exchange
from harness.wire.http import Headers, Request, first, json_response

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""What a client waits for that sends a body only when it is wanted."""

_END = b"0\r\n\r\n"
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_METHOD = re.compile(rb"[A-Z]{1,20}")
_TARGET = re.compile(rb"(/|https?://)[!-~]*")
_VALUE = re.compile(rb"[\t -~\x80-\xff]*")
_LENGTH = re.compile(r"[0-9]{1,18}")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(;[\t -~\x80-\xff]*)?")
_CHUNK_LINE = 1024
"""The longest line before a chunk, in bytes."""


class Limits(Struct, frozen=True):
    """The largest request that is read: bytes of its head, lines of headers, bytes of body."""

    head: int = 64 * 1024
    lines: int = 200
    body: int = 64 * 1024 * 1024


class Malformed(Exception):
    """Bytes that are no request that is read here, and the status that says so.

    Where the next request would begin is not known then, so the connection is to be closed. The
    message has no value that the client has sent: it is told, and written down.
    """

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(redact.text(message))


class Received(Struct, frozen=True):
    """A whole request, whether the client keeps the connection for another, and whether it knows
    bodies in chunks.
    """

    request: Request
    keep: bool = True
    chunks: bool = True


class _Head(Struct, frozen=True):
    """A request before its body; `length` None is a body in chunks."""

    method: str
    target: str
    headers: Headers
    length: int | None
    keep: bool
    chunks: bool


class Reader:
    r"""Reads requests, one after the other, from the bytes of one connection.

    >>> reader = Reader()
    >>> reader.feed(b"GET /v1 HTTP/1.1\r\nHost: here\r\n")
    >>> reader.take()
    >>> reader.feed(b"\r\n")
    >>> reader.take().request.path
    '/v1'
    """

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008 - it is frozen
        self._limits = limits
        self._buffer = bytearray()
        self._searched = 0
        """How much of the buffer is known to hold no end of a head."""
        self._head: _Head | None = None
        self._body = bytearray()
        self._part: Literal["size", "data", "trailer"] = "size"
        """What of a body in chunks comes next."""
        self._left = 0
        """Bytes of the chunk that are still to come, with the end of its line."""
        self._trailer = 0
        self._asks = False

    @property
    def begun(self) -> bool:
        """Whether there is a part of a request, or a whole one that was not taken."""
        return self._head is not None or bool(self._buffer)

    @property
    def held(self) -> int:
        """How many bytes wait here."""
        return len(self._buffer) + len(self._body)

    def feed(self, data: bytes) -> None:
        """Add bytes that have come."""
        self._buffer += data

    def asks_to_continue(self) -> bool:
        """Whether the client waits for `CONTINUE`; true once a request."""
        asked, self._asks = self._asks and not self._buffer and not self._body, False
        return asked

    def take(self) -> Received | None:
        """The next request, when all of it is there; Malformed where it is none, or too large."""
        if self._head is None:
            self._head = self._read_head()
            if self._head is None:
                return None
            self._asks = first(self._head.headers, "expect") is not None
        head = self._head
        done = self._read_length(head.length) if head.length is not None else self._read_chunks()
        if not done:
            return None
        request = Request(head.method, head.target, head.headers, bytes(self._body))
        self._head, self._part, self._trailer, self._asks = None, "size", 0, False
        self._body = bytearray()
        return Received(request, head.keep, head.chunks)

    def _read_head(self) -> _Head | None:
        buffer, limit = self._buffer, self._limits.head
        while buffer.startswith(b"\r\n"):  # some clients end a body with a line of its own
            del buffer[:2]
        end = buffer.find(b"\r\n\r\n", max(0, self._searched - 3), limit)
        if end < 0:
            if len(buffer) >= limit:
                raise Malformed(431, f"the head of a request is longer than {limit} bytes")
            self._searched = len(buffer)
            return None
        lines = bytes(buffer[:end]).split(b"\r\n")
        del buffer[: end + 4]
        self._searched = 0
        if len(lines) - 1 > self._limits.lines:
            raise Malformed(431, f"a request has more than {self._limits.lines} header lines")
        return _head_of(lines, self._limits.body)

    def _read_length(self, length: int) -> bool:
        if len(self._buffer) < length:
            return False
        self._body += self._buffer[:length]
        del self._buffer[:length]
        return True

    def _read_chunks(self) -> bool:
        while True:
            if self._part == "data":
                if not self._read_data():
                    return False
                continue
            line = self._line()
            if line is None:
                return False
            if self._part == "trailer":
                if not line:
                    return True
                self._trailer += len(line)
                if self._trailer > self._limits.head:
                    raise Malformed(431, "the lines behind a body are longer than a head may be")
                continue
            self._begin_chunk(line)

    def _begin_chunk(self, line: bytes) -> None:
        found = _SIZE.fullmatch(line)
        if found is None:
            raise Malformed(400, f"a chunk begins with a line of {len(line)} bytes that is no size")
        size = int(found[1], 16)
        if len(self._body) + size > self._limits.body:
            raise Malformed(413, f"a body is longer than {self._limits.body} bytes")
        self._part, self._left = ("data", size + 2) if size else ("trailer", 0)

    def _read_data(self) -> bool:
        """Read what there is of a chunk; True where that is all of it."""
        if self._left > 2:
            piece = self._buffer[: self._left - 2]
            self._body += piece
            self._left -= len(piece)
            del self._buffer[: len(piece)]
        if self._left > 2 or len(self._buffer) < 2:
            return False
        if not self._buffer.startswith(b"\r\n"):
            raise Malformed(400, "a chunk goes on behind its size; expected the end of a line")
        del self._buffer[:2]
        self._part = "size"
        return True

    def _line(self) -> bytes | None:
        end = self._buffer.find(b"\r\n", 0, _CHUNK_LINE)
        if end < 0:
            if len(self._buffer) >= _CHUNK_LINE:
                raise Malformed(400, f"a line of a body is longer than {_CHUNK_LINE} bytes")
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line


def _head_of(lines: list[bytes], limit: int) -> _Head:
    words = lines[0].split(b" ")
    if len(words) != 3 or not _TOKEN.fullmatch(words[0]) or not _TARGET.fullmatch(words[1]):
        raise Malformed(400, f"{_shown(words)}; expected POST /… HTTP/1.1")
    if words[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise Malformed(505, f"{_shown(words)} in another protocol; expected HTTP/1.1")
    modern = words[2] == b"HTTP/1.1"
    headers = tuple([_field(line, number) for number, line in enumerate(lines[1:], 1)])
    hosts = [value for name, value in headers if name == "host"]
    if len(hosts) > 1 or (modern and not hosts):
        raise Malformed(400, f"a request names {len(hosts)} hosts; expected one")
    expected = first(headers, "expect")
    if expected is not None and expected.lower() != "100-continue":
        raise Malformed(417, "a request has another expect than 100-continue; only that is known")
    connection = ",".join([value for name, value in headers if name == "connection"]).lower()
    keep = modern and "close" not in [word.strip() for word in connection.split(",")]
    length = _length(headers, limit, modern=modern)
    return _Head(words[0].decode(), words[1].decode(), headers, length, keep, modern)


def _field(line: bytes, number: int) -> tuple[str, str]:
    name, colon, value = line.partition(b":")
    if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
        named = colon and _TOKEN.fullmatch(name)
        where = f"the header {name[:60].decode()}" if named else f"line {number} of the headers"
        raise Malformed(400, f"{where} is no header line; expected name: value")
    return name.decode().lower(), value.strip(b" \t").decode("latin-1")


def _length(headers: Headers, limit: int, *, modern: bool) -> int | None:
    """How long the body is, None where it comes in chunks.

    What could be understood in two ways is refused: then nobody smuggles a request into a body.
    """
    lengths = [value for name, value in headers if name == "content-length"]
    codings = [value.lower() for name, value in headers if name == "transfer-encoding"]
    if codings:
        if codings != ["chunked"] or lengths or not modern:
            raise Malformed(400, "a body has another coding than chunked; only that is read")
        return None
    if not lengths:
        return 0
    if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
        raise Malformed(400, f"a body has {counted(len(lengths), 'length')}; expected one number")
    length = int(lengths[0])
    if length > limit:
        raise Malformed(413, f"a body of {length} bytes is longer than {limit}")
    return length


def _shown(words: list[bytes]) -> str:
    """How a request begins, by its method and path, without the query."""
    if len(words) < 2 or not _METHOD.fullmatch(words[0]) or not _TARGET.fullmatch(words[1]):
        return f"a request begins with a line of {counted(len(words), 'word')}"
    asked = Request(words[0].decode(), words[1].decode())
    return f"a request begins with {asked.method} {unquote(asked.path)[:60]!r}"


# --- answers

Body: TypeAlias = Literal["chunks", "close"] | int
"""How a client learns where a body ends: from its chunks, from the end of the connection, or from
its length.
"""


def head(status: int, headers: Headers, body: Body, *, keep: bool = True) -> bytes:
    r"""The head of an answer; ValueError where a header cannot be written.

    >>> head(200, (("content-type", "text/plain"),), 2)
    b'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\n'
    """
    known = status in HTTPStatus._value2member_map_
    phrase = HTTPStatus(status).phrase if known else ""
    more = []
    if body == "chunks":
        more.append(("transfer-encoding", "chunked"))
    elif body != "close" and first(headers, "content-length") is None:
        more.append(("content-length", str(body)))
    if not keep or body == "close":
        more.append(("connection", "close"))
    lines = [f"HTTP/1.1 {status} {phrase}".encode()]
    for name, value in (*headers, *more):
        spelled = value.encode("latin-1", "replace")
        if not _TOKEN.fullmatch(name.encode()) or not _VALUE.fullmatch(spelled):
            raise ValueError(f"the header {name!r} with {value!r} cannot be written")
        lines.append(name.encode() + b": " + spelled)
    return b"\r\n".join([*lines, b"", b""])


def chunk(data: bytes) -> bytes:
    r"""A chunk of a body.

    >>> chunk(b"data: 1\n\n")
    b'9\r\ndata: 1\n\n\r\n'
    """
    return b"%x\r\n%b\r\n" % (len(data), data)


def refusal(error: Malformed) -> bytes:
    """What is answered to bytes that are no request; the connection is to be closed after it."""
    response = json_response(error.status, {"error": {"message": str(error)}})
    first_part = head(response.status, response.headers, len(response.body), keep=False)
    return first_part + response.body


class Sending:
    """An answer as the bytes that go out, piece by piece: its head, then each chunk when it comes.

    Broken where the connection breaks: what came before has to go out, and then no end.
    """

    def __init__(self, exchange: Exchange, received: Received) -> None:
        self.frames = 0
        """How many chunks of the body were given."""
        self._exchange = exchange
        self._received = received
        self._chunks = exchange.streamed and received.chunks
        self._stage: Literal["head", "body", "over"] = "head"
        self._rest: list[bytes] = []
        self._broken: Broken | None = None

    @property
    def keep(self) -> bool:
        """Whether the connection can carry another request after this."""
        return self._received.keep

    def __aiter__(self) -> Sending:
        return self

    async def __anext__(self) -> bytes:
        """The next piece, when it comes."""
        if self._stage == "head":
            return await self._begin()
        if self._stage == "body":
            try:
                data = await self._exchange.__anext__()
            except StopAsyncIteration:
                self._stage = "over"
                if self._chunks:
                    return _END
                raise
            self.frames += 1
            return chunk(data) if self._chunks else data
        if self._rest:
            self.frames += 1
            return self._rest.pop(0)
        if self._broken is not None:
            raise self._broken
        raise StopAsyncIteration

    def ready(self) -> bytes | None:
        """The next piece where it is there already; None where only waiting tells."""
        data = self._exchange.ready() if self._stage == "body" else None
        if not data:
            if data is None:
                return None
            self._stage = "over"
            return _END if self._chunks else None
        self.frames += 1
        return chunk(data) if self._chunks else data

    async def _begin(self) -> bytes:
        exchange, bare = self._exchange, self._received.request.method == "HEAD"
        if exchange.streamed and not bare:
            self._stage = "body"
            return self._head("chunks" if self._chunks else "close")
        self._stage = "over"
        data = b""
        try:
            async for piece in exchange:
                data += piece
        except Broken as error:
            if not data and error.how != "torn":
                raise
            self._broken, self._rest = error, [data] if data else []
            return self._head(len(data) + 1)  # its end never comes
        self._rest = [data] if data and not bare else []
        return self._head(len(data))

    def _head(self, body: Body) -> bytes:
        return head(self._exchange.status, self._exchange.headers, body, keep=self.keep)
