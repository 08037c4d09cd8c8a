"""Says whether what a build gave is an agent, and what to write where it is none."""

from __future__ import annotations

import inspect
from typing import Any

from harness.core.errors import UsageError
from harness.core.ports import Agent, Build
from harness.runner.outcomes import describe


def name_of(build: Build) -> str:
    """What messages call a build."""
    return getattr(build, "__qualname__", repr(build))


def raised(build: Build, error: BaseException) -> UsageError:
    """The refusal of a build that has raised an error."""
    return UsageError(
        f"{name_of(build)} raised {type(error).__name__}: {describe(error)}; "
        f"it is called with the env and must return the agent{_or_else(build)}"
    )


def agent_of(build: Build, built: Any) -> Agent:
    """What a build gave, where it is an agent that can be played; else a UsageError."""
    name = name_of(build)
    if inspect.iscoroutine(built):
        built.close()
        raise UsageError(
            f"{name} is a coroutine function; write `def`, not `async def`{_or_else(build)}"
        )
    wrong = _wrong_with(getattr(built, "turn", None))
    if wrong is not None:
        raise UsageError(
            f"{name} returned an object of class {type(built).__name__} whose `turn` {wrong}; "
            f"write `async def turn(self, text)`, or `def` for a synchronous agent{_or_else(build)}"
        )
    for optional in ("cancel", "outcome", "close"):
        if not callable(getattr(built, optional, len)):
            raise UsageError(f"{name} returned an agent whose `{optional}` is no method")
    agent: Agent = built
    return agent


def _wrong_with(turn: Any) -> str | None:
    """Why an agent's `turn` cannot be played; None where it can."""
    if turn is None:
        return "is missing"
    if not callable(turn):
        return "is no function"
    try:
        inspect.signature(turn).bind("the user's text")
    except TypeError as error:
        return f"cannot be called with the user's text ({error})"
    return None


def _or_else(build: Build) -> str:
    """What makes an agent of a class or a function that was not written for it; '' of others."""
    name = getattr(build, "__name__", "")
    if isinstance(build, type) and not hasattr(build, "turn"):
        names = [each for each, value in vars(build).items() if inspect.isfunction(value)]
        methods = [each for each in names if not each.startswith("_")]
        method = "run" if "run" in methods or not methods else methods[0]
        made = f'harness.from_object({name}, "{method}")'
        return f"; of an object whose turn is another method, make one by {made}"
    if not inspect.isfunction(build) or name == "<lambda>":
        return ""
    if "env" in inspect.signature(build).parameters:
        return ""
    return f"; of a function of messages, make one by harness.from_function({name})"
