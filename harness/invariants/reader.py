"""What reads the entries of a run: a method for each kind of event that it cares about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias, TypeVar

from harness.core.events import Event
from harness.core.trace import Entry

EventType: TypeAlias = type[Event]
_Method = TypeVar("_Method", bound=Callable[[Any, Any], None])


class Here:
    """The entry that is being read, its place in the trace, and the turn that was started last; 0
    where there was none.
    """

    __slots__ = ("entry", "index", "turn")

    index: int
    entry: Entry

    def __init__(self) -> None:
        self.turn = 0


class Reader:
    """Reads a run, event by event; `here` says where that stands in it."""

    reads: ClassVar[dict[EventType, str]] = {}
    """The name of the method for each kind of event; the others are not read."""

    def __init__(self, here: Here) -> None:
        self.here = here

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        reads: dict[EventType, str] = {}
        for parent in reversed(cls.__mro__):
            for name, value in vars(parent).items():
                reads.update(dict.fromkeys(getattr(value, "kinds", ()), name))
        cls.reads = reads


def on(*kinds: EventType) -> Callable[[_Method], _Method]:
    """Mark the method of a reader that gets each event of these kinds."""

    def mark(method: _Method) -> _Method:
        method.kinds = kinds  # type: ignore[attr-defined]
        return method

    return mark
