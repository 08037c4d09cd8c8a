"""What a scripted fault does to an answer, as the decoder of each protocol reads it.

The client here is our own; tests/transport/test_fault_matrix.py has the vendors' libraries.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.choices import Choices, choices_from
from harness.core.durations import SECOND
from harness.core.events import FaultInjected, ReplyEnded
from harness.core.json_text import loads
from harness.core.messages import ModelRequest, Usage, user
from harness.fakes.model import FakeModel
from harness.fakes.script import (
    DoneTwice,
    Fault,
    GenerateFails,
    LateThinking,
    Reply,
    ScriptedCall,
    StreamFails,
    Torn,
)
from harness.fakes.wire_faults import (
    SEARCHED,
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
    Reset,
    Split,
    Stall,
)
from harness.transport.exchange import Broken
from harness.transport.faults import flattened, spoiled
from harness.transport.framing import PLAIN, Framing
from harness.transport.provider import Provider
from harness.wire import CODECS
from harness.wire.codec import Answer, Asked, Codec, Garbled, ProviderError, Truncated
from harness.wire.http import Headers, Request, Response, first
from harness.wire.writing import bytes_of
from tests.transport.sdks import World, world

FULL = Reply(
    say="Let me see, ü.",
    think="Two tools.",
    signature="c2ln",
    calls=(ScriptedCall("weather", {"city": "Rome"}), ScriptedCall("clock", {"zone": "UTC"})),
    usage=Usage(10, 5, 15),
    chunk=5,
)
SAID = Reply("abcdef", chunk=2)
SHORT = Reply("aü")
MODELS = {
    "openai_chat": "gpt-x",
    "openai_responses": "gpt-x",
    "anthropic": "claude-x",
    "gemini": "gemini-x",
}
CHAT = next(codec for codec in CODECS if codec.name == "openai_chat")


class Got(NamedTuple):
    """What came of a request."""

    status: int
    headers: Headers
    chunks: list[bytes]
    broken: str | None

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)


def asking(codec: Codec, *, stream: bool = True) -> Request:
    asked = Asked(ModelRequest(MODELS[codec.name], "", (user("Go"),)), stream)
    return codec.write(asked, base="http://provider.test", key="k")


async def fetch(world: World, request: Request) -> Got:
    chunks: list[bytes] = []
    try:
        exchange = await world.provider.answer(request)
    except Broken as error:
        return Got(0, (), chunks, error.how)
    broken = None
    try:
        coming = aiter(exchange)
        while (chunk := await anext(coming, None)) is not None:
            chunks.append(chunk)
    except Broken as error:
        broken = error.how
    await exchange.aclose()
    return Got(exchange.status, exchange.headers, chunks, broken)


def read(codec: Codec, got: Got) -> Answer:
    """What a client of a protocol makes of it; raises what tells it that something is wrong."""
    kind = first(got.headers, "content-type") or ""
    if not kind.startswith("text/event-stream"):
        if got.broken is not None:
            raise ConnectionError(got.broken)
        return codec.read_answer(Response(got.status, got.headers, got.body))
    decoder = codec.decoder()
    for chunk in got.chunks:
        decoder.feed(chunk)
    if got.broken is not None:
        raise ConnectionError(got.broken)
    return decoder.end()


def play(
    reply: Reply,
    codec: Codec = CHAT,
    *,
    stream: bool = True,
    framing: Framing = PLAIN,
    choices: Choices | None = None,
) -> tuple[Got, list[Any]]:
    """One request for a reply, and the faults and ends that the trace has of it."""
    with world(reply, framing=framing) as at:
        if choices is not None:
            model = FakeModel(at.stage, at.recorder, choices, search=SEARCHED)
            at.provider = Provider(at.stage, model, lambda: 1_700_000_000)
        got = at.run(fetch(at, asking(codec, stream=stream)))
        events = [each.event for each in at.recorder.trace()]
    return got, [each for each in events if isinstance(each, FaultInjected | ReplyEnded)]


def ends(events: list[Any]) -> list[str]:
    return [each.fault if isinstance(each, FaultInjected) else each.end for each in events]


def faulty(fault: Fault, reply: Reply = SAID) -> Reply:
    return Reply(
        reply.say,
        reply.think,
        reply.signature,
        reply.calls,
        reply.usage,
        reply.chunk,
        fault=fault,
    )


BY_CODEC = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)

STREAMED: list[tuple[Fault, type[Exception], str | None, str]] = [
    (Incomplete(1), ConnectionError, "torn", "failed"),
    (Incomplete(4), ConnectionError, "torn", "failed"),
    (Reset(1), ConnectionError, "reset", "failed"),
    (StreamFails(1), ConnectionError, "reset", "failed"),
    (Torn(1), Truncated, None, "torn"),
    (CutLine(0), Garbled, None, "torn"),
    (CutLine(1), Garbled, None, "torn"),
    (CutLine(3), Garbled, None, "torn"),
    (ErrorFrame(1), ProviderError, None, "failed"),
    (ErrorFrame(0), ProviderError, None, "failed"),
    (StreamFails(1, reported=True), ProviderError, None, "failed"),
    (BadJson(0), Garbled, None, "failed"),
    (BadJson(1), Garbled, None, "failed"),
    (BadJson(3), Garbled, None, "failed"),
    (CutAt(40), Garbled, None, "torn"),
    (CutAt(40, "incomplete"), ConnectionError, "torn", "failed"),
    (CutAt(0, "reset"), ConnectionError, "reset", "failed"),
    (JsonError(), ProviderError, None, "failed"),
    (Http(503), ProviderError, None, "failed"),
    (GenerateFails(), ProviderError, None, "failed"),
]


@pytest.mark.parametrize(
    ("fault", "error", "broken", "end"),
    STREAMED,
    ids=[str(fault) for fault, *_rest in STREAMED],
)
@BY_CODEC
def test_a_streamed_reply(
    codec: Codec, fault: Fault, error: type[Exception], broken: str | None, end: str
) -> None:
    got, events = play(faulty(fault), codec)
    assert got.broken == broken
    assert ends(events) == [str(fault.__struct_config__.tag), end]
    with pytest.raises(error):
        read(codec, got)


@BY_CODEC
@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_byte_that_is_no_utf8(codec: Codec, after: int) -> None:
    got, events = play(faulty(BadUtf8(after)), codec)
    assert b"\xff" in got.body
    assert ends(events) == ["bad_utf8", "failed"]
    with pytest.raises(Garbled):
        read(codec, got)


@BY_CODEC
def test_a_connection_may_break_behind_the_end_signal(codec: Codec) -> None:
    whole, _events = play(SAID, codec)
    got, events = play(faulty(Reset(4)), codec)
    assert got.broken == "reset"
    assert whole.body.startswith(got.body)
    assert ends(events) == ["reset", "failed"]
    assert events[1].message is not None
    told, events = play(faulty(StreamFails(4, reported=True)), codec)
    assert told.broken is None
    assert ends(events) == ["stream_fails", "failed"]


@pytest.mark.parametrize("fault", [DoneTwice(), LateThinking()], ids=str)
def test_what_comes_behind_the_end_signal_cannot_be_said_over_http(fault: Fault) -> None:
    got, events = play(faulty(fault))
    assert read(CHAT, got).message.text == "abcdef"
    assert ends(events) == ["complete"]


@BY_CODEC
@pytest.mark.parametrize("fault", [Refused(), Dropped()], ids=str)
@pytest.mark.parametrize("stream", [True, False])
def test_no_answer_at_all(codec: Codec, fault: Fault, stream: bool) -> None:
    got, events = play(faulty(fault), codec, stream=stream)
    name = str(fault.__struct_config__.tag)
    assert (got.status, got.chunks, got.broken) == (0, [], name)
    assert ends(events) == [name, "failed"]


AT_ONCE: list[tuple[Fault, type[Exception], str | None]] = [
    (Incomplete(1), ConnectionError, "torn"),
    (Reset(0), ConnectionError, "reset"),
    (StreamFails(2), ConnectionError, "reset"),
    (Torn(1), ConnectionError, "dropped"),
    (CutLine(1), Garbled, None),
    (BadJson(1), Garbled, None),
    (BadUtf8(1), Garbled, None),
    (CutAt(40), Garbled, None),
    (CutAt(0), Garbled, None),
    (CutAt(40, "incomplete"), ConnectionError, "torn"),
    (CutAt(40, "reset"), ConnectionError, "reset"),
    (ErrorFrame(1), ProviderError, None),
    (StreamFails(1, reported=True), ProviderError, None),
    (JsonError(), ProviderError, None),
    (Http(500), ProviderError, None),
]


@pytest.mark.parametrize(
    ("fault", "error", "broken"), AT_ONCE, ids=[str(fault) for fault, *_rest in AT_ONCE]
)
@BY_CODEC
def test_a_reply_that_is_not_streamed(
    codec: Codec, fault: Fault, error: type[Exception], broken: str | None
) -> None:
    got, events = play(faulty(fault), codec, stream=False)
    assert got.broken == broken
    torn = isinstance(fault, Torn | CutLine) or (isinstance(fault, CutAt) and broken is None)
    name = str(fault.__struct_config__.tag)
    assert ends(events) == [name, "torn" if torn else "failed"]
    with pytest.raises(error):
        read(codec, got)


@BY_CODEC
def test_a_body_with_a_bad_byte_is_no_reply_for_those_who_read_it_all_the_same(
    codec: Codec,
) -> None:
    got, _events = play(faulty(BadUtf8(1)), codec, stream=False)
    with pytest.raises(UnicodeDecodeError):
        got.body.decode()
    with pytest.raises(ValueError, match="delimiter"):
        json.loads(got.body.decode(errors="replace"))


@pytest.mark.parametrize("stream", [True, False])
def test_a_cut_behind_the_last_byte_never_happens(stream: bool) -> None:
    whole, _events = play(SAID, stream=stream)
    got, events = play(faulty(CutAt(len(whole.body))), stream=stream)
    assert got.body == whole.body
    assert ends(events) == ["complete"]


def test_a_cut_behind_the_end_signal_leaves_the_reply_complete() -> None:
    whole, _events = play(SAID)
    got, events = play(faulty(CutAt(len(whole.body) - 1, "reset")))
    assert got.broken == "reset"
    assert ends(events) == ["complete", "cut_at"]


HARMLESS = [
    Comments(),
    Split(1),
    Split(7),
    EmptyChoices(),
    RepeatedIds(),
    NoIndex(),
    OddIndex(),
    Stall(),
]


@BY_CODEC
@pytest.mark.parametrize("fault", HARMLESS, ids=str)
def test_what_does_no_harm(codec: Codec, fault: Fault) -> None:
    plain, _events = play(FULL, codec)
    got, events = play(faulty(fault, FULL), codec)
    assert read(codec, got) == read(codec, plain)
    assert ends(events) == [str(fault.__struct_config__.tag), "complete"]
    alters = isinstance(fault, RepeatedIds | NoIndex | OddIndex)
    empties = isinstance(fault, EmptyChoices)
    if (alters and codec is CHAT) or (empties and codec.name in ("openai_chat", "gemini")):
        assert got.body != plain.body
    elif alters or empties:
        assert got.body == plain.body
    at_once, events = play(faulty(fault, FULL), codec, stream=False)
    assert at_once.body == play(FULL, codec, stream=False)[0].body
    assert ends(events) == [str(fault.__struct_config__.tag), "complete"]


def fragments(fault: Fault) -> list[dict[str, Any]]:
    got, _events = play(faulty(fault, FULL))
    told = [line[6:] for line in got.body.decode().split("\n\n") if line.startswith("data: {")]
    choices = [choice for each in told for choice in loads(each)["choices"]]
    return [call for choice in choices for call in choice["delta"].get("tool_calls", ())]


def test_fragments_of_calls_as_compatible_servers_have_them() -> None:
    assert {each.get("index") for each in fragments(NoIndex())} == {None}
    assert {each["index"] for each in fragments(OddIndex())} == {1, 3}
    repeated = fragments(RepeatedIds())
    assert {(each["id"], each["function"]["name"]) for each in repeated} == {
        ("call_1_1_1", "weather"),
        ("call_1_1_2", "clock"),
    }
    assert len(repeated) > 2


def test_ids_of_custom_tools_are_repeated_too() -> None:
    body = {
        "model": "gpt-x",
        "messages": [{"role": "user", "content": "Go"}],
        "stream": True,
        "tools": [{"type": "custom", "custom": {"name": "sh"}}],
    }
    request = Request("POST", "/v1/chat/completions", (), bytes_of(body))
    reply = Reply(calls=(ScriptedCall("sh", "ls -l"),), fault=RepeatedIds(), chunk=2)
    with world(reply) as at:
        got = at.run(fetch(at, request))
    assert got.body.count(b'"id": "call_1_1_1"') > 2
    assert read(CHAT, got).message.calls[0].name == "sh"


def test_pieces_have_the_size_that_the_script_says() -> None:
    got, _events = play(faulty(Split(3)), framing=Framing(None))
    assert {len(chunk) for chunk in got.chunks} <= {1, 2, 3}


def test_a_reply_in_one_chunk_comes_before_its_connection_breaks() -> None:
    got, _events = play(faulty(Reset(2)), framing=Framing(None))
    assert len(got.chunks) == 1
    assert b'"ab"' in got.body
    assert b'"ef"' not in got.body
    assert got.broken == "reset"
    late, _events = play(faulty(Reset(4)), framing=Framing(None))
    assert len(late.chunks) == 1
    assert late.broken == "reset"


def test_a_stall_takes_its_time_once() -> None:
    with world(faulty(Stall(1, 30 * SECOND))) as at:
        got = at.run(fetch(at, asking(CHAT)))
        assert at.kernel.now() == 30 * SECOND
        assert read(CHAT, got).message.text == "abcdef"


HTTP: list[tuple[Http, dict[str, str]]] = [
    (Http(retry_after=2 * SECOND), {"retry-after": "2"}),
    (Http(retry_after=SECOND // 2, retry_as="milliseconds"), {"retry-after-ms": "500"}),
    (
        Http(retry_after=SECOND, retry_as="date"),
        {"retry-after": "Tue, 14 Nov 2023 22:13:21 GMT"},
    ),
    (Http(400, should_retry=True), {"x-should-retry": "true"}),
    (Http(500, should_retry=False), {"x-should-retry": "false"}),
    (Http(500, headers={"x-more": "1"}), {"x-more": "1"}),
]


@BY_CODEC
@pytest.mark.parametrize(("fault", "told"), HTTP, ids=[str(fault) for fault, _told in HTTP])
def test_a_status_with_what_is_told_about_asking_again(
    codec: Codec, fault: Http, told: dict[str, str]
) -> None:
    got, events = play(faulty(fault), codec)
    assert got.status == fault.status
    assert told.items() <= dict(got.headers).items()
    assert fault.message.encode() in got.body
    assert events[0] == FaultInjected(
        "http", "1.1", fault.status, fault.retry_after, fault.should_retry
    )


def test_the_words_of_an_error_are_the_scripts() -> None:
    got, _events = play(faulty(Http(429, "no more", "tokens", "quota")))
    with pytest.raises(ProviderError) as told:
        read(CHAT, got)
    failure = told.value.failure
    assert (failure.kind, failure.code, failure.message) == ("tokens", "quota", "no more")
    got, _events = play(faulty(ErrorFrame(1, "no more", "tokens", "quota")))
    with pytest.raises(ProviderError) as told:
        read(CHAT, got)
    failure = told.value.failure
    assert (failure.kind, failure.code, failure.message) == ("tokens", "quota", "no more")


def test_a_page_in_place_of_an_error() -> None:
    got, _events = play(faulty(Http(502, "bad gateway", html=True)))
    assert first(got.headers, "content-type") == "text/html; charset=utf-8"
    assert b"<h1>502</h1><p>bad gateway</p>" in got.body


def test_a_frame_without_a_text_is_spoiled_too() -> None:
    assert spoiled(BadUtf8(), b"data: [1]\n\n") == b"data:\xff [1]\n\n"


def test_an_error_frame_may_be_flat() -> None:
    responses = next(codec for codec in CODECS if codec.name == "openai_responses")
    nested, _events = play(faulty(ErrorFrame(1)), responses)
    flat, _events = play(faulty(ErrorFrame(1, flat=True)), responses)
    assert b'"error": {' in nested.body
    assert b'"error": {' not in flat.body
    assert b'"message": "the model is overloaded"' in flat.body
    with pytest.raises(ProviderError):
        read(responses, flat)
    assert flattened(b"data: [DONE]\n\n") == b"data: [DONE]\n\n"


@pytest.mark.parametrize("fault", [Http(), Reset(1), JsonError(), Refused()], ids=str)
def test_who_asks_again_gets_the_whole_reply(fault: Fault) -> None:
    with world(faulty(fault)) as at:
        at.run(fetch(at, asking(CHAT)))
        got = at.run(fetch(at, asking(CHAT)))
        assert read(CHAT, got).message.text == "abcdef"


STOPS = {
    "openai_chat": {"length": "length", "filtered": "content_filter", "refused": "stop"},
    "openai_responses": {"length": "max_output_tokens", "filtered": "content_filter"},
    "anthropic": {"length": "max_tokens", "refused": "refusal", "paused": "pause_turn"},
    "gemini": {"length": "MAX_TOKENS", "filtered": "SAFETY"},
}


@BY_CODEC
@pytest.mark.parametrize("stream", [True, False])
def test_why_the_model_stopped(codec: Codec, stream: bool) -> None:
    for stop, word in STOPS[codec.name].items():
        reply = Reply("abc", stop=stop)  # type: ignore[arg-type]
        got, events = play(reply, codec, stream=stream)
        assert f'"{word}"'.encode() in got.body
        cut_off = stop in ("length", "filtered")
        assert ends(events) == ["torn" if cut_off else "complete"]
        if cut_off:
            assert events[0].error == f"the model was cut off: {stop}"
            assert read(codec, got).stopped == stop


@BY_CODEC
@pytest.mark.parametrize("stream", [True, False])
def test_a_reply_that_is_cut_off_shows_its_calls(codec: Codec, stream: bool) -> None:
    reply = Reply(calls=(ScriptedCall("clock", {"zone": "UTC"}),), stop="length")
    _got, events = play(reply, codec, stream=stream)
    assert ends(events) == ["torn"]
    assert [call.name for call in events[0].message.calls] == ["clock"], "an agent may run them"


@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "anthropic"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_refusal_is_said(name: str, stream: bool) -> None:
    codec = next(codec for codec in CODECS if codec.name == name)
    got, events = play(Reply(refusal="I would rather not."), codec, stream=stream)
    answer = read(codec, got)
    assert (answer.stopped, answer.refusal) == ("refused", "I would rather not.")
    assert ends(events) == ["complete"]


# --- laws


@BY_CODEC
def test_a_search_splits_a_stream_as_it_likes(codec: Codec) -> None:
    plain, _events = play(FULL, codec)
    sizes = []
    for way in range(1, 4):
        choices = choices_from({("chunking", "wire 1.1"): (way, 4)})
        got, _events = play(FULL, codec, choices=choices)
        assert got.body == plain.body
        sizes.append(max(map(len, got.chunks)))
    assert sizes == [1, 7, len(plain.body)]


@BY_CODEC
def test_a_search_adds_faults_by_itself(codec: Codec) -> None:
    for way, fault in enumerate(SEARCHED, 1):
        choices = choices_from({("fault", "1.1"): (way, len(SEARCHED) + 1)})
        got, events = play(SAID, codec, choices=choices)
        same, told = play(faulty(fault), codec)
        assert got.chunks == same.chunks
        assert (got.status, got.broken, events) == (same.status, same.broken, told)


def test_a_search_adds_no_fault_to_one_of_the_script() -> None:
    choices = Choices(picker=lambda source, _label, _bound: int(source == "fault"))
    _got, events = play(faulty(Reset(1)), choices=choices)
    assert ends(events) == ["reset", "failed"]


@BY_CODEC
@given(sizes=st.lists(st.integers(1, 60), max_size=40))
def test_any_split_gives_the_same_reply(codec: Codec, sizes: list[int]) -> None:
    body, expected = WHOLE[codec.name]
    decoder, parts, at = codec.decoder(), [], 0
    for size in [*sizes, len(body)]:
        parts += decoder.feed(body[at : at + size])
        at += size
    assert decoder.end() == expected[0]
    assert parts == expected[1]


@BY_CODEC
@pytest.mark.parametrize("how", ["end", "incomplete", "reset"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_cut_at_any_byte_gives_the_whole_reply_or_an_error(
    codec: Codec, how: Any, stream: bool
) -> None:
    whole, _events = play(SHORT, codec, stream=stream)
    expected = read(codec, whole)
    outcomes = set()
    for byte in range(0, len(whole.body) + 1, 1 if how == "end" else 29):
        got, events = play(faulty(CutAt(byte, how), SHORT), codec, stream=stream)
        assert got.body == whole.body[:byte]
        try:
            assert read(codec, got) == expected
        except (Garbled, ProviderError, ConnectionError) as error:
            assert ends(events)[-1] != "complete"
            outcomes.add(type(error))
        else:
            outcomes.add(None)
            assert "complete" in ends(events)
    assert len(outcomes) > 1 or how != "end"


def _whole(codec: Codec) -> tuple[bytes, tuple[Answer, list[Any]]]:
    got, _events = play(FULL, codec)
    decoder = codec.decoder()
    parts = decoder.feed(got.body)
    return got.body, (decoder.end(), parts)


WHOLE = {codec.name: _whole(codec) for codec in CODECS}
