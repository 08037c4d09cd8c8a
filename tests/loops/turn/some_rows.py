"""Rows of every kind, made up: what a property of all rows is tried on."""

from __future__ import annotations

from hypothesis import strategies as st

from harness.core.messages import Image, Thinking
from harness.core.outcome import CANCELLED, COMPLETED, INTERRUPTED, STEP_LIMIT, Error
from harness.core.rows import (
    AssistantRow,
    ThinkingRow,
    ToolCallRow,
    ToolResultRow,
    TurnEndRow,
    TurnStartRow,
    UserRow,
)

texts = st.text(st.sampled_from('aé"\\\n\ud800😀'), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)
outcomes = st.sampled_from([COMPLETED, CANCELLED, STEP_LIMIT, INTERRUPTED]) | st.builds(
    Error, st.sampled_from(["generate", "stream"]), texts
)
some_rows = st.one_of(
    st.builds(TurnStartRow, texts),
    st.builds(UserRow, texts, st.lists(st.builds(Image, texts, texts, st.just(3.5), st.just(2)))
              .map(tuple)),
    st.builds(ThinkingRow, texts),
    st.builds(AssistantRow, texts),
    st.builds(AssistantRow, texts, st.lists(st.builds(Thinking, texts, texts)).map(tuple)),
    st.builds(ToolCallRow, texts, texts, values),
    st.builds(ToolCallRow, texts, texts, values, texts, texts),
    st.builds(ToolResultRow, texts, values, st.none() | texts),
    st.builds(ToolResultRow, texts, values, st.none() | texts, texts),
    st.builds(TurnEndRow, texts, outcomes),
)  # fmt: skip
