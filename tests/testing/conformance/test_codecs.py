"""Each protocol keeps the laws of all; each law is broken by a codec with one thing gone wrong."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from harness.core.errors import UsageError
from harness.core.messages import ToolCall
from harness.core.reply import TextDelta, UsageReport
from harness.testing.conformance import check_codec
from harness.testing.conformance.codecs import (
    LAWS,
    REQUESTS,
    leaves_what_it_is_given,
    replies_come_back,
    requests_come_back,
)
from harness.wire import CODECS
from harness.wire.codec import (
    QUIET,
    Asked,
    Codec,
    Failure,
    ProviderError,
    Secrets,
    Truncated,
    whole,
)
from harness.wire.http import Request
from harness.wire.openai_chat.codec import OpenAIChat
from tests.testing.conformance.broken import broken_laws, broken_of


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_every_protocol_conforms(codec: Codec) -> None:
    check_codec(codec)


class Shouts(OpenAIChat):
    name = "open ai"
    secrets = Secrets(headers=frozenset({"Authorization", "authorization"}))


class HidesNothing(OpenAIChat):
    secrets = Secrets()


class TakesAll(OpenAIChat):
    def is_for(self, request: Request) -> bool:
        return True


class TakesNone(OpenAIChat):
    def is_for(self, request: Request) -> bool:
        return False


class TakesStrangers(OpenAIChat):
    def is_for(self, request: Request) -> bool:
        return super().is_for(request) or request.path == "/v1/nobody/knows"


class ForgetsTheSystem(OpenAIChat):
    def read(self, request: Request) -> Asked:
        asked = super().read(request)
        return replace(asked, request=replace(asked.request, system=""), stream=False)


class ForgetsTools(OpenAIChat):
    def read(self, request: Request) -> Asked:
        asked = super().read(request)
        return replace(asked, request=replace(asked.request, tools=()))


class TellsTheKey(OpenAIChat):
    def write(self, asked: Asked, *, base: str = "", key: str = "") -> Request:
        written = super().write(asked, base=base, key=key)
        return replace(written, headers=(*written.headers, ("x-key", key)), url=f"{written.url}")


class WritesTheKey(OpenAIChat):
    def write(self, asked: Asked, *, base: str = "", key: str = "") -> Request:
        written = super().write(asked, base=base)
        return replace(written, body=written.body.replace(b"{", b'{"k": "%b", ' % key.encode(), 1))


class ForgetsDescriptions(OpenAIChat):
    def read(self, request: Request) -> Asked:
        asked = super().read(request)
        tools = tuple([replace(tool, description="") for tool in asked.request.tools])
        return replace(asked, request=replace(asked.request, tools=tools))


class AddsToArguments(OpenAIChat):
    def write(self, asked: Asked, *, base: str = "", key: str = "") -> Request:
        for message in asked.request.messages:
            for call in message.calls:
                call.args["seen"] = True
        return super().write(asked, base=base, key=key)


class AddsToReplies(OpenAIChat):
    def answer(self, asked: Asked, answer: Any, noise: Any = QUIET) -> Any:
        for call in answer.message.calls:
            call.args["seen"] = True
        return super().answer(asked, answer, noise)


class ForgetsUsage(OpenAIChat):
    def read_answer(self, response: Any) -> Any:
        return replace(super().read_answer(response), usage=None)


class Reading:
    """A decoder with something changed in it."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def feed(self, data: bytes) -> Any:
        return self.inner.feed(data)

    def end(self) -> Any:
        return self.inner.end()


class DropsPieces(OpenAIChat):
    class decoder(Reading):  # noqa: N801 - it stands for the method
        def __init__(self) -> None:
            super().__init__(OpenAIChat().decoder())

        def feed(self, data: bytes) -> Any:
            return [each for each in super().feed(data) if not isinstance(each, TextDelta)]


class CountsTwice(OpenAIChat):
    class decoder(Reading):  # noqa: N801
        def __init__(self) -> None:
            super().__init__(OpenAIChat().decoder())

        def feed(self, data: bytes) -> Any:
            parts = super().feed(data)
            return [*parts, *[each for each in parts if isinstance(each, UsageReport)]]


class LosesCallIds(OpenAIChat):
    """Of calls that are streamed."""

    class decoder(Reading):  # noqa: N801
        def __init__(self) -> None:
            super().__init__(OpenAIChat().decoder())

        def end(self) -> Any:
            answer = super().end()
            content = [
                replace(block, id="") if isinstance(block, ToolCall) else block
                for block in answer.message.content
            ]
            return replace(answer, message=replace(answer.message, content=tuple(content)))


class ReadsOneAtATime(OpenAIChat):
    """Gives whoever comes to the end of a stream the one that was read last."""

    last: Any = None

    def decoder(self) -> Any:
        codec = self

        class Decoder(Reading):
            def feed(self, data: bytes) -> Any:
                codec.last = self.inner
                return super().feed(data)

            def end(self) -> Any:
                return codec.last.end()

        return Decoder(super().decoder())


class ReadsLines(OpenAIChat):
    """Takes what comes at once for whole lines."""

    class decoder(Reading):  # noqa: N801
        def __init__(self) -> None:
            super().__init__(OpenAIChat().decoder())

        def feed(self, data: bytes) -> Any:
            return self.inner.feed(data if data.endswith(b"\n") else data + b"\n")


class DropsShortPieces(OpenAIChat):
    class decoder(Reading):  # noqa: N801
        def __init__(self) -> None:
            super().__init__(OpenAIChat().decoder())

        def feed(self, data: bytes) -> Any:
            parts = self.inner.feed(data)
            return parts if len(data) > 1 else []


