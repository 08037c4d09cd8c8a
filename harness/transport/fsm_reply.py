"""A chat completion as the state-machine loop's client understands it: chunks in, a message out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from harness.core.json_plain import loads
from harness.core.json_text import Json
from harness.core.ports import ProviderFailed
from harness.loops.fsm.client import Usage
from harness.loops.fsm.messages import Message, ToolCall
from harness.wire.sse import LONGEST

_DONE = "[DONE]"


class ApiError(ProviderFailed):
    """The provider will not answer, whatever is tried."""


class Lines:
    """The lines of a stream that begin with ``data:``, cut anywhere; others mean nothing."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[str]:
        """What such lines hold, of those that end in these bytes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST:
            raise ApiError(f"API error: a line of the stream has more than {LONGEST} bytes")
        yield from self._told(lines)

    def end(self) -> Iterator[str]:
        """The same for a last line that nothing has ended."""
        yield from self._told([self._rest])

    def _told(self, lines: list[bytes]) -> Iterator[str]:
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].decode("utf-8", "replace").strip()


class Reply:
    """What has come of a reply. `on_delta` hears each piece of text; its failure is its own."""

    def __init__(self, on_delta: Callable[[str], None] | None = None) -> None:
        self.over = False
        self._on_delta = on_delta
        self._content: list[str] = []
        self._thought: list[str] = []
        self._slots: list[_Slot] = []
        self._usage = Usage()

    def take(self, data: str) -> None:
        """Take a chunk of a stream; what is none is passed over. ApiError where it tells of one."""
        if data == _DONE:
            self.over = True
        with suppress(ValueError):
            self.read(loads(data), "delta")

    def read(self, body: Json, key: str) -> None:
        """Take what stands under `key` of the first choice: a ``delta``, or a whole ``message``."""
        if not isinstance(body, dict):
            return
        if error := body.get("error"):
            raise ApiError(f"API error: {_words(error)}")
        if isinstance(body.get("usage"), dict):
            self._usage = _usage(body["usage"])
        choices = body.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        said = first.get(key) if isinstance(first, dict) else None
        if not isinstance(said, dict):
            return
        self._say(said.get("reasoning_content"), self._thought)
        self._say(said.get("content"))
        calls = said.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self._call(call, len(self._slots) if key == "message" else None)

    def whole(self) -> tuple[Message, Usage]:
        """The message, and what it cost."""
        calls = [slot.call() for slot in sorted(self._slots, key=lambda slot: slot.index)]
        thought = "".join(self._thought) or None
        message = Message("assistant", "".join(self._content), calls or None, reasoning=thought)
        return message, self._usage

    def _say(self, text: Json, beside: list[str] | None = None) -> None:
        if not isinstance(text, str) or not text:
            return
        self._content.append(text)
        if beside is not None:
            beside.append(text)
        if self._on_delta is not None:
            with suppress(Exception):
                self._on_delta(text)

    def _call(self, fragment: dict[str, Json], place: int | None) -> None:
        """Take a piece of a call, or a whole one at its place: an index says of which call, else
        it is the newest, unless another id shows up.
        """
        index, call_id = fragment.get("index"), fragment.get("id")
        if not isinstance(index, int) or isinstance(index, bool):
            index = place
        newest = self._slots[-1] if self._slots else None
        if index is not None:
            slot = next((each for each in self._slots if each.index == index), None)
        else:
            slot = newest if newest is not None and newest.takes(call_id) else None
        if slot is None:
            following = max([each.index for each in self._slots], default=-1) + 1
            slot = _Slot(following if index is None else index)
            self._slots.append(slot)
        slot.add(call_id, fragment.get("function"))


class _Slot:
    """A call as it comes together: its pieces are joined, the name and the id too."""

    def __init__(self, index: int) -> None:
        self.index = index
        self._id = self._name = self._arguments = ""
        self._last_id = ""

    def takes(self, call_id: Json) -> bool:
        """Whether a piece with this id, which may be none, may be of this call."""
        return not call_id or not self._id or call_id in (self._id, self._last_id)

    def add(self, call_id: Json, function: Json) -> None:
        """Take a piece."""
        if isinstance(call_id, str):
            self._id += call_id
            self._last_id = call_id
        if isinstance(function, dict):
            self._name += _text(function.get("name"))
            self._arguments += _text(function.get("arguments"))

    def call(self) -> ToolCall:
        """The call; one without an id is called after its index."""
        return ToolCall(self._id or f"call_{self.index}", self._name, self._arguments or "{}")


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _usage(told: dict[str, Json]) -> Usage:
    def count(*names: str) -> int:
        found = [told[name] for name in names if isinstance(told.get(name), int)]
        return int(found[0]) if found else 0

    return Usage(
        count("prompt_tokens", "input_tokens"), count("completion_tokens", "output_tokens")
    )


def _words(error: Json) -> str:
    told = error.get("message") if isinstance(error, dict) else None
    return str(told or error)
