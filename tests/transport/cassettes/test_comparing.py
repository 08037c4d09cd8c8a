"""Two cassettes, compared by what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from harness.core.json_plain import dumps
from harness.core.messages import Message, ModelRequest, Text, Thinking, ToolCall, Usage, user
from harness.core.reply import ReplyDone, ReplyPart, TextDelta, ThinkingDelta
from harness.transport.cassettes import comparing
from harness.transport.cassettes.comparing import Comparison, compare
from harness.transport.cassettes.differing import FILES
from harness.transport.cassettes.form import Cassette, Chunk, Interaction
from harness.transport.rules import NO_RULES, Rules
from harness.wire import CODECS
from harness.wire.codec import Answer, Asked, Codec, Failure, Stopped, whole
from harness.wire.http import Request

BY_NAME = {codec.name: codec for codec in CODECS}
CHAT, RESPONSES = BY_NAME["openai_chat"], BY_NAME["openai_responses"]
EACH = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
WAYS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def recorded(
    text: str,
    said: str = "Sunny.",
    *,
    codec: Codec = CHAT,
    stream: bool = False,
    calls: Sequence[ToolCall] = (),
    thought: str = "",
    answer: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    **more: Any,
) -> Interaction:
    """A prompt and its reply."""
    asked = Asked(ModelRequest("m-3", "", (user(text),), max_tokens=9), stream, options or {})
    request = codec.write(asked, base="http://x.test")
    thinks = [Thinking(thought, "sig")] if thought else []
    message = Message("assistant", (*thinks, Text(said), *calls))
    stopped: Stopped = "calls" if calls else "end"
    given = replace(Answer(message, Usage(1, 2, 3), stopped, id="id_1"), **(answer or {}))
    made = Interaction(request=request, protocol=codec.name, status=200, **more)
    if not stream:
        response = codec.answer(asked, given)
        return replace(made, headers=response.headers, chunks=(Chunk(5, response.body),))
    encoder = codec.encoder(asked, given, cut=whole)
    parts: list[ReplyPart] = [
        *([ThinkingDelta(thought)] if thought else []),
        TextDelta(said),
        ReplyDone(message),
    ]
    frames = [frame for part in parts for frame in encoder.part(part)]
    frames += encoder.end()
    return replace(
        made,
        headers=(("content-type", codec.stream_type()),),
        chunks=tuple([Chunk(n, frame) for n, frame in enumerate(frames)]),
    )


def compared(
    one: Interaction | Sequence[Interaction],
    other: Interaction | Sequence[Interaction],
    rules: Rules = NO_RULES,
    **options: bool,
) -> Comparison:
    sides = [(each,) if isinstance(each, Interaction) else tuple(each) for each in (one, other)]
    old, new = [Cassette(interactions=side, rules=rules) for side in sides]
    return compare(old, new, **options)


@EACH
@WAYS
def test_what_a_client_hears_is_compared(codec: Codec, stream: bool) -> None:
    one = recorded("a", codec=codec, stream=stream)
    other = recorded("a", "Rainy.", codec=codec, stream=stream)
    assert compared(one, one) == Comparison((), 1)
    assert compared(one, other).text == (
        'interaction 1: reply: text: "[-Sunny-]." was recorded, "{+Rainy+}." came'
    )


@EACH
@WAYS
def test_names_of_replies_and_calls_and_signatures_do_not_count(codec: Codec, stream: bool) -> None:
    def saying(name: str, city: str = "Rome") -> Interaction:
        call = ToolCall(f"call_{name}", "weather", {"city": city})
        answer = {"id": f"id_{name}", "created": len(name), "model": name}
        return recorded("a", codec=codec, stream=stream, calls=[call], answer=answer)

    assert compared(saying("x"), saying("another")).changes == ()
    assert compared(saying("x"), saying("x", "Oslo")).text == (
        'interaction 1: reply: calls[0].arguments.city: "[-Rome-]" was recorded, "{+Oslo+}" came'
    )


@WAYS
@pytest.mark.parametrize("name", ["anthropic", "gemini", "openai_responses"])
def test_what_a_model_thinks_is_compared(name: str, stream: bool) -> None:
    one, other = [
        recorded("a", codec=BY_NAME[name], stream=stream, thought=each) for each in ("Hm.", "Oh.")
    ]
    said = 'interaction 1: reply: thinking: "[-Hm-]." was recorded, "{+Oh+}." came'
    assert compared(one, other).text == said


def test_why_a_model_stopped_and_what_it_refuses_is_compared() -> None:
    one = recorded("a")
    long = recorded("a", answer={"stopped": "length"})
    assert "stopped: " in compared(one, long).text
    refused = recorded("a", answer={"refusal": "No.", "stopped": "refused"})
    assert 'refusal: null was recorded, "No." came' in compared(one, refused).text


def test_what_was_counted_is_compared_where_it_is_asked_for() -> None:
    one, other = recorded("a"), recorded("a", answer={"usage": Usage(1, 7, 8)})
    assert compared(one, other).changes == ()
    assert (
        "usage.completion_tokens: 2 was recorded, 7 came" in compared(one, other, usage=True).text
    )


def test_times_and_chunks_are_compared_where_that_is_asked_for() -> None:
    one = recorded("a", stream=True, head_at=20_000_000, ended_at=3_000_000_000)
    other = replace(one, ended_at=4_000_000_000, begun=5, chunks=(Chunk(9, one.body),))
    assert compared(one, other).changes == ()
    assert compared(one, other, timing=True).text == (
        'interaction 1: reply: took: "[-3s-]" was recorded, "{+4s+}" came'
    )


@EACH
def test_failures_are_compared(codec: Codec) -> None:
    def failed(status: int, message: str = "Overloaded", code: str | None = None) -> Interaction:
        told = codec.failure(Failure(status, message, code=code))
        return replace(
            recorded("a", codec=codec),
            status=told.status,
            headers=told.headers,
            chunks=(Chunk(0, told.body),),
        )

    assert compared(failed(500), failed(500)).changes == ()
    said = compared(failed(500), failed(429, "Too many")).text
    assert "status: 500 was recorded, 429 came" in said
    assert 'failure.message: "[-Overloaded-]" was recorded, "{+Too many+}" came' in said
    assert "failure: only came: " in compared(recorded("a", codec=codec), failed(500)).text


def test_the_code_of_a_failure_is_no_secret() -> None:
    def failed(code: str) -> Interaction:
        told = CHAT.failure(Failure(400, "Bad", code=code))
        return replace(
            recorded("a"), status=400, headers=told.headers, chunks=(Chunk(0, told.body),)
        )

    said = compared(failed("too_long"), failed("not_found")).text
    assert 'failure.code: "[-too_long-]" was recorded, "{+not_found+}" came' in said


@pytest.mark.parametrize("ended", ["torn", "cancelled", "reset", "timeout"])
def test_a_stream_that_breaks_off_is_what_came_of_it(ended: Any) -> None:
    codec = BY_NAME["anthropic"]
    full = recorded("a", codec=codec, stream=True, thought="Hm.")
    torn = replace(full, chunks=full.chunks[:-3], ended=ended)
    assert compared(torn, torn).changes == ()
    said = compared(full, torn).text
    assert f'ended: "[-complete-]" was recorded, "{{+{ended}+}}" came' in said
    assert "stopped: only recorded" in said
    assert "text: " not in said
    assert "thinking: " not in said
    shorter = replace(torn, chunks=torn.chunks[:2])
    assert 'text: "[-Sunny.-]" was recorded, "" came' in compared(torn, shorter).text


def test_a_reply_that_is_none_is_told_as_such() -> None:
    good = recorded("a")
    bad = replace(good, chunks=(Chunk(0, b"<html>"),))
    assert "garbled: only came: " in compared(good, bad).text


def test_an_interaction_without_an_answer_is_how_it_ended() -> None:
    lost = [
        replace(recorded("a"), status=None, headers=(), chunks=(), ended=each)
        for each in ("refused", "dropped")
    ]
    assert compared(lost[0], lost[0]).changes == ()
    assert compared(lost[0], lost[1]).text == (
        'interaction 1: reply: ended: "[-refused-]" was recorded, "{+dropped+}" came'
    )


def test_what_is_of_no_protocol_is_compared_as_it_is() -> None:
    def plain(body: bytes) -> Interaction:
        request = Request("GET", "https://x.test/models")
        return Interaction(request=request, status=200, chunks=(Chunk(0, body),))

    assert compared(plain(b'{"a": 1.0}'), plain(b'{"a":1}')).changes == ()
    said = compared(plain(b'{"a": 1}'), plain(b'{"a": 2}')).text
    assert said == "interaction 1: reply: body.a: 1 was recorded, 2 came"
    assert (
        'body: "[-one-]" was recorded, "{+two+}" came'
        in compared(plain(b"one"), plain(b"two")).text
    )


# --- which belong together


def test_interactions_are_found_by_what_they_ask_in_any_order() -> None:
    one, two, three = recorded("one", "1"), recorded("two", "2"), recorded("three", "3")
    assert compared([one, two, three], [three, one, two]) == Comparison((), 3)
    again = recorded("one", "other")
    said = compared([one, again, two], [two, one, recorded("one", "changed")])
    assert said.text == ('interaction 2: reply: text: "[-other-]" was recorded, "{+changed+}" came')


def test_what_only_one_has_is_told() -> None:
    one = recorded("a")
    get = Interaction(request=Request("GET", "https://x.test/models?key=abc"), status=200)
    removed = compared([one, get], one)
    assert removed.text == "interaction 2 (GET /models): only recorded"
    assert [(each.what, each.recorded, each.found) for each in removed.changes] == [
        ("removed", 1, None)
    ]
    added = compared(one, [get, one])
    assert added.text == "interaction 1 of what came (GET /models): only came"
    files = compare(Cassette(interactions=(one,)), Cassette(interactions=(get, one)), words=FILES)
    assert files.text == "interaction 1 of the second file (GET /models): only after"
    assert [(each.what, each.recorded, each.found) for each in added.changes] == [
        ("added", None, 0)
    ]
    assert added.pairs == 1


def test_the_rules_of_both_hide_what_is_secret() -> None:
    one, other = recorded("a"), recorded("b", "Tell Xq7-One.")
    sides = [
        Cassette(interactions=(one,), rules=Rules(patterns=("Xq1",))),
        Cassette(interactions=(other,), rules=Rules(patterns=("Xq7",))),
    ]
    said = compare(*sides).text
    assert "Tell [redacted]-One" in said
    assert "Xq7" not in said


def test_a_request_that_was_changed_a_little_is_told_as_changed() -> None:
    one = recorded("What is the weather in Paris today?", options={"seed": 1})
    other = recorded("What is the weather in Rome today?", options={"seed": 1})
    said = compared([recorded("Hello"), one], [other, recorded("Hello")])
    assert said.text == (
        "interaction 2: request: messages[0].content: "
        '"What is the weather in [-Paris-] today?" was recorded, '
        '"What is the weather in {+Rome+} today?" came'
    )
    assert [each.what for each in said.changes] == ["request"]


def test_the_closest_of_several_that_were_changed_belong_together() -> None:
    words = "one two three four five six seven eight"
    olds = [recorded(f"{words} nine"), recorded(f"{words} ten")]
    news = [recorded(f"{words} ten eleven"), recorded(f"{words} nine twelve")]
    pairs = {(each.recorded, each.found) for each in compared(olds, news).changes}
    assert pairs == {(0, 1), (1, 0)}


def test_requests_at_other_addresses_never_belong_together() -> None:
    one, other = recorded("a"), recorded("a", codec=BY_NAME["anthropic"])
    assert [each.what for each in compared(one, other).changes] == ["removed", "added"]
    gone = recorded("something else altogether", options={"a": 1, "b": 2, "c": 3, "d": 4})
    assert [each.what for each in compared(gone, recorded("Hi")).changes] == ["removed", "added"]


def test_among_too_many_the_closest_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "_PAIRED", 1)
    olds, news = [[recorded(f"a b c d {side}{n}") for n in range(2)] for side in "xy"]
    assert {each.what for each in compared(olds, news).changes} == {"removed", "added"}


def test_another_session_with_a_provider_that_remembers_is_the_same_session() -> None:
    def session(name: str, said: str = "Sunny.") -> list[Interaction]:
        first = recorded("a", codec=RESPONSES, answer={"id": f"resp_{name}"})
        options = {"previous_response_id": f"resp_{name}"}
        return [first, recorded("b", said, codec=RESPONSES, options=options)]

    assert compared(session("1"), session("2")) == Comparison((), 2)
    changed = compared(session("1"), session("2", "Rainy.")).changes
    assert [(each.what, each.recorded, each.found) for each in changed] == [("reply", 1, 1)]


def test_what_only_the_provider_can_read_does_not_count_in_a_request() -> None:
    def asking(sign: str) -> Interaction:
        thinking = {"type": "thinking", "thinking": "Hm", "signature": sign}
        body = dumps({"messages": [{"role": "assistant", "content": [thinking]}]}).encode()
        return Interaction(request=Request("POST", "http://x.test/v1/messages", (), body))

    assert compared(asking("one"), asking("two")).changes == ()


def test_the_rules_of_what_was_recorded_count() -> None:
    rules = Rules(ignore=("messages[0].content",), volatile=("[0-9]+",))
    one, other = recorded("a", "It is 7."), recorded("b", "It is 9.")
    assert compared(one, other, rules).changes == ()
    assert len(compared(one, other, Rules(ignore=rules.ignore)).changes) == 1


def test_what_only_sounds_like_a_secret_is_compared() -> None:
    one, other = [
        recorded("a", calls=[ToolCall("c", "run", {"code": f"print({n})"})]) for n in (1, 2)
    ]
    assert "calls[0].arguments.code: " in compared(one, other).text


def test_a_secret_that_a_reply_tells_is_not_shown() -> None:
    one, other = recorded("a", "use sk-proj-Pl4ntedPl4ntedPl4nted"), recorded("a", "no")
    assert "Pl4nted" not in compared(one, other).text
