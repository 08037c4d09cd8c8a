"""Two runs beside each other: what is alike is in one row, what differs is marked."""

from __future__ import annotations

import re
from difflib import Match, SequenceMatcher

import pytest
from msgspec.structs import replace

from harness.exploration.probe import Asked, Landing, Run, Shot, Site
from harness.report.html.beside import ROWS_MAX, Line, aligned, both, happened, steps, who_ran
from harness.report.sweep import Beside
from tests.report.html.items import HOSTILE
from tests.report.html.test_markup import Seen


def lines(*keys: str) -> list[Line]:
    return [Line(key, key) for key in keys]


def table(left: list[Line], right: list[Line]) -> list[str]:
    """The rows of two runs as text, what is marked in brackets."""
    markup = aligned(left, right, ("a", "b"), "two")
    rows = re.findall(r'<tr class="(\w+)">(.*?)</tr>', markup)
    marked = [(kind, re.sub(r"</?(?:ins|del)>", "|", row)) for kind, row in rows]
    return [f"{kind}: {re.sub(r'<[^>]+>', ' ', row).strip()}" for kind, row in marked]


def test_what_is_alike_far_from_what_differs_is_left_out_with_its_number() -> None:
    left = lines(*"abcdefghijklmn")
    right = lines(*"abcdefgXhijklmn")
    assert table(left, right) == [
        "gap: … 4 lines alike",
        *[f"alike: {letter}  {letter}" for letter in "efg"],
        "alone: |X|",
        *[f"alike: {letter}  {letter}" for letter in "hij"],
        "gap: … 4 lines alike",
    ]


def test_the_words_are_marked_in_a_line_that_was_changed() -> None:
    assert table(lines("the turn ended well"), lines("the turn ended badly")) == [
        "changed: the turn ended |well|  the turn ended |badly|"
    ]
    assert table(lines("a b c"), lines("a c")) == ["changed: a |b |c  a c"]


def test_a_line_that_is_quite_another_stands_alone() -> None:
    assert table(lines("a"), lines("b")) == ["alone: |a|", "alone: |b|"]
    assert table(lines("a " * 2_000), lines("a " * 2_000 + "b"))[0].startswith("alone: |a a a")
    assert table(lines("a", "b"), lines()) == ["alone: |a|", "alone: |b|"]
    assert table(lines(), lines("a", "b")) == ["alone: |a|", "alone: |b|"]


def test_two_gaps_stand_between_three_places() -> None:
    shown = table(lines(*"abcdefghijklmnopq"), lines(*"abcdXfghijklmnoYq"))
    assert shown.count("gap: … 4 lines alike") == 1
    assert shown[0] == "gap: … 1 line alike"


def test_two_runs_that_are_the_same_have_no_table() -> None:
    assert aligned(lines("a"), lines("a"), ("a", "b"), "two") == (
        '<p class="quiet">Nothing differs in it but the times.</p>'
    )


def test_what_is_too_much_is_left_out_with_its_number() -> None:
    shown = table(lines(*"ab"), lines(*[f"x{n}" for n in range(ROWS_MAX + 50)]))
    assert len(shown) == ROWS_MAX + 1
    assert shown[-1] == "gap: … 52 more"


def test_times_do_not_make_lines_different() -> None:
    early, late = Run("a", lines=("0s 1 turn_ended x",)), Run("b", lines=("2s 1 turn_ended x",))
    assert [line.key for line in happened(early)] == [line.key for line in happened(late)]
    assert happened(late)[0].shown == "2s 1 turn_ended x"


RUN = Run(
    "d",
    (
        Site("1", 0, "turn", "", 0, 1),
        Site("1", 1, "turn", "agent.py:3 in turn", 1, 2),
        Site("1.1", 0, "tool", "", 1, 3),
        Site("1.1", 1, "tool", HOSTILE, 3, None),
    ),
    asked=(Asked("latency", "slow", 5, 1, 1),),
    landings=(Landing(Shot("1.1", 0, "start", "task"), "delivered"),),
    lines=("0s 1 turn_ended a",),
)


def test_who_ran_when_says_what_was_decided_by_then() -> None:
    [first, ended, last] = steps(RUN)
    assert first == Line(
        "1 agent.py:3 in turn",
        "     1  1      agent.py:3 in turn",
        "latency of slow: zero (1 of 5)",
    )
    assert ended.shown == "     2  1      (has ended)"
    assert last.note == "cancel 1.1#0/start:task"


def test_both_show_what_happened_and_who_ran_when() -> None:
    markup = both(Beside(HOSTILE, replace(RUN, landings=(), lines=("0s 1 turn_ended b",))), RUN)
    seen = Seen(markup)
    assert "script" not in seen.tags
    assert seen.tags.count("table") == 2
    assert "cancel 1.1#0/start:task" in seen.text


@pytest.mark.parametrize("other", [Run("x", lines=("0s 1 a b",)), replace(RUN, sites=(), lines=())])
def test_who_ran_when_is_told_of_one_run_where_nobody_knows_of_the_other(other: Run) -> None:
    seen = Seen(both(Beside("x", other), RUN))
    assert seen.tags.count("summary") == 1
    assert "1      (has ended)" in seen.text
    assert who_ran(Run("x")) is None


def test_who_ran_when_is_told_of_so_much() -> None:
    sites = [Site("1", k, "turn", f"agent.py:{k} in turn", k, k + 1) for k in range(ROWS_MAX + 9)]
    shown = Seen(who_ran(Run("x", tuple(sites))) or "").text
    assert f"agent.py:{ROWS_MAX} in turn" in shown
    assert f"agent.py:{ROWS_MAX + 1} in turn" not in shown
    assert "… 9 more" in shown


def test_long_runs_are_compared_to_their_end() -> None:
    texts = [f"line{number}" for number in range(5_000)]
    new = [f"new{number}" for number in range(100, 200)]
    changed = ["first", *texts[:2_400], *texts[3_300:4_000], *new, *texts[4_000:-1], "last"]
    differ, around = 1 + 900 + 100 + 2, 3 * 6
    for pair in ((texts, changed), (changed, texts)):
        rows = table(*[lines(*each) for each in pair])
        assert rows[0] == "alone: |first|"
        assert rows[8] == "alone: |line2400|"
        assert rows[-1] == f"gap: … {differ + around - ROWS_MAX} more"


def test_what_is_long_takes_time_by_its_length() -> None:
    compared = [0]
    match = SequenceMatcher.find_longest_match

    def counting(self: SequenceMatcher[str], *ends: int) -> Match:
        compared[0] += ends[1] - ends[0]
        return match(self, *ends)

    left = lines(*[f"line{number}" for number in range(8_000)])
    took = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SequenceMatcher, "find_longest_match", counting)
        for count in (4_000, 8_000):
            compared[0] = 0
            rows = table(left[:count], [line for at, line in enumerate(left[:count]) if at % 3])
            assert rows[1] == "alike: line1  line1"
            took.append(compared[0])
    assert took[1] < 2.2 * took[0]


def test_what_has_nothing_alike_is_passed() -> None:
    left, right = (lines(*[f"{name}{at}" for at in range(9_000)], "end") for name in "ab")
    assert table(left, right)[-1] == f"gap: … {18_001 - ROWS_MAX:,} more"
