"""The vendors' own libraries against the server: what they understand, and what they leave."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google import genai
from msgspec.structs import replace

from harness.fakes.script import Fault, Reply, StreamFails, Torn
from harness.fakes.wire_faults import CutAt, Dropped, Http, Incomplete, Refused, Reset
from harness.runner.scenario import Scenario, Turn
from harness.runner.served import Served, serve
from harness.runner.serving import KEY
from harness.transport.exchange import Break
from harness.transport.framing import Framing
from tests.transport.sdks import ASYNC, CHAT, FRAMINGS, FULL, MESSAGES, SYNC, check

QUICK = replace(FULL, takes=0, each=0)


def played(*replies: Reply) -> Scenario:
    return Scenario("case", turns=(Turn("Go", replies),))


@pytest.fixture(scope="module", params=FRAMINGS)
def framing(request: pytest.FixtureRequest) -> Framing:
    return FRAMINGS[request.param]


def base(service: Served, vendor: str) -> dict[str, Any]:
    return {"base_url": service.url + ("/v1" if vendor in ("openai", "responses") else "")}


@pytest.mark.parametrize("vendor", SYNC)
def test_a_stream_is_understood(vendor: str, framing: Framing) -> None:
    if vendor == "gemini" and framing.comments:
        return  # Google sends none, and its library knows none
    with serve([QUICK, QUICK], framing=framing) as service:
        check(SYNC[vendor](**base(service, vendor)), vendor)
        check(asyncio.run(ASYNC[vendor](**base(service, vendor))), vendor)
        first, second = service.requests
        assert (first.ending, first.place, second.place) == ("whole", "1.1", "1.2")
        assert service.findings() == ()
    assert (first.frames == 1) is (framing.size is None)


@pytest.mark.parametrize("vendor", SYNC)
def test_a_whole_reply_is_understood(vendor: str) -> None:
    with serve([QUICK] * 2) as service:
        check(SYNC[vendor](whole=True, **base(service, vendor)), vendor)
        check(asyncio.run(ASYNC[vendor](whole=True, **base(service, vendor))), vendor)


Open = Callable[[Served], Iterator[object]]


def chat_stream(service: Served) -> Iterator[object]:
    client = openai.OpenAI(api_key="k", **base(service, "openai"))
    with client, client.chat.completions.create(**CHAT) as stream:
        yield from stream


def message_stream(service: Served) -> Iterator[object]:
    client = anthropic.Anthropic(api_key="k", **base(service, "anthropic"))
    with client, client.messages.create(**MESSAGES, stream=True) as stream:
        yield from stream


STREAMS = {"openai": chat_stream, "anthropic": message_stream}


def chat_whole(service: Served) -> str:
    with openai.OpenAI(api_key="k", **base(service, "openai"), max_retries=1) as client:
        chat: Any = client.chat.completions.create(
            model="gpt-x", messages=[{"role": "user", "content": "Go"}]
        )
        return str(chat.choices[0].message.content)


def message_whole(service: Served) -> str:
    with anthropic.Anthropic(api_key="k", **base(service, "anthropic"), max_retries=1) as client:
        message: Any = client.messages.create(**MESSAGES)
        return str(message.content[0].text)


WHOLE = {"openai": chat_whole, "anthropic": message_whole}
TORN = Reply(say="It is sunny in Rome.", chunk=4, fault=Torn(2))


@pytest.mark.parametrize("vendor", STREAMS)
def test_a_stream_without_its_end_is_no_error_to_them(vendor: str) -> None:
    with serve(played(TORN)) as service:
        assert len(list(STREAMS[vendor](service))) >= 2
        assert service.requests[0].ending == "whole"


TELLS = {"openai": openai.APIConnectionError, "anthropic": httpx2.RemoteProtocolError}
BREAKS: dict[str, tuple[Fault, Break, dict[str, type[Exception]]]] = {
    "incomplete": (Incomplete(2), "torn", TELLS),
    "reset": (Reset(2), "reset", {**TELLS, "anthropic": httpx2.ReadError}),
    "fails": (StreamFails(2), "reset", {**TELLS, "anthropic": httpx2.ReadError}),
    "cut at a byte": (CutAt(600, "incomplete"), "torn", TELLS),
}


@pytest.mark.parametrize("vendor", STREAMS)
@pytest.mark.parametrize(("fault", "how", "tells"), BREAKS.values(), ids=BREAKS)
def test_a_stream_whose_connection_breaks(
    fault: Fault, how: Break, tells: dict[str, type[Exception]], vendor: str
) -> None:
    seen = deque[object]()  # it keeps what came before the error
    with serve(played(replace(TORN, fault=fault))) as service, pytest.raises(tells[vendor]):
        seen.extend(STREAMS[vendor](service))
    assert service.requests[0].ending == how
    assert len(service.requests) == 1  # nobody asks again after the first byte
    assert seen


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The libraries ask again at once."""
    for vendor in (openai, anthropic):
        monkeypatch.setattr(
            vendor._base_client.BaseClient, "_calculate_retry_timeout", lambda *_a, **_k: 0
        )


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("vendor", WHOLE)
@pytest.mark.parametrize(
    ("fault", "how"),
    [
        (Dropped(), "dropped"),
        (Refused(), "refused"),
        (Incomplete(1), "torn"),
        (Reset(1), "reset"),
        (Http(429, retry_after=0), "whole"),
        (Http(503, html=True), "whole"),
    ],
)
def test_a_whole_reply_is_asked_for_again(fault: Fault, how: str, vendor: str) -> None:
    with serve(played(replace(TORN, fault=fault))) as service:
        assert WHOLE[vendor](service) == TORN.say
        first, second = service.requests
        assert (first.ending, first.retry, second.ending, second.retry) == (how, 0, "whole", 1)
        assert service.findings() == ()


