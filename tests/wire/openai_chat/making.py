"""Replies of any kind, and their way over the wire and back."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from msgspec.structs import replace

from harness.core.messages import Block, Message, ModelRequest, Text, Thinking, ToolCall, Usage
from harness.core.reply import ReplyDone, ReplyPart
from harness.fakes.parts import cut, stream_parts
from harness.fakes.script import Reply
from harness.testing.strategies import chunkings, replies
from harness.testing.strategies_values import TEXTS
from harness.wire.codec import QUIET, Answer, Asked, Cut, Noise, Stopped
from harness.wire.openai_chat.codec import OpenAIChat

CODEC = OpenAIChat()
ASKED = Asked(ModelRequest("m", "", ()), stream=True)
COUNTED = replace(ASKED, options={"stream_options": {"include_usage": True}})
NOISES = st.builds(Noise, st.booleans(), st.booleans(), st.booleans())
CUTS: st.SearchStrategy[Cut] = st.sampled_from([1, 2, 3, 16]).map(
    lambda size: lambda text: cut(text, 0, size)
)
_STOPS: st.SearchStrategy[Stopped] = st.sampled_from(["length", "filtered"])


def message_of(reply: Reply) -> Message:
    """What a scripted reply says."""
    content: list[Block] = []
    if reply.think:
        content.append(Thinking(reply.think))
    if reply.say:
        content.append(Text(reply.say))
    for n, call in enumerate(reply.calls):
        given = f"call_{n}" if call.id is None else call.id
        content.append(ToolCall(given, call.tool, None if call.raw else call.args, call.raw))
    return Message("assistant", tuple(content))


@st.composite
def given_replies(draw: DrawFn) -> tuple[Reply, Answer]:
    """A scripted reply, and what a decoder must read of it: what the protocol can carry."""
    reply = draw(replies(faults=False))
    message = message_of(reply)
    stopped: Stopped = draw(_STOPS) if draw(st.booleans()) else "calls" if reply.calls else "end"
    refusal = None
    if not (reply.say or reply.calls) and draw(st.booleans()):
        refusal, stopped = draw(TEXTS) or "No.", "refused"
    usage = reply.usage or Usage()
    usage = replace(usage, total_tokens=usage.prompt_tokens + usage.completion_tokens)
    return reply, Answer(message, usage, stopped, refusal, "chatcmpl-1", "m-2026", 1_700_000_000)


def parts_of(reply: Reply, answer: Answer, chunking: int = 0) -> list[ReplyPart]:
    """The parts of a scripted reply as the fake model gives them."""
    return stream_parts(reply, answer.message, chunking, reply.fault)[0]


def sent(
    asked: Asked,
    answer: Answer,
    parts: Sequence[ReplyPart],
    cut_by: Cut = lambda text: [text] if text else [],
    noise: Noise = QUIET,
) -> list[bytes]:
    """The frames of a reply."""
    encoder = CODEC.encoder(asked, answer, cut=cut_by, noise=noise)
    written = [frame for part in parts for frame in encoder.part(part)]
    over = any(isinstance(part, ReplyDone) for part in parts)
    return [*written, *encoder.end()] if over else written


def read(pieces: Sequence[bytes]) -> tuple[list[ReplyPart], Answer]:
    """What a decoder makes of bytes."""
    decoder = CODEC.decoder()
    parts = [part for piece in pieces for part in decoder.feed(piece)]
    return parts, decoder.end()


def pieces(draw: DrawFn, whole: bytes) -> Sequence[bytes]:
    """Some way to cut bytes."""
    return draw(chunkings(whole, empty=True))
