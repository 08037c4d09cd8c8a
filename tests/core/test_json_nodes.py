"""JSON with places: the same values as the standard reader, the same refusals, and where."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core import json_nodes, json_text
from harness.core.errors import FileError
from harness.core.located import Limits, Node, Problems, plain, within


def read(text: str | bytes, **limits: int) -> Node:
    problems = Problems("file.json")
    node = json_nodes.read(text, problems, Limits(**limits))
    problems.check()
    assert node is not None
    return node


def errors(text: str | bytes, **limits: int) -> list[str]:
    with pytest.raises(FileError) as caught:
        read(text, **limits)
    return [f"{p.line}:{p.column}: {p.message}" for p in caught.value.problems]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4)
    ),
)


@given(json_values, st.sampled_from([None, 2, "\t"]))
def test_values_are_those_of_the_standard_reader(value: object, indent: int | str | None) -> None:
    text = json.dumps(value, indent=indent)
    assert repr(plain(read(text))) == repr(json_text.loads(text))


def test_every_value_knows_its_place() -> None:
    inner = within(read('{\n\t"a": [1,\n    {"b": "x"}]\n}'), "a", 1, "b")
    assert (inner.line, inner.column) == (3, 11)


def test_lone_surrogates_and_yaml_words_stay_as_they_are() -> None:
    text = r'{"a": "\ud800", "b": "\ud83d\ude00", "c": "No", "d": "14:05"}'
    assert plain(read(text)) == {"a": "\ud800", "b": "😀", "c": "No", "d": "14:05"}


def test_an_empty_text_is_null() -> None:
    assert plain(read(" \r\n\t")) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '{"a": 1, "b": 2, "a": 3}',
            "1:18: the key 'a' stands here twice, first in line 1; keep one",
        ),
        ("{'a': 1}", '1:2: a key must be text in double quotes, such as "about"'),
        ('{"a" 1}', "1:6: a ':' must follow the key 'a'"),
        ('{"a": 1 "b": 2}', "1:9: the { at line 1, column 1 is not closed, or a comma is missing"),
        ("[1\n 2]", "2:2: the [ at line 1, column 1 is not closed, or a comma is missing"),
        ("[1,\n]", "2:1: no comma before a closing bracket; remove it"),
        ('{"a": 1,}', "1:9: no comma before a closing bracket; remove it"),
        ("[1] 2", "1:5: the value ends here; remove what follows"),
        ("[nope]", "1:2: not JSON: expecting value"),
        ("[", "1:2: not JSON: the text ends too early"),
        ('["a', "1:2: not JSON: unterminated string starting at"),
        ('["\t"]', "1:3: not JSON: invalid control character at"),
        ("[NaN]", "1:2: not a number for JSON: NaN is not finite; write null or a number"),
        (
            "[-Infinity]",
            "1:2: not a number for JSON: -Infinity is not finite; write null or a number",
        ),
        ("[1e999]", "1:2: the number is too large; put it in quotes as text"),
        (f"[1{'0' * 300}]", "1:2: the number is too large; put it in quotes as text"),
        ("// a comment\n{}", "1:1: not JSON: expecting value"),
    ],
)
def test_what_is_not_json_is_refused(text: str, expected: str) -> None:
    assert errors(text) == [expected]


def test_hostile_texts_are_refused() -> None:
    assert errors("[" * 100_000) == ["1:65: nested more than 64 deep"]
    assert errors('{"a":' * 100_000) == ["1:321: nested more than 64 deep"]
    assert errors("[1, 2, 3]", values=3) == ["1:8: more than 3 values"]
    assert len(errors("9" * 5000)) == 1
    assert errors(b'{"a": "\xff"}') == ["1:8: the byte 0xff is not UTF-8; save the file as UTF-8"]


@given(st.text('{}[]",:0123456789.eE+-\\utrfalsn \n\ud800') | st.binary(max_size=40))
def test_any_text_is_read_or_refused(data: str | bytes) -> None:
    problems = Problems("file.json")
    node = json_nodes.read(data, problems)
    if node is None:
        with pytest.raises(FileError):
            problems.check()