def test_a_client_that_takes_a_reply_without_its_end_as_whole() -> None:
    asked: Any = {"model": "gpt-x", "stream": True}
    messages: list[Any] = [{"role": "user", "content": "Go"}]
    with (
        serve(played(TORN, Reply(say="Bye."))) as service,
        openai.OpenAI(api_key="k", **base(service, "openai")) as client,
    ):
        chunks: Any = client.chat.completions.create(messages=messages, **asked)
        said = "".join([each.choices[0].delta.content or "" for each in chunks])
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "More"}]
        list(client.chat.completions.create(messages=messages, **asked))
        first = service.findings()[0]
    assert (first.kind, first.request) == ("truncated", 2)
    assert first.message.endswith("which broke off, as whole: 'It is su'")


@pytest.mark.parametrize("vendor", STREAMS)
def test_a_stream_that_is_closed_is_noticed(vendor: str) -> None:
    with serve([Reply(say="a" * 400, chunk=1, each=10_000_000)]) as service:
        stream = STREAMS[vendor](service)
        next(stream)
        stream.close()
    (record,) = service.requests
    assert record.ending == "gone"
    assert record.client_gone_at is not None
    assert record.frames < 400
    assert service.findings() == ()


@pytest.mark.parametrize("vendor", STREAMS)
def test_a_cancel_is_noticed(vendor: str) -> None:
    async def cancelled(service: Served) -> None:
        task = asyncio.ensure_future(ASYNC[vendor](**base(service, vendor)))
        while not (service.requests and service.requests[0].frames):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with serve([Reply(say="a" * 4000, chunk=1, each=10_000_000)]) as service:
        asyncio.run(cancelled(service))
    (record,) = service.requests
    assert record.ending == "gone"


def test_the_variables_alone_point_the_libraries_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve([Reply(say=text) for text in ("One.", "Two.", "Three.", "Four.")]) as service:
        for name, value in service.variables.items():
            monkeypatch.setenv(name, value)
        with openai.OpenAI() as ours, anthropic.Anthropic() as theirs:
            chat: Any = ours.chat.completions.create(**{**CHAT, "stream": False})
            said = [chat.choices[0].message.content]
            said.append(ours.responses.create(model="gpt-x", input="Go").output_text)
            message: Any = theirs.messages.create(**MESSAGES)
            said.append(message.content[0].text)
        google = genai.Client()
        said.append(google.models.generate_content(model="gemini-x", contents="Go").text)
        google.close()
        assert said == ["One.", "Two.", "Three.", "Four."]
        assert [each.protocol for each in service.requests] == [
            *("openai_chat", "openai_responses", "anthropic", "gemini")
        ]
        assert service.findings() == ()
        assert "[redacted]" in str([each.headers for each in service.requests])
        assert KEY not in str([each.as_json() for each in service.requests])
