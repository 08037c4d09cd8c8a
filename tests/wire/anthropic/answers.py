"""Whole replies to write and read, and the parts in which they come."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from harness.core.json_text import Json
from harness.core.messages import Block, Message, ModelRequest, Text, Thinking, ToolCall, Usage
from harness.core.reply import ReplyDone, ReplyPart, TextDelta, ThinkingDelta, UsageReport
from harness.testing.strategies import chunkings
from harness.testing.strategies_values import ARGUMENTS, SELDOM, TEXTS
from harness.wire.anthropic.codec import Anthropic
from harness.wire.anthropic_words import redacted
from harness.wire.codec import QUIET, Answer, Asked, Cut, Noise

CODEC = Anthropic()
ASKED = Asked(ModelRequest("claude-x", "", ()), stream=True)
NOISES = st.builds(Noise, st.booleans(), st.booleans(), st.booleans())

OBJECTS = st.one_of(
    ARGUMENTS,
    st.dictionaries(TEXTS, TEXTS, max_size=2),
    st.sampled_from([{"INVALID_JSON": "{}"}, {"INVALID_JSON": "{", "a": 1}, {"x": [{"y": None}]}]),
)
_VALUES = st.one_of(OBJECTS, st.sampled_from([None, True, 2**60, -0.5, 1e300, "", "{", "é", []]))
SIGNATURES = st.sampled_from(["EqQBCgIYAhIM", "sig+/=="])
THOUGHTS = st.one_of(
    st.builds(Thinking, TEXTS, st.none() | SIGNATURES),
    st.builds(redacted, st.sampled_from(["", "EmwKAhgB"])),
)
RAWS = st.sampled_from(["{", '{"city": "Par', "no", " ", "{}}", '{"a":1,"a":2}'])


def calls(n: int, args: st.SearchStrategy[object] = _VALUES) -> st.SearchStrategy[ToolCall]:
    """The n-th call: with any arguments, or with such as are no JSON."""
    names = st.sampled_from(["weather", "clock"])
    return st.one_of(
        st.builds(ToolCall, st.just(f"toolu_{n}"), names, args),
        st.builds(ToolCall, st.just(f"toolu_{n}"), names, st.none(), RAWS),
    )


@st.composite
def answers(draw: DrawFn) -> Answer:
    """A reply of any blocks in any order, in the form that reading gives."""
    blocks: list[Block] = [
        draw(st.one_of(st.builds(Text, TEXTS), THOUGHTS, calls(n)))
        for n in range(draw(st.integers(0, 5)))
    ]
    prompt, cached = draw(st.integers(0, 99)), draw(st.integers(0, 9))
    output = draw(st.integers(0, 99))
    usage = Usage(prompt + cached, output, prompt + cached + output, cached, output // 2)
    stopped = draw(st.sampled_from(["end", "calls", "length", "filtered", "refused", "paused"]))
    refusal = draw(st.none() | TEXTS) if stopped == "refused" else None
    return Answer(Message("assistant", tuple(blocks)), usage, stopped, refusal, "msg_1", "claude-x")


@st.composite
def parts_of(draw: DrawFn, answer: Answer) -> list[ReplyPart]:
    """The parts of a reply, its texts cut anyhow; some of them may be missing."""
    parts: list[ReplyPart] = []
    for block in answer.message.content:
        match block:
            case Text(text=text):
                parts += [TextDelta(piece) for piece in draw(chunkings(text, empty=True))]
            case Thinking(text=text):
                parts += [ThinkingDelta(piece) for piece in draw(chunkings(text, empty=True))]
    if draw(st.booleans()):
        parts = parts[: draw(st.integers(0, len(parts)))]
    if answer.usage is not None:
        parts.append(UsageReport(answer.usage))
    return [*parts, ReplyDone(answer.message)]


@st.composite
def altered(draw: DrawFn, value: Json) -> Json:
    """A JSON value in which something is missing, or is something else."""
    odd = st.sampled_from([None, True, -1, 0.5, "", "odd", [], {}, [[]], {"type": "odd"}])
    if not isinstance(value, list | dict) or not value or draw(SELDOM):
        return draw(odd)
    key = draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
    if isinstance(value, list):
        return [*value[:key], draw(altered(value[key])), *value[key + 1 :]]
    if draw(SELDOM):
        return {name: item for name, item in value.items() if name != key}
    return {**value, key: draw(altered(value[key]))}


def halves(text: str) -> Sequence[str]:
    """Cut a text in two."""
    middle = (len(text) + 1) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


def frames(
    answer: Answer, parts: Sequence[ReplyPart], noise: Noise = QUIET, cut: Cut = halves
) -> list[bytes]:
    """The frames of a streamed reply."""
    encoder = CODEC.encoder(ASKED, answer, cut=cut, noise=noise)
    written = [frame for part in parts for frame in encoder.part(part)]
    over = any(isinstance(part, ReplyDone) for part in parts)
    return [*written, *encoder.end()] if over else written


def said(parts: Sequence[ReplyPart], kind: type[TextDelta | ThinkingDelta]) -> str:
    """What the deltas of a kind say together."""
    return "".join([part.text for part in parts if isinstance(part, kind)])
