from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.messages import Image, Message, Text, Thinking, ToolCall, tool_result, user
from harness.core.pairing import breaches
from harness.core.rows import UserRow
from harness.loops.turn.config import TEXTS
from harness.loops.turn.log import MemoryLog
from harness.loops.turn.tokens import Estimate, message_tokens, text_tokens
from harness.loops.turn.trim import UNTRIMMED, Ledger, Trimmed, TrimOutcome, token_budget, trim
from harness.testing.strategies import histories as valid_histories

MARKER = "[context-trimmed] {messages} message(s) ~{tokens} tokens"
texts = st.text(st.sampled_from("aé漢😀\ud800 "), max_size=40)


def group(names: list[str]) -> list[Message]:
    calls = tuple([ToolCall(name, "t", {"n": name}) for name in names])
    return [Message("assistant", calls), *[tool_result(name, "ok") for name in names]]


pieces = st.one_of(
    st.builds(lambda text: [user(text)], texts),
    st.builds(lambda text: [Message("assistant", (Text(text),))], texts),
    st.builds(lambda text: [Message("system", (Text(text),))], texts),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).map(group),
)
histories = st.lists(pieces, max_size=14).map(lambda parts: [m for part in parts for m in part])
windows = st.integers(-5, 400)
thresholds = st.floats(-0.5, 1.5) | st.just(math.nan)
keeps = st.integers(-3, 30)


def by_the_rules(
    messages: Sequence[Message], system: int, window: int, threshold: float, keep: int
) -> Trimmed:
    """The same, rule by rule, without a thought for time."""
    if window == 0:
        return tuple(messages), UNTRIMMED
    budget = token_budget(window, threshold)

    def size(some: Sequence[Message]) -> int:
        return sum(message_tokens(m) for m in some)

    def note(cut: int) -> Message:
        removed = size(rest[:cut])
        text = MARKER.replace("{messages}", str(cut)).replace("{tokens}", str(removed))
        return Message("system", (Text(text),))

    if system + size(messages) <= budget:
        return tuple(messages), UNTRIMMED
    systems = [m for m in messages if m.role == "system"]
    rest = [m for m in messages if m.role != "system"]
    cuts = [index for index, m in enumerate(rest) if m.role == "user"]
    if not cuts:
        return (*systems, *rest), UNTRIMMED
    preferred = max(0, len(rest) - max(1, keep))
    wanted = next((c for c in cuts if c >= preferred), None)
    fits = next(
        (c for c in cuts if system + size([*systems, note(c), *rest[c:]]) <= budget),
        None,
    )
    found = [c for c in (wanted, fits) if c is not None]
    cut = max(found) if found else cuts[-1]
    if cut == 0:
        return (*systems, *rest), UNTRIMMED
    kept = (*systems, note(cut), *rest[cut:])
    return kept, TrimOutcome(cut, size(rest[:cut]), trimmed=True)


@given(histories, st.integers(0, 60), windows, thresholds, keeps)
def test_sums_and_bisection_give_what_the_rules_give(
    messages: list[Message], system: int, window: int, threshold: float, keep: int
) -> None:
    limits = (system, window, threshold, keep)
    assert trim(messages, *limits, marker=MARKER) == by_the_rules(messages, *limits)


@given(histories, st.data())
def test_a_ledger_that_grows_gives_what_a_fresh_one_gives(
    messages: list[Message], data: st.DataObject
) -> None:
    ledger = Ledger()
    taken = 0
    while taken < len(messages):
        more = data.draw(st.integers(1, 4))
        ledger.extend(messages[taken : taken + more])
        taken += more
        limits = (data.draw(st.integers(0, 9)), data.draw(windows), 0.8, data.draw(keeps))
        so_far = messages[:taken]
        assert ledger.cut(*limits, MARKER) == trim(so_far, *limits, marker=MARKER)
        longer = ledger.extended(messages[taken:])
        assert longer.cut(*limits, MARKER) == trim(messages, *limits, marker=MARKER)


@given(histories, windows, keeps)
def test_what_is_left_is_in_the_budget_or_in_the_keep_window(
    messages: list[Message], window: int, keep: int
) -> None:
    before = list(messages)
    kept, outcome = trim(messages, 5, window, 0.8, keep, marker=MARKER)
    assert messages == before
    systems = [m for m in messages if m.role == "system"]
    if not outcome.trimmed:
        assert sorted(map(id, kept)) == sorted(map(id, messages))
        return
    assert list(kept[: len(systems)]) == systems
    note, tail = kept[len(systems)], kept[len(systems) + 1 :]
    assert note.text == f"[context-trimmed] {outcome.removed_messages} message(s) " + (
        f"~{outcome.removed_tokens} tokens"
    )
    rest = [m for m in messages if m.role != "system"]
    assert all(a is b for a, b in zip(tail, rest[outcome.removed_messages :], strict=True))
    assert tail[0].role == "user"
    assert breaches(tail) == breaches(rest)
    size = 5 + sum(message_tokens(m) for m in kept)
    last_user = max(i for i, m in enumerate(rest) if m.role == "user")
    fits = size <= token_budget(window, 0.8)
    assert fits or len(tail) <= max(1, keep) or outcome.removed_messages == last_user


@given(histories, windows, keeps)
def test_trimming_what_fits_after_a_trim_changes_nothing(
    messages: list[Message], window: int, keep: int
) -> None:
    kept, outcome = trim(messages, 5, window, 0.8, keep, marker=MARKER)
    if 5 + sum(message_tokens(m) for m in kept) <= token_budget(window, 0.8):
        assert trim(kept, 5, window, 0.8, keep, marker=MARKER) == (kept, UNTRIMMED)
    markers = [m for m in kept if m.text.startswith("[context-trimmed]")]
    assert len(markers) == outcome.trimmed


