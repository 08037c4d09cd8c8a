"""The run's own models keep the laws of all, at every level; each law is broken by some model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from harness.core.errors import UsageError
from harness.core.messages import ModelRequest, ToolCall, assistant
from harness.core.ports import Env, Model, ProviderFailed
from harness.core.reply import ReplyDone, ReplyFailed, TextDelta, UsageReport
from harness.testing.conformance import check_model
from harness.testing.conformance.models import LAWS
from harness.transport.model import HttpModel
from harness.wire import CODECS
from harness.wire.openai_chat.codec import OpenAIChat
from tests.testing.conformance.broken import broken_laws

LEVELS = [
    f"{name}:{codec.name}{way}"
    for name in ("http", "server")
    for codec in CODECS
    for way in ("", ":whole")
]


def the_runs_own(env: Env) -> Model:
    return env.model


@pytest.mark.parametrize("level", ["model", *LEVELS])
def test_the_model_of_a_run_conforms(level: str) -> None:
    check_model(the_runs_own, level=level)


def test_a_client_of_ones_own_conforms() -> None:
    def asks_over_http(env: Env) -> Model:
        return HttpModel(OpenAIChat(), env.base_url, "key", env.http())

    check_model(asks_over_http, level="http:openai_chat")


class Iterator:
    """A stream that can be read, and no more."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __aiter__(self) -> Iterator:
        return self

    async def __anext__(self) -> Any:
        return await anext(self.stream)


def test_a_stream_that_cannot_be_closed_conforms() -> None:
    class Reads(Changed):
        async def generate(self, request: ModelRequest) -> Any:
            return Iterator(await self.model.generate(request))

    check_model(Reads)


class Changed:
    """The run's model with something changed."""

    def __init__(self, env: Env) -> None:
        self.model = env.model

    def sent(self, request: ModelRequest) -> ModelRequest:
        return request

    async def generate(self, request: ModelRequest) -> Any:
        return self.parts(await self.model.generate(self.sent(request)))

    async def parts(self, stream: Any) -> Any:
        async for part in stream:
            for each in self.made(part):
                yield each

    def made(self, part: Any) -> list[Any]:
        return [part]


class SaysNothing(Changed):
    def made(self, part: Any) -> list[Any]:
        return [] if isinstance(part, TextDelta) else [part]


class IsNeverWhole(Changed):
    def made(self, part: Any) -> list[Any]:
        return [] if isinstance(part, ReplyDone) else [part]


class ForgetsCalls(Changed):
    def made(self, part: Any) -> list[Any]:
        if isinstance(part, ReplyDone):
            words = [each for each in part.message.content if not isinstance(each, ToolCall)]
            return [ReplyDone(replace(part.message, content=tuple(words)))]
        return [part]


class NamesAllCallsAlike(Changed):
    def made(self, part: Any) -> list[Any]:
        if isinstance(part, ReplyDone):
            content = [
                replace(each, id="call") if isinstance(each, ToolCall) else each
                for each in part.message.content
            ]
            return [ReplyDone(replace(part.message, content=tuple(content)))]
        return [part]


class Fails(Changed):
    async def generate(self, request: ModelRequest) -> Any:
        raise KeyError("choices")


class SaysMore(Changed):
    def made(self, part: Any) -> list[Any]:
        return [part, TextDelta("!")] if isinstance(part, ReplyDone) else [part]


class CountsTwice(Changed):
    def made(self, part: Any) -> list[Any]:
        return [part, part] if isinstance(part, UsageReport) else [part]


class DropsTheSystem(Changed):
    def sent(self, request: ModelRequest) -> ModelRequest:
        return replace(request, system="", tools=())


class SaysNotWhatToolsAreFor(Changed):
    def sent(self, request: ModelRequest) -> ModelRequest:
        tools = [replace(tool, description="") for tool in request.tools]
        return replace(request, tools=tuple(tools))


class LeavesATask(Changed):
    async def parts(self, stream: Any) -> Any:
        self.beat = asyncio.ensure_future(asyncio.sleep(60))
        async for part in stream:
            yield part


class EndsTwice(Changed):
    def made(self, part: Any) -> list[Any]:
        return [part, part] if isinstance(part, ReplyDone) else [part]


class DropsWhatWasSaid(Changed):
    def sent(self, request: ModelRequest) -> ModelRequest:
        return replace(request, messages=request.messages[-4:])


class SendsTheLast(Changed):
    def sent(self, request: ModelRequest) -> ModelRequest:
        return replace(request, messages=request.messages[2:3])


