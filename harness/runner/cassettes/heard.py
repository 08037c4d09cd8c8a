"""What the interactions of a cassette say: requests as a model has them, replies as a client has
heard them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

from msgspec import Struct

from harness.core.messages import Message, ModelRequest, Text, Thinking, Usage
from harness.core.reply import TextDelta, ThinkingDelta, UsageReport
from harness.transport.cassettes.form import Cassette, Interaction
from harness.wire import CODECS, asked_by, codec_for, sse
from harness.wire.codec import (
    Answer,
    Asked,
    Codec,
    Failure,
    Garbled,
    ProviderError,
    Truncated,
    Unreadable,
)
from harness.wire.http import Response, first
from harness.wire.reading import json_of
from harness.wire.strict.rule import Issued

_OVER = frozenset(["response.completed", "response.incomplete", "response.failed"])
"""The events that hold a whole response of OpenAI's Responses."""


class Piece(Struct, frozen=True):
    """A piece of a streamed reply: when it came, in nanoseconds since the request."""

    at: int
    kind: Literal["text", "thinking"]
    text: str


class Heard(Struct, frozen=True, kw_only=True):
    """An interaction with a provider.

    `number` is its place in the cassette, from 1. `pieces` are what came of a stream, `answer` is
    the whole reply, where it came whole; `told`, where only what stands behind its end did not.
    Else `failure` is what the provider told of, and `garbled` why its answer is no reply: "" where
    there is none, or it only breaks off. `streamed` says that the answer is a stream.
    """

    number: int
    interaction: Interaction
    codec: Codec
    asked: Asked
    pieces: tuple[Piece, ...] = ()
    answer: Answer | None = None
    told: Answer | None = None
    failure: Failure | None = None
    garbled: str = ""
    usage: Usage | None = None
    streamed: bool = False

    @property
    def request(self) -> ModelRequest:
        """What was asked of the model."""
        return self.asked.request

    @property
    def message(self) -> Message:
        """What the client has of the reply, whole or not."""
        answer = self.answer or self.told
        if answer is not None:
            return answer.message
        said: list[Text | Thinking] = []
        if thought := self.said("thinking"):
            said.append(Thinking(thought))
        if text := self.said("text"):
            said.append(Text(text))
        return Message("assistant", tuple(said))

    def said(self, kind: Literal["text", "thinking"]) -> str:
        """All that came of one kind, in pieces."""
        return "".join([piece.text for piece in self.pieces if piece.kind == kind])

    @property
    def place(self) -> str:
        """Where it is, for people."""
        line = self.interaction.line
        return f"request {self.number}" + (f" (line {line})" if line else "")


def cancelled(heard: Heard) -> bool:
    """Whether the client went in the middle of a reply, and not from an error that it was told."""
    given = heard.interaction
    told = heard.failure is not None or not 200 <= (given.status or 200) < 300
    return given.ended == "cancelled" and heard.answer is None and not told


class Unheard(Struct, frozen=True):
    """An interaction that says nothing to a model, and why."""

    number: int
    interaction: Interaction
    why: str

    @property
    def place(self) -> str:
        """Where it is, for people."""
        line = self.interaction.line
        return f"request {self.number}" + (f" (line {line})" if line else "")


def hear(cassette: Cassette) -> list[Heard | Unheard]:
    """What each interaction says, in their order."""
    issued = {codec.name: Issued() for codec in CODECS}
    heard: list[Heard | Unheard] = []
    for number, each in enumerate(cassette.interactions, 1):
        codec = codec_for(each.request)
        if codec is None:
            known = ", ".join([known.name for known in CODECS])
            what = f"{each.request.method} {each.request.path}"
            heard.append(Unheard(number, each, f"{what} is of no protocol that is known ({known})"))
            continue
        try:
            asked = asked_by(codec, each.request, issued[codec.name])
        except Unreadable as error:
            heard.append(Unheard(number, each, f"its body cannot be read: {error}"))
            continue
        one = _Listening(codec, each).heard(number, asked)
        heard.append(one)
        if one.answer is not None and codec.name == "openai_responses":
            _keep(issued[codec.name], one)
    return heard


class _Listening:
    """An answer as it is put together from its chunks."""

    def __init__(self, codec: Codec, interaction: Interaction) -> None:
        self._codec = codec
        self._interaction = interaction
        self._pieces: list[Piece] = []
        self._usage: Usage | None = None

    def heard(self, number: int, asked: Asked) -> Heard:
        """What the interaction says."""
        given = self._interaction
        answer: Answer | None = None
        told: Answer | None = None
        failure: Failure | None = None
        garbled = ""
        kind = first(given.headers, "content-type") or ""
        status = given.status
        streamed = (
            status is not None and 200 <= status < 300 and not kind.startswith("application/json")
        )
        try:
            if streamed:
                answer = self._stream()
            elif status is not None:
                answer = self._codec.read_answer(Response(status, given.headers, given.body))
        except ProviderError as error:
            failure = error.failure
        except Truncated as cut:
            told = cut.told
        except Garbled as error:
            garbled = "" if given.ended in ("torn", "reset", "cancelled") else str(error)
        usage = self._usage if answer is None else answer.usage
        return Heard(
            number=number,
            interaction=given,
            codec=self._codec,
            asked=asked,
            pieces=tuple(self._pieces),
            answer=answer,
            told=told,
            failure=failure,
            garbled=garbled,
            usage=usage,
            streamed=streamed,
        )

    def _stream(self) -> Answer:
        decoder = self._codec.decoder()
        for chunk in self._interaction.chunks:
            parts = decoder.feed(chunk.data)
            self._pieces += [
                Piece(chunk.at, "text" if isinstance(part, TextDelta) else "thinking", part.text)
                for part in parts
                if isinstance(part, TextDelta | ThinkingDelta)
            ]
            usages = [part.usage for part in parts if isinstance(part, UsageReport)]
            self._usage = usages[-1] if usages else self._usage
        return decoder.end()


def _keep(issued: Issued, heard: Heard) -> None:
    """Remember a response by its own words, that later requests may refer to it."""
    body = heard.interaction.body
    told = _response_in(body) if heard.streamed else json_of(body)
    asked: Any = json_of(heard.interaction.request.body)
    with suppress(LookupError, TypeError):  # what it lacks is missed where a request refers to it
        issued.responses.keep(asked, told)


def _response_in(body: bytes) -> Any:
    """The response that the last event of a whole stream holds."""
    told: Iterator[Any] = (json_of(event.data) for event in sse.Reader().feed(body))
    return next(each["response"] for each in told if each.get("type") in _OVER)
