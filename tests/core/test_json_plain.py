"""JSON as the standard library writes it, and no more than JSON."""

from __future__ import annotations

import pytest

from harness.core import json_plain


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("NaN", "NaN is no number"),
        ('{"a": Infinity}', "Infinity is no number"),
        ("[-Infinity]", "-Infinity is no number"),
        ("{", "Expecting property name"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * 202 + "]" * 202, "nested too deeply"),
        ("[1e999]", "1e999 is too large"),
    ],
)
def test_what_is_no_json_is_a_value_error(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        json_plain.loads(text)


def test_what_is_json_is_read() -> None:
    assert json_plain.loads('{"a": [1, null, "NaN"]}') == {"a": [1, None, "NaN"]}
    deep = "[" * 200 + "1e30" + "]" * 200
    assert json_plain.dumps(json_plain.loads(deep)).replace("+", "") == deep
