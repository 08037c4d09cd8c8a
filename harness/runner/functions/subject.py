"""What can be explored beside agents: an asynchronous function, or an object with `run`."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.located import shortened

Factory: TypeAlias = Callable[[], Any]
"""An asynchronous function without arguments; or what gives a coroutine, or an object with an
asynchronous `run` and, where what is left is to be judged, a `check`."""

_EXPECTED = (
    "expected an asynchronous function without arguments, or a callable that gives an object with "
    "`async def run(self)` and, if it has one, `check(self)`"
)


class Program(Struct):
    """What one run plays: the coroutine, and what is called when all is quiet."""

    main: Coroutine[Any, Any, Any]
    check: Callable[[], Any] | None = None


class Function:
    """A factory that was looked at: it can be called without arguments.

    UsageError says what is wrong with it.
    """

    def __init__(self, factory: Factory) -> None:
        _check_callable(factory)
        self.factory = factory
        self.module, self.qualname = _named(factory)
        if inspect.isasyncgenfunction(factory):
            raise UsageError(
                f"{self.name} is an asynchronous generator, which nothing iterates; {_EXPECTED}"
            )
        _check_arguments(factory, self.name)
        self.direct = inspect.iscoroutinefunction(factory)
        """Whether a call only makes a coroutine, and runs nothing."""

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"{self.module}.{self.qualname}".replace("<locals>.", "")

    @property
    def digest(self) -> str:
        """Ten hexadecimal digits for its module and qualified name; its code does not matter."""
        text = f"function {self.module}:{self.qualname}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]

    def call(self) -> Program:
        """Call the factory: something new to run."""
        made = self.factory()
        if inspect.iscoroutine(made):
            return Program(made)
        run = getattr(made, "run", None)
        if not inspect.iscoroutinefunction(run):
            wrong = "without `run`" if run is None else "whose `run` is not a coroutine function"
            what = "None" if made is None else f"an object of class {type(made).__name__} {wrong}"
            plain = run is None and inspect.isfunction(self.factory)
            no_async = "is not an async function: it " if plain else ""
            raise UsageError(f"{self.name} {no_async}gave {what}; {_EXPECTED}")
        _check_arguments(run, f"{self.name}'s run")
        check = getattr(made, "check", None)
        if check is not None and not callable(check):
            raise UsageError(f"{self.name} gave an object whose `check` is no method")
        return Program(run(), check)


def _named(factory: Factory) -> tuple[str, str]:
    """The module and the qualified name of a callable, or else of its class."""
    while isinstance(factory, functools.partial):
        factory = factory.func
    named = factory if hasattr(factory, "__qualname__") else type(factory)
    return str(named.__module__), str(named.__qualname__)


def _check_callable(given: object) -> None:
    if inspect.iscoroutine(given):
        given.close()
        raise UsageError(
            "what is to be explored is a coroutine, which can run only once; give the function, "
            "and do not call it"
        )
    if not callable(given):
        if hasattr(given, "run"):
            cls = type(given).__name__
            raise UsageError(
                f"what is to be explored is an object of class {cls}, which would be the same one "
                "in every run; give the class, without ()"
            )
        raise UsageError(f"what is to be explored is {shortened(repr(given))}; {_EXPECTED}")


def _check_arguments(function: Callable[..., Any], name: str) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # a builtin that does not say
    needed = [
        each.name
        for each in signature.parameters.values()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    if needed:
        raise UsageError(
            f"{name} takes arguments ({', '.join(needed)}), and each run calls it without; "
            f"write a function around it that gives them"
        )
