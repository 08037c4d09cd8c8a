"""Whole replies to write and read."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from msgspec.structs import replace

from harness.core.messages import (
    Block,
    Image,
    Message,
    ModelRequest,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from harness.core.reply import ReplyDone, ReplyPart
from harness.testing.strategies_values import TEXTS
from harness.wire.codec import QUIET, Answer, Asked, Cut, Noise
from harness.wire.gemini.codec import Gemini
from harness.wire.gemini.parts import placed
from tests.wire.anthropic.answers import OBJECTS, halves

CODEC = Gemini()
NEW, OLD = "gemini-3-pro", "gemini-2.5-flash"
ASKED = Asked(ModelRequest(NEW, "", ()), stream=True)
BEFORE = Asked(ModelRequest(OLD, "", ()), stream=True)

SIGNATURES = st.sampled_from(["EqQB+/8=", "sig", "sig_1"])
WORDS = TEXTS.filter(bool)
THOUGHTS = st.one_of(
    st.builds(Thinking, WORDS, st.none() | SIGNATURES), st.builds(Thinking, st.just(""), SIGNATURES)
)
IMAGES = st.sampled_from(
    [
        Image("data:image/png;base64,AA==", "image/png"),
        Image("https://pictures.test/1.png", "image/png"),
        Image("gs://pictures/2"),
    ]
)


def _follows(block: Block, last: Block | None) -> bool:
    """Whether a reader could tell a block from the one before it."""
    match last, block:
        case (Text(), Text()):
            return False
        case (Thinking(signature=None), Thinking(text=text)):
            return not text
        case _:
            return True


def _signed(blocks: list[Block]) -> list[Block]:
    """The same with a signature that belongs to the first call."""
    content = placed(Message("assistant", tuple(blocks)))
    first = next((each for each in content if isinstance(each.block, ToolCall)), None)
    if first is None or first.signature is not None:
        return blocks
    at = blocks.index(first.block)
    thoughts = [n for n in range(at) if isinstance(blocks[n], Thinking)]
    last = blocks[thoughts[-1]] if thoughts else None
    if isinstance(last, Thinking) and last.signature is None:
        return [
            *blocks[: thoughts[-1]],
            replace(last, signature="c2ln"),
            *blocks[thoughts[-1] + 1 :],
        ]
    return [*blocks[:at], Thinking("", "c2ln"), *blocks[at:]]


@st.composite
def contents(draw: DrawFn, model: str) -> tuple[Block, ...]:
    """The blocks of a reply, in the form that reading gives."""
    blocks: list[Block] = []
    count = 0
    for _ in range(draw(st.integers(0, 6))):
        call_id = f"c{count}" if model == NEW else f"rid_{count}"
        names = st.sampled_from(["weather", "clock"])
        calls = st.builds(ToolCall, st.just(call_id), names, OBJECTS)
        block = draw(st.one_of(st.builds(Text, WORDS), THOUGHTS, calls, IMAGES))
        if _follows(block, blocks[-1] if blocks else None):
            blocks.append(block)
            count += isinstance(block, ToolCall)
    return tuple(_signed(blocks) if model == NEW else blocks)


@st.composite
def answers(draw: DrawFn, model: str = NEW) -> Answer:
    """A reply of any blocks in any order."""
    message = Message("assistant", draw(contents(model)))
    prompt, output = draw(st.integers(0, 99)), draw(st.integers(0, 99))
    usage = Usage(prompt, output, prompt + output, draw(st.integers(0, prompt)), output // 2)
    usual = "calls" if message.calls else "end"
    stopped = draw(st.sampled_from([usual, "length", "filtered", "refused"]))
    refusal = draw(st.none() | TEXTS) if stopped == "refused" else None
    return Answer(message, usage, stopped, refusal, "rid", model)


def frames(
    answer: Answer,
    parts: Sequence[ReplyPart],
    noise: Noise = QUIET,
    cut: Cut = halves,
    asked: Asked = ASKED,
) -> list[bytes]:
    """The frames of a streamed reply."""
    encoder = CODEC.encoder(asked, answer, cut=cut, noise=noise)
    written = [frame for part in parts for frame in encoder.part(part)]
    over = any(isinstance(part, ReplyDone) for part in parts)
    return [*written, *encoder.end()] if over else written
