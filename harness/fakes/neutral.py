"""What a fault on the wire comes to where no HTTP is spoken."""

from __future__ import annotations

from typing import TypeAlias, get_args

from harness.fakes.script import (
    DoneTwice,
    Fault,
    GenerateFails,
    Hang,
    LateThinking,
    StreamFails,
    Torn,
)
from harness.fakes.wire_faults import (
    BadJson,
    BadUtf8,
    Comments,
    CutAt,
    CutLine,
    Dropped,
    EmptyChoices,
    ErrorFrame,
    Harmless,
    Http,
    Incomplete,
    JsonError,
    NoIndex,
    OddIndex,
    Refused,
    RepeatedIds,
    Reset,
    Split,
    Stall,
)

NeutralFault: TypeAlias = (
    GenerateFails | StreamFails | Torn | Hang | DoneTwice | LateThinking | Stall
)
"""What can happen to a reply where no HTTP is spoken."""
_InStream: TypeAlias = (
    JsonError | Incomplete | Reset | CutLine | CutAt | ErrorFrame | BadJson | BadUtf8
)
HARMLESS: tuple[type[Harmless], ...] = get_args(Harmless)


def neutral(fault: Fault | None) -> NeutralFault | None:
    """What happens in the place of `fault` where no HTTP is spoken; None where nothing does.

    >>> neutral(Reset(2))
    StreamFails(after=2, message='the connection was reset', reported=False)
    >>> neutral(CutLine(1)), neutral(Split())
    (Torn(after=1), None)
    """
    match fault:
        case Http(status=status, message=message):
            return GenerateFails(f"status {status}: {message}")
        case Refused():
            return GenerateFails("the connection was refused")
        case Dropped():
            return GenerateFails("the connection was closed without an answer")
        case GenerateFails() | StreamFails() | Torn() | Hang() | DoneTwice() | LateThinking():
            return fault
        case Stall():
            return fault
        case None | Comments() | Split() | EmptyChoices() | RepeatedIds() | NoIndex() | OddIndex():
            return None
        case _:
            return _in_stream(fault)


def _in_stream(fault: _InStream) -> StreamFails | Torn:
    match fault:
        case CutLine(after=after):
            return Torn(after)
        case CutAt(how="end"):
            return Torn(0)
        case CutAt(how=how):
            return _in_stream(Reset(0) if how == "reset" else Incomplete(0))
        case Incomplete(after=after):
            return StreamFails(after, "the connection was closed before the body had ended")
        case Reset(after=after):
            return StreamFails(after, "the connection was reset")
        case JsonError(message=message):
            return StreamFails(0, message)
        case ErrorFrame(after=after, message=message):
            return StreamFails(after, message, reported=True)
        case BadJson(after=after):
            return StreamFails(after, "a frame is no JSON")
        case _:
            return StreamFails(fault.after, "a frame is no UTF-8")
