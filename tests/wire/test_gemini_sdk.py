"""What Google's own library makes of what is written, and what is read of what it sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from google import genai
from google.genai import errors, types
from msgspec.structs import replace

from harness.core.messages import (
    Message,
    ModelRequest,
    Text,
    Thinking,
    ToolCall,
    ToolSchema,
    Usage,
    tool_result,
    user,
)
from harness.core.reply import ReplyDone, ReplyPart, TextDelta, ThinkingDelta
from harness.wire import refused_by, remember
from harness.wire.codec import QUIET, Answer, Asked, Failure, Noise
from harness.wire.gemini.codec import Gemini
from harness.wire.http import Request, Response
from harness.wire.strict.rule import Issued
from tests.wire.sdk_double import Framing, SdkDouble

CODEC = Gemini()
NEW, OLD = "gemini-3-pro", "gemini-2.5-flash"
CALLS = (ToolCall("c0", "weather", {"city": "Zürich 😀"}), ToolCall("c1", "clock", {}))
MESSAGE = Message("assistant", (Thinking("Let me see: é.", "EqQB+/8="), Text("Both."), *CALLS))
ANSWER = Answer(MESSAGE, Usage(12, 7, 19, 3, 2), "calls", None, "rid", NEW)
PARTS: list[ReplyPart] = [
    ThinkingDelta("Let me see: "),
    ThinkingDelta("é."),
    TextDelta("Bo"),
    TextDelta("th."),
    ReplyDone(MESSAGE),
]
FRAMINGS: dict[str, tuple[Noise, Framing]] = {
    "whole": (QUIET, lambda frames: [b"".join(frames)]),
    "per frame": (QUIET, list),
    "per byte": (QUIET, lambda frames: [bytes([byte]) for byte in b"".join(frames)]),
    "noisy": (Noise(obfuscation=True, pings=True, unknown=True), list),
    "LF": (QUIET, lambda frames: [each.replace(b"\r\n", b"\n") for each in frames]),
}
"""Ways in which a reply may go over the wire: comments and names of events this library refuses."""
TOOLS = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="weather",
            description="Look.",
            parameters=types.Schema(
                type=types.Type.OBJECT, properties={"city": types.Schema(type=types.Type.STRING)}
            ),
        ),
        types.FunctionDeclaration(name="clock", parameters_json_schema={"type": "object"}),
    ]
)
CONFIG = types.GenerateContentConfig(
    system_instruction="Be brief.", max_output_tokens=9, temperature=0.5, top_k=3, tools=[TOOLS]
)
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
DECLARED = (ToolSchema("weather", "Look.", SCHEMA), ToolSchema("clock", "", {"type": "object"}))
RESULTS = [
    types.Part.from_function_response(name="weather", response={"result": "sunny"}),
    types.Part.from_function_response(name="clock", response={"error": "no clock"}),
]


class Provider(SdkDouble):
    """A provider that remembers what it said, and refuses what it does not like."""

    def __init__(
        self,
        answer: Answer = ANSWER,
        noise: Noise = QUIET,
        framing: Framing = list,
        parts: list[ReplyPart] = PARTS,
        *,
        pedantic: bool = True,
    ) -> None:
        self.issued = Issued()
        self._parts = parts
        self._pedantic = pedantic
        super().__init__(
            CODEC,
            answer,
            lambda asked: list(self._streamed(asked)),
            noise=noise,
            framing=framing,
            judge=self._refused,
        )

    def client(self, **more: Any) -> Any:
        options: dict[str, Any] = {"httpx_client": self.http(), "base_url": "http://fake"} | more
        return genai.Client(api_key="secret", http_options=types.HttpOptions(**options))

    def async_client(self) -> Any:
        return self.client(httpx_async_client=self.async_http()).aio

    def _refused(self, sent: Request, asked: Asked) -> Failure | None:
        found = refused_by("gemini", sent, self.issued, pedantic=self._pedantic)
        if found is not None:
            return found.failure
        remember(CODEC, sent, asked, self.answer, self.issued)
        return None

    def _streamed(self, asked: Asked) -> Iterator[bytes]:
        encoder = CODEC.encoder(asked, self.answer, noise=self.noise)
        for part in self._parts:
            yield from encoder.part(part)
        yield from encoder.end()


@pytest.fixture(params=list(FRAMINGS))
def provider(request: pytest.FixtureRequest) -> Provider:
    return Provider(ANSWER, *FRAMINGS[request.param])


def again(response: Any) -> bytes:
    """What the library has understood of a reply, in its own words."""
    return json.dumps(response.model_dump(mode="json", by_alias=True, exclude_none=True)).encode()


def check_whole(response: Any) -> None:
    """A whole reply is the one of the script."""
    assert response.text == "Both."
    assert [call.name for call in response.function_calls] == ["weather", "clock"]
    assert CODEC.read_answer(Response(200, (), again(response))) == ANSWER


def check_stream(chunks: list[Any]) -> None:
    """The frames of a reply add up to the one of the script, in the library's words too."""
    said = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    assert "".join([part.text for part in said if part.thought]) == "Let me see: é."
    assert "".join([part.text for part in said if part.text and not part.thought]) == "Both."
    weather, clock = [part for part in said if part.function_call]
    assert (weather.function_call.id, weather.function_call.name) == ("c0", "weather")
    assert weather.function_call.args == CALLS[0].args
    assert (clock.function_call.id, clock.function_call.args) == ("c1", {})
    assert (weather.thought_signature, clock.thought_signature) == (b"\x12\xa4\x01\xfb\xff", None)
    usage = chunks[-1].usage_metadata
    counts = (usage.prompt_token_count, usage.candidates_token_count, usage.thoughts_token_count)
    assert counts == (12, 5, 2)
    assert (usage.total_token_count, usage.cached_content_token_count) == (19, 3)
    totals = [chunk.usage_metadata.total_token_count for chunk in chunks]
    assert totals == sorted(totals)
    reasons = [chunk.candidates[0].finish_reason for chunk in chunks]
    assert reasons == [None] * (len(chunks) - 1) + [types.FinishReason.STOP]
    decoder = CODEC.decoder()
    for chunk in chunks:
        decoder.feed(b"data: " + again(chunk) + b"\n\n")
    assert decoder.end() == ANSWER


