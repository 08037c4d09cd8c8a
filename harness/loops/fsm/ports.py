"""What the loop needs of the world: time, files, threads, chance, and somebody to tell."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from msgspec import Struct

from harness.core.events import InsideEvent
from harness.core.json_text import Json


class Clock(Protocol):
    """Time, real or virtual, for threads."""

    def now(self) -> int:
        """Nanoseconds since an arbitrary point; never goes back."""
        ...

    def sleep(self, nanoseconds: int) -> None:
        """Wait."""
        ...


class Event(Protocol):
    """A flag that threads wait for, as `threading.Event` is one."""

    def set(self) -> None:
        """Raise the flag."""
        ...

    def wait(self) -> Any:
        """Wait until it is raised."""
        ...


class Threads(Protocol):
    """Where threads and what they wait for come from."""

    def start(self, work: Callable[[], None]) -> None:
        """Run `work` in a thread that the process does not wait for."""
        ...

    def event(self) -> Event:
        """A new flag, not raised."""
        ...

    def lock(self) -> AbstractContextManager[Any]:
        """A new lock; the thread that holds it may take it again, as with `threading.RLock`."""
        ...


class Files(Protocol):
    """The file system, as far as plan mode and saving need it."""

    def resolve(self, path: str) -> str:
        """The absolute path, with links followed."""
        ...

    def write(self, path: str, text: str) -> None:
        """Replace what the file holds; OSError where that fails."""
        ...


def no_one(*_said: Any) -> None:
    """Listens to nothing."""


class Ports(Struct, frozen=True, kw_only=True):
    """One run's world.

    `save` writes the conversation: its text and the system prompt; it may raise OSError. `token`
    gives a fresh random word. `notify` hears what a user interface shows, by kind and payload,
    `delta` the streamed text, `log` lines for people, `observe` what happens inside the loop.
    """

    clock: Clock
    threads: Threads
    files: Files
    token: Callable[[], str]
    save: Callable[[str, str | None], None]
    notify: Callable[[str, Json], None] = no_one
    delta: Callable[[str], None] = no_one
    log: Callable[[str], None] = no_one
    observe: Callable[[InsideEvent], None] = no_one
