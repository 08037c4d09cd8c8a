"""Roughly what a provider would count: the yardstick for a loop's own estimates.

Four ASCII characters are a token, two characters of the scripts below U+0800, one of any other; a
picture costs by its area. Real tokenizers differ by model; none is off by a factor of two for long.
"""

from __future__ import annotations

import re

from harness.core import json_text
from harness.core.messages import Image, Message, Text, Thinking, ToolCall

_NARROW = re.compile("[\x00-\x7f]")
_WIDE = re.compile("[\u0800-\U0010ffff]")


def text_tokens(text: str) -> float:
    """The rough number of tokens of a text.

    >>> text_tokens("four"), text_tokens("да"), text_tokens("汉字")
    (1.0, 1.0, 2.0)
    """
    if text.isascii():
        return len(text) / 4
    narrow, wide = len(_NARROW.findall(text)), len(_WIDE.findall(text))
    return narrow / 4 + (len(text) - narrow - wide) / 2 + wide


def message_tokens(message: Message) -> float:
    """The rough number of tokens of a message, a few for its frame included."""
    total = 4.0
    for block in message.content:
        match block:
            case Text(text=text) | Thinking(text=text):
                total += text_tokens(text)
            case ToolCall(name=name, args=args, raw=raw):
                total += 8 + text_tokens(name) + text_tokens(raw or json_text.dumps(args))
            case Image(width=width, height=height):
                total += 85 + max(width, 0) * max(height, 0) / 750
    return total
