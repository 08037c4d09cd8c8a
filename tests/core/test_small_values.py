"""Choices, durations, signals, pairs, errors: small things with laws."""

import threading
from contextlib import suppress
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.cancel_signal import CancelSignal
from harness.core.choices import Choices, Draw, choices_from
from harness.core.durations import format_duration, parse_duration
from harness.core.errors import FileError, Problem, ReplayMismatch, unknown
from harness.core.events import INSIDE, OUTSIDE, Event, event_kind
from harness.core.messages import Message, ToolCall, Usage, assistant, tool_result, user
from harness.core.outcome import OUTCOME_NAMES, Outcome
from harness.core.pairing import Follower, breaches


@given(st.integers(0, 10**15))
def test_a_duration_comes_back_as_it_was(nanoseconds):
    assert parse_duration(format_duration(nanoseconds)) == nanoseconds


def test_digits_of_other_scripts_are_no_duration():
    for digit in "\u0661\u0967\uff11":  # Arabic, Devanagari, fullwidth
        assert digit.isdecimal()
        with pytest.raises(ValueError, match="is not a duration"):
            parse_duration(f"{digit}s")
        with pytest.raises(ValueError, match="is not a duration"):
            parse_duration(f"1.{digit}s")


@pytest.mark.parametrize("text", ["10", "ms", "1 h", "-1s", "1.5.2s", "", "3s x"])
def test_what_is_no_duration_says_what_one_looks_like(text):
    with pytest.raises(ValueError, match="is not a duration; write a number and a unit"):
        parse_duration(text)


def test_less_than_a_nanosecond_is_refused():
    with pytest.raises(ValueError, match="finer than a nanosecond"):
        parse_duration("0.5ns")


def test_without_a_tape_every_choice_is_the_ordinary_one():
    choices = Choices()
    assert [choices.choose("latency", str(n), 5) for n in range(3)] == [0, 0, 0]
    assert choices.plain
    assert choices.tape() == ()


def test_a_tape_decides_and_comes_back():
    choices = choices_from({("latency", "b"): (2, 5), ("chunking", "1.1"): (1, 4)})
    assert not choices.plain
    assert choices.choose("latency", "a", 5) == 0
    assert choices.choose("latency", "b", 5) == 2
    assert choices.unused() == (Draw("chunking", "1.1", 1, 4),)
    with pytest.raises(ReplayMismatch, match=r"chunking '1\.1'"):
        choices.check_used()
    assert choices.choose("chunking", "1.1", 4) == 1
    choices.check_used()
    assert choices.tape() == (Draw("chunking", "1.1", 1, 4), Draw("latency", "b", 2, 5))


@pytest.mark.parametrize("bound", [2, 6])
def test_a_tape_made_for_another_run_is_refused(bound):
    with pytest.raises(ReplayMismatch, match="decides latency 'b' as 2 of 5"):
        choices_from({("latency", "b"): (2, 5)}).choose("latency", "b", bound)


def test_a_misfit_that_was_swallowed_is_told_at_the_end() -> None:
    choices = choices_from({("latency", "b"): (2, 5)})
    with suppress(ReplayMismatch):
        choices.choose("latency", "b", 4)
    with pytest.raises(ReplayMismatch, match="decides latency 'b' as 2 of 5"):
        choices.check_used()


@given(st.lists(st.integers(0, 4), max_size=8))
def test_what_a_picker_decides_is_replayed_by_its_tape(values):
    picks = iter(values)
    first = Choices(picker=lambda _source, _label, _bound: next(picks))
    drawn = [first.choose("s", str(n), 5) for n in range(len(values))]
    again = Choices(first.tape())
    assert [again.choose("s", str(n), 5) for n in range(len(values))] == drawn == values
    again.check_used()


def test_a_signal_calls_its_listeners_once_in_order():
    signal, heard = CancelSignal(), []
    first, second, third = (lambda n=n: heard.append(n) for n in range(3))
    assert all(signal.add_listener(listener) for listener in (first, second, third))
    signal.remove_listener(second)
    signal.remove_listener(second)
    assert signal.listeners == 2
    signal.abort()
    signal.abort()
    assert heard == [0, 2]
    assert signal.aborted
    assert signal.listeners == 0
    assert not signal.add_listener(first)


def test_a_signal_aborted_by_many_threads_calls_its_listener_once():
    signal, heard = CancelSignal(), []
    signal.add_listener(lambda: heard.append(1))
    threads = [threading.Thread(target=signal.abort) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == [1]


def test_a_call_is_known_by_its_place_even_if_its_id_repeats():
    twice = assistant("", ToolCall("c", "t"), ToolCall("c", "t"))
    assert breaches([twice, tool_result("c", "1"), tool_result("c", "2")]) == ()
    assert [b.kind for b in breaches([twice, tool_result("c", "1")])] == ["unanswered"]


messages = st.lists(
    st.sampled_from(
        [
            user("u"),
            assistant("a"),
            assistant("", ToolCall("c1", "t")),
            assistant("", ToolCall("c1", "t"), ToolCall("c2", "t")),
            tool_result("c1", "r"),
            tool_result("c2", "r"),
            Message("system"),
        ]
    ),
    max_size=8,
)


@given(st.lists(messages, max_size=5))
def test_following_requests_finds_what_reading_each_whole_would(requests):
    follower, before = Follower(), []
    for now in requests:
        kept = next(
            (n for n, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]),
            min(len(before), len(now)),
        )
        found = follower.take(kept, now[kept:])
        assert found == list(breaches(now))
        before = now


def test_usage_adds_up_field_by_field():
    assert Usage(1, 2, 3, 4, 5) + Usage(10, 20, 30, 40, 50) == Usage(11, 22, 33, 44, 55)


def test_errors_name_the_place_and_the_nearest_name():
    error = FileError("a.yaml", [Problem("bad", 3, 7), Problem("worse")])
    assert str(error) == "a.yaml:3:7: bad\na.yaml: worse"
    assert unknown("loop", "trun", ["turn", "fsm"]) == (
        "unknown loop 'trun' (did you mean 'turn'?); known: turn, fsm"
    )
    assert unknown("tool", "x", []) == "unknown tool 'x'; known: none"


def test_every_event_is_either_outside_or_inside_and_has_its_own_kind():
    kinds = [event_kind(event) for event in (*OUTSIDE, *INSIDE)]
    assert len(kinds) == len(set(kinds))
    assert set(Event.__subclasses__()) == {*OUTSIDE, *INSIDE}


def test_an_outcome_is_named_by_its_tag():
    tags = [outcome.__struct_config__.tag for outcome in get_args(Outcome)]
    assert tags == list(OUTCOME_NAMES)
