"""Interactions read from the values of a cassette's file, ours and those of plain vcrpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from harness.core.json_text import Json, dumps_in_order
from harness.core.located import ListNode, MapNode, Node, Scalar, plain
from harness.transport.cassettes.bodies import compact, text_or_bytes
from harness.transport.cassettes.decoding import Codings
from harness.transport.cassettes.form import Chunk, Ended, Interaction
from harness.transport.cassettes.found import Found
from harness.transport.cassettes.view import WORDS, said
from harness.transport.rules import Rules, no_expression
from harness.wire import CODECS, codec_for
from harness.wire.http import Headers, Request, first

ANSWERED: Final[tuple[Ended, ...]] = ("complete", "torn", "reset", "timeout", "cancelled")
"""How an interaction can end that has an answer."""
LOST: Final[tuple[Ended, ...]] = ("refused", "dropped", "reset", "timeout", "cancelled", "torn")
"""How one can end that has none."""

_HARNESS = ("protocol", "begun", "head", "ended", "took", "chunks")
_HARNESS_OF_LOST = ("protocol", "begun", "ended", "took")
_ROW = ("at", "bytes", *WORDS)


def entry(found: Found) -> Interaction:
    """An interaction with an answer; Wrong where it is not one."""
    if not found["request"].there and not found["response"].there:
        raise found.refused("expected a mapping with the keys request and response")
    response = found["response"]
    if not response.there:
        raise found.refused(
            f"has a request and no response{found.meant('response')}; record it again, or remove "
            "the request"
        )
    ours = response["harness"].there
    request = _request(found, ours=ours)
    if not ours:
        return _foreign(request, response, found.place.line)
    given = _answered(request, response, found.place.line)
    _check_views(given, response["harness"]["chunks"])
    return given


def remembered(found: Found) -> Interaction:
    """The same from what vcrpy holds in memory, where one without an answer has nothing but ours in
    its response.
    """
    response = found["response"]
    if response["harness"].there and not response["status"].there:
        return _unanswered(found, response["harness"])
    return entry(found)


def lost(found: Found) -> tuple[int, Interaction]:
    """An interaction without an answer, and its place in the order of all."""
    found.only(("at", "request", "harness"))
    return found["at"].whole(0, 100_000_000), _unanswered(found, found["harness"])


def _unanswered(found: Found, harness: Found) -> Interaction:
    request = _request(found, ours=True)
    harness.only(_HARNESS_OF_LOST)
    return Interaction(
        request=request,
        protocol=_protocol(harness, request),
        begun=harness["begun"].seconds(),
        ended=harness["ended"].word(LOST, "ending without an answer"),
        ended_at=harness["took"].seconds(),
        line=found.place.line,
    )


def rules(found: Found) -> Rules:
    """What users added to the rules."""
    found.only(_READERS)
    entries = found.mapping().entries
    return Rules(**{key: tuple(map(_READERS[key], found[key].items())) for key in entries})


def _pattern(found: Found) -> str:
    """A text that is a regular expression."""
    text = found.text()
    if why := no_expression(text):
        raise found.refused(f"expected a regular expression, found {text!r}, which is none: {why}")
    return text


_READERS: Final[dict[str, Callable[[Found], str]]] = {
    "ignore": Found.text,
    "volatile": _pattern,
    "names": Found.text,
    "harmless": Found.text,
    "patterns": _pattern,
}
"""The rules that stand in files, and what reads each."""


def _request(interaction: Found, *, ours: bool) -> Request:
    found = interaction["request"]
    if not found.there:
        raise found.refused(
            f"is missing{interaction.meant('request')}; expected a mapping with method, uri, "
            "headers and body"
        )
    method, url = found["method"].text(), found["uri"].text()
    # who takes JSON apart to store it calls it so
    body = _body(found["body" if found["body"].there else "parsed_body"])
    request = Request(method, url, _headers(found["headers"]), body)
    return compact(request) if ours else request


def _headers(found: Found) -> Headers:
    if not found.there:
        return ()
    pairs: list[tuple[str, str]] = []
    for name in found.mapping().entries:
        member = found[name]
        many = member.items() if isinstance(member.node, ListNode) else [member]
        pairs += [(name.lower(), each.text()) for each in many]
    return tuple(pairs)


def _body(found: Found) -> bytes:
    """A body: text, bytes, pieces of them, nothing; other values are those of JSON."""
    match found.node:
        case None | Scalar(value=None):
            return b""
        case ListNode(items=items) if all(_is_piece(item) for item in items):
            return b"".join(_body(each) for each in found.items())
        case Scalar(value=str(text)):
            return text.encode("utf-8", "surrogatepass")
        case Scalar(value=bytes(data)):
            return data
        case _ as node:
            try:
                return dumps_in_order(_json(node)).encode()
            except ValueError:
                raise found.wrong("a text, bytes, or what JSON can say") from None


def _json(node: Node) -> Json:
    """The JSON value of a node, bytes in it as a text of Latin-1."""
    match node:
        case ListNode(items=items):
            return [_json(item) for item in items]
        case MapNode(entries=entries):
            return {key: _json(entry.value) for key, entry in entries.items()}
        case Scalar(value=bytes(data)):
            return data.decode("latin-1")
        case Scalar(value=value):
            return value


def _is_piece(node: Node) -> bool:
    return isinstance(node, Scalar) and isinstance(node.value, str | bytes)


def _foreign(request: Request, response: Found, line: int) -> Interaction:
    """An interaction that plain vcrpy wrote: all of the answer comes at once."""
    old = "status_code" in response.mapping().entries  # of httpx, before vcrpy 2
    body = _body(response["content"] if old else _string(response))
    code = response["status_code"] if old else response["status"]["code"]
    status = code.whole(100, 999)
    reason = "" if old else _reason(response["status"])
    headers, body = _undone(_headers(response["headers"]), body)
    codec = codec_for(request)
    return Interaction(
        request=request,
        protocol=codec.name if codec else "",
        status=status,
        reason=reason,
        headers=headers,
        chunks=(Chunk(0, body),) if body else (),
        line=line,
    )


def _string(response: Found) -> Found:
    """The body of an answer, which stands below another key."""
    body = response["body"]
    if not body.there:
        return response["parsed_body"]
    return body["string"] if isinstance(body.node, MapNode) else body


def _reason(status: Found) -> str:
    return status["message"].text() if status["message"].there else ""


def _undone(headers: Headers, body: bytes) -> tuple[Headers, bytes]:
    """An answer without its content coding, where that can be undone. Some of vcrpy's stand-ins
    keep what a client has undone, and the header beside it: then it is text already.
    """
    coding = first(headers, "content-encoding")
    if coding is None or not body:
        return headers, body
    codings = Codings(coding)
    shown = codings.feed(body)
    if not codings.undone(whole=True):
        if isinstance(text_or_bytes(body), bytes):
            return headers, body
        shown = body
    kept = [
        (name, str(len(shown)) if name == "content-length" else value)
        for name, value in headers
        if name not in ("content-encoding", "transfer-encoding")
    ]
    return tuple(kept), shown


def _answered(request: Request, response: Found, line: int) -> Interaction:
    harness = response["harness"]
    harness.only(_HARNESS)
    head = harness["head"].seconds()
    took = harness["took"]
    rows = harness["chunks"]
    chunks = _chunks(rows, _body(_string(response)), head)
    last = chunks[-1].at if chunks else head
    if took.seconds() < last:
        raise took.refused(
            f"found {_shown(took.seconds())}, which is before what came last, at {_shown(last)}; "
            "times count from when the request went out, and none is before the one above it"
        )
    return Interaction(
        request=request,
        protocol=_protocol(harness, request),
        begun=harness["begun"].seconds(),
        status=response["status"]["code"].whole(100, 999),
        reason=_reason(response["status"]),
        headers=_headers(response["headers"]),
        chunks=chunks,
        head_at=head,
        ended=harness["ended"].word(ANSWERED, "ending"),
        ended_at=took.seconds(),
        line=line,
    )


def _protocol(harness: Found, request: Request) -> str:
    """The protocol, which must be the one that the path is of."""
    found = harness["protocol"]
    if not found.there:
        return ""
    name = found.word([codec.name for codec in CODECS], "protocol")
    codec = codec_for(request)
    if codec is None or codec.name != name:
        said_by = f"one of {codec.name}" if codec else "of no protocol that is known"
        raise found.refused(
            f"found {name!r}, but {request.method} {request.path} is {said_by}; "
            "correct one of the two"
        )
    return name


def _chunks(rows: Found, body: bytes, head: int) -> tuple[Chunk, ...]:
    chunks: list[Chunk] = []
    start, before = 0, head
    for row in rows.items():
        row.only(_ROW)
        at, size = row["at"].seconds(), row["bytes"].whole(0, len(body) + 1_000_000_000)
        if at < before:
            raise row["at"].refused(
                f"found {_shown(at)}, which is before {_shown(before)}, when "
                + ("the chunk above it came" if chunks else "the head came")
                + "; chunks stand in the order in which they came"
            )
        chunks.append(Chunk(at, body[start : start + size]))
        start, before = start + size, at
    if start != len(body):
        raise rows.refused(
            f"their bytes add up to {start}, but the body has {len(body)}; where the body was "
            "changed by hand, change the chunks too, or remove the key harness of this response: "
            "then all of it comes at once"
        )
    return tuple(chunks)


def _check_views(given: Interaction, rows: Found) -> None:
    """Compare what the chunks are said to say with what they say."""
    assert isinstance(rows.node, ListNode)
    told = [row.entries for row in rows.node.items if isinstance(row, MapNode)]
    if all(len(entries) <= 2 for entries in told):
        return
    for at, (entries, view) in enumerate(zip(told, said(given), strict=True)):
        for word in WORDS:
            if word in entries and plain(entries[word].value) != view.get(word):
                raise rows.items()[at][word].refused(
                    _contradicts(plain(entries[word].value), view, word)
                )


def _contradicts(told: Json, view: dict[str, Json], word: str) -> str:
    says = f"say {view[word]!r}" if word in view else "say nothing of it"
    return (
        f"found {told!r}, but the bytes of the body {says}; the body counts: change it there, or "
        "remove what is said of this chunk"
    )


def _shown(nanoseconds: int) -> str:
    return f"{nanoseconds / 1_000_000_000:g}"
