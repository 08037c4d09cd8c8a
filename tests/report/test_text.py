"""The canonical text: pinned, whole, on one line an entry, and different where the trace is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.events import (
    INSIDE,
    OUTSIDE,
    AnyEvent,
    Delta,
    FaultInjected,
    RequestSent,
    event_kind,
)
from harness.core.json_text import Json
from harness.core.trace import Entry, Trace
from harness.report.text import facts, line, render
from harness.report.values import quote, word
from tests.report.samples import EVENTS, TRACE

PINNED = Path(__file__).with_name("sample.txt")


def test_every_kind_of_entry_has_its_pinned_line() -> None:
    assert render(TRACE) == PINNED.read_text(encoding="utf-8")
    shown = {event_kind(type(event)) for event in EVENTS}
    assert shown == {event_kind(kind) for kind in OUTSIDE + INSIDE}


def test_an_empty_trace_has_no_text() -> None:
    assert render(Trace([])) == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 🙂", '"plain é 🙂"'),
        ('a "quote" and a \\', r'"a \"quote\" and a \\"'),
        ("two\nlines\ttabbed\r", r'"two\nlines\ttabbed\r"'),
        ("\x00\x1b[31m\x7f\x9b", r'"\u0000\u001b[31m\u007f\u009b"'),
        ("half \ud83d pair", r'"half \ud83d pair"'),
        ("\u2028\u202e\u200b\ufeff\u2066", r'"\u2028\u202e\u200b\ufeff\u2066"'),
    ],
)
def test_what_cannot_be_seen_is_escaped(text: str, shown: str) -> None:
    assert quote(text) == shown
    assert facts(Delta("1.1", "text", text)) == f"1.1 text {shown}"


def test_names_that_are_no_plain_word_are_quoted() -> None:
    assert [word(name) for name in ("a.b-c_1#2/x:y@z+", "ä", "a b", "")] == [
        "a.b-c_1#2/x:y@z+",
        '"ä"',
        '"a b"',
        '""',
    ]


def test_a_hostile_name_cannot_break_the_line() -> None:
    entry = Entry(0, "1", Delta("x\ny", "text", "\x85"))
    assert line(entry) == r'0s       1      delta               "x\ny" text "\u0085"'


def test_nothing_is_cut() -> None:
    long = "0123456789" * 10_000
    assert facts(Delta("1.1", "text", long)).endswith(f'"{long}"')


def changed(value: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Every JSON value that differs from `value` in one leaf of the same type."""
    match value:
        case dict():
            for key, item in value.items():
                for where, other in changed(item, (*path, key)):
                    yield where, value | {key: other}
        case list() | tuple():
            for index, item in enumerate(value):
                for where, other in changed(item, (*path, str(index))):
                    yield where, [*value[:index], other, *value[index + 1 :]]
        case bool():
            yield path, not value
        case int() | float():
            yield path, value + 1
        case str():
            yield path, f"{value}x"
        case _:
            assert value is None


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event_kind(type(event)))
def test_whatever_changes_in_an_event_shows(event: AnyEvent) -> None:
    tried = 0
    for path, other in changed(msgspec.to_builtins(event)):
        try:
            altered = msgspec.convert(other, type(event))
        except msgspec.ValidationError:
            continue  # a tag or a closed set of words: another kind, tried as itself
        if isinstance(event, RequestSent) and path == ("digest",):
            assert facts(altered) == facts(event)
        else:
            assert facts(altered) != facts(event), path
            tried += 1
    assert tried


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ((), "http at 1.1"),
        ((503,), "http at 1.1, status 503"),
        ((429, 1_500_000_000, True), "http at 1.1, status 429, retry after 1.5s, should retry"),
        ((400, None, False), "http at 1.1, status 400, should not retry"),
    ],
)
def test_a_fault_says_what_the_client_was_told(told: tuple[Any, ...], shown: str) -> None:
    assert facts(FaultInjected("http", "1.1", *told)) == shown
