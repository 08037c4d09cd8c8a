"""Loops as people write them by hand on a provider's own library, without a framework.

What differs between libraries is a dialect: how to ask, and how to say what is remembered. The
loops around it are the same: ask, run the tools that the reply asks for side by side (or one after
the other, without asyncio), ask again, and answer every call whatever happens.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol

from harness.core.json_text import dumps
from harness.core.ports import Env

SYSTEM = "Be brief."


@dataclass(frozen=True)
class Call:
    """A call of a reply, as loops need it."""

    id: str
    name: str
    args: Any


@dataclass(frozen=True)
class Result:
    """What a call came to."""

    call: Call
    text: str
    failed: bool = False


class Incomplete(ConnectionError):
    """A stream ended before its reply did."""


class Dialect(Protocol):
    """One library: `history` is in its own words."""

    history: list[Any]

    def say(self, text: str) -> None: ...
    def answer(self, results: list[Result]) -> None: ...


class AsyncLoop:
    """A loop with asyncio; `ask` of a dialect gives the calls of the reply."""

    def __init__(self, env: Env, dialect: Any) -> None:
        self.env = env
        self.dialect = dialect

    async def turn(self, text: str | None) -> None:
        if text is not None:
            self.dialect.say(text)
        while calls := await self.dialect.ask():
            await self.run_tools(calls)

    async def run_tools(self, calls: list[Call]) -> None:
        tasks = [asyncio.ensure_future(self.run_tool(call)) for call in calls]
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            raise
        finally:
            self.dialect.answer(
                [
                    Result(call, "cancelled", failed=True) if task.cancelled() else task.result()
                    for call, task in zip(calls, tasks, strict=True)
                ]
            )

    async def run_tool(self, call: Call) -> Result:
        try:
            return Result(call, dumps(await self.env.tools.call(call.name, call.args, call.id)))
        except Exception as error:  # whatever a tool raises, the model should hear of it
            return Result(call, f"Error: {error}", failed=True)


class ForgetfulLoop(AsyncLoop):
    """The classic mistake: a cancel while tools run leaves their calls without results."""

    async def run_tools(self, calls: list[Call]) -> None:
        self.dialect.answer(await asyncio.gather(*(self.run_tool(call) for call in calls)))


class SyncLoop:
    """The same without asyncio; Ctrl-C stops it."""

    def __init__(self, env: Env, dialect: Any) -> None:
        self.env = env
        self.dialect = dialect

    def turn(self, text: str | None) -> None:
        if text is not None:
            self.dialect.say(text)
        while calls := self.dialect.ask():
            self.run_tools(calls)

    def run_tools(self, calls: list[Call]) -> None:
        results: list[Result] = []
        try:
            for call in calls:
                results.append(self.run_tool(call))  # noqa: PERF401 - Ctrl-C leaves what there is
        finally:
            left = calls[len(results) :]
            results += [Result(call, "interrupted", failed=True) for call in left]
            self.dialect.answer(results)

    def run_tool(self, call: Call) -> Result:
        try:
            return Result(call, dumps(self.env.tools.call_sync(call.name, call.args, call.id)))
        except Exception as error:
            return Result(call, f"Error: {error}", failed=True)
