"""The files of tests' cassettes: readable, taken by every file system, none for two tests."""

from __future__ import annotations

import unicodedata

import pytest

from harness.testing.cassette_names import file_name

PLAIN = ["test_asks", "TestModel.test_asks", "test_asks[openai-1]", "test_x[]", "test_x[a.b]"]
OTHERS = [
    "test_x[a/b]",
    "test_x[a\\b]",
    "test_x[a:b]",
    "test_x[a?b]",
    "test_x[A]",
    "test_x[a]",
    "test_x[a ]",
    "test_x[" + "a" * 200 + "]",
    "test_x[" + "a" * 201 + "]",
    unicodedata.normalize("NFC", "test_x[caf\u00e9]"),
    unicodedata.normalize("NFD", "test_x[caf\u00e9]"),
    "test_x[\ud800]",
    "test_x[a\x00b]",
    "con",
    "NUL.test_x",
    "com1",
    "com10",
    "..",
]


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_name_is_kept(name: str) -> None:
    assert file_name(name) == name


def test_no_two_names_give_one_file_and_every_file_system_takes_them() -> None:
    files = [file_name(name) for name in [*PLAIN, *OTHERS]]
    assert len({name.casefold() for name in files}) == len(files)
    for name in files:
        assert name.isascii()
        assert not set('<>:"/\\|?*\0 ') & set(name)
        assert len(name) <= 100
    assert file_name("con").startswith("_con-")
    assert file_name("NUL.test_x").startswith("_NUL.test_x-")
    assert file_name("com10") == "com10"


def test_a_file_with_parameters_of_other_characters_still_says_what_it_is_of() -> None:
    assert file_name("test_x[a/b c]").startswith("test_x[a-b-c]-")
