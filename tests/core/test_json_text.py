"""JSON text: what is written, and what comes back."""

import json
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core import json_text

text = st.text(st.characters(codec=None), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e-6, "0.000001"),
        (1.25e-5, "0.0000125"),
        (1e-7, "1e-7"),
        (-1.5e-7, "-1.5e-7"),
        (1e16, "10000000000000000"),
        (1.5e20, "150000000000000000000"),
        (1e21, "1e21"),
        (-1.25e22, "-1.25e22"),
        (5e-324, "5e-324"),
        (float("nan"), "null"),
        (float("-inf"), "null"),
        (10**20, "1" + "0" * 20),
        (10**21, "1e21"),
        (10**400, "null"),
        (True, "true"),
        (
            '\x00\b\t\n\f\r\x1f\x7f/\u2028é"\\',
            '"\\u0000\\b\\t\\n\\f\\r\\u001f\x7f/\u2028é\\"\\\\"',
        ),
        ("\ud800", '"\\ud800"'),
        ("\ud83d\ude00", '"😀"'),
        ({"b": 1, "a": [], "B": {}}, '{"B":{},"a":[],"b":1}'),
        ({"\ue000": 1, "😀": 2}, '{"😀":2,"\ue000":1}'),
    ],
)
def test_text_is_canonical(value, written):
    assert json_text.dumps(value) == written


@given(values)
def test_what_is_written_can_be_read(value):
    written = json_text.dumps(value)
    assert json_text.dumps(json_text.loads(written)) == written


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_comes_back_as_the_same_number(value):
    assert float(json_text.dumps(value)) == value


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_numbers_are_spelled_as_javascript_spells_them():
    exponents = [m * 10.0**e for e in range(-30, 31, 3) for m in (1, -1.5, 1.2345678901234567)]
    program = "process.stdout.write(JSON.stringify(JSON.parse(process.argv[1])))"
    done = subprocess.run(
        ["node", "-e", program, json.dumps(exponents)], capture_output=True, text=True, check=True
    )
    assert json_text.dumps(exponents) == done.stdout.replace("e+", "e")


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ('{"a":1,"a":2}', "duplicate key 'a'"),
        ("[NaN]", "NaN is not JSON"),
        ("[-1e999]", "-1e999 is too large for a number"),
    ],
)
def test_bad_text_says_what_is_wrong(bad, says):
    with pytest.raises(ValueError, match=says):
        json_text.loads(bad)


def test_what_is_not_json_is_named():
    with pytest.raises(TypeError, match="set is not a JSON value"):
        json_text.dumps({1})


@given(values)
def test_a_copy_is_equal_and_shares_no_container(value):
    copied = json_text.copy(value)
    assert copied == value
    pairs = [(value, copied)]
    for one, other in pairs:  # grows as it goes
        if isinstance(one, dict | list):
            assert other is not one
            keys = one if isinstance(one, dict) else range(len(one))
            pairs.extend((one[key], other[key]) for key in keys)
