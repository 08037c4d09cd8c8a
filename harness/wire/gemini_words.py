"""What Gemini's codec and its rules both go by."""

from __future__ import annotations

import base64
import contextlib
import re
from urllib.parse import unquote

from harness.core.json_text import Json

_PATH = re.compile(r"/(?:models|tunedModels)/([^/]+):(generateContent|streamGenerateContent)")
_GENERATION = re.compile(r"gemini-(\d+)")
_NEWEST = 99
_CAPITAL = re.compile("[A-Z]")
_UNJUDGED = ("context_engineering_is_the_way_to_go", "skip_thought_signature_validator")
"""What the vendor lets a client send as the signature of a call that no model of its own made."""
_OWN = b"text:"
"""How the bytes of a signature begin that is no base64 by itself: the rest is its text."""


def asked_in(path: str) -> tuple[str, str] | None:
    """The model and the verb that a path ends with; None where it is none of this protocol's.

    >>> asked_in("/v1/projects/p/locations/l/publishers/google/models/gemini-3:generateContent")
    ('gemini-3', 'generateContent')
    >>> asked_in("/v1/models/gemini-3:countTokens") is None
    True
    """
    cut = path.rfind("/", 0, path.rfind("/"))
    found = _PATH.fullmatch(unquote(path[cut:])) if cut >= 0 else None
    return (found[1], found[2]) if found else None


def generation(model: str) -> int:
    """Which generation a model is of; a name that does not tell is taken for the newest.

    >>> generation("gemini-2.5-flash"), generation("gemini-3-pro-preview")
    (2, 3)
    """
    found = _GENERATION.search(model)
    return int(found[1]) if found else _NEWEST


def signs_calls(model: str) -> bool:
    """Whether a model gives its calls ids, signs the first of them, and wants that back."""
    return generation(model) >= 3


def spelled(value: dict[str, Json], key: str) -> str:
    """The spelling in which an object has a key: as it is, or with underscores.

    >>> spelled({"function_call": {}}, "functionCall"), spelled({}, "functionCall")
    ('function_call', 'functionCall')
    """
    other = _CAPITAL.sub(lambda found: "_" + found[0].lower(), key)
    return other if value.get(key) is None and other in value else key


def written_signature(signature: str) -> str:
    """A signature as base64; one that is none by itself is packed.

    >>> written_signature("EqQB+/8="), written_signature("sig")
    ('EqQB+/8=', 'dGV4dDpzaWc=')
    """
    plain = _bytes_in(signature)
    if plain is not None and base64.b64encode(plain).decode() == signature:
        return signature
    return base64.b64encode(_OWN + signature.encode("utf-8", "surrogatepass")).decode()


def read_signature(text: str) -> str:
    """A signature as it was given: the vendor's own library sends it back in the other alphabet.

    >>> read_signature("EqQB-_8="), read_signature("dGV4dDpzaWc="), read_signature("?")
    ('EqQB+/8=', 'sig', '?')
    """
    plain = _bytes_in(text)
    if plain is None:
        return text
    if plain.startswith(_OWN):
        with contextlib.suppress(UnicodeDecodeError):
            return plain.removeprefix(_OWN).decode("utf-8", "surrogatepass")
    return base64.b64encode(plain).decode()


def is_unjudged(text: str) -> bool:
    """Whether a signature is one that a client may send for a call of no model's, as it is or in
    base64, as the vendor's own library sends it.

    >>> is_unjudged("skip_thought_signature_validator"), is_unjudged("EqQB")
    (True, False)
    """
    plain = _bytes_in(text)
    return text in _UNJUDGED or (plain is not None and plain in [u.encode() for u in _UNJUDGED])


def _bytes_in(text: str) -> bytes | None:
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except ValueError:
        return None
