"""Taking a body apart: each step names the place where something else was expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from harness.core.json_text import Json, loads, too_deep
from harness.core.messages import ToolCall
from harness.wire import sse
from harness.wire.codec import Garbled

Refusal = Callable[[str, str], Exception]
"""Makes what a codec raises of a message, and of a place such as ``messages[0].role``."""

NOTHING = "nothing"
"""What is found where a member is missing."""


def json_of(body: str | bytes) -> Json:
    """The JSON in a body; ValueError where there is none, or it is nested too deeply.

    >>> json_of(b"[1]")
    [1]
    """
    try:
        value = loads(body)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if too_deep(value):
        raise ValueError("nested too deeply")
    return value


def events_in(reader: sse.Reader, data: bytes) -> list[sse.Event]:
    """The events that end in these bytes; Garbled where they are none."""
    try:
        return reader.feed(data)
    except UnicodeDecodeError as error:
        raise Garbled(f"the stream is no UTF-8: {error.reason}") from None
    except sse.TooLong as error:
        raise Garbled(str(error)) from None


def call_of(call_id: str, name: str, arguments: str) -> ToolCall:
    """A call whose arguments came as a text, which may be no JSON.

    >>> call_of("1", "look", '{"at": 2}').args, call_of("1", "look", "{").raw
    ({'at': 2}, '{')
    """
    try:
        return ToolCall(call_id, name, json_of(arguments))
    except ValueError:
        return ToolCall(call_id, name, None, arguments)


class Field:
    """A value of a body and its place; what is asked of it and is not so is refused.

    What is not there has the value None, and `missing` says so.
    """

    __slots__ = ("_refuse", "missing", "place", "value")

    def __init__(self, value: Json, place: str, refuse: Refusal, *, missing: bool = False) -> None:
        self.value = value
        self.place = place
        self.missing = missing
        self._refuse = refuse

    def __getitem__(self, key: str) -> Field:
        """A member of an object, which may be missing."""
        found = self.object()
        return Field(found.get(key), self._below(key), self._refuse, missing=key not in found)

    def tagged(self, tag: str) -> Field:
        """The same value at a place that ends in a word more, as providers name a block by its kind
        too.
        """
        return Field(self.value, self._below(tag), self._refuse)

    def has(self, key: str) -> bool:
        """Whether an object has a member that is not null."""
        return self.object().get(key) is not None

    def object(self) -> dict[str, Any]:
        """The value, which must be an object."""
        if isinstance(self.value, dict):
            return self.value
        raise self.wrong("an object")

    def items(self) -> Iterable[Field]:
        """The values of a list."""
        if not isinstance(self.value, list):
            raise self.wrong("an array")
        return [
            Field(each, f"{self.place}[{n}]", self._refuse) for n, each in enumerate(self.value)
        ]

    def text(self) -> str:
        """The value, which must be a string."""
        if isinstance(self.value, str):
            return self.value
        raise self.wrong("a string")

    def number(self) -> float | None:
        """A number, or None for null."""
        if self.value is None or (
            isinstance(self.value, int | float) and not isinstance(self.value, bool)
        ):
            return self.value
        raise self.wrong("a number")

    def integer(self) -> int | None:
        """A whole number, or None for null."""
        if self.value is None or (isinstance(self.value, int) and not isinstance(self.value, bool)):
            return self.value
        raise self.wrong("an integer")

    def flag(self) -> bool:
        """A boolean; null is False."""
        if self.value is None or isinstance(self.value, bool):
            return bool(self.value)
        raise self.wrong("a boolean")

    def wrong(self, expected: str) -> Exception:
        """What to raise where the value should have been something else."""
        found = NOTHING if self.missing else kind_of(self.value)
        return self._refuse(f"expected {expected}, but got {found} instead", self.place)

    def refused(self, message: str) -> Exception:
        """What to raise where the value is wrong, with a message of its own."""
        return self._refuse(message, self.place)

    def _below(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key


def kind_of(value: Json) -> str:
    """What JSON calls a value.

    >>> kind_of(None), kind_of([]), kind_of(1.5)
    ('null', 'an array', 'a number')
    """
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"
