"""A reply as events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.core.json_text import Json
from harness.core.messages import Text, Thinking, ToolCall
from harness.core.reply import ReplyDone, ReplyFailed, ReplyPart, TextDelta, ThinkingDelta
from harness.wire import sse
from harness.wire.blockwise import Blockwise
from harness.wire.codec import Answer, Asked, Cut, Failure, Noise
from harness.wire.openai_responses.failures import Failing, written_event, written_failed
from harness.wire.openai_responses.items import call_words
from harness.wire.openai_responses.replies import (
    Refusing,
    Spoken,
    Writer,
    ending,
    head,
    spoken,
    strange,
    written_part,
)
from harness.wire.openai_words import input_of
from harness.wire.writing import Stencils, bytes_of


class ResponsesEncoder(Blockwise[Spoken]):
    """Writes one reply as events, in the order of dossier section 3.1.

    What is written is the message of the answer, block by block, each as an item: a part says how
    far of its text or reasoning, and `ReplyDone` brings the rest.
    """

    def __init__(
        self, asked: Asked, answer: Answer, cut: Cut, noise: Noise, failing: Failing
    ) -> None:
        super().__init__(spoken(answer), cut)
        given = asked.options.get("stream_options")
        options: dict[str, Json] = given if isinstance(given, dict) else {}
        self._asked = asked
        self._answer = answer
        self._noise = noise
        self._failing = failing
        self._obfuscated = noise.obfuscation and options.get("include_obfuscation") is not False
        self._writer = Writer(asked, answer, noise)
        self._count = 0
        self._stencils = Stencils()
        self._over = False
        self._of: dict[str, Any] = {}
        self._output: list[Json] = []

    def part(self, part: ReplyPart) -> Iterator[bytes]:
        """The frames of one part; none after the reply is over."""
        if self._over:
            return
        yield from self._begin()
        match part:
            case TextDelta(text=text):
                yield from self._say(Text, len(text))
            case ThinkingDelta(text=text):
                yield from self._say(Thinking, len(text))
            case ReplyDone():
                yield from self._say_all()
                response = ending(self._asked, self._answer, self._output)
                yield self._response(response["status"], response)
                self._over = True
            case ReplyFailed(message=message):
                yield from self.failure(Failure(500, message))
            case _:
                pass

    def end(self) -> Iterator[bytes]:
        """None: the response that is over is the last event."""
        yield from ()

    def failure(self, failure: Failure) -> Iterator[bytes]:
        """The frames that tell of a failure; nothing comes after it."""
        yield from self._begin()
        self._over = True
        if self._failing == "failed":
            response = head(self._asked, self._answer) | {"output": self._output}
            yield self._response("failed", response | written_failed(failure))
        else:
            yield self._frame("error", written_event(failure, self._failing))

    def _begin(self) -> Iterator[bytes]:
        if self._count:
            return
        response = head(self._asked, self._answer)
        yield self._response("created", response)
        yield self._response("in_progress", response)
        if self._noise.pings:
            yield sse.comment("keep-alive")
        if self._noise.unknown:
            yield self._frame("response.x_new", {})

    def _start(self, block: Spoken) -> Iterator[bytes]:
        item = self._writer.begun(self._at, block)
        self._of = {"item_id": item["id"], "output_index": self._at}
        yield self._frame("response.output_item.added", {"output_index": self._at, "item": item})
        match block:
            case Thinking(text=""):
                return
            case Thinking():
                self._of["summary_index"] = 0
                yield self._inside("reasoning_summary_part.added", part=_summary(""))
            case ToolCall():
                pass
            case _:
                self._of["content_index"] = 0
                empty = Refusing("") if isinstance(block, Refusing) else Text("")
                yield self._inside("content_part.added", part=written_part(empty))

    def _piece(self, block: Spoken, piece: str) -> bytes:
        if isinstance(block, Text):
            return self._delta("output_text.delta", piece, logprobs=[])
        return self._delta("reasoning_summary_text.delta", piece)

    def _stop(self, block: Spoken) -> Iterator[bytes]:
        match block:
            case Thinking(text=""):
                pass
            case Thinking(text=text):
                yield self._inside("reasoning_summary_text.done", text=text)
                yield self._inside("reasoning_summary_part.done", part=_summary(text))
            case ToolCall():
                yield from self._call(block)
            case Refusing(said=said):
                for piece in self._cut(said):
                    yield self._delta("refusal.delta", piece)
                yield self._inside("refusal.done", refusal=said)
                yield self._inside("content_part.done", part=written_part(block))
            case _:
                part = written_part(block)
                yield self._inside("output_text.done", text=part["text"], logprobs=[])
                yield self._inside("content_part.done", part=part)
        item = self._writer.item(self._at, block)
        self._output.append(item)
        yield self._frame("response.output_item.done", {"output_index": self._at, "item": item})

    def _call(self, call: ToolCall) -> Iterator[bytes]:
        """What a call is given, piece by piece and whole."""
        _, key = call_words(call.name, self._writer.custom)
        name = "custom_tool_call_input" if key == "input" else "function_call_arguments"
        given = input_of(call, self._writer.custom)
        for piece in self._cut(given):
            yield self._delta(f"{name}.delta", piece)
        named = {} if key == "input" else {"name": call.name}
        yield self._inside(f"{name}.done", **{key: given}, **named)

    def _delta(self, kind: str, piece: str, **more: Json) -> bytes:
        if self._obfuscated:
            more["obfuscation"] = "x" * (1 + self._count * 7 % 16)
            return self._inside(kind, delta=piece, **more)

        def write(text: str) -> bytes:
            return bytes_of({**self._of, "delta": text, **more, **strange(self._noise)})

        return self._numbered(f"response.{kind}", self._stencils.frame(self._at, write, piece))

    def _inside(self, kind: str, **rest: Json) -> bytes:
        """A frame about the item that is open."""
        return self._frame(f"response.{kind}", self._of | rest)

    def _response(self, state: str, response: dict[str, Any]) -> bytes:
        return self._frame(f"response.{state}", {"response": response})

    def _frame(self, kind: str, rest: dict[str, Any]) -> bytes:
        return self._numbered(kind, bytes_of({**rest, **strange(self._noise)}))

    def _numbered(self, kind: str, rest: bytes) -> bytes:
        """A frame with an object that tells all but what every event begins with."""
        number, named = self._count, kind.encode()
        self._count += 1
        begun = b'event: %b\ndata: {"type": "%b", "sequence_number": %d, ' % (named, named, number)
        return begun + rest[1:] + b"\n\n"


def _summary(text: str) -> dict[str, Json]:
    return {"type": "summary_text", "text": text}
