"""How large a message is, estimated: a token for every four bytes, and something for the frame."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TypeAlias

from harness.core import json_text
from harness.core.messages import Block, Image, Message, Text, Thinking, ToolCall

Estimate: TypeAlias = Callable[[Message], int]
"""The size of one message in tokens; never negative, and the same for the same message."""

PER_MESSAGE = 4
PER_CALL = 10
PER_IMAGE = 85
PIXELS_PER_TOKEN = 750


def text_tokens(text: str) -> int:
    """The size of a text: a quarter of its UTF-8 bytes, rounded up; a lone surrogate is three.

    >>> text_tokens("hello"), text_tokens("漢字")
    (2, 2)
    """
    return (_utf8_bytes(text) + 3) >> 2


def message_tokens(message: Message) -> int:
    """The size of a message; a call's id is not counted, a result's is."""
    content = message.content
    if len(content) == 1 and type(content[0]) is Text:
        total = PER_MESSAGE + text_tokens(content[0].text)
    else:
        total = PER_MESSAGE + sum([_block_tokens(block) for block in content])
    if message.tool_call_id is not None:
        total += text_tokens(message.tool_call_id)
    return total


def _block_tokens(block: Block) -> int:
    match block:
        case Text(text=text) | Thinking(text=text):
            return text_tokens(text)
        case ToolCall(name=name, args=args, raw=raw):
            written = json_text.dumps(args) if raw is None else raw
            return PER_CALL + text_tokens(name) + text_tokens(written)
        case Image(width=width, height=height):
            return PER_IMAGE + math.ceil(_area(width, height) / PIXELS_PER_TOKEN)


def _area(width: float, height: float) -> float:
    if not (0 < width < math.inf and 0 < height < math.inf):
        return 0
    return min(width * height, sys.float_info.max)


def _utf8_bytes(text: str) -> int:
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return len(json_text.well_formed(text).encode("utf-8", "surrogatepass"))