class AsksAgain(Changed):
    """Asks once more before it gives the reply."""

    async def generate(self, request: ModelRequest) -> Any:
        async for _part in await self.model.generate(request):
            pass
        return self.parts(await self.model.generate(request))


class Remembers(Changed):
    """Gives the first reply again and again."""

    kept: list[Any] | None = None

    async def parts(self, stream: Any) -> Any:
        if self.kept is None:
            self.kept = [part async for part in stream]
        else:
            _ = [part async for part in stream]
        for part in self.kept:
            yield part


class SwallowsFailures(Changed):
    async def generate(self, request: ModelRequest) -> Any:
        try:
            return self.parts(await self.model.generate(request))
        except ProviderFailed:
            return self.nothing()

    async def parts(self, stream: Any) -> Any:
        try:
            async for part in stream:
                if not isinstance(part, ReplyFailed):
                    yield part
        except ProviderFailed:
            return

    async def nothing(self) -> Any:
        for _ in ():
            yield


class TakesHalves(Changed):
    """Takes what came for the whole reply."""

    async def parts(self, stream: Any) -> Any:
        whole, said = False, ""
        async for part in stream:
            whole = whole or isinstance(part, ReplyDone)
            said += part.text if isinstance(part, TextDelta) else ""
            yield part
        if not whole:
            yield ReplyDone(assistant(said))


class SwallowsCancels(Changed):
    async def parts(self, stream: Any) -> Any:
        try:
            async for part in stream:
                yield part
        except asyncio.CancelledError:
            return


class GivesUp(Changed):
    """Can be asked once only, where somebody did not read to the end."""

    left = False

    async def generate(self, request: ModelRequest) -> Any:
        if self.left:
            raise ProviderFailed("there is a reply that nobody has read")
        return await super().generate(request)

    async def parts(self, stream: Any) -> Any:
        self.left = True
        async for part in stream:
            yield part
        self.left = False


class TiresOfCancels(Changed):
    """Can be asked once only, where it was cancelled."""

    tired = False

    async def generate(self, request: ModelRequest) -> Any:
        if self.tired:
            raise ProviderFailed("somebody cancelled the last request")
        return await super().generate(request)

    async def parts(self, stream: Any) -> Any:
        try:
            async for part in stream:
                yield part
        except asyncio.CancelledError:
            self.tired = True
            raise


class NeverAnswers(Changed):
    async def generate(self, request: ModelRequest) -> Any:
        raise asyncio.CancelledError


PLANTED: dict[Callable[[Env], Any], set[str]] = {
    SaysNothing: {"replies_are_whole"},
    IsNeverWhole: {"replies_are_whole"},
    ForgetsCalls: {"replies_are_whole"},
    NamesAllCallsAlike: {"replies_are_whole"},
    Fails: {"replies_are_whole", "failures_are_told"},
    SaysMore: {"nothing_comes_after_the_whole"},
    CountsTwice: {"usage_is_told_once"},
    DropsTheSystem: {"requests_go_out_whole"},
    SaysNotWhatToolsAreFor: {"requests_go_out_whole"},
    LeavesATask: {"nothing_is_left_running"},
    EndsTwice: {"replies_are_whole"},
    DropsWhatWasSaid: {"requests_go_out_whole"},
    SendsTheLast: {"requests_go_out_whole"},
    AsksAgain: {"each_request_has_its_own_reply"},
    Remembers: {"each_request_has_its_own_reply"},
    SwallowsFailures: {"failures_are_told"},
    TakesHalves: {"half_a_reply_is_none"},
    SwallowsCancels: {"who_stops_may_ask_again"},
    GivesUp: {"who_stops_may_ask_again"},
    TiresOfCancels: {"who_stops_may_ask_again"},
    NeverAnswers: {"replies_are_whole"},
}


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.__name__)
def test_what_has_gone_wrong_is_found(planted: Callable[[Env], Any]) -> None:
    assert broken_laws(lambda: check_model(planted)) >= PLANTED[planted]


def test_every_law_is_broken_by_something() -> None:
    assert {law.__name__ for law in LAWS} == set().union(*PLANTED.values())


def test_a_level_that_is_none_is_said_to_be_none() -> None:
    with pytest.raises(UsageError, match="unknown level 'radio'"):
        check_model(the_runs_own, level="radio")


def test_what_makes_no_model_is_said_to_make_none() -> None:
    nonsense: Any = None
    with pytest.raises(UsageError, match="expected a function that makes a model from an env"):
        check_model(nonsense)
