"""Long texts as YAML: what is written reads back with every parser, and looks as it should."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from harness.core import yaml_blocks, yaml_text
from harness.core.located import Problems, plain
from harness.core.yaml_blocks import Line

ODD = "ab \n\r\t:#'\"\\-é\u2028\u2029\x85\ufeff\0😀{}[],&*!|>%@`10.=~?\x7f\ufffe\x9f<_"
TEXTS = st.one_of(
    st.text(st.sampled_from(ODD), max_size=12),
    st.lists(st.sampled_from(["---", "...", "- a", "a: b", "null", " x", "y ", ""])).map("\n".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.sampled_from(
        ["y", "Yes", "NO", "on", "Off", "true", "null", "~", "=", "<<", ".inf", ".nan"]
    ),
    st.sampled_from(["12", "1_0", "0o7", "0x1", "1e5", "12:30"]),
    st.sampled_from(["2001-12-14", "-", "?", "a?", "a:", "a #b", "http://x/?a=1&b", "/v1/x:y"]),
)


def loaded(text: str, loader: Any) -> Any:
    return yaml.load(text, Loader=loader)


@given(st.dictionaries(TEXTS, st.lists(TEXTS, max_size=3), max_size=3), TEXTS)
@example({}, "\n")
@example({}, " a\n")
@example({}, "\n a\n\n")
@example({"": [""]}, "a \nb")
@example({"yes": ["null?"]}, "a\r\n\r\n b\r\n")
def test_what_is_written_reads_back_with_every_parser(
    lists: dict[str, list[str]], text: str
) -> None:
    value = {
        "text": text,
        "lists": lists,
        "items": [{"one": text, "two": {"three": text}}, text, [text, [text]], {}],
        "lines": [Line({"a": text, "b": [text]}), Line()],
    }
    written = yaml_blocks.dump(value)
    assert loaded(written, yaml.SafeLoader) == value
    assert loaded(written, yaml.CSafeLoader) == value
    problems = Problems("x")
    node = yaml_text.read(written, problems)
    problems.check()
    assert node is not None
    assert plain(node) == value


def test_bytes_are_the_only_binary() -> None:
    value = {"a": b"\0\xff" * 50, "b": [b"x", 1], "c": Line(d=b"y"), "e": ""}
    written = yaml_blocks.dump(value)
    assert written.count("!!binary") == 3
    assert loaded(written, yaml.SafeLoader) == value


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Hello world", "Hello world"),
        ("http://127.0.0.1:8080/v1/x?alt=sse", "http://127.0.0.1:8080/v1/x?alt=sse"),
        ("application/json; charset=utf-8", "application/json; charset=utf-8"),
        ('{"a": "b"}', '\'{"a": "b"}\''),
        ("it's", "'it''s'"),
        ("", "''"),
        ("no", "'no'"),
        ("12", "'12'"),
        ("é", "'é'"),
        ("a\tb\x85", '"a\\tb\\u0085"'),
        ("\ud83d", '"\\ufffd"'),
        ("a\nb", "|-\n  a\n  b"),
        ("a\n\nb\n", "|\n  a\n\n  b"),
        ("a\n\n\n", "|+\n  a\n\n"),
        (" a\n", "|2\n   a"),
        ("\na\n", "|2\n\n  a"),
        ("\n", '"\\n"'),
        ("a\r\n\r\n b ", '"a\\r\\n\\\n  \\r\\n\\\n  \\ b "'),
        ("a \nb\n", '"a \\n\\\n  b\\n"'),
    ],
)
def test_how_a_text_looks(text: str, written: str) -> None:
    assert yaml_blocks.dump({"a": text}) == f"a: {written}\n"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (12, "12"),
        (0.0, "0.000"),
        (0.5, "0.500"),
        (1.000001, "1.000001"),
        (0.0000004, "0.000"),
        (1e15, "1000000000000000.000"),
        ([1, "a", None], "[1, a, null]"),
        (["a:b", "a?"], "['a:b', 'a?']"),
        ([], "[]"),
        ({}, "{}"),
        (Line(a=1, b=Line(c="d")), "{a: 1, b: {c: d}}"),
        ({"b": [1]}, "\n  b: [1]"),
        ([{"b": 1, "c": 2}, [["d\ne"]]], "\n- b: 1\n  c: 2\n- - - |-\n      d\n      e"),
    ],
)
def test_how_other_values_look(value: Any, written: str) -> None:
    text = yaml_blocks.dump({"a": value})
    assert text == f"a:{written if written.startswith(chr(10)) else ' ' + written}\n"


@pytest.mark.parametrize("number", [math.inf, math.nan])
def test_a_number_that_is_not_finite_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="cannot be written; give a finite number or None"):
        yaml_blocks.dump({"a": number})