def test_a_stream_comes_out_as_scripted(provider: Provider) -> None:
    chunks = provider.client().models.generate_content_stream(model=NEW, contents="Go")
    check_stream(list(chunks))
    assert provider.asked[0] == Asked(ModelRequest(NEW, "", (user("Go"),)), stream=True)


def test_a_stream_comes_out_as_scripted_asynchronously(provider: Provider) -> None:
    async def ask() -> list[Any]:
        models = provider.async_client().models
        stream = await models.generate_content_stream(model=NEW, contents="Go")
        return [chunk async for chunk in stream]

    check_stream(asyncio.run(ask()))


@pytest.mark.parametrize("noise", [QUIET, Noise(unknown=True)], ids=["quiet", "noisy"])
def test_a_whole_reply_comes_out_as_scripted(noise: Noise) -> None:
    provider = Provider(noise=noise)

    async def ask() -> Any:
        return await provider.async_client().models.generate_content(model=NEW, contents="Go")

    check_whole(provider.client().models.generate_content(model=NEW, contents="Go"))
    check_whole(asyncio.run(ask()))
    assert provider.sent[0].header("x-goog-api-key") == "secret"


HISTORY = (user("Go"), MESSAGE)


@pytest.mark.parametrize("streamed", [True, False])
def test_a_chat_goes_on(streamed: bool) -> None:
    """The library keeps each frame as a content; results have no ids, and are paired in order."""
    provider = Provider()
    chat = provider.client().chats.create(model=NEW, config=CONFIG)
    send = _drained(chat.send_message_stream) if streamed else chat.send_message
    send("Go")
    send(RESULTS)
    asked = provider.asked[1]
    failed = tool_result("c1", "no clock", is_error=True)
    messages = (*HISTORY, tool_result("c0", "sunny"), failed)
    assert asked.request == ModelRequest(NEW, "Be brief.", messages, DECLARED, 9, 0.5)
    assert asked.options == {"generationConfig": {"topK": 3}}
    assert asked.stream == streamed
    roles = [each["role"] for each in provider.bodies[1]["contents"]]
    assert roles == ["user", *["model"] * (5 if streamed else 1), "user"]


def _drained(send: Callable[[Any], Any]) -> Callable[[Any], None]:
    return lambda message: [None for _ in send(message)] and None


def test_an_older_model_has_no_ids() -> None:
    provider = Provider(replace(ANSWER, model=OLD))
    chat = provider.client().chats.create(model=OLD)
    first = chat.send_message("Go")
    assert [call.id for call in first.function_calls] == [None, None]
    chat.send_message(RESULTS)
    found = provider.asked[1].request.messages
    assert [call.id for call in found[1].calls] == ["call_0", "call_1"]
    assert [each.tool_call_id for each in found[2:]] == ["call_0", "call_1"]


