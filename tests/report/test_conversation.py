"""A recorded session as people read it, in terminals of several widths and in a pipe."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, get_args

import pytest
from rich.cells import cell_len
from rich.console import Console

from harness.core.durations import moment
from harness.report.conversation import (
    STYLES,
    Said,
    Section,
    Who,
    lines,
    print_conversation,
)
from harness.report.terminal import captured

HERE = Path(__file__).parent
MS = 1_000_000
SECTIONS = (
    Section(
        "turn 1",
        (
            Said("user", "What is the weather?\nBe quick: \x1b[31mred\x1b[0m\u202e.", 0),
            Said("asks", "request 1 (line 3): a-model, 1 message, 200 after 21ms, took 1.4s", 0),
            Said("thinks", "Two tools will do, one for the weather and one for the time.", 21 * MS),
            Said("says", "Let me look that up: " + "word " * 30, 300 * MS),
            Said("calls", 'weather {"city":"Rome"}', 1_400 * MS),
            Said("calls", "clock {}", 1_400 * MS),
            Said("gives", "weather: sunny\n\tand warm", 1_450 * MS),
            Said("wrong", "429: try again later", 61_450 * MS),
            Said("note", "a_very_long_word_that_no_terminal_of_this_width_can_hold_" * 3),
        ),
    ),
    Section("turn 2, before the recording", (Said("user", "(goes on)"),)),
    Section("nothing", ()),
)


def printed(width: int, **more: Any) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, highlight=False, markup=False, emoji=False, **more)
    print_conversation(console, "session.yaml · 2 interactions\x07", SECTIONS)
    return file.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_it_fits_the_terminal(width: int) -> None:
    shown = printed(width)
    for line in shown.splitlines():
        assert cell_len(line) <= width, line
    assert shown == (HERE / f"conversation_{width}.txt").read_text(encoding="utf-8")


def test_a_narrow_terminal_has_no_times() -> None:
    assert "1.4s  calls" in printed(60)
    assert "1.4s  calls" not in printed(59)
    assert "calls   weather" in printed(59)


def test_a_pipe_gets_whole_lines() -> None:
    shown = captured(lambda console: print_conversation(console, "title", SECTIONS))
    assert "says    Let me look that up: " + ("word " * 30).rstrip() in shown


def test_colours_are_those_of_who_speaks_unless_there_are_to_be_none() -> None:
    coloured = printed(80, force_terminal=True, color_system="standard", no_color=False)
    assert "\x1b[36mLet me" in coloured
    assert "\x1b[31m429" in coloured
    plain = printed(80, force_terminal=True, color_system="standard", no_color=True)
    assert "\x1b[36m" not in plain
    assert set(STYLES) == set(get_args(Who))


def test_what_a_terminal_would_act_on_is_escaped() -> None:
    shown = printed(80)
    assert "\\u001b[31mred\\u001b[0m\\u202e." in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert lines("a\tb\x9b") == "a    b\\u009b"


def test_moments() -> None:
    assert [moment(at * MS) for at in (0, 1, 1_500, 60_000, 61_500)] == [
        "0s",
        "1ms",
        "1.5s",
        "1m0s",
        "1m1.5s",
    ]
