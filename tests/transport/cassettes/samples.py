"""Interactions as recorders make them: for tests of what is kept of them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from harness.core.messages import Message, ModelRequest, Text, Thinking, ToolCall, Usage, user
from harness.core.reply import ReplyDone, ReplyPart, TextDelta, ThinkingDelta, UsageReport
from harness.transport.cassettes.bodies import compact
from harness.transport.cassettes.form import Cassette, Chunk, Interaction
from harness.wire import CODECS, codec_for
from harness.wire.codec import Answer, Asked, Codec
from harness.wire.http import Request

MILLISECOND = 1_000_000
CODEC_NAMES = [codec.name for codec in CODECS]
BASE = "http://127.0.0.1:8080"
SAID = Message(
    "assistant",
    (
        Thinking("Where?", "c2ln"),
        Text("Let me see."),
        ToolCall("call_1", "weather", {"at": "Zürich"}),
        ToolCall("call_2", "clock", {}),
    ),
)
PARTS: tuple[ReplyPart, ...] = (
    ThinkingDelta("Where?"),
    TextDelta("Let me "),
    TextDelta("see."),
    UsageReport(Usage(3, 4, 7)),
    ReplyDone(SAID),
)


def codec(name: str) -> Codec:
    return next(each for each in CODECS if each.name == name)


def asked(stream: bool = True) -> Asked:
    return Asked(ModelRequest("model-1", "Be brief.\nYes.", (user("Weather?"),)), stream=stream)


def ask(name: str, *, stream: bool = True) -> Request:
    """A request as SDKs send it: compact JSON."""
    request = compact(codec(name).write(asked(stream), base=BASE))
    return replace(request, headers=(("content-type", "application/json"), ("x-note", "1")))


def frames(name: str) -> list[bytes]:
    """The frames of a streamed reply with all kinds of parts."""
    encoder = codec(name).encoder(asked(), Answer(SAID, Usage(3, 4, 7), "calls", id="r1"))
    return [
        *(frame for part in PARTS for frame in encoder.part(part)),
        *encoder.end(),
    ]


def streamed(name: str, pieces: Sequence[bytes] | None = None) -> Interaction:
    """A streamed reply, a chunk a millisecond."""
    pieces = frames(name) if pieces is None else pieces
    return Interaction(
        request=ask(name),
        protocol=name,
        begun=5 * MILLISECOND,
        status=200,
        reason="OK",
        headers=(("content-type", codec(name).stream_type()), ("x-request-id", "r1")),
        chunks=tuple(Chunk((20 + n) * MILLISECOND, piece) for n, piece in enumerate(pieces)),
        head_at=20 * MILLISECOND,
        ended_at=900 * MILLISECOND,
    )


def whole(name: str = "openai_chat", body: bytes | None = None) -> Interaction:
    """A reply that is no stream."""
    response = codec(name).answer(asked(stream=False), Answer(SAID, id="r1"))
    body = response.body if body is None else body
    return Interaction(
        request=ask(name, stream=False),
        protocol=name,
        status=200,
        reason="OK",
        headers=(("content-type", "application/json"), ("content-length", str(len(body)))),
        chunks=(Chunk(30 * MILLISECOND, body),),
        head_at=30 * MILLISECOND,
        ended_at=31 * MILLISECOND,
    )


def get(url: str = f"{BASE}/v1/models", body: bytes = b"") -> Interaction:
    """A request that is of no protocol, and its answer."""
    request = Request("GET", url)
    assert codec_for(request) is None
    chunks = (Chunk(MILLISECOND, body),) if body else ()
    return Interaction(
        request=request, status=200, chunks=chunks, head_at=MILLISECOND, ended_at=MILLISECOND
    )


REFUSED = Interaction(
    request=ask("anthropic"), protocol="anthropic", begun=0, ended="refused", ended_at=1000
)


def cassette(*interactions: Interaction) -> Cassette:
    return Cassette(interactions=interactions, source="a fake provider")
