"""What every check of the kit is made of: laws, and what is told where some are broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias, TypeVar

from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.wording import counted

T = TypeVar("T")

Law: TypeAlias = Callable[[T], Iterator[str]]
"""What must hold of something: it gives what is wrong, in sentences, and nothing where all is well.
Its docstring is the law, in one sentence.
"""

MOST = 3
"""How much is told of one law: the first breach explains the others, most of the time."""


class Broken(Struct, frozen=True):
    """A law that does not hold: its name, what it says, and what is wrong."""

    law: str
    says: str
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([f"{self.law}: {self.says}", *[f"    {each}" for each in self.wrong]])


class NotConforming(AssertionError):
    """Something does not keep the laws that all of its kind keep; `broken` holds all of these."""

    def __init__(self, what: str, broken: Sequence[Broken]) -> None:
        self.what = what
        self.broken = tuple(broken)
        told = "\n".join(map(str, broken))
        super().__init__(f"{what} breaks {counted(len(broken), 'law')}\n{told}")


def expect(given: object, what: str, *, fits: bool) -> None:
    """UsageError where what a check is given does not fit: it is not `what` the check is for."""
    if not fits:
        raise UsageError(f"expected {what}; found {given!r}")


def hold(what: str, subject: T, laws: Sequence[Law[T]]) -> None:
    """Hold `subject` against `laws`, all of them; NotConforming where some do not hold.

    An error within a law is something wrong too.
    """
    broken = []
    for law in laws:
        wrong = tuple(islice(_wrong(subject, law), MOST))
        if wrong:
            broken.append(Broken(law.__name__, (law.__doc__ or "").strip(), wrong))
    if broken:
        raise NotConforming(what, broken)


def _wrong(subject: T, law: Law[T]) -> Iterator[str]:
    try:
        yield from law(subject)
    except Exception as error:
        yield f"{type(error).__name__}: {error}"
