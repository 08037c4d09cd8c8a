"""JSON text in and out: the one place where values become JSON and JSON becomes values.

The text is compact and canonical (turn loop rule 11.6): keys sorted by UTF-16 unit, control
characters, quotes, backslashes and *lone* surrogates escaped, numbers in JavaScript's shortest
form, non-finite numbers as ``null``. The standard library reads (lone surrogates survive), this
module writes; msgspec can do neither with a lone surrogate.
"""

from __future__ import annotations

import json
import math
import re
from json.encoder import encode_basestring
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""Any JSON value: None, bool, int, float, str, a list or a dict of str to JSON. Never mutated."""

DEEPEST = 200
"""How deep lists and objects of others may stand in each other."""

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNFIT = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_INTEGER_PLAIN_BELOW = 10**21


def dumps(value: Json) -> str:
    """Write `value` as canonical compact JSON text.

    >>> dumps({"b": 1.0, "a": [None, True, 1e21, 1e-7]})
    '{"a":[null,true,1e21,1e-7],"b":1}'
    """
    if isinstance(value, str):
        return _string(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, dict):
        keys = sorted(value)
        if any(max(key, default="") > "\uffff" for key in keys):
            keys.sort(key=_utf16)
        return "{" + ",".join([_string(key) + ":" + dumps(value[key]) for key in keys]) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join([dumps(item) for item in value]) + "]"
    raise TypeError(
        f"{type(value).__name__} is not a JSON value: {value!r}; "
        "expected None, bool, int, float, str, list or dict"
    )


def dumps_indented(value: Json) -> str:
    """Write `value` for people: two spaces a level, keys in their own order."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def dumps_readable(value: Json) -> str:
    """The same, with escapes for what no file can hold as it is: it is the same JSON."""
    return _UNFIT.sub(lambda found: f"\\u{ord(found[0]):04x}", dumps_indented(value))


def dumps_in_order(value: Json) -> str:
    """Write `value` compactly with keys in their own order, as clients send it.

    >>> dumps_in_order({"b": "ü", "a": [1, None]})
    '{"b":"ü","a":[1,null]}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def loads(text: str | bytes) -> Json:
    r"""Read JSON text; ValueError on bad JSON, a duplicate key, NaN, Infinity, or a number that is
    too large to be told from it.

    >>> loads('{"a": "\\ud800"}') == {"a": chr(0xd800)}
    True
    """
    return json.loads(
        text, object_pairs_hook=_unique, parse_float=finite, parse_constant=_no_constant
    )


def finite(text: str) -> float:
    """The number that a text of JSON is; ValueError where it is too large, as it would be Infinity.

    >>> finite("1.5e3")
    1500.0
    """
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large for a number; write it as a text")
    return number


def too_deep(value: Json) -> bool:
    """Whether lists and objects stand in each other more than `DEEPEST` times: what is written, or
    copied, by functions that call themselves must have a limit well before Python's own.

    >>> too_deep([[{"a": []}]])
    False
    """
    level = [value]
    for _ in range(DEEPEST + 1):
        nested = [each for each in level if isinstance(each, dict | list)]
        if not nested:
            return False
        level = [
            inner
            for each in nested
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return True


def copy(value: Json) -> Json:
    """Copy a JSON value deeply, so that its receiver may change it and the giver never sees it."""
    if isinstance(value, dict):
        return {key: copy(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [copy(item) for item in value]
    return value


def well_formed(text: str) -> str:
    """Join surrogate pairs that came as two code points, as when two deltas split a character."""
    if text.isascii():
        return text
    return _PAIR.sub(lambda m: m[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)


def _string(text: str) -> str:
    written: str = encode_basestring(text)
    if written.isascii():
        return written
    return _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", well_formed(written))


def _integer(value: int) -> str:
    if -_INTEGER_PLAIN_BELOW < value < _INTEGER_PLAIN_BELOW:
        return int.__repr__(value)
    return _number(float(value)) if abs(value) < 10**308 else "null"


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "null"
    if value == int(value) and abs(value) < _INTEGER_PLAIN_BELOW:
        return _plain(float.__repr__(abs(value)), negative=value < 0)
    text = float.__repr__(value)
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return text
    power = int(exponent)
    if -7 < power < 0:  # JavaScript writes 1e-6 as 0.000001
        sign = "-" if value < 0 else ""
        digits = mantissa.lstrip("-").replace(".", "")
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    return f"{mantissa.removesuffix('.0')}e{power}"


def _plain(text: str, *, negative: bool) -> str:
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    if exponent:
        whole = (whole + fraction).ljust(int(exponent) + 1, "0")
    return f"-{whole}" if negative else whole


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _value in pairs:
            if key in seen:
                raise ValueError(f"duplicate key {key!r} in a JSON object; keep one of the two")
            seen.add(key)
    return result


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON; write null or a finite number")
