"""What a turn's end means: a returned value, a cancel, an exception, as an outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, get_args

from harness.core.outcome import CANCELLED, COMPLETED, Error, Outcome
from harness.core.ports import Agent
from harness.sim.where import raised

_OUTCOMES = get_args(Outcome)
_NAMES = "Completed(), Cancelled(), Error(kind, message), StepLimit() or Interrupted()"


_NOT_AWAITED = "'async for' requires an object with __aiter__ method, got coroutine"
"""What Python says of a stream that was asked for and not awaited."""


def outcome_of(
    agent: Agent, task: asyncio.Task[None], returned: Sequence[Any]
) -> tuple[Outcome, str | None]:
    """The outcome of a turn that is over, and what is wrong with how the agent says it, or None.

    `returned` holds the one value that the turn returned, or nothing: to asyncio a task that is
    cancelled in its very last step is cancelled, though it returned. An outcome is taken as it is;
    what another value means is for the agent's `outcome` to say, else the turn is completed.
    """
    if not returned:
        error = None if task.cancelled() else task.exception()
        if error is None or isinstance(error, KeyboardInterrupt):
            return CANCELLED, None
        return Error(type(error).__name__, describe(error)), None
    [value] = returned
    if isinstance(value, _OUTCOMES):
        return value, None
    meaning: Callable[[Any], Any] | None = getattr(agent, "outcome", None)
    if meaning is None:
        return COMPLETED, None
    try:
        outcome: Any = meaning(value)
    except Exception as broken:
        wrong = f"outcome({value!r}) raised {type(broken).__name__}: {describe(broken)}"
        return Error(type(broken).__name__, describe(broken)), wrong
    if isinstance(outcome, _OUTCOMES):
        return outcome, None
    if asyncio.iscoroutine(outcome):
        outcome.close()
    wrong = f"outcome({value!r}) returned {outcome!r}; return {_NAMES}"
    return Error("TypeError", wrong), wrong


def describe(error: BaseException) -> str:
    """An error's text with the line of the user's code that it comes from, unless it says so
    itself; groups are opened.
    """
    if isinstance(error, BaseExceptionGroup):
        inner = [f"{type(each).__name__}: {describe(each)}" for each in error.exceptions]
        return f"{error.message}: {'; '.join(inner)}"
    try:
        text = str(error)
    except Exception:
        text = "an error that cannot be shown"
    if text == _NOT_AWAITED:
        text += "; await what is called, as in async for part in await env.model.generate(request)"
    place = raised(error)
    return f"{text} ({place})" if place and place not in text else text
