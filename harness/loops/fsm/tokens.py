"""How much of the context window a request takes, estimated, and corrected by what was reported."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from harness.core import json_plain
from harness.core.json_text import Json

Windows: TypeAlias = tuple[tuple[str, int], ...]
"""Parts of model names with their windows; the first that fits counts."""

DEFAULT_WINDOW = 128_000
WINDOWS: Windows = (
    ("gpt-5-mini", 128_000),
    ("gpt-5", 400_000),
    ("gpt-oss-120b", 128_000),
    ("claude", 200_000),
    ("deepseek-v3", 128_000),
    ("deepseek-v4", 1_000_000),
    ("qwen3.5", 131_072),
    ("qwen3.6", 262_144),
    ("qwen3.8", 262_144),
    ("qwen3", 131_072),
    ("glm-5.2", 1_000_000),
    ("glm-5.1", 128_000),
    ("kimi-k2.7", 256_000),
    ("kimi", 128_000),
)
_WIDE = re.compile("[\u3000-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0002fa1f]")


def window_for(model: str, windows: Windows = WINDOWS) -> int:
    """The context window of a model, in tokens.

    >>> window_for("openai/GPT-5-mini"), window_for("unheard-of")
    (128000, 128000)
    """
    name = model.lower()
    return next((size for part, size in windows if part in name), DEFAULT_WINDOW)


def estimate(text: str) -> int:
    """The size of a text: two Chinese or Japanese characters are a token, four of any other.

    >>> estimate("abcdefgh"), estimate("漢字")
    (2, 1)
    """
    wide = 0 if text.isascii() else len(_WIDE.findall(text))
    return round((len(text) - wide) / 4 + wide / 2)


def payload_text(system: Json, messages: Sequence[Json], tools: Sequence[Json]) -> str:
    """All text of a request as it goes out: the system prompt, messages on the wire, tool specs."""
    entries = list(_system_texts(system))
    for message in messages:
        entries += _message_texts(message)
    entries += [json_plain.dumps_ascii(tool) for tool in tools]
    return "\n".join(entries)


def payload_tokens(system: Json, messages: Sequence[Json], tools: Sequence[Json]) -> int:
    """The size of a request in tokens, estimated."""
    return estimate(payload_text(system, messages, tools))


class Calibrator:
    """Corrects estimates by what the last reply was reported to cost, within bounds."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor
        self.last_raw: int | None = None

    def corrected(self, raw: int) -> int:
        """An estimate as the provider would probably count it."""
        self.last_raw = raw
        return round(raw * self.factor)

    def update(self, input_tokens: int | None, bounds: tuple[float, float]) -> None:
        """Take in what the request of the last estimate was reported to cost; 0 says nothing."""
        if input_tokens and input_tokens > 0 and self.last_raw:
            low, high = bounds
            self.factor = max(low, min(high, input_tokens / self.last_raw))


def _system_texts(system: Json) -> Iterator[str]:
    match system:
        case str():
            yield system
        case list(parts):
            yield from _texts(parts, ("text",))
        case {"parts": list(parts)}:
            yield from _texts([part for part in parts if isinstance(part, dict)], ("text",))
        case _:
            pass


def _message_texts(message: Json) -> Iterator[str]:
    match message.get("content"):
        case str(content):
            yield content
        case list(parts):
            yield from _texts(parts, ("thinking", "text", "arguments"))
        case _:
            pass
    if isinstance(thought := message.get("reasoning_content"), str):
        yield thought
    for call in message.get("tool_calls") or ():
        match call:
            case {"function": dict(function)}:
                yield from _texts([function], ("name",))
                yield from _texts([function], ("arguments",))
            case _:
                pass


def _texts(parts: list[Json], keys: Sequence[str]) -> Iterator[str]:
    """The texts of parts: a string itself, of an object the first string among `keys`."""
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            found = [part[key] for key in keys if isinstance(part.get(key), str)]
            yield from found[:1]
