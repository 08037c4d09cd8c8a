"""Lines for shells: what is joined is split into the same words, in the way of each system."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from harness.core.shell import join, split

WORDS = [
    "plain",
    "tests/test_x.py::test_it[weather.yaml]",
    "two words",
    "it's",
    "",
    "C:\\Users\\me\\agent.py",
    "C:\\my agents\\",
    "a;b",
    "a&b",
    "caf\u00e9",
    "$HOME",
    "#no",
]


@pytest.mark.parametrize("windows", [False, True])
def test_what_is_joined_is_split_into_the_same_words(windows: bool) -> None:
    unlike_ours = [] if windows else ['say "hi"']  # no shell of Windows splits a line for programs
    words = [*[each for each in WORDS if not each.endswith("\\") or not windows], *unlike_ours]
    assert split(join(words, windows=windows), windows=windows) == words


def test_elsewhere_it_is_as_in_sh() -> None:
    assert join(WORDS, windows=False) == shlex.join(WORDS)
    assert split("a 'b c' d\\ e", windows=False) == ["a", "b c", "d e"]


def test_on_windows_quotes_are_double_and_programs_read_them() -> None:
    assert join(["pytest", "C:\\x\\test_it.py::test[a]"], windows=True) == (
        "pytest C:\\x\\test_it.py::test[a]"
    )
    for words in (WORDS, ['say "hi"', 'a\\"b', "a b\\\\"]):
        quoted = [word for word in words if join([word], windows=True) != word]
        assert [join([each], windows=True) for each in quoted] == [
            f'"{subprocess.list2cmdline([f" {each}"])[2:]}' for each in quoted
        ]


@pytest.mark.parametrize("windows", [False, True])
def test_a_quote_that_is_not_closed_is_told(windows: bool) -> None:
    with pytest.raises(ValueError, match="No closing quotation"):
        split('node "agent', windows=windows)


def test_paths_of_windows_are_kept_where_a_line_is_split() -> None:
    assert split("python C:\\agents\\it.py --name it's #1", windows=True) == [
        "python", "C:\\agents\\it.py", "--name", "it's", "#1",
    ]  # fmt: skip
