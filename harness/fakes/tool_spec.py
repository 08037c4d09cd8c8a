"""What the fake tools will do: data, as a scenario writes it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from harness.core.json_text import Json


class Returns(Struct, frozen=True, tag="returns"):
    """The tool succeeds with `value`, any JSON value: None and odd ones too."""

    value: Json = None


class Answers(Struct, frozen=True, tag="error"):
    """The tool answers with an error."""

    message: str


class Raises(Struct, frozen=True, tag="raises"):
    """The tool breaks with an exception."""

    message: str


class Hangs(Struct, frozen=True, tag="hangs"):
    """The tool never comes back by itself."""


class CancelsItself(Struct, frozen=True, tag="cancels_itself"):
    """A CancelledError comes out of the tool although nobody cancelled it, as out of a time limit
    of its own.
    """


Action: TypeAlias = Returns | Answers | Raises | Hangs | CancelsItself


class Behaviour(Struct, frozen=True):
    """What one execution does; spans in virtual nanoseconds.

    The effect happens at the ``end`` of `takes`, at its ``start``, or not at all. On a cancel the
    tool stops at once (``honour``), stops after `cleanup`, or goes on as if nothing had happened
    (``ignore``).
    """

    action: Action = Returns()
    takes: int = 0
    effect: Literal["start", "end", "none"] = "end"
    on_cancel: Literal["honour", "cleanup", "ignore"] = "honour"
    cleanup: int = 0


class Case(Struct, frozen=True):
    """A behaviour for calls whose arguments hold all of `args` (a part of them is enough)."""

    args: Json
    behaviour: Behaviour


class ToolSpec(Struct, frozen=True):
    """A fake tool.

    A call behaves as the first of `cases` that its arguments fit; else as the entry of `calls`
    for its n-th execution, the last one repeated; else as `behaviour`.
    """

    name: str
    behaviour: Behaviour = Behaviour()
    cases: tuple[Case, ...] = ()
    calls: tuple[Behaviour, ...] = ()
    description: str = ""
    parameters: Json = None
    """JSON Schema; None: an object with any properties."""
