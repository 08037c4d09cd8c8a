"""Makes agents of what people have: a function of messages, an object with a method, a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping
from functools import partial, wraps
from typing import Any, Literal, TypeAlias, get_args

from msgspec.structs import replace

from harness.core.errors import UsageError, hint, nearest, unknown
from harness.core.outcome import Outcome
from harness.core.ports import Agent, Build, Env
from harness.runner.agents import Command, Subject, command_subject
from harness.sim.actors import current
from harness.sim.boundary import simulation

Given: TypeAlias = Literal["messages", "text", "tools", "env"]
"""What a parameter can be given. `messages` is the conversation so far, a list of dicts with `role`
and `content`; `text` is what the user says now, None where the turn resumes; `tools` are the
scripted tools by name, as functions of keyword arguments; `env` is the env."""

_IN_A_TURN: tuple[str, ...] = get_args(Given)
_OF_A_RUN = ("env", "tools")
_OUTCOMES = get_args(Outcome)
_OPEN = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def from_function(function: Callable[..., Any], **given: Given) -> Build:
    """An agent that is one function, called once a turn, as in ``from_function(answer)``.

    It may be asynchronous or not, or a generator of either kind, which is run to its end; what it
    yields is passed over. Its parameters are given what their names say: `messages`, `text`,
    `tools`, `env`. Others are told here, as in ``from_function(answer, history="messages")``.

    The list of messages lives through all turns of a run. The user's words are added to it before
    each call, and stay whatever becomes of the turn; so does what the function adds. A text that
    it returns is added as the assistant's, unless the last message is the assistant's already; a
    dict is added as it is, unless it is the last message already; a list is the conversation from
    then on. What it raises ends the turn.

    UsageError where the parameters do not fit. The turn fails with one where a function of messages
    returns what is none of these, and no outcome.
    """
    given_first: Any = function
    if isinstance(given_first, type) or not callable(given_first):
        raise UsageError(
            f"from_function takes a function; found {given_first!r} (from_object takes a class)"
        )
    call = _Call(function, _name(function), _IN_A_TURN, given, 'rename it, or give {}="messages"')
    call.check_heard()

    def build(env: Env) -> Agent:
        return _Adapted(env, call)

    build.__name__ = build.__qualname__ = call.name
    return build


def from_object(
    make: Callable[..., Any], method: str = "run", *, stop: str | None = None, **given: Given
) -> Build:
    """An agent that is an object with a method, called once a turn, as in ``from_object(Chat)``.

    `make`, a class or a function, makes the object anew for each run; it may take `env` and
    `tools`. The method is called, and what it returns is taken, as `from_function` says. `stop`
    names a method that stops a turn, called without arguments and from anywhere; a run has it as
    the agent's own stop. Tools that `make` takes are for asynchronous code, unless it is a class
    whose method is not.

    UsageError where the parameters do not fit, or the object has no such method.
    """
    given_first: Any = make
    if not callable(given_first):
        kind = type(given_first).__name__
        raise UsageError(
            f"from_object takes what makes the object anew for each run; found an object of class "
            f"{kind}: write from_object(lambda: {kind}(...))"
        )
    name = _name(make)
    making = _Call(make, name, _OF_A_RUN, {}, f"pass it yourself: from_object(lambda: {name}(...))")
    whole = _of_partial(make)
    waits = isinstance(whole, type) and not _is_asynchronous(getattr(whole, method, None))

    def build(env: Env) -> Agent:
        made = making({"env": env, "tools": _tools(env, waits=waits)})
        if inspect.iscoroutine(made):
            made.close()
            raise UsageError(
                f"{name} is asynchronous; give a function that makes the object at once"
            )
        spelled = f"{type(made).__name__}.{method}"
        call = _Call(
            _method(made, method), spelled, _IN_A_TURN, given, 'rename it, or give {}="text"'
        )
        call.check_heard()
        agent = _Adapted(env, call)
        if stop is not None:
            agent.cancel = _method(made, stop)
        return agent

    build.__name__ = build.__qualname__ = name
    return build


def from_command(line: str, *, turn_limit: float = 60, cancel_limit: float = 5) -> Subject:
    """An agent that is a program, as in ``from_command("node agent.mjs")``; it runs in real time.

    A turn may take `turn_limit` seconds, and one that is cancelled `cancel_limit` from then on.
    It can be run, but neither swept nor searched. UsageError where the line names no program, or
    a limit is no time.
    """
    given_first: Any = line
    if not isinstance(given_first, str):
        raise UsageError(f"from_command takes one line of text, as a shell does; found {line!r}")
    for name, limit in (("turn_limit", turn_limit), ("cancel_limit", cancel_limit)):
        if not limit > 0:  # which NaN is not
            raise UsageError(f"{name} is {limit!r}; expected seconds, more than 0")
    subject = command_subject(line)
    assert subject.process is not None, "the subject is a command's"
    return replace(subject, process=Command(subject.process.words, turn_limit, cancel_limit))


class _Call:
    """A function, and what each of its parameters is given, of `known` values.

    UsageError, with `advice` for the parameter, where it has to be given something else.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        known: tuple[str, ...],
        given: Mapping[str, str],
        advice: str,
    ) -> None:
        self.name = name
        self.asynchronous = _is_asynchronous(function)
        self._function = function
        try:
            self._signature = inspect.signature(function)
        except ValueError:
            raise UsageError(f"{name} does not say which parameters it has; wrap it") from None
        parameters = self._signature.parameters
        for wrong in given.keys() - parameters.keys():
            raise UsageError(f"{name}: {unknown('parameter', wrong, parameters)}")
        self._wanted: dict[str, str] = {}
        for parameter in parameters.values():
            source = given.get(parameter.name, parameter.name)
            if parameter.kind in _OPEN:
                continue
            if source in known:
                self._wanted[parameter.name] = source
            elif parameter.name in given:
                raise UsageError(f"{name}: {unknown('value', source, known)}")
            elif parameter.default is parameter.empty:
                guess = hint(nearest(source, known))
                raise UsageError(
                    f"{name} needs {source!r}{guess}, which is none of {', '.join(known)}; "
                    + advice.format(source)
                )

    def check_heard(self) -> None:
        """UsageError where it would never hear what the user says."""
        if {"messages", "text"} & {*self._wanted.values()}:
            return
        parameters = self._signature.parameters.values()
        named = [each.name for each in parameters if each.kind not in _OPEN]
        if self._wanted:
            advice = "; a function that makes an agent is given as it is"
        elif named:
            advice = f'; say what is which, as in {named[0]}="messages"'
        else:
            advice = "; write a function around it that takes them" if parameters else ""
        raise UsageError(
            f"{self.name} takes neither messages nor text, so that it never hears the user{advice}"
        )

    @property
    def keeps_messages(self) -> bool:
        """Whether the conversation is kept for it."""
        return "messages" in self._wanted.values()

    def __call__(self, values: Mapping[str, Any]) -> Any:
        bound = self._signature.bind_partial()
        for name, source in self._wanted.items():
            bound.arguments[name] = values[source]
        bound.apply_defaults()  # of parameters that are known by their places only
        return self._function(*bound.args, **bound.kwargs)


