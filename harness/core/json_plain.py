"""JSON text as the standard library spells it, for what must match byte for byte what others wrote
with it. Everything else goes through `json_text`.
"""

from __future__ import annotations

import json

from harness.core.json_text import DEEPEST, Json, finite, too_deep

_ENCODER = json.JSONEncoder(ensure_ascii=False)
"""Made once: every frame of a reply is written with it."""


def dumps(value: Json) -> str:
    """Write `value` with a space after each comma and colon, keys in their own order.

    >>> dumps({"b": "ü", "a": [1, None]})
    '{"b": "ü", "a": [1, null]}'
    """
    return _ENCODER.encode(value)


def dumps_sorted(value: Json) -> str:
    """The same with the keys in order.

    >>> dumps_sorted({"b": "ü", "a": 1})
    '{"a": 1, "b": "ü"}'
    """
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def dumps_ascii(value: Json) -> str:
    r"""Write `value` without any space, in ASCII only.

    >>> dumps_ascii({"b": "ü", "a": 1})
    '{"b":"\\u00fc","a":1}'
    """
    return json.dumps(value, separators=(",", ":"))


def _no_number(name: str) -> Json:
    raise ValueError(f"{name} is no number of JSON")


_DECODER = json.JSONDecoder(parse_float=finite, parse_constant=_no_number)
"""Made once: every frame of a reply is read with it."""


def loads(text: str) -> Json:
    """Read JSON text; of a key that is there twice, the last one counts. ValueError where it is not
    JSON, nested too deeply, or holds a number that is too large to be told from Infinity.

    >>> loads('{"a": 1, "a": 2}')
    {'a': 2}
    """
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if text.count("{") + text.count("[") > DEEPEST and too_deep(value):
        raise ValueError("nested too deeply")
    return value
