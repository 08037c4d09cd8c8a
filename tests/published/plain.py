"""What is found, found again without the simulation: plain asyncio, cancelled at each tick."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, TypeAlias


class Seen:
    """What an agent did in one turn: its requests, the tools that began, and those that ended."""

    def __init__(self) -> None:
        self.stopped = False
        self.requests: list[Any] = []
        self.ended: list[str] = []
        self.faults: set[str] = set()

    def asked(self, body: Any) -> bool:
        """A request came; whether it is the first, which asks for tools."""
        self.requests.append(body)
        if self.stopped:
            self.faults.add("a request after the stop")
        return len(self.requests) == 1

    async def runs(self, tool: str, ticks: int) -> str:
        """A tool, which takes some ticks of the event loop."""
        if self.stopped:
            self.faults.add("a tool after the stop")
        for _ in range(ticks):
            await asyncio.sleep(0)
        self.ended.append(tool)
        return "done"


Say: TypeAlias = Callable[[str], Awaitable[Any]]
"""Plays a turn of an agent."""


def faults(make: Callable[[Seen], Say], told: Callable[[Seen, Any], set[str]]) -> set[str]:
    """What goes wrong where the turn's task is cancelled at the first tick of the event loop, the
    second, and so on; `told` says it of the next request, or of the error in its place.

    Threads of clients make ticks uncertain, so that a window of one tick may be missed.
    """
    found: set[str] = set()
    for ticks in count():
        seen = Seen()
        if not asyncio.run(_stopped(make(seen), seen, ticks, told)):
            return found
        found |= seen.faults
    raise AssertionError


async def _stopped(say: Say, seen: Seen, ticks: int, told: Callable[[Seen, Any], set[str]]) -> bool:
    turn = asyncio.ensure_future(say("Take me to Vienna."))
    for _ in range(ticks):
        await asyncio.sleep(0)
    if turn.done():
        return False
    seen.stopped = True
    turn.cancel()
    await asyncio.gather(turn, return_exceptions=True)
    for _ in range(100):
        await asyncio.sleep(0)
    if len(asyncio.all_tasks()) > 1:
        seen.faults.add("a task is left")
    seen.stopped = False
    try:
        await say("And the weather there?")
    except Exception as error:
        seen.faults |= told(seen, error)
    else:
        seen.faults |= told(seen, seen.requests[-1])
    return True