class _Adapted:
    """An agent whose turn is a call. It has a `cancel` only where one is set."""

    cancel: Callable[[], Any]

    def __init__(self, env: Env, call: _Call) -> None:
        self._call = call
        self._messages: list[Any] = []
        tools = _tools(env, waits=not call.asynchronous)
        self._values: dict[str, Any] = {"env": env, "tools": tools, "messages": self._messages}
        self.turn: Callable[[str | None], Any] = (
            self._awaited if call.asynchronous else self._waited
        )

    async def _awaited(self, text: str | None) -> Outcome | None:
        value = self._begin(text)
        if inspect.isasyncgen(value):
            async for _ in value:
                pass
            return None
        return self._end(await value)

    def _waited(self, text: str | None) -> Outcome | None:
        value = self._begin(text)
        if inspect.isgenerator(value):
            value = _last(value)
        if inspect.iscoroutine(value):
            value.close()
            raise UsageError(
                f"{self._call.name} returned a coroutine, and is no `async def`, or what decorates "
                "it is none; give a function that awaits it, as in "
                "`async def answer(messages): return await ...`"
            )
        return self._end(value)

    def _begin(self, text: str | None) -> Any:
        if text is not None:
            self._messages.append({"role": "user", "content": text})
        return self._call({**self._values, "text": text})

    def _end(self, value: Any) -> Outcome | None:
        """Take what a call returned."""
        if isinstance(value, _OUTCOMES):
            outcome: Outcome = value
            return outcome
        if not self._call.keeps_messages:
            return None
        match value:
            case None:
                pass
            case str():
                if not _is_of_assistant(self._messages):
                    self._messages.append({"role": "assistant", "content": value})
            case dict():
                if value not in self._messages[-1:]:  # else it has been added already
                    self._messages.append(value)
            case list() if not any(isinstance(each, str) for each in value):
                self._messages[:] = value
            case _:
                kind = type(value).__name__
                found = "a list with texts" if kind == "list" else f"an object of class {kind}"
                raise UsageError(
                    f"{self._call.name} returned {found}; return the reply's text, one message as "
                    "a dict, the list of all messages from now on, or None where the function has "
                    "added them itself"
                )
        return None


def _is_of_assistant(messages: list[Any]) -> bool:
    last = messages[-1] if messages else None
    role = last.get("role") if isinstance(last, dict) else getattr(last, "role", None)
    return role == "assistant"


def _last(steps: Generator[Any, Any, Any]) -> Any:
    """What a generator returns at its end."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def _of_partial(function: Any) -> Any:
    """What is called in the end."""
    while isinstance(function, partial):
        function = function.func
    return function


def _is_asynchronous(function: Any) -> bool:
    """Whether calling it gives what is to be awaited."""
    function = _of_partial(function)
    called = function if inspect.isroutine(function) else getattr(function, "__call__", None)  # noqa: B004 - its kind is asked
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


def _tools(env: Env, *, waits: bool) -> Mapping[str, Callable[..., Any]]:
    """The scripted tools as functions; those for synchronous code wait."""
    functions = env.tools.functions()
    return {name: _waiting(env, each) for name, each in functions.items()} if waits else functions


def _waiting(env: Env, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def wait(**arguments: Any) -> Any:
        if current() is None and simulation() is not None:  # in a task, as of asyncio.run()
            return function(**arguments)
        return env.block(lambda: function(**arguments))

    return wait


def _method(made: Any, name: str) -> Callable[..., Any]:
    found = getattr(made, name, None)
    if callable(found):
        return found  # type: ignore[no-any-return]
    public = [each for each in dir(made) if not each.startswith("_")]
    raise UsageError(f"{type(made).__name__}: {unknown('method', name, public)}")


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))
