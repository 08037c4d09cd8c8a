"""A response on its way to become a reply of the neutral port; a request as a protocol says it."""

from __future__ import annotations

from collections import deque

import httpx2
from msgspec.structs import replace

from harness.core.messages import Message, ModelRequest, Thinking, ToolCall
from harness.core.ports import ProviderFailed
from harness.core.reply import (
    ReplyDone,
    ReplyFailed,
    ReplyInterrupted,
    ReplyPart,
    TextDelta,
    ThinkingDelta,
    UsageReport,
)
from harness.wire import http
from harness.wire.codec import Answer, Codec, Failure, Garbled, ProviderError, Truncated


class Reading:
    """A response on its way to become a reply: bytes in, parts out, whoever carries them."""

    def __init__(self, codec: Codec, status: int, headers: http.Headers, key: str) -> None:
        self.refused = not 200 <= status < 300
        self.parts: deque[ReplyPart] = deque()
        self._codec = codec
        self._status = status
        self._headers = headers
        self._key = key
        self._body: list[bytes] = []
        kind = http.first(headers, "content-type") or ""
        whole = self.refused or kind.startswith("application/json")
        self._decoder = None if whole else codec.decoder()

    def feed(self, data: bytes) -> bool:
        """Take bytes; True where nothing more can come of what follows."""
        if self._decoder is None:
            self._body.append(data)
            return False
        try:
            self.parts += self._decoder.feed(data)
        except ProviderError as error:
            self.parts.append(ReplyFailed("stream", self._told(error.failure)))
            return True
        except Garbled as error:
            raise self._garbled(error) from None
        return False

    def end(self) -> None:
        """The response is over; ProviderFailed where it was no reply."""
        try:
            if self._decoder is not None:
                self.parts += _endings(self._decoder.end())
            else:
                body = b"".join(self._body)
                answer = self._codec.read_answer(http.Response(self._status, self._headers, body))
                self.parts += _parts(answer)
        except Truncated:
            return  # there is no part for that: nothing says that the reply is over
        except ProviderError as error:
            raise ProviderFailed(self._told(error.failure)) from None
        except Garbled as error:
            raise self._garbled(error) from None

    def broke(self, error: httpx2.HTTPError) -> ProviderFailed:
        """What the loop is told where the connection broke."""
        return ProviderFailed(broken(self._codec, error, self._key))

    def _told(self, failure: Failure) -> str:
        words = [word for word in (failure.kind, failure.code) if word]
        named = f"{failure.status} {'/'.join(words)}".strip()
        return _without(self._key, f"{self._codec.name} answered {named}: {failure.message}")

    def _garbled(self, error: Garbled) -> ProviderFailed:
        said = f"{self._codec.name} answered {self._status} with what is no reply: {error}"
        return ProviderFailed(_without(self._key, said))


def sayable(request: ModelRequest, codec: Codec) -> ModelRequest:
    """A request as a protocol can say it: system messages that lead the others belong to the system
    prompt, Anthropic takes no temperature any more, and Gemini wants a signature that belongs to no
    words beside the first call.
    """
    messages = list(request.messages)
    system = [request.system] if request.system else []
    while messages and messages[0].role == "system":
        system.append(messages.pop(0).text)
    warm = None if codec.name == "anthropic" else request.temperature
    if codec.name == "gemini":
        messages = [signed_before_calls(message) for message in messages]
    return replace(request, system="\n\n".join(system), messages=tuple(messages), temperature=warm)


def signed_before_calls(message: Message) -> Message:
    """The message with signed reasoning without words right before its first call, if any."""
    calls = [at for at, block in enumerate(message.content) if isinstance(block, ToolCall)]
    if not calls:
        return message
    before, rest = message.content[: calls[0]], message.content[calls[0] :]
    bare = [block for block in before if isinstance(block, Thinking) and not block.text]
    said = [block for block in before if block not in bare]
    return replace(message, content=(*said, *bare, *rest))


def _parts(answer: Answer) -> list[ReplyPart]:
    """A whole reply as the parts in which it would have come."""
    thoughts = [block.text for block in answer.message.content if isinstance(block, Thinking)]
    thought = "".join(thoughts)
    parts: list[ReplyPart] = [ThinkingDelta(thought)] if thought else []
    if said := answer.message.text:
        parts.append(TextDelta(said))
    if answer.usage is not None:
        parts.append(UsageReport(answer.usage))
    return [*parts, *_endings(answer)]


def _endings(answer: Answer) -> list[ReplyPart]:
    """The part that ends a reply: one that was cut off is none."""
    if answer.stopped in ("length", "filtered"):
        return [ReplyInterrupted()]
    return [ReplyDone(answer.message)]


def broken(codec: Codec, error: httpx2.HTTPError, key: str) -> str:
    """What is said where the connection broke."""
    said = str(error) or "no more is known"
    return _without(key, f"the connection to {codec.name} failed: {type(error).__name__}: {said}")


def _without(key: str, text: str) -> str:
    """A text that does not show the key, which some providers repeat."""
    return text.replace(key, "[key]") if key else text
