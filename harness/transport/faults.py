"""What a scripted fault makes of an answer: pure functions of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from harness.core.durations import SECOND
from harness.core.json_plain import loads
from harness.fakes.script import Fault
from harness.fakes.wire_faults import (
    BadJson,
    BadUtf8,
    Comments,
    CutAt,
    CutLine,
    Dropped,
    EmptyChoices,
    ErrorFrame,
    Http,
    Incomplete,
    JsonError,
    NoIndex,
    OddIndex,
    Refused,
    RepeatedIds,
    Split,
)
from harness.transport.exchange import Broken
from harness.transport.framing import Framing
from harness.wire import sse
from harness.wire.codec import Codec, Failure
from harness.wire.http import Headers, Response, retry_after, should_retry
from harness.wire.writing import text_of

Alter = Callable[[bytes], Iterator[bytes]]
"""Makes of one frame those that go out in its place."""

BARE: Final = sse.frame('{"id": ""}')
"""The frame that is spoiled where no other would come."""


def response_of(codec: Codec, fault: Http | JsonError, now: float) -> Response:
    """What answers a request that fails; `now` is a second since 1970."""
    if isinstance(fault, JsonError):
        failure = Failure(500, fault.message, fault.kind, fault.code)
        return replace(codec.failure(failure), status=200)
    told = _told(fault, now)
    if fault.html:
        kind = (("content-type", "text/html; charset=utf-8"),)
        page = f"<html><body><h1>{fault.status}</h1><p>{fault.message}</p></body></html>\n"
        return Response(fault.status, (*kind, *told), page.encode())
    return codec.failure(Failure(fault.status, fault.message, fault.kind, fault.code, headers=told))


def _told(fault: Http, now: float) -> Headers:
    """What a client is told about asking again, and all else that the script says."""
    told: Headers = tuple(fault.headers.items())
    if fault.should_retry is not None:
        told = (*should_retry(fault.should_retry), *told)
    if fault.retry_after is not None:
        told = (*retry_after(fault.retry_after / SECOND, fault.retry_as, now=now), *told)
    return told


def failure_of(fault: Fault | None, message: str) -> Failure:
    """What a stream tells of that fails; `message` where the fault says no more than that."""
    match fault:
        case ErrorFrame(status=status, message=text, kind=kind, code=code):
            return Failure(status, text, kind, code)
        case _:
            return Failure(500, message, headers=should_retry(flag=False))


def broken_by(fault: Fault | None, message: str) -> Broken:
    """How the connection breaks."""
    match fault:
        case Refused():
            return Broken("refused", message)
        case Dropped():
            return Broken("dropped", message)
        case Incomplete() | CutAt(how="incomplete"):
            return Broken("torn", message)
        case _:
            return Broken("reset", message)


def spoiled(fault: BadJson | BadUtf8 | CutLine, frame: bytes) -> bytes:
    r"""A frame as the fault leaves it.

    >>> spoiled(BadJson(), b'data: {"a": "b"}\n\n'), spoiled(BadUtf8(), b'data: {"a": "b"}\n\n')
    (b'data: {"a": "b"\n\n', b'data: {"a": "\xffb"}\n\n')
    >>> spoiled(CutLine(), b'data: {"a": "b"}\n\n')
    b'data: {"a":'
    """
    match fault:
        case BadJson():
            before, _brace, after = frame.rpartition(b"}")
            return before + after
        case BadUtf8():
            at = frame.rfind(b'": "') + 4
            at = at if at >= 4 else frame.find(b"data:") + 5  # no text is in it
            return frame[:at] + b"\xff" + frame[at:]
        case _:
            return frame[: (frame.find(b"data:") + 5 + len(frame)) // 2]


def spoiled_body(fault: Fault | None, body: bytes) -> bytes:
    """A body that comes whole by its length, as the fault leaves it."""
    match fault:
        case BadJson():
            return body[:-1]
        case BadUtf8():
            # Outside of a text: a client that reads bad bytes all the same must not have a reply.
            return body[:-1] + b"\xff" + body[-1:]
        case CutAt(byte=byte):
            return body[:byte]
        case _:
            return body[: len(body) // 2]


def ends_cleanly(fault: Fault | None) -> bool:
    """Whether a body that the fault spoils has its end all the same."""
    match fault:
        case CutAt(how=how):
            return how == "end"
        case _:
            return isinstance(fault, BadJson | BadUtf8 | CutLine)


def flattened(frame: bytes) -> bytes:
    r"""A frame that tells of an error, whose words stand beside the frame's type.

    >>> flattened(b'data: {"type": "error", "error": {"code": "x", "message": "no"}}\n\n')
    b'data: {"code": "x", "message": "no", "type": "error"}\n\n'
    """
    told = _data_of(frame)
    if told is None or not isinstance(told.get("error"), dict):
        return frame
    return _framed(frame, told.pop("error") | told)


def framing_for(fault: Fault | None, framing: Framing) -> Framing:
    """How the frames of a reply with a fault reach the client."""
    match fault:
        case Comments():
            return replace(framing, comments=True)
        case Split(bytes=size):
            return replace(framing, size=size)
        case _:
            return framing


def altering(fault: Fault | None) -> Alter | None:
    """What alters each frame of a reply with a fault; None where nothing does."""
    match fault:
        case EmptyChoices():
            return _EmptyFirst()
        case RepeatedIds():
            return _OfCalls(_Repeating())
        case NoIndex():
            return _OfCalls(lambda fragment: fragment.pop("index", None))
        case OddIndex():
            return _OfCalls(_make_odd)
        case _:
            return None


class _EmptyFirst:
    """Writes a frame without choices or candidates before the first that has any."""

    def __init__(self) -> None:
        self._done = False

    def __call__(self, frame: bytes) -> Iterator[bytes]:
        told = None if self._done else _data_of(frame)
        if told is not None and told.keys() & {"choices", "candidates"}:
            self._done = True
            told.pop("candidates", None)
            if "choices" in told:
                told["choices"] = []
            yield _framed(frame, told)
        yield frame


class _OfCalls:
    """Alters each fragment of a call, in the one protocol whose chunks have some."""

    def __init__(self, alter: Callable[[dict[str, Any]], object]) -> None:
        self._alter = alter

    def __call__(self, frame: bytes) -> Iterator[bytes]:
        told = _data_of(frame)
        fragments = [] if told is None else list(_fragments(told))
        for fragment in fragments:
            self._alter(fragment)
        yield _framed(frame, told) if told is not None and fragments else frame


class _Repeating:
    """Puts the id and the name of a call in each of its fragments."""

    def __init__(self) -> None:
        self._heads: dict[int, tuple[str, str, str]] = {}

    def __call__(self, fragment: dict[str, Any]) -> None:
        kind = "custom" if "custom" in fragment else "function"
        if "id" in fragment:
            self._heads[fragment["index"]] = (fragment["id"], kind, fragment[kind]["name"])
            return
        call_id, kind, name = self._heads[fragment["index"]]
        fragment |= {"id": call_id, "type": kind, kind: {"name": name, **fragment[kind]}}


def _make_odd(fragment: dict[str, Any]) -> None:
    fragment["index"] = 2 * fragment["index"] + 1


def _fragments(told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for choice in told.get("choices", ()):
        yield from choice["delta"].get("tool_calls", ())


def _data_of(frame: bytes) -> dict[str, Any] | None:
    """The object that a frame holds; None where it holds none."""
    for line in frame.splitlines():
        if line.startswith(b"data: {"):
            told: dict[str, Any] = loads(line[6:].decode())
            return told
    return None


def _framed(like: bytes, told: dict[str, Any]) -> bytes:
    """A frame with this object that is otherwise like another."""
    event = like.partition(b"data:")[0].decode().removeprefix("event: ").strip() or None
    return sse.frame(text_of(told), event, end="\r\n" if b"\r\n" in like else "\n")
