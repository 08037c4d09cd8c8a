"""The world of a simulated run as the loop's ports: virtual time, files in memory, no threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from harness.core.events import InsideEvent, LoopEvent
from harness.core.ports import Aborted, Env
from harness.loops.fsm.ports import Ports


class AgentWorld:
    """What the loop needs of the world: files in memory, time of the run, and no threads.

    What would run in a thread runs at once. A Ctrl-C that comes in between is a cancel.
    """

    def __init__(self, env: Env, cancel: Callable[[], None]) -> None:
        self._env = env
        self._cancel = cancel
        self._files: dict[str, str] = {}
        self._words = 0

    def ports(self) -> Ports:
        """All of it."""
        return Ports(
            clock=self,
            threads=self,
            files=self,
            token=self.token,
            save=self.save,
            notify=lambda kind, payload: self.observe(LoopEvent(kind, payload)),
            observe=self.observe,
        )

    def observe(self, event: InsideEvent) -> None:
        """Report something."""
        self.heed(lambda: self._env.observe(event))

    def heed(self, wait: Callable[[], object]) -> bool:
        """Wait; False where a stop came in between."""
        try:
            wait()
        except KeyboardInterrupt:
            self._cancel()
        except Aborted:
            pass
        else:
            return True
        return False

    def now(self) -> int:
        """The time of the run."""
        return self._env.clock.now()

    def sleep(self, nanoseconds: int) -> None:
        """Wait."""
        self.heed(lambda: self._env.clock.wait(nanoseconds))

    def start(self, work: Callable[[], None]) -> None:
        """Run `work`, now."""
        work()

    def event(self) -> _Flag:
        """A flag."""
        return _Flag(self._env, self)

    def lock(self) -> AbstractContextManager[Any]:
        """Nothing to lock: there is one thread."""
        return nullcontext()

    def resolve(self, path: str) -> str:
        """There are no links."""
        return path

    def write(self, path: str, text: str) -> None:
        """Keep a file in memory."""
        self._files[path] = text

    def save(self, text: str, _system: str | None) -> None:
        """Keep the conversation's file, and tell of it."""
        self.write("conversation.md", text)
        self.observe(LoopEvent("saved", None))

    def token(self) -> str:
        """A fresh word."""
        self._words += 1
        return f"word-{self._words}"


class _Flag:
    """A flag that the turn waits for in virtual time."""

    def __init__(self, env: Env, world: AgentWorld) -> None:
        self._env = env
        self._world = world
        self._raised = asyncio.Event()

    def set(self) -> None:
        """Raise it."""
        self._raised.set()

    def wait(self) -> None:
        """Wait until it is raised."""
        while not self._raised.is_set():
            self._world.heed(lambda: self._env.block(self._raised.wait))
