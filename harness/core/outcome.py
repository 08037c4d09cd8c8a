"""How a turn ended: one of five, and never two."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast, get_args

from msgspec import Struct


class Completed(Struct, frozen=True, tag="completed"):
    """The model answered and asked for nothing more."""


class Cancelled(Struct, frozen=True, tag="cancelled"):
    """The turn was stopped from outside."""


class Error(Struct, frozen=True, tag="error"):
    """The turn failed; `kind` is where (``generate``, ``stream``, or an exception's class name)."""

    kind: str
    message: str


class StepLimit(Struct, frozen=True, tag="step_limit"):
    """The budget of steps was spent before the model had finished."""


class Interrupted(Struct, frozen=True, tag="interrupted"):
    """The reply broke off without saying why, or the process died."""


Outcome: TypeAlias = Completed | Cancelled | Error | StepLimit | Interrupted
OutcomeName: TypeAlias = Literal["completed", "cancelled", "error", "step_limit", "interrupted"]

COMPLETED = Completed()
CANCELLED = Cancelled()
STEP_LIMIT = StepLimit()
INTERRUPTED = Interrupted()
OUTCOME_NAMES: tuple[OutcomeName, ...] = get_args(OutcomeName)


def outcome_name(outcome: Outcome) -> OutcomeName:
    """The outcome's name, as scenarios and reports write it: its tag."""
    return cast("OutcomeName", outcome.__struct_config__.tag)
