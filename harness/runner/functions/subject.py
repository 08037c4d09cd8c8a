"""What can be explored beside agents: a function, asynchronous or not, or an object with `run`."""

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
"""A function without arguments, asynchronous or not; or what gives a coroutine, or an object with
`run` and, where what is left is to be judged, a `check`."""

_EXPECTED = (
    "expected a function without arguments, `async def` or `def`, or a callable that gives an "
    "object with `run(self)` and, if it has one, `check(self)`"
)


class Program(Struct):
    """What one run plays: a coroutine, or a function that waits by blocking; and what is called
    when all is quiet.
    """

    main: Coroutine[Any, Any, Any] | Callable[[], Any]
    check: Callable[[], Any] | None = None


class Function:
    """A factory that was looked at: it can be called without arguments.

    UsageError says what is wrong with it.
    """

    def __init__(self, factory: Factory) -> None:
        _check_callable(factory)
        self.factory = factory
        self.module, self.qualname = _named(factory)
        _check_no_generator(factory, self.name)
        _check_arguments(factory, self.name)
        self.direct = inspect.iscoroutinefunction(factory)
        """Whether a call only makes a coroutine, and runs nothing."""
        self.plain = False if self.direct or inspect.isclass(factory) else None
        """Whether it is itself what is run, and blocks where it waits; None where nobody knows yet:
        it may be a function that only makes what is run.
        """
        self.blocks = False
        """Whether a run has shown that what is run blocks where it waits."""

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"{self.module}.{self.qualname}".replace("<locals>.", "")

    @property
    def digest(self) -> str:
        """Ten hexadecimal digits for its module and qualified name; its code does not matter."""
        text = f"function {self.module}:{self.qualname}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]

    def gives(self) -> bool:
        """Call it, and say whether it makes what is to be run."""
        made = self.factory()
        if inspect.iscoroutine(made):
            made.close()
            return True
        return callable(getattr(made, "run", None))

    def call(self) -> Program:
        """Call the factory: something new to run."""
        if self.plain:
            return Program(self.factory)
        made = self.factory()
        if inspect.iscoroutine(made):
            return Program(made)
        run = getattr(made, "run", None)
        if not callable(run):
            wrong = "without `run`" if run is None else "whose `run` is no method"
            raise UsageError(
                f"{self.name} gave an object of class {type(made).__name__} {wrong}; {_EXPECTED}"
            )
        _check_no_generator(run, f"{self.name}'s run")
        _check_arguments(run, f"{self.name}'s run")
        check = getattr(made, "check", None)
        if check is not None and not callable(check):
            raise UsageError(f"{self.name} gave an object whose `check` is no method")
        return Program(run() if inspect.iscoroutinefunction(run) else run, check)


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


def _check_no_generator(function: Callable[..., Any], name: str) -> None:
    if inspect.isasyncgenfunction(function):
        raise UsageError(
            f"{name} is an asynchronous generator, which nothing iterates; {_EXPECTED}"
        )
    if inspect.isgeneratorfunction(function):
        raise UsageError(f"{name} is a generator, which nothing iterates; {_EXPECTED}")


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
