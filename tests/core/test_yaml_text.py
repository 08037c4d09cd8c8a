"""YAML text: what a plain scalar means, what is refused and where, and writing what reads back."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from harness.core import yaml_text
from harness.core.errors import FileError
from harness.core.json_text import well_formed
from harness.core.located import (
    Limits,
    ListNode,
    MapNode,
    Node,
    Problems,
    Scalar,
    describe,
    plain,
    within,
)


@pytest.fixture(params=["fast", "slow"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both of PyYAML's parsers, since a machine may lack the fast one."""
    if request.param == "slow":
        monkeypatch.setattr(yaml, "__with_libyaml__", False)
    elif not yaml.__with_libyaml__:
        pytest.skip("PyYAML was built without its C parser")
    return request.param


def read(text: str | bytes, **limits: int) -> Node:
    problems = Problems("file.yaml")
    node = yaml_text.read(text, problems, Limits(**limits))
    problems.check()
    assert node is not None
    return node


def value(text: str | bytes) -> Any:
    return plain(read(text))


def errors(text: str | bytes, **limits: int) -> list[str]:
    with pytest.raises(FileError) as caught:
        read(text, **limits)
    return [f"{p.line}:{p.column}: {p.message}" for p in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("14:05", "14:05"),
        ("2024-01-31", "2024-01-31"),
        ("No", "No"),
        ("yes", "yes"),
        ("on", "on"),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("190:20:30", "190:20:30"),
        ("=", "="),
        ("None", "None"),
        ("tRue", "tRue"),
        ("1e", "1e"),
        (".", "."),
        ("+", "+"),
        ("0x", "0x"),
        ("", None),
        ("~", None),
        ("null", None),
        ("NULL", None),
        ("true", True),
        ("FALSE", False),
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("0o17", 15),
        ("0xfF", 255),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("-1.5E-2", -0.015),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 14", "14"),
        ("! 14", "14"),
        ("!!int 14", 14),
        ("!!float 14", 14.0),
        ("!!bool true", True),
        ("!!null null", None),
    ],
)
def test_a_plain_scalar_means_what_the_core_schema_says(
    text: str, expected: Any, parser: str
) -> None:
    found = value(f"key: {text}")["key"]
    assert (found, type(found)) == (expected, type(expected))


def test_keys_are_taken_as_they_are_written(parser: str) -> None:
    assert value("{14: a, No: b, ~: c, 'x y': d, true: e}") == {
        "14": "a",
        "No": "b",
        "~": "c",
        "x y": "d",
        "true": "e",
    }


def test_collections_and_blocks(parser: str) -> None:
    text = "list: [1, {a: b}]\nblock: |\n  one\n  two\nfolded: >-\n  one\n  two\nempty: {}\n"
    assert value(text) == {
        "list": [1, {"a": "b"}],
        "block": "one\ntwo\n",
        "folded": "one two",
        "empty": {},
    }


def test_every_value_and_key_knows_its_place(parser: str) -> None:
    root = read("a: 1\nlist:\n  - é: {inner: x}\n")
    assert isinstance(root, MapNode)
    inner = within(root, "list", 0, "é", "inner")
    assert (inner.line, inner.column) == (3, 16)
    entry = root.entries["list"]
    assert (entry.line, entry.column, entry.value.line, entry.value.column) == (2, 1, 3, 3)


def test_a_text_without_a_document_is_null(parser: str) -> None:
    assert [value(text) for text in ("", "# a comment\n", "---\n", "\ufeff", b"\xef\xbb\xbf")] == [
        None,
        None,
        None,
        None,
        None,
    ]


def test_line_ends_of_every_kind(parser: str) -> None:
    assert value(b"a: 1\r\nb:\r\n  - x\r\n") == {"a": 1, "b": ["x"]}
    assert errors("a: 1\r\na: 2\r\n") == [
        "2:1: the key 'a' stands here twice, first in line 1; keep one"
    ]


def test_surrogates_survive_escapes(parser: str) -> None:
    assert value(r'{lone: "a\ud800b", pair: "\ud83d\ude00", "\udfff": 1}') == {
        "lone": "a\ud800b",
        "pair": "😀",
        "\udfff": 1,
    }


