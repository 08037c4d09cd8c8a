"""What the vendors' own libraries make of each fault, as they are installed here.

Each row is a fault, each column a way to ask. What stands there is the error that comes out, or
``ok``, and how many requests were sent. Section 6 of the dossier is where the rows are from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from harness.core.choices import Choices
from harness.core.durations import SECOND
from harness.core.events import RequestSent
from harness.fakes.model import FakeModel
from harness.fakes.script import Fault, Reply, Torn
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
    Refused,
    Reset,
    Split,
    Stall,
)
from harness.sim.virtual import BEGINNING
from harness.transport.in_memory import client
from harness.transport.provider import Provider
from tests.transport.sdks import world

ASKED = {"model": "m", "messages": [{"role": "user", "content": "Go"}]}
HEARD = {"model": "m", "input": "Go"}
TOLD = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "Go"}]}
SAID = "Hello, ü."


def chat(sdk: Any) -> Any:
    return sdk.chat.completions.create(**ASKED)


def chat_stream(sdk: Any) -> Any:
    return sdk.chat.completions.create(**ASKED, stream=True)


def chat_helper(sdk: Any) -> Any:
    return sdk.chat.completions.stream(**ASKED)


def responses(sdk: Any) -> Any:
    return sdk.responses.create(**HEARD)


def responses_stream(sdk: Any) -> Any:
    return sdk.responses.create(**HEARD, stream=True)


def responses_helper(sdk: Any) -> Any:
    return sdk.responses.stream(**HEARD)


def messages(sdk: Any) -> Any:
    return sdk.messages.create(**TOLD)


def messages_stream(sdk: Any) -> Any:
    return sdk.messages.create(**TOLD, stream=True)


def messages_helper(sdk: Any) -> Any:
    return sdk.messages.stream(**TOLD)


def contents(sdk: Any) -> Any:
    return sdk.models.generate_content(model="m", contents="Go")


def contents_stream(sdk: Any) -> Any:
    return sdk.models.generate_content_stream(model="m", contents="Go")


FINAL = {
    chat_helper: "get_final_completion",
    responses_helper: "get_final_response",
    messages_helper: "get_final_message",
}
STREAMED: tuple[Callable[[Any], Any], ...] = (
    chat_stream,
    chat_helper,
    responses_stream,
    responses_helper,
    messages_stream,
    messages_helper,
    contents_stream,
)
AT_ONCE: tuple[Callable[[Any], Any], ...] = (chat, responses, messages, contents)


def sdk_of(ask: Callable[[Any], Any], http: Any, timeout: float | None, *, sync: bool) -> Any:
    """The library that asks in this way, with this client and this limit in seconds."""
    if ask in (contents, contents_stream):
        limit = None if timeout is None else int(timeout * 1000)
        kind = "httpx_client" if sync else "httpx_async_client"
        made = genai.Client(
            api_key="k", http_options=types.HttpOptions(**{kind: http, "timeout": limit})
        )
        return made if sync else made.aio
    library = anthropic if ask in (messages, messages_stream, messages_helper) else openai
    name = library.__name__.replace("openai", "OpenAI").replace("anthropic", "Anthropic")
    limits = {} if timeout is None else {"timeout": timeout}
    return getattr(library, name if sync else f"Async{name}")(
        api_key="k", http_client=http, **limits
    )


class Came(NamedTuple):
    """What a library made of it: the error, how many events it gave, and how often it asked."""

    error: str
    events: int
    requests: int
    took: float
    value: Any = None


def name_of(error: BaseException | None) -> str:
    if error is None:
        return "ok"
    module = type(error).__module__.partition(".")[0]
    name = type(error).__name__
    return name if module == "builtins" else f"{module}.{name}"


async def ask_async(ask: Callable[[Any], Any], sdk: Any, seen: list[Any]) -> Any:
    if ask in FINAL:
        async with ask(sdk) as stream:
            async for event in stream:
                seen.append(event)  # noqa: PERF401 - what came before an error counts
            return await getattr(stream, FINAL[ask])()
    got = await ask(sdk)
    if ask in AT_ONCE:
        return got
    async for event in got:
        seen.append(event)  # noqa: PERF401
    return None


def ask_sync(ask: Callable[[Any], Any], sdk: Any, seen: list[Any]) -> Any:
    if ask in FINAL:
        with ask(sdk) as stream:
            seen.extend(stream)
            return getattr(stream, FINAL[ask])()
    got = ask(sdk)
    if ask in AT_ONCE:
        return got
    seen.extend(got)
    return None


def come(
    ask: Callable[[Any], Any], fault: Fault | None, *, sync: bool, timeout: float | None = None
) -> Came:
    """What comes of asking where the fault always happens."""
    seen: list[Any] = []
    error: Exception | None = None
    value = None

    def work() -> None:
        nonlocal error, value
        http = client("httpx2", provider.answer, "http://provider.test", at.blocking.call)
        try:
            value = ask_sync(ask, sdk_of(ask, http, timeout, sync=True), seen)
        except Exception as raised:
            error = raised

    async def working() -> None:
        nonlocal error, value
        http = client("httpx2", provider.answer, "http://provider.test")
        try:
            value = await ask_async(ask, sdk_of(ask, http, timeout, sync=False), seen)
        except Exception as raised:
            error = raised

    reply = Reply(SAID, chunk=3, fault=fault, fault_times=None)
    with world(reply) as at:
        model = FakeModel(at.stage, at.recorder, Choices())
        provider = Provider(at.stage, model, lambda: (BEGINNING + at.kernel.now()) / SECOND)
        if sync:
            at.play(work)
        else:
            at.run(working())
        requests = [e for e in at.recorder.trace() if isinstance(e.event, RequestSent)]
        took = round(at.kernel.now() / SECOND, 2)  # some sleep a millisecond
    return Came(name_of(error), len(seen), len(requests), took, error or value)


BOTH = pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])

CONNECTION = "openai.APIConnectionError"
HALF = "httpx2.RemoteProtocolError"
RESET = "httpx2.ReadError"
NO_JSON = "json.JSONDecodeError"
NO_GEMINI = "google.UnknownApiResponseError"

STREAMS: dict[str, tuple[Fault | None, tuple[str, ...]]] = {
    "whole": (None, ("ok",) * 7),
    "incomplete": (Incomplete(1), (*(CONNECTION,) * 4, HALF, HALF, HALF)),
    "reset": (Reset(1), (*(CONNECTION,) * 4, RESET, RESET, RESET)),
    "reset_behind_end": (Reset(4), (*(CONNECTION,) * 4, RESET, RESET, RESET)),
    "torn": (Torn(1), ("ok", "ok", "ok", "RuntimeError", "ok", "ok", "ok")),
    "cut_line": (CutLine(1), ("ok", "ok", "ok", "RuntimeError", "ok", "ok", NO_GEMINI)),
    "error_frame": (
        ErrorFrame(1),
        (
            *("openai.APIError",) * 4,
            *("anthropic.APIStatusError",) * 2,
            "google.ServerError",
        ),
    ),
    "bad_json": (BadJson(1), (*(NO_JSON,) * 6, NO_GEMINI)),
    "bad_utf8": (BadUtf8(1), (*("UnicodeDecodeError",) * 6, "ok")),
    "split": (Split(1), ("ok",) * 7),
    "comments": (Comments(), (*("ok",) * 6, NO_GEMINI)),
    "empty_choices": (EmptyChoices(), ("ok",) * 7),
    "json_error": (
        JsonError(),
        (
            "ok",
            "AssertionError",
            "ok",
            "RuntimeError",
            "ok",
            "AssertionError",
            "google.ServerError",
        ),
    ),
    "stall": (
        Stall(1, 60 * SECOND),
        (*("openai.APITimeoutError",) * 4, *("httpx2.ReadTimeout",) * 3),
    ),
}


@pytest.mark.parametrize("row", STREAMS)
@BOTH
def test_a_stream(row: str, sync: bool) -> None:
    fault, expected = STREAMS[row]
    timeout = 10 if row == "stall" else None
    came = [come(ask, fault, sync=sync, timeout=timeout) for ask in STREAMED]
    assert tuple([each.error for each in came]) == expected
    assert {each.requests for each in came} == {1}  # none is asked again once a stream began
    assert {each.took for each in came} == {10.0 if row == "stall" else 0.0}


@BOTH
def test_what_came_before_an_error_was_given(sync: bool) -> None:
    for ask in STREAMED:
        whole = come(ask, None, sync=sync).events
        assert 0 < come(ask, Reset(1), sync=sync).events < whole
        assert come(ask, JsonError(), sync=sync).events == 0


@BOTH
def test_an_error_in_a_stream_tells_no_status(sync: bool) -> None:
    said = come(messages_stream, ErrorFrame(1, status=529), sync=sync).value
    assert said.status_code == 200
    assert said.body["error"]["type"] == "overloaded_error"
    said = come(chat_stream, ErrorFrame(1, kind="tokens", code="spent"), sync=sync).value
    assert (said.type, said.code) == ("tokens", "spent")
    assert not hasattr(said, "status_code")


@BOTH
def test_one_vendor_raises_nothing_for_a_flat_error(sync: bool) -> None:
    flat = ErrorFrame(1, flat=True)
    assert come(responses_stream, flat, sync=sync).error == "ok"
    assert come(responses_helper, flat, sync=sync).error == "RuntimeError"


RATE = ("openai.RateLimitError", "openai.RateLimitError", "anthropic.RateLimitError")
INTERNAL = (*("openai.InternalServerError",) * 2, "anthropic.InternalServerError")
BAD = (*("openai.BadRequestError",) * 2, "anthropic.BadRequestError")
CONNECTIONS = (CONNECTION, CONNECTION, "anthropic.APIConnectionError")
CLIENT, SERVER = "google.ClientError", "google.ServerError"

WHOLE: dict[str, tuple[Fault | None, tuple[str, ...], tuple[int, ...]]] = {
    "whole": (None, ("ok",) * 4, (1, 1, 1, 1)),
    "429": (Http(429), (*RATE, CLIENT), (3, 3, 3, 1)),
    "500": (Http(500), (*INTERNAL, SERVER), (3, 3, 3, 1)),
    "503": (
        Http(503),
        (*INTERNAL[:2], "anthropic.ServiceUnavailableError", SERVER),
        (3, 3, 3, 1),
    ),
    "529": (Http(529), (*INTERNAL[:2], "anthropic.OverloadedError", SERVER), (3, 3, 3, 1)),
    "409": (
        Http(409),
        (*("openai.ConflictError",) * 2, "anthropic.ConflictError", CLIENT),
        (3, 3, 3, 1),
    ),
    "400": (Http(400), (*BAD, CLIENT), (1, 1, 1, 1)),
    "400_again": (Http(400, should_retry=True), (*BAD, CLIENT), (3, 3, 3, 1)),
    "500_not_again": (Http(500, should_retry=False), (*INTERNAL, SERVER), (1, 1, 1, 1)),
    "html": (Http(500, html=True), (*INTERNAL, SERVER), (3, 3, 3, 1)),
    "refused": (Refused(), (*CONNECTIONS, "httpx2.ConnectError"), (3, 3, 3, 1)),
    "dropped": (Dropped(), (*CONNECTIONS, HALF), (3, 3, 3, 1)),
    "incomplete": (Incomplete(), (*CONNECTIONS, HALF), (3, 3, 3, 1)),
    "reset": (Reset(), (*CONNECTIONS, RESET), (3, 3, 3, 1)),
    "cut_at": (CutAt(40), (NO_JSON,) * 4, (1, 1, 1, 1)),
    "json_error": (JsonError(), ("ok",) * 4, (1, 1, 1, 1)),
    "stall": (
        Stall(0, 60 * SECOND),
        (
            *("openai.APITimeoutError",) * 2,
            "anthropic.APITimeoutError",
            "httpx2.ReadTimeout",
        ),
        (3, 3, 3, 1),
    ),
}


@pytest.mark.parametrize("row", WHOLE)
@BOTH
def test_a_reply_that_is_not_streamed(row: str, sync: bool) -> None:
    fault, expected, requests = WHOLE[row]
    timeout = 1 if row == "stall" else None
    came = [come(ask, fault, sync=sync, timeout=timeout) for ask in AT_ONCE]
    assert tuple([each.error for each in came]) == expected
    assert tuple([each.requests for each in came]) == requests
    for each in came:  # half a second, and one, both up to a quarter less
        waited = each.took - each.requests * (timeout or 0)
        assert waited == 0 if each.requests == 1 else 1.125 <= waited <= 1.5


@pytest.mark.parametrize("fault", [Http(503), Refused(), Dropped()], ids=str)
@BOTH
def test_streams_are_asked_for_again_before_they_begin(fault: Fault, sync: bool) -> None:
    asked = [come(ask, fault, sync=sync).requests for ask in STREAMED]
    assert asked == [3, 3, 3, 3, 3, 3, 1]


@BOTH
def test_an_error_with_status_200_is_taken_for_a_reply_of_nothing(sync: bool) -> None:
    assert come(chat, JsonError(), sync=sync).value.choices is None
    assert come(messages, JsonError(), sync=sync).value.content is None
    assert come(contents, JsonError(), sync=sync).value.candidates is None


@BOTH
def test_what_is_said_of_a_page(sync: bool) -> None:
    page = Http(500, "gone", html=True)
    assert str(come(chat, page, sync=sync).value) == "Error code: 500"
    assert str(come(messages, page, sync=sync).value).startswith("<html>")
    assert come(contents, page, sync=sync).value.status == "Internal Server Error"


AFTER: list[tuple[Http, float]] = [
    (Http(429, retry_after=2 * SECOND), 4),
    (Http(429, retry_after=SECOND // 4 * 5, retry_as="milliseconds"), 2.5),
    (Http(429, retry_after=9 * SECOND, retry_as="date"), 18),
    (Http(429, retry_after=120 * SECOND), 240),
]


@pytest.mark.parametrize(("fault", "waited"), AFTER, ids=[str(fault) for fault, _waited in AFTER])
@BOTH
def test_libraries_wait_as_long_as_they_are_told(fault: Http, waited: float, sync: bool) -> None:
    came = [come(ask, fault, sync=sync) for ask in AT_ONCE]
    assert came.pop().took == 0
    longest = waited + (fault.retry_as == "date")  # a date has whole seconds
    assert all(waited <= each.took <= longest for each in came)


@BOTH
def test_one_vendor_waits_no_longer_than_two_minutes(sync: bool) -> None:
    came = [come(ask, Http(429, retry_after=200 * SECOND), sync=sync) for ask in AT_ONCE]
    assert [each.requests for each in came] == [1, 1, 3, 1]
    assert [each.took for each in came] == [0, 0, 400, 0]
