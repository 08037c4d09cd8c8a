"""The world of a simulated run as the loop's ports: virtual time, files in memory, threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

from harness.core.events import InsideEvent, LoopEvent
from harness.core.ports import Aborted, Env
from harness.loops.fsm.ports import Ports
from harness.loops.fsm.real_threads import RealThreads


class AgentWorld(RealThreads):
    """What the loop needs of the world: files in memory, time of the run, and real threads, which
    the run controls.

    A Ctrl-C that comes while the turn waits for anything is a cancel, and it goes on waiting.
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
        """Run `work` in a new thread; no Ctrl-C keeps it from beginning."""
        while not self.heed(lambda: super(AgentWorld, self).start(work)):
            pass

    def event(self) -> _Flag:
        """A new flag."""
        return _Flag(self)

    def lock(self) -> _Lock:
        """A new lock."""
        return _Lock(self)

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


class _Flag(threading.Event):
    """A flag; no Ctrl-C keeps it from being raised, or ends a wait for it."""

    def __init__(self, world: AgentWorld) -> None:
        super().__init__()
        self._world = world

    def set(self) -> None:
        """Raise it."""
        while not self._world.heed(super().set):
            pass

    def wait(self, _timeout: float | None = None) -> bool:
        """Wait until it is raised."""
        while not self._world.heed(super().wait):
            pass
        return True


class _Lock:
    """A lock; no Ctrl-C keeps it from being taken, or from being given back."""

    def __init__(self, world: AgentWorld) -> None:
        self._world = world
        self._real = threading.RLock()

    def __enter__(self) -> None:
        while not self._world.heed(self._real.acquire):
            pass

    def __exit__(self, *_error: object) -> None:
        self._world.heed(self._real.release)
