"""A scripted reply as the parts of a stream, cut into deltas."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from harness.core.choices import Choices
from harness.core.json_text import copy
from harness.core.messages import Message, Thinking, ToolCall
from harness.core.reply import (
    ReplyDone,
    ReplyFailed,
    ReplyInterrupted,
    ReplyPart,
    TextDelta,
    ThinkingDelta,
    UsageReport,
)
from harness.fakes.neutral import NeutralFault
from harness.fakes.script import (
    DoneTwice,
    GenerateFails,
    Hang,
    LateThinking,
    Reply,
    StreamFails,
    Torn,
)
from harness.fakes.wire_faults import Stall

CHUNKINGS = 4
"""0 as the scenario says, 1 in one piece, 2 by character, 3 in halves."""
CHUNK = 16
"""How many characters a delta has where the scenario does not say."""


def cut(text: str, chunking: int, chunk: int | None) -> Sequence[str]:
    """Cut `text` into pieces that make it whole again; none for the empty text.

    >>> cut("sunny", 0, 2), cut("sunny", 1, 2), cut("sunny", 3, 2)
    (['su', 'nn', 'y'], ['sunny'], ['sun', 'ny'])
    """
    match chunking:
        case 0:
            size = chunk or CHUNK
        case 1:
            size = len(text)
        case 2:
            return text
        case _:
            size = (len(text) + 1) // 2
    return [text[at : at + size] for at in range(0, len(text), size)] if text else ()


def choose_chunking(choices: Choices, label: str, reply: Reply, fault: NeutralFault | None) -> int:
    """Choose how a reply is cut; the scenario's way where nothing is cut, and where `fault` counts
    the parts.
    """
    if isinstance(fault, GenerateFails | StreamFails | Torn | Hang | Stall):
        return 0
    if len(reply.say) < 2 and len(reply.think) < 2:
        return 0
    return choices.choose("chunking", label, CHUNKINGS)


def stream_parts(
    reply: Reply, message: Message, chunking: int, fault: NeutralFault | None
) -> tuple[list[ReplyPart], int]:
    """The parts to give, and before which of them the fault happens: at their number, when they
    are over; -1 is never.

    A fault that asks for more parts than there are comes after the last one, a torn stream always
    before the end signal. A stall takes the place of no part, and is told as never.
    """
    parts: list[ReplyPart] = [ThinkingDelta(p) for p in cut(reply.think, chunking, reply.chunk)]
    parts += [TextDelta(piece) for piece in cut(reply.say, chunking, reply.chunk)]
    if reply.usage is not None:
        parts.append(UsageReport(reply.usage))
    parts.append(_end_of(reply, message))
    match fault:
        case None | GenerateFails() | Hang(after=None) | Stall():
            return parts, -1
        case DoneTwice():
            return [*parts, _end_of(reply, message)], len(parts)
        case LateThinking(text=text):
            return [*parts, ThinkingDelta(text)], len(parts)
        case Torn(after=after):
            given = parts[: min(after, len(parts) - 1)]
        case Hang(after=int(after)):
            given = parts[:after]
        case StreamFails(after=after, message=error, reported=reported):
            given = parts[:after]
            if reported:
                return [*given, ReplyFailed("stream", error)], len(given)
    return given, len(given)


def _end_of(reply: Reply, message: Message) -> ReplyPart:
    """The end signal."""
    return ReplyInterrupted() if reply.cut_off else ReplyDone(_handed_out(message))


def _handed_out(message: Message) -> Message:
    """The message with arguments of its own: an agent may change them, script and trace may not."""
    content = [
        ToolCall(block.id, block.name, copy(block.args), block.raw)
        if isinstance(block, ToolCall)
        else block
        for block in message.content
    ]
    return Message(message.role, tuple(content))


def signed(message: Message, place: str) -> Message:
    """The message with a signature on all reasoning, since a provider signs whatever it thinks."""
    content = [
        Thinking(block.text, f"sig_{blake2b(f'{place}:{at}'.encode(), digest_size=9).hexdigest()}")
        if isinstance(block, Thinking) and block.signature is None
        else block
        for at, block in enumerate(message.content)
    ]
    return Message(message.role, tuple(content))
