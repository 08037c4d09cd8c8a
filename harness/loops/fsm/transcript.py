"""The conversation as a file for people, and its title."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.loops.fsm.messages import Message

TITLE_LENGTH = 50
_ROLES = "system|user|assistant|tool"
_HEADER = re.compile(
    rf"(?:^|(?<=\r))(\\*\*{{2,}}[^\S\r\n]*(?:{_ROLES})[^\S\r\n]*\*{{2,}}: )", re.MULTILINE
)
_UNPRINTED = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""White space, control characters, and halves of characters."""
_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])(\.|\Z)", re.IGNORECASE)
"""The beginning of a name that some systems take for a device."""


def saved_text(messages: Sequence[Message]) -> str:
    """The conversation in Markdown: who said what; of calls only the names are told."""
    entries: list[str] = []
    for message in messages:
        body = message.text()
        if message.tool_calls:
            names = f"[tool calls: {', '.join([call.name for call in message.tool_calls])}]"
            body = f"{body}\n{names}".strip()
        if body:
            entries.append(f"**{message.role}**: {escape_headers(body)}")
    return "\n\n".join(entries)


def escape_headers(text: str) -> str:
    r"""Put a backslash before each line that looks like the start of a message.

    >>> print(escape_headers("so:\n**user**: hi"))
    so:
    \**user**: hi
    """
    return _HEADER.sub(r"\\\1", text)


def clean_title(text: str) -> str:
    """A model's title on one line, without what divides paths, as it was recorded; may be empty.

    >>> clean_title(' "Fix: the a/b bug" ')
    'Fix-the-a-b-bug'
    """
    title = re.sub("[\r\n]", " ", text.strip()).strip('"')
    title = re.sub(r'[/\\:*?"<>|]', "-", title)
    return re.sub("[-_ ]+", "-", title)[:TITLE_LENGTH].rstrip("-")


def portable_title(text: str) -> str:
    """A model's title as a name that every file system takes; may be empty.

    >>> portable_title("Why NUL?..."), portable_title("nul.txt")
    ('Why-NUL', '-nul.txt')
    """
    title = clean_title(_UNPRINTED.sub(" ", text))
    if _DEVICE.match(title):
        title = f"-{title}"[:TITLE_LENGTH]
    return title.rstrip(".-")