@given(valid_histories(), windows, keeps)
def test_what_is_left_of_a_valid_history_is_valid_and_has_the_last_question(
    messages: tuple[Message, ...], window: int, keep: int
) -> None:
    kept, outcome = trim(messages, 5, window, 0.8, keep, marker=MARKER)
    assert breaches(kept) == ()
    questions = [m for m in messages if m.role == "user"]
    assert not questions or kept[-1] is messages[-1] or messages[-1].role == "system"
    assert not questions or any(m is questions[-1] for m in kept)
    notes = [m for m in kept if m.text.startswith("[context-trimmed]")]
    assert len(kept) == len(messages) - outcome.removed_messages + len(notes)


@given(valid_histories(), windows, keeps, keeps)
def test_to_keep_more_never_keeps_less_if_the_shorter_window_holds_a_place_to_cut(
    messages: tuple[Message, ...], window: int, keep: int, other: int
) -> None:
    small, large = sorted([keep, other])
    rest = [m for m in messages if m.role != "system"]
    if any(m.role == "user" for m in rest[-max(1, small) :]):
        _, less = trim(messages, 5, window, 0.8, small)
        _, more = trim(messages, 5, window, 0.8, large)
        assert more.removed_messages <= less.removed_messages


@given(valid_histories(), windows, windows, keeps)
def test_a_larger_window_never_keeps_less_than_a_smaller_one_that_was_kept_to(
    messages: tuple[Message, ...], window: int, other: int, keep: int
) -> None:
    small, large = sorted([abs(window), abs(other)])
    if small == 0:
        return  # that is no window: nothing is cut
    kept, less = trim(messages, 5, small, 0.8, keep)
    _, more = trim(messages, 5, large, 0.8, keep)
    if 5 + sum(message_tokens(m) for m in kept) <= token_budget(small, 0.8):
        assert more.removed_messages <= less.removed_messages


def counting(counts: dict[str, int]) -> Estimate:
    def estimate(message: Message) -> int:
        kind = "note" if message.text.startswith("[context-trimmed]") else "message"
        counts[kind] = counts.get(kind, 0) + 1
        return message_tokens(message)

    return estimate


@pytest.mark.parametrize("size", [1_000, 10_000])
@pytest.mark.parametrize("make", [lambda n: user("word " * 20), lambda n: user("x" * (n % 7))])
def test_each_message_is_estimated_once_and_few_notes_are_scored(
    size: int, make: Callable[[int], Message]
) -> None:
    counts: dict[str, int] = {}
    messages = [make(n) for n in range(size)]
    _, outcome = trim(messages, 5, size, 0.8, 10, estimate=counting(counts))
    assert outcome.trimmed
    assert counts["message"] == size
    assert counts["note"] < 20


def test_one_message_more_is_one_estimate_more() -> None:
    counts: dict[str, int] = {}
    estimate = counting(counts)
    log = MemoryLog(rows=[UserRow("word " * 20)] * 1_000)
    log.ledger(estimate)
    assert counts == {"message": 1_000}
    log.append(UserRow("more"))
    _, outcome = log.ledger(estimate).cut(5, 1_000, 0.8, 10, TEXTS.trim_marker)
    assert outcome.trimmed
    assert counts["message"] == 1_001


def test_messages_are_used_again_and_the_window_0_cuts_nothing() -> None:
    messages = [user("word " * 100) for _ in range(20)]
    assert trim(messages, 0, 0, 0.8, 2) == (tuple(messages), UNTRIMMED)
    assert trim(messages, 0, 1, 0.8, 2)[0][-1] is messages[-1]


@pytest.mark.parametrize(
    ("window", "threshold", "budget"),
    [(100, 0.29, 28), (100, 7.0, 100), (100, -1.0, 1), (-3, 0.8, 1), (100, math.nan, 1)],
)
def test_the_budget_is_a_share_of_the_window_of_at_least_1(
    window: int, threshold: float, budget: int
) -> None:
    assert token_budget(window, threshold) == budget


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (user(""), 4),
        (user("hello"), 6),
        (user("漢字"), 6),
        (user("\ud800"), 5),
        (user("\ud83d\ude00"), 5),
        (tool_result("", ""), 4),
        (tool_result("c1", "1"), 6),
        (Message("assistant", (ToolCall("long id", "name", {}),)), 16),
        (Message("assistant", (ToolCall("id", "name", "\ud800"),)), 17),
        (Message("assistant", (ToolCall("id", "name", None, '{"n": '),)), 17),
        (Message("user", (Image(width=750, height=2),)), 91),
        (Message("user", (Image(width=math.inf, height=2),)), 89),
        (Message("user", (Image(width=-4, height=-4),)), 89),
        (Message("assistant", (Thinking("hmm."), Text("yes."))), 6),
        (Message("assistant", ()), 4),
    ],
)
def test_the_size_of_a_message(message: Message, tokens: int) -> None:
    assert message_tokens(message) == tokens


def test_a_picture_without_bounds_outgrows_every_budget() -> None:
    huge = Message("user", (Image(width=1e200, height=1e200),))
    assert message_tokens(huge) > 10**300


def test_a_text_is_a_quarter_of_its_bytes() -> None:
    assert [text_tokens("x" * n) for n in range(6)] == [0, 1, 1, 1, 1, 2]