def test_an_alias_stands_for_what_its_anchor_holds(parser: str) -> None:
    assert value("{a: &x [1, &y {k: v}], b: *x, c: *y}") == {
        "a": [1, {"k": "v"}],
        "b": [1, {"k": "v"}],
        "c": {"k": "v"},
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: .inf", "1:4: .inf is not a finite number; put it in quotes to mean the text"),
        ("a: -.INF", "1:4: -.INF is not a finite number; put it in quotes to mean the text"),
        ("a: .nan", "1:4: .nan is not a finite number; put it in quotes to mean the text"),
        ("a: 1e999", "1:4: 1e999 is not a finite number; put it in quotes to mean the text"),
        ("a: " + "9" * 5000, "1:4: the number is too large; put it in quotes as text"),
        ("a: 1" + "0" * 300, "1:4: the number is too large; put it in quotes as text"),
        ("a: !!int x", "1:4: 'x' does not fit its tag !!int; remove the tag"),
        ("a: !!bool 1", "1:4: '1' does not fit its tag !!bool; remove the tag"),
        ("a: !mine 1", "1:4: the tag '!mine' is not known here; remove it"),
        (
            "a: !!timestamp 2024-01-31",
            "1:4: the tag 'tag:yaml.org,2002:timestamp' is not known here; remove it",
        ),
        (
            "a: !!set {x}",
            "1:4: the tag 'tag:yaml.org,2002:set' is not known here; write a mapping",
        ),
        (
            "a: !!python/tuple [x]",
            "1:4: the tag 'tag:yaml.org,2002:python/tuple' is not known here; write a list",
        ),
        ("!!int a: 1", "1:1: a key has no tag; remove 'tag:yaml.org,2002:int'"),
        ("? [a]\n: 1", "1:3: a key must be text, not a list, a mapping or an alias"),
        ("<<: {a: 1}", "1:1: merge keys are not part of YAML 1.2; write the keys out"),
        ("a: *b", "1:4: the alias *b has no anchor &b before it"),
        ("a: &b [*b]", "1:8: the alias *b stands inside its own anchor &b"),
        ("a: 1\n---\nb: 2", "2:1: a second document begins; a file holds one"),
        ("%YAML 1.1\n---\na: 1", "1:1: files are read as YAML 1.2; remove the %YAML line"),
    ],
)
def test_what_is_not_plain_data_is_refused(text: str, expected: str, parser: str) -> None:
    assert errors(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "say: Sunny: 20 degrees",
            "1:11: a ':' that cannot be here; put a text that holds ': ' in quotes, "
            "or line the key up with its neighbours",
        ),
        ("a:\n\tb: 1", "2:1: a tab cannot indent; use spaces"),
        ("a: x\n\tb: 1", "2:1: a tab cannot indent; use spaces"),
        ("a: - b", "1:4: a list cannot begin here; put its first '-' on a line of its own"),
        ("a: 'x\n", "2:1: the quote that opens at line 1, column 4 is never closed"),
        (
            "a: [1\nb: 2",
            "2:2: the [ at line 1, column 4 is not closed, or a comma is missing",
        ),
        ("a: @x", "1:4: a text cannot begin with '@'; put it in quotes"),
        (
            "a:\n  - b: 1\n   c: 2",
            "3:4: this does not line up with what begins at line 2, column 3; "
            "indent it like its neighbours",
        ),
        ('a: "\\U00110000"', "an escape names no character; Unicode ends at 10ffff"),
        (
            r'a: "\q"',
            "the backslash in this text in double quotes begins no known escape; "
            "use single quotes, or write it twice",
        ),
        ("a: ]", "1:4: not YAML: "),
    ],
)
def test_broken_syntax_says_what_to_do(text: str, expected: str, parser: str) -> None:
    [found] = errors(text)
    assert expected in found


def test_all_that_can_be_told_is_told_at_once(parser: str) -> None:
    assert errors("a: !x 1\nb: .nan\na: 2\n") == [
        "1:4: the tag '!x' is not known here; remove it",
        "2:4: .nan is not a finite number; put it in quotes to mean the text",
        "3:1: the key 'a' stands here twice, first in line 1; keep one",
    ]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a: \xff", "1:4: the byte 0xff is not UTF-8; save the file as UTF-8"),
        (
            "a: 1\nb: é".encode("latin-1"),
            "2:4: the byte 0xe9 is not UTF-8; save the file as UTF-8",
        ),
        ("a: 1".encode("utf-16"), "1:1: the file is UTF-16; save it as UTF-8"),
        (
            "a: 1\nb: x\x00y",
            "2:5: the character U+0000 cannot stand in a file; "
            'inside double quotes, write "\\u0000"',
        ),
        (
            'a: "x\u2028y"',
            "1:6: the character U+2028 cannot stand in a file; "
            'inside double quotes, write "\\u2028"',
        ),
        (
            "a: \ud800",
            "1:4: the character U+D800 cannot stand in a file; "
            'inside double quotes, write "\\ud800"',
        ),
    ],
)
def test_what_is_not_text_is_refused(data: str | bytes, expected: str) -> None:
    assert errors(data) == [expected]


def test_a_billion_laughs_stay_small(parser: str) -> None:
    lines = ["a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    for name, before in zip("bcdefghi", "abcdefgh", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
    assert errors("\n".join(lines), values=100_000) == ["6:8: more than 100000 values"]


def test_limits_hold(parser: str) -> None:
    assert errors("[" * 500, depth=64) == ["1:65: nested more than 64 deep"]
    assert "nested" in errors("[" * 100_000, depth=64)[0]
    assert errors("- " * 5000, depth=64) == ["1:129: nested more than 64 deep"]
    assert errors("a: &a [[[1]]]\nb: [[*a]]", depth=5) == ["2:6: nested more than 5 deep"]
    assert errors("[1, 2, 3]", values=3) == ["1:8: more than 3 values"]
    assert errors("[&a 1, *a, *a]", aliases=1) == ["1:12: more than 1 aliases"]
    with pytest.raises(FileError, match=r"^file\.yaml: the file is too long: 9 bytes, of at most"):
        read("a: 123456", characters=8)
    assert value(f"a: {'x' * 1_000_000}") == {"a": "x" * 1_000_000}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None), max_size=20)
    | st.sampled_from(
        ["14:05", "No", "1e3", "0o7", "0x1F", ".5", "~", "- a", "#", ": ", "a\n b\n"]
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec=None), max_size=200), inner, max_size=4)
    ),
    max_leaves=20,
)


