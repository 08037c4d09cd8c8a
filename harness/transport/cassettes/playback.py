"""A recorded answer as a client of `httpx` or `httpx2` gets it again, in real or virtual time.

What is played without its times takes none: no wait, no task, no event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from importlib import import_module
from itertools import repeat
from typing import Any, Final

from harness.core.durations import SECOND
from harness.transport.cassettes.playing import Course, Step, Wait
from harness.transport.exchange import Broken
from harness.transport.libraries import error_of

_FOREVER: Final = 366 * 24 * 3600.0
"""How many seconds a client waits that has no limit."""
_TURNS: Final = 50
"""How often others are let go on that may have broken off a client, before it is told instead that
nothing more was recorded.
"""


async def pause(seconds: float) -> None:
    """Wait on the event loop that the client runs on: asyncio's, or trio's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        await import_module("anyio").sleep(seconds)  # both libraries know other loops by it
    else:
        await asyncio.sleep(seconds)


class Playback:
    """Tells a client, step by step, how many seconds to wait and what comes then.

    Errors are raised in the place where they came, as those of the library, whose module `errors`
    is. `limits` are the client's, in seconds: a wait longer than its limit for a read ends with
    that. `now` gives nanoseconds.
    """

    def __init__(
        self,
        course: Course,
        errors: Any,
        limits: Mapping[str, float | None],
        now: Callable[[], int],
    ) -> None:
        self._course = course
        self._errors = errors
        self._limit = limits.get("read")
        self._now = now
        self._begun = now()

    def head(self) -> Iterator[float]:
        """Seconds to wait until the answer begins."""
        for step in self._course.head():
            assert not isinstance(step, bytes), "a head has no chunks"
            yield from self._wait(step)

    def body(self) -> Iterator[float | bytes]:
        """Its chunks, and seconds to wait between them."""
        for step in self._course.body():
            if isinstance(step, bytes):
                yield step
            else:
                yield from self._wait(step)

    def _wait(self, step: Step) -> Iterator[float]:
        match step:
            case Wait(until=None):
                yield _FOREVER if self._limit is None else self._limit
                raise self._timeout()
            case Wait(until=int(until)):
                seconds = (until + self._begun - self._now()) / SECOND
                if self._limit is not None and seconds > self._limit:
                    yield self._limit
                    raise self._timeout()
                if seconds > 0:
                    yield seconds
            case Broken():
                if self._course.given.ended == "cancelled":
                    yield from repeat(0.0, _TURNS)
                raise error_of(step, self._errors) from step
            case TimeoutError():
                raise self._timeout() from step
            case _:
                raise AssertionError("bytes are given, not waited for")

    def _timeout(self) -> Exception:
        error: Exception = self._errors.ReadTimeout("timed out")
        return error


class SyncPlayed:
    """The body of a recorded answer, for a synchronous client."""

    def __init__(self, playback: Playback) -> None:
        self._playback = playback

    def __iter__(self) -> Iterator[bytes]:
        for step in self._playback.body():
            if isinstance(step, bytes):
                yield step
            else:
                time.sleep(step)

    def close(self) -> None:
        """There is nothing to close."""


class AsyncPlayed:
    """The same for an asynchronous one."""

    def __init__(self, playback: Playback) -> None:
        self._playback = playback

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for step in self._playback.body():
            if isinstance(step, bytes):
                yield step
            else:
                await pause(step)

    async def aclose(self) -> None:
        """There is nothing to close."""
