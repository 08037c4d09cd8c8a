"""An agent's program as a process: what it is told, what it answers, how it is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress

from harness.core.errors import UsageError

_LINE = 16 * 1024 * 1024
"""The longest answer, in bytes."""
_KEPT = 4096
"""How many bytes of what it says on standard error are kept, the last ones."""


class Program:
    """A process in a group of its own, so that what it starts is stopped with it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._errors = bytearray()
        self._reading = asyncio.ensure_future(self._read_errors())

    @classmethod
    async def start(cls, words: Sequence[str], variables: Mapping[str, str]) -> Program:
        """Start it; UsageError where that cannot be."""
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, **variables},
                limit=_LINE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise UsageError(f"the command {words[0]!r} cannot be started: {error}") from error
        return cls(process)

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.returncode is None

    @property
    def last_words(self) -> str:
        """The last line that it said on standard error."""
        lines = self._errors.decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    async def ask(self, line: str) -> bool:
        """Tell it a line, and wait for one; False where it ends, or says no more, before that."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(ConnectionError, ValueError):  # it is gone, or the line has no end
            self._process.stdin.write(f"{line}\n".encode())
            await self._process.stdin.drain()
            return bool(await self._process.stdout.readline())
        return False

    async def wait(self) -> int:
        """Let it run to its end without more to read; its exit code, negative for a signal."""
        self._hear_no_more()
        assert self._process.stdout is not None
        while await self._process.stdout.read(_KEPT):
            pass
        code = await self._process.wait()
        await self._reading
        return code

    def interrupt(self) -> None:
        """Ask it to stop, as Ctrl-C does."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """End it, and what it has started, whatever they do."""
        self._signal(signal.SIGKILL)

    async def end(self, seconds: float) -> None:
        """Wait for its end, and kill it where that takes longer."""
        ended = asyncio.ensure_future(self.wait())
        await asyncio.wait({ended}, timeout=seconds)
        self.kill()
        await ended

    def _hear_no_more(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    async def _read_errors(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(_KEPT):
            self._errors += data
            del self._errors[:-_KEPT]