def joined(found: Any) -> Any:
    """With surrogate pairs joined, as every reader of escapes joins them."""
    match found:
        case str():
            return well_formed(found)
        case list():
            return [joined(item) for item in found]
        case dict():
            return {well_formed(key): joined(item) for key, item in found.items()}
        case _:
            return found


@given(json_values)
@example({"a": "x\n", "b": ["\n", "\n\n", " \n", "a\n ", "\ta"], "c": {"": ""}})
@example(["\ud83d", "\x85", "\u2028", "\ufeff", "\r", "\x7f", "'", '"', "\\"])
@example({"k" * 2000: 1, "two\nlines": 2})
def test_what_is_written_reads_back(written: Any) -> None:
    expected = joined(written)
    assert repr(value(yaml_text.dump(written))) == repr(expected)


@given(json_values)
def test_older_readers_take_what_is_written_alike(written: Any) -> None:
    expected = joined(written)
    assert repr(joined(yaml.safe_load(yaml_text.dump(written)))) == repr(expected)


def test_writing_refuses_what_is_not_json() -> None:
    for number in (math.inf, -math.inf, math.nan):
        with pytest.raises(ValueError, match="is not a JSON value; give a finite number or None"):
            yaml_text.dump([number])


@given(st.text("ab:-[]{}#&*!|>'\"%@`,? \n\t\\<~.1é\ud800") | st.binary(max_size=40))
def test_any_text_is_read_or_refused(data: str | bytes) -> None:
    problems = Problems("file.yaml")
    node = yaml_text.read(data, problems)
    if node is None:
        with pytest.raises(FileError):
            problems.check()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "an empty list"),
        ("[1]", "a list of 1 item"),
        ("[1, 2]", "a list of 2 items"),
        ("{}", "an empty mapping"),
        ("{a: 1, b: 2}", "a mapping with the key 'a'"),
        ("~", "nothing"),
        ("true", "true"),
        ("1.5", "the number 1.5"),
        ("x" * 100, "the text 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…xxxxxxxxx'"),
    ],
)
def test_what_is_found_is_named_in_a_few_words(text: str, words: str) -> None:
    assert describe(read(text)) == words


def test_aliases_of_long_texts_are_limited(parser: str) -> None:
    text = "a: &a [" + "x" * 400 + "]\nb: [*a, *a, *a]\n"
    assert errors(text, characters=1000) == [
        "2:13: more than 1000 characters, where aliases are followed"
    ]
    assert value(text)["b"] == [["x" * 400]] * 3


def _data(node: Node) -> Node | None:
    match node:
        case Scalar(value=str(text)):
            return Scalar(text.encode(), node.line, node.column)
        case ListNode(items=items) if items:
            return items[-1]
        case _:
            return None


DIALECT = yaml_text.Dialect({"data": _data}, pyyaml=True)


def in_dialect(text: str) -> tuple[Any, list[str]]:
    problems = Problems("file.yaml")
    node = yaml_text.read(text, problems, dialect=DIALECT)
    assert node is not None
    try:
        problems.check()
    except FileError as error:
        return plain(node), [f"{p.line}:{p.column}: {p.message}" for p in error.problems]
    return plain(node), []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!!data 12", b"12"),
        ("&a !!data [1, {b: 2}]", {"b": 2}),
        ("[&a !!data x, *a]", [b"x", b"x"]),
        ("[12e4, -1e5, .5e3, 0o17, 1.5e3]", ["12e4", "-1e5", ".5e3", "0o17", "1.5e3"]),
        ("[1.5e+3, 12, 012, 0x1f, -1., .5, ~, true]", [1500, 12, 12, 31, -1, 0.5, None, True]),
    ],
)
def test_a_dialect_says_what_its_tags_and_its_numbers_mean(
    parser: str, text: str, expected: Any
) -> None:
    assert in_dialect(text) == (expected, [])


def test_a_value_that_does_not_fit_the_tag_of_a_dialect_is_refused(parser: str) -> None:
    assert in_dialect("a: !!data {}") == (
        {"a": {}},
        ["1:4: an empty mapping does not fit its tag !!data"],
    )
    bad = "a: !!data [!!data x]\nb: !!data []\n"
    assert in_dialect(bad)[1] == ["2:4: an empty list does not fit its tag !!data"]
    assert in_dialect("a: !!other x")[1]


def test_bytes_are_described() -> None:
    assert describe(Scalar(b"abc", 1, 1)) == "3 bytes"
