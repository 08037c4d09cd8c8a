"""An agent's program as a process: what it is told, what it answers, how it is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from asyncio.subprocess import Process, SubprocessStreamProtocol
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from harness.core.errors import UsageError

_LINE = 16 * 1024 * 1024
"""The longest answer, in bytes."""
_KEPT = 4096
"""How many bytes of what it says on standard error are kept, the last ones."""
_LAST = 0.5
"""How many seconds what it said last may take to be read, where it has left somebody behind who
holds its output open.
"""
_ENDINGS = (signal.SIGTERM, signal.SIGHUP)
"""By which a process is ended from outside; Ctrl-C is raised in it."""


class _Watched(SubprocessStreamProtocol):
    """Tells when the process ends, whoever still holds its pipes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(_LINE, loop)
        self.exited: asyncio.Future[None] = loop.create_future()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set_result(None)


class Program:
    """A process in a group of its own, so that what it starts is stopped with it."""

    def __init__(self, transport: asyncio.SubprocessTransport, watched: _Watched) -> None:
        self._transport = transport
        self._process = Process(transport, watched, asyncio.get_running_loop())
        self._exited = watched.exited
        self._errors = bytearray()
        self._reading = asyncio.ensure_future(self._read_errors())

    @classmethod
    async def start(cls, words: Sequence[str], variables: Mapping[str, str]) -> Program:
        """Start it; UsageError where that cannot be."""
        loop = asyncio.get_running_loop()
        try:
            transport, watched = await loop.subprocess_exec(
                lambda: _Watched(loop),
                *words,
                env={**os.environ, **variables},
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise UsageError(
                f"the command {words[0]!r} cannot be started: there is no such program; no shell "
                "reads the line, so write what only a shell knows as sh -c '...'"
            ) from error
        except (OSError, ValueError) as error:
            raise UsageError(f"the command {words[0]!r} cannot be started: {error}") from error
        return cls(transport, watched)

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return not self._exited.done()

    @property
    def last_words(self) -> str:
        """The last line that it said on standard error."""
        lines = self._errors.decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    async def ask(self, line: str) -> bool:
        """Tell it a line, and wait for one; False where it ends, or says no more, before that."""
        answered = asyncio.ensure_future(self._converse(line))
        either: set[asyncio.Future[Any]] = {answered, self._exited}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({answered}, timeout=_LAST)
        return not answered.cancel() and answered.result()

    async def wait(self) -> int:
        """Let it run to its end without more to read; its exit code, negative for a signal."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        passing = asyncio.ensure_future(self._pass_over())
        await asyncio.wait({self._exited})
        await asyncio.wait({passing, self._reading}, timeout=_LAST)
        passing.cancel()
        code = self._process.returncode
        assert code is not None
        return code

    def interrupt(self) -> None:
        """Ask it to stop, as Ctrl-C does."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """End it, and what it has started, whatever they do; takes no time."""
        self._signal(signal.SIGKILL)

    async def end(self, seconds: float) -> None:
        """Wait for its end, and kill it where that takes longer."""
        ended = asyncio.ensure_future(self.wait())
        await asyncio.wait({ended}, timeout=seconds)
        self.kill()
        await ended

    async def close(self) -> None:
        """Kill what runs of it, and let go of it."""
        self.kill()
        await asyncio.wait({self._exited}, timeout=_LAST)
        self._reading.cancel()
        self._transport.close()

    async def _converse(self, line: str) -> bool:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(ConnectionError, ValueError):  # it is gone, or the line has no end
            self._process.stdin.write(f"{line}\n".encode())
            await self._process.stdin.drain()
            return bool(await self._process.stdout.readline())
        return False

    async def _pass_over(self) -> None:
        assert self._process.stdout is not None
        while await self._process.stdout.read(_KEPT):
            pass

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._transport.get_pid(), number)

    async def _read_errors(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(_KEPT):
            self._errors += data
            del self._errors[:-_KEPT]


@contextmanager
def ending_too(kill: Callable[[], None]) -> Iterator[None]:
    """Call `kill` first where this process is ended from outside meanwhile: a program in a group of
    its own would stay behind. Handlers that others have set are left alone.
    """

    def end(number: int, _frame: object) -> None:
        kill()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    main = threading.current_thread() is threading.main_thread()
    ours = [each for each in _ENDINGS if main and signal.getsignal(each) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