def test_functions_are_called_by_the_library_itself() -> None:
    def weather(city: str) -> str:
        """Look."""
        return f"sunny in {city}"

    provider = Provider()
    call = Message("assistant", (Thinking("", "EqQB+/8="), CALLS[0]))
    done = Answer(Message("assistant", (Text("It is sunny."),)), Usage(), id="rid2", model=NEW)
    first = replace(ANSWER, message=call)
    provider.instead = [CODEC.answer(Asked(ModelRequest(NEW, "", ())), first)]
    provider.answer = done
    provider.issued.remember(call)
    config = types.GenerateContentConfig(tools=[weather])
    models = provider.client().models
    response = models.generate_content(model=NEW, contents="Go", config=config)
    assert response.text == "It is sunny."
    asked = provider.asked[1].request
    assert asked.messages == (user("Go"), call, tool_result("c0", "sunny in Zürich 😀"))
    [tool] = asked.tools
    assert (tool.name, tool.description) == ("weather", "Look.")
    assert tool.parameters["properties"]["city"]["type"] == "string"
    assert "parameters_json_schema" in json.dumps(provider.bodies[1]["tools"])


def test_what_breaks_a_rule_is_the_librarys_own_error() -> None:
    provider = Provider()
    models = provider.client().models
    first = models.generate_content(model=NEW, contents="Go").candidates[0].content
    go = types.Content(role="user", parts=[types.Part(text="Go")])
    results = types.Content(role="user", parts=RESULTS)
    models.generate_content(model=NEW, contents=[go, first, results])
    first.parts[2].thought_signature = b"other"
    for contents, words in (
        ([go, first, results], "Corrupted thought signature"),
        ([go, first, types.Content(role="user", parts=RESULTS[:1])], "number of function response"),
        ([first, results], "function call turn comes immediately after"),
        ([go, results], "function response turn comes immediately after"),
        ([go, first], "number of function response"),
    ):
        with pytest.raises(errors.ClientError, match=words) as raised:
            models.generate_content(model=NEW, contents=contents)
        assert (raised.value.code, raised.value.status) == (400, "INVALID_ARGUMENT")
    first.parts[2].thought_signature = None
    with pytest.raises(errors.ClientError, match="missing a thought_signature"):
        models.generate_content(model=NEW, contents=[go, first, results])


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "ClientError"), (429, "ClientError"), (503, "ServerError")]
)
def test_a_failure_is_the_librarys_own(status: int, kind: str) -> None:
    provider = Provider()
    failure = Failure(status, "No.", code="REASON", param="contents")
    for stream in (False, True):
        provider.instead = [CODEC.failure(failure)]
        models = provider.client().models
        ask: Any = models.generate_content_stream if stream else models.generate_content
        with pytest.raises(errors.APIError, match="No") as raised:
            list(ask(model=NEW, contents="Go"))
        assert type(raised.value).__name__ == kind
        told = json.loads(CODEC.failure(failure).body)
        assert (raised.value.code, raised.value.message) == (status, "No.")
        assert raised.value.details == told
    assert len(provider.sent) == 2


def test_a_failure_in_the_middle_is_one_too() -> None:
    provider = Provider(
        framing=lambda frames: [
            frames[0],
            *CODEC.encoder(Asked(ModelRequest(NEW, "", ())), ANSWER).failure(Failure(503, "Busy.")),
        ]
    )
    got: list[Any] = []
    with pytest.raises(errors.ServerError, match="Busy") as raised:
        got.extend(provider.client().models.generate_content_stream(model=NEW, contents="Go"))
    assert raised.value.status == "UNAVAILABLE"


def test_a_stream_without_its_end_is_a_success_to_the_library() -> None:
    """Which is why the decoder tells of it."""
    provider = Provider(framing=lambda frames: frames[:-1])
    chunks = list(provider.client().models.generate_content_stream(model=NEW, contents="Go"))
    assert len(chunks) == 4
    assert chunks[-1].candidates[0].finish_reason is None


def test_a_refusal_and_a_call_that_is_none() -> None:
    refused = Answer(Message("assistant"), Usage(), "refused", "Not that.", "rid", NEW)
    found = Provider(refused).client().models.generate_content(model=NEW, contents="Go")
    assert found.candidates[0].finish_reason == types.FinishReason.PROHIBITED_CONTENT
    odd = replace(refused, message=Message("assistant", (ToolCall("c0", "f", None, "{"),)))
    found = Provider(odd).client().models.generate_content(model=NEW, contents="Go")
    assert found.candidates[0].finish_reason == types.FinishReason.MALFORMED_FUNCTION_CALL
    assert found.candidates[0].content is None