class TakesHalves(OpenAIChat):
    """Gives what has come where a stream ends too early."""

    class decoder(Reading):  # noqa: N801
        def __init__(self) -> None:
            super().__init__(OpenAIChat().decoder())

        def end(self) -> Any:
            try:
                return super().end()
            except Truncated:
                inner = OpenAIChat().decoder()
                inner.feed(b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n')
                return inner.end()


class MindsComments(OpenAIChat):
    class decoder(Reading):  # noqa: N801
        def __init__(self) -> None:
            super().__init__(OpenAIChat().decoder())

        def feed(self, data: bytes) -> Any:
            return self.inner.feed(data.replace(b": ping\n", b"data: \xc3\xa4\n"))


class SwallowsFailures(OpenAIChat):
    def failure(self, failure: Failure) -> Any:
        return replace(super().failure(failure), status=200, body=b'{"choices": [{"message": {}}]}')


class TakesAllForItsOwnFault(OpenAIChat):
    def read_answer(self, response: Any) -> Any:
        try:
            return super().read_answer(response)
        except ProviderError as error:
            raise ProviderError(replace(error.failure, status=400)) from error


class ForgetsWhenToAskAgain(OpenAIChat):
    def failure(self, failure: Failure) -> Any:
        return super().failure(replace(failure, headers=()))


class OtherWords(OpenAIChat):
    def failure(self, failure: Failure) -> Any:
        return super().failure(replace(failure, message="It failed."))


class TripsOverDamage(OpenAIChat):
    class decoder(Reading):  # noqa: N801
        def __init__(self) -> None:
            super().__init__(OpenAIChat().decoder())

        def feed(self, data: bytes) -> Any:
            data.decode()
            return super().feed(data)


class ReadsAnything(OpenAIChat):
    def read(self, request: Request) -> Asked:
        try:
            return super().read(request)
        except Exception:
            return super().read(self.write(Asked(REQUESTS[0])))


class CountsItsRequests(OpenAIChat):
    counter = count()

    def write(self, asked: Asked, *, base: str = "", key: str = "") -> Request:
        written = super().write(asked, base=base, key=key)
        return replace(written, headers=(*written.headers, ("x-number", str(next(self.counter)))))


class NumbersItsReplies(OpenAIChat):
    counter = count()

    def answer(self, asked: Asked, answer: Any, noise: Any = QUIET) -> Any:
        written = super().answer(asked, answer, noise)
        return replace(written, headers=(*written.headers, ("x-number", str(next(self.counter)))))


class NumbersItsStreams(OpenAIChat):
    counter = count()

    def encoder(self, asked: Any, answer: Any, *, cut: Any = whole, noise: Any = QUIET) -> Any:
        renamed = replace(answer, id=f"chatcmpl-{next(self.counter)}")
        return super().encoder(asked, renamed, cut=cut, noise=noise)


PLANTED = {
    TakesStrangers: {"knows_its_requests"},
    DropsShortPieces: {"pieces_do_not_matter"},
    NumbersItsReplies: {"the_same_bytes_every_time"},
    NumbersItsStreams: {"the_same_bytes_every_time"},
    Shouts: {"is_named"},
    HidesNothing: {"is_named", "the_key_is_where_secrets_are"},
    TakesAll: {"knows_its_requests"},
    TakesNone: {"knows_its_requests"},
    ForgetsTheSystem: {"requests_come_back"},
    ForgetsTools: {"requests_come_back"},
    TellsTheKey: {"the_key_is_where_secrets_are"},
    WritesTheKey: {"the_key_is_where_secrets_are"},
    ForgetsUsage: {"replies_come_back", "noise_changes_nothing"},
    ForgetsDescriptions: {"requests_come_back"},
    AddsToArguments: {"leaves_what_it_is_given"},
    AddsToReplies: {"leaves_what_it_is_given"},
    CountsTwice: {"streams_say_the_same"},
    LosesCallIds: {"streams_say_the_same"},
    ReadsOneAtATime: {"streams_do_not_meet"},
    TakesAllForItsOwnFault: {"failures_are_told"},
    ForgetsWhenToAskAgain: {"failures_are_told"},
    DropsPieces: {"streams_say_the_same"},
    ReadsLines: {"pieces_do_not_matter"},
    TakesHalves: {"a_cut_is_told"},
    MindsComments: {"noise_changes_nothing"},
    SwallowsFailures: {"failures_are_told"},
    OtherWords: {"failures_are_told"},
    TripsOverDamage: {"damage_is_named"},
    ReadsAnything: {"damage_is_named"},
    CountsItsRequests: {"the_same_bytes_every_time"},
}


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.__name__)
def test_what_has_gone_wrong_is_found(planted: type[OpenAIChat]) -> None:
    assert broken_of(planted(), LAWS, PLANTED[planted]) == PLANTED[planted]


def test_a_check_tells_of_every_law_that_is_broken() -> None:
    assert broken_laws(lambda: check_codec(HidesNothing())) == PLANTED[HidesNothing]


def test_a_codec_that_changes_what_it_is_given_spoils_nothing_for_others() -> None:
    laws = (requests_come_back, replies_come_back, leaves_what_it_is_given)
    for planted in (AddsToArguments(), AddsToReplies()):
        assert not any([*law(OpenAIChat())] for law in laws)
        assert any([*law(planted)] for law in laws)
    assert not any([*law(OpenAIChat())] for law in laws)


@pytest.mark.parametrize("nonsense", [None, OpenAIChat, "openai_chat", object()])
def test_what_is_no_codec_is_said_to_be_none(nonsense: Any) -> None:
    with pytest.raises(UsageError, match="expected a codec, an object with name, prefix"):
        check_codec(nonsense)


def test_every_law_is_broken_by_something() -> None:
    assert {law.__name__ for law in LAWS} == set().union(*PLANTED.values())
