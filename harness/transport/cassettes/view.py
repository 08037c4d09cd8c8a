"""What the chunks of a streamed reply say, in the words of the neutral form, for people to read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import structs

from harness.core.json_plain import loads
from harness.core.json_text import Json, dumps, well_formed
from harness.core.messages import Usage
from harness.core.reply import ReplyPart, TextDelta, ThinkingDelta, UsageReport
from harness.transport.cassettes.form import Interaction
from harness.wire import CODECS, sse
from harness.wire.codec import Decoder, Garbled, ProviderError
from harness.wire.http import first

WORDS = ("event", "text", "thinking", "call", "arguments", "stopped", "usage", "error")
"""What may be said of a chunk: the events that end in it, what they bring of the reply, the tools
that it begins to call and what it brings of their arguments, why the model stopped, what it cost,
and the failure that the provider told of.
"""

_HALF = re.compile("[\ud800-\udfff]")


def said(given: Interaction) -> list[dict[str, Json]]:
    """What each chunk of an answer says; nothing where it is no stream, and from where on it cannot
    be read.
    """
    kind = first(given.headers, "content-type") or ""
    if given.status is None or not kind.startswith("text/event-stream"):
        return [{} for _ in given.chunks]
    codec = next((each for each in CODECS if each.name == given.protocol), None)
    reader = _Reader(codec.decoder() if codec and 200 <= given.status < 300 else None)
    views = [reader.feed(chunk.data) for chunk in given.chunks]
    reader.end()
    return [view.words() for view in views]


class _View:
    """What comes together of one chunk."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.texts: dict[str, list[str]] = {"text": [], "thinking": []}
        self.calls: list[str] = []
        self.arguments: list[list[str]] = []
        """Those of each call that is meant, in pieces."""
        self.stopped = ""
        self.usage: Usage | None = None
        self.error = ""

    def words(self) -> dict[str, Json]:
        """All of it, without what is not there, in one order."""
        texts = {word: _whole(pieces) for word, pieces in self.texts.items() if pieces}
        arguments = [_whole(pieces) for pieces in self.arguments]
        usage = structs.asdict(self.usage) if self.usage else {}
        found: dict[str, Json] = {
            **texts,
            "event": _one_or_more(
                [
                    _whole([name])
                    for before, name in zip(["", *self.events], self.events, strict=False)
                    if name != before
                ]
            ),
            "call": _one_or_more([_whole([name]) for name in self.calls]),
            "arguments": _one_or_more([each for each in arguments if each]),
            "stopped": self.stopped,
            "usage": {name: count for name, count in usage.items() if count},
            "error": _whole([self.error]),
        }
        return {word: found[word] for word in WORDS if found.get(word)}


def _whole(pieces: list[str]) -> str:
    """Pieces as one text that a file can hold: half of a surrogate pair becomes U+FFFD."""
    text = "".join(pieces)
    return text if text.isascii() else _HALF.sub("\ufffd", well_formed(text))


def _one_or_more(words: list[str]) -> Json:
    """Several words as a list, one as itself."""
    return words[0] if len(words) == 1 else words


class _Reader:
    """Reads a stream, and gives for each chunk what ends in it."""

    def __init__(self, decoder: Decoder | None) -> None:
        self._decoder = decoder
        self._frames: sse.Reader | None = sse.Reader()
        self._stopping: _View | None = None

    def feed(self, data: bytes) -> _View:
        """What ends in these bytes."""
        view = _View()
        if self._frames is None:
            return view
        try:
            events = self._frames.feed(data)
        except (UnicodeDecodeError, sse.TooLong):
            self._frames = self._decoder = None
            return view
        for event in events:
            self._event(event, view)
        self._decode(data, view)
        return view

    def end(self) -> None:
        """The stream is over: say why the model stopped, where it says so."""
        if self._decoder is None or self._stopping is None:
            return
        try:
            self._stopping.stopped = self._decoder.end().stopped
        except (Garbled, ProviderError):
            return  # it said that it stops, and not the rest

    def _event(self, event: sse.Event, view: _View) -> None:
        try:
            told = loads(event.data)
        except ValueError:
            told = None
        kind = told.get("type") if isinstance(told, dict) else None
        name = event.name or (kind if isinstance(kind, str) else "")
        if name:
            view.events.append(name)
        if self._decoder is None:
            return
        for word, text in _beside(told):
            match word:
                case "arguments":
                    view.arguments = view.arguments or [[]]
                    view.arguments[-1].append(text)
                case "call":
                    view.calls.append(text)
                    view.arguments.append([])
                case _:
                    self._stopping = view

    def _decode(self, data: bytes, view: _View) -> None:
        if self._decoder is None:
            return
        try:
            for part in self._decoder.feed(data):
                _take(view, part)
        except ProviderError as error:
            failure = error.failure
            view.error = ": ".join(filter(None, (failure.kind, failure.message)))
            self._decoder = None
        except Garbled:
            self._decoder = None


def _take(view: _View, part: ReplyPart) -> None:
    match part:
        case TextDelta(text):
            view.texts["text"].append(text)
        case ThinkingDelta(text):
            view.texts["thinking"].append(text)
        case UsageReport(usage):
            view.usage = usage
        case _:  # no decoder gives others
            pass


def _beside(told: Any) -> Iterator[tuple[str, str]]:
    """What an event says that decoders tell only at the end: the name of a call that begins, a
    piece of its arguments, that the model stopped.
    """
    match told:
        case {"choices": [{**choice}, *_]}:
            yield from _chat(choice)
        case {"candidates": [{**candidate}, *_]}:
            yield from _gemini(candidate)
        case {
            "type": "content_block_start",
            "content_block": {"type": "tool_use", "name": str(name)},
        } | {
            "type": "response.output_item.added",
            "item": {"type": "function_call" | "custom_tool_call", "name": str(name)},
        }:
            yield "call", name
        case {"delta": {"type": "input_json_delta", "partial_json": str(piece)}}:
            yield "arguments", piece
        case {
            "type": "response.function_call_arguments.delta"
            | "response.custom_tool_call_input.delta",
            "delta": str(piece),
        }:
            yield "arguments", piece
        case {"type": "response.completed" | "response.incomplete"}:
            yield "stopped", ""
        case {"type": "message_delta", "delta": {"stop_reason": str()}}:
            yield "stopped", ""
        case _:
            pass


def _chat(choice: Mapping[object, Any]) -> Iterator[tuple[str, str]]:
    match choice:
        case {"delta": {"tool_calls": list(calls)}}:
            for call in calls:
                match call:
                    case {"function": {**told}} | {"custom": {**told}}:
                        if isinstance(name := told.get("name"), str):
                            yield "call", name
                        piece = told.get("arguments", told.get("input"))
                        if isinstance(piece, str):
                            yield "arguments", piece
                    case _:
                        pass
        case _:
            pass
    if choice.get("finish_reason"):
        yield "stopped", ""


def _gemini(candidate: Mapping[object, Any]) -> Iterator[tuple[str, str]]:
    match candidate:
        case {"content": {"parts": list(parts)}}:
            for part in parts:
                match part:
                    case {"functionCall": {"name": str(name), **rest}}:
                        yield "call", name
                        yield "arguments", dumps(rest.get("args") or {})
                    case _:
                        pass
        case _:
            pass
    if candidate.get("finishReason"):
        yield "stopped", ""
