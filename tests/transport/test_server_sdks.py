"""The vendors' own libraries against the server: what they understand, and what they leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from msgspec.structs import replace

from harness.core.messages import Usage
from harness.fakes.script import Reply, StreamFails, Torn
from harness.runner.scenario import Scenario, Turn
from harness.runner.served import Served, serve
from harness.transport.framing import Framing
from tests.transport.sdks import ASYNC, CHAT, FRAMINGS, FULL, MESSAGES, SYNC, Heard

QUICK = replace(FULL, takes=0, each=0, usage=Usage(10, 5, 15, reasoning_tokens=2))
CALLS = [("weather", {"city": "Rome"}), ("clock", {})]
HEARD = {
    "openai": Heard(QUICK.say, "", CALLS, (10, 5)),
    "anthropic": Heard(QUICK.say, QUICK.think, CALLS, (10, 5)),
}


def played(*replies: Reply) -> Scenario:
    return Scenario("case", turns=(Turn("Go", replies),))


@pytest.fixture(scope="module", params=FRAMINGS)
def framing(request: pytest.FixtureRequest) -> Framing:
    return FRAMINGS[request.param]


def base(service: Served, vendor: str) -> dict[str, Any]:
    return {"base_url": service.url + ("/v1" if vendor == "openai" else "")}


@pytest.mark.parametrize("vendor", HEARD)
def test_a_stream_is_understood(vendor: str, framing: Framing) -> None:
    with serve([QUICK, QUICK], framing=framing) as service:
        assert SYNC[vendor](**base(service, vendor)) == HEARD[vendor]
        assert asyncio.run(ASYNC[vendor](**base(service, vendor))) == HEARD[vendor]
        first, second = service.requests
        assert (first.ending, first.place, second.place) == ("whole", "1.1", "1.2")
        assert service.findings() == ()
    assert (first.frames == 1) is (framing.size is None)


def test_a_whole_reply_is_understood() -> None:
    with serve([QUICK] * 2) as service:
        with openai.OpenAI(api_key="k", **base(service, "openai")) as client:
            chat: Any = client.chat.completions.create(
                model="gpt-x", messages=[{"role": "user", "content": "Go"}]
            )
        with anthropic.Anthropic(api_key="k", **base(service, "anthropic")) as client:
            message: Any = client.messages.create(**MESSAGES)
    calls = chat.choices[0].message.tool_calls
    assert [call.function.name for call in calls] == ["weather", "clock"]
    assert (chat.usage.prompt_tokens, chat.usage.completion_tokens) == (10, 5)
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]


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
TORN = Reply(say="It is sunny in Rome.", chunk=4, fault=Torn(2))


@pytest.mark.parametrize("vendor", STREAMS)
def test_a_stream_without_its_end_is_no_error_to_them(vendor: str) -> None:
    with serve(played(TORN)) as service:
        assert len(list(STREAMS[vendor](service))) >= 2
        assert service.requests[0].ending == "whole"


@pytest.mark.parametrize(
    ("vendor", "error"), [("openai", openai.APIConnectionError), ("anthropic", httpx2.ReadError)]
)
def test_a_reset_in_a_stream_is_an_error(vendor: str, error: type[Exception]) -> None:
    with serve(played(replace(TORN, fault=StreamFails(2)))) as service:
        seen = []
        with pytest.raises(error):
            seen += STREAMS[vendor](service)
    assert service.requests[0].ending == "reset"
    assert len(service.requests) == 1  # nobody asks again after the first byte


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


@pytest.mark.parametrize("vendor", ASYNC)
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


def test_a_client_asks_again_where_the_connection_breaks_before_the_reply() -> None:
    fails = Reply(say="Sunny.", fault=Torn(0))
    with serve(played(fails)) as service:
        client = openai.OpenAI(api_key="k", **base(service, "openai"), max_retries=1)
        with client:
            chat: Any = client.chat.completions.create(
                model="gpt-x", messages=[{"role": "user", "content": "Go"}]
            )
    assert chat.choices[0].message.content == "Sunny."
    assert [(each.ending, each.retry) for each in service.requests] == [
        ("dropped", 0),
        ("whole", 1),
    ]
    assert service.findings() == ()
