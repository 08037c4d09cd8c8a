"""A session of the turn loop as a state machine: its log is on disk, and outlives its process."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Literal, TypeAlias

from harness.core.messages import Message
from harness.core.outcome import COMPLETED, Outcome
from harness.core.rows import Row, ToolResultRow, UserRow
from harness.loops.turn.disk_log import DiskLog
from harness.sim.cancel import Point
from harness.sim.kernel import Kernel
from tests.loops.turn.world import World, call, done, play
from tests.testing.session_machine import Entry, SessionMachine

Prepare: TypeAlias = Callable[[Kernel, "asyncio.Task[Outcome]"], None]


class Log(DiskLog):
    """A log that does something when so many rows more are written."""

    left = 0
    then: Callable[[], None]

    def append(self, row: Row) -> None:
        """Write a row."""
        super().append(row)
        self.left -= 1
        if self.left == 0:
            self.then()


class TurnSession(SessionMachine):
    """The machine; `log` is what its turns write to."""

    moments = tuple([(k, by) for k in (1, 2, 3, 5, 8, 13, 21) for by in ("signal", "task")])
    log: ClassVar[type[Log]] = Log

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self._files = 0
        self._log = self.log(self._path(), fsync="never")

    def teardown(self) -> None:
        self._log.close()
        self._folder.cleanup()

    def _path(self) -> Path:
        return Path(self._folder.name, f"{self._files}.jsonl")

    # --- turns

    def play(self, text: str, rounds: Sequence[int], *, fails: bool) -> None:
        answer = self.word("answer")
        outcome = self._run(text, rounds, RuntimeError("broken") if fails else done(answer))
        assert (outcome == COMPLETED) != fails
        if not fails:
            self.held.append(("assistant", answer))

    def cut(
        self, text: str, rounds: Sequence[int], moment: tuple[int, Literal["signal", "task"]]
    ) -> None:
        k, by = moment

        def prepare(kernel: Kernel, task: asyncio.Task[Outcome]) -> None:
            stop = self._world.signal.abort if by == "signal" else task.cancel
            kernel.plan(Point("1", k, "early"), lambda _task: stop())

        self._run(text, rounds, done(self.word("answer")), prepare)

    def lose(self, text: str, rounds: Sequence[int], moment: tuple[int, str]) -> None:
        held, before = list(self.held), len(self._log.rows())
        left: list[Row] = []

        def copy() -> None:
            left.extend(self._log.rows()[before:])
            here = self._path()
            self._files += 1
            shutil.copy(here, self._path())

        self._log.left, self._log.then = moment[0], copy
        self._run(text, rounds, done(self.word("answer")))
        if left:
            self.held = [*held, *_entries(left)]
        self.reopen()

    def reopen(self) -> None:
        self._log.close()
        self._log = self.log(self._path(), fsync="never")

    def history(self) -> tuple[Message, ...]:
        return self._log.derive_messages()

    def _run(
        self, text: str, rounds: Sequence[int], last: Any, prepare: Prepare | None = None
    ) -> Outcome | BaseException:
        """Play a turn whose replies make so many calls each, until the `last` one."""
        steps: list[Any] = []
        values: dict[str, str] = {}
        for count in rounds:
            ids = [self.word("call") for _ in range(count)]
            values.update({each: self.word("result") for each in ids})
            steps.append([done(self.word("reply"), *map(call, ids))])
        steps.append(last if isinstance(last, BaseException) else [last])
        world = self._world = World(steps, dict(values))
        world.log = self._log
        self.held.append(("user", text))
        outcome = play(world, text, prepare)
        over = set(world.tools.over)
        self.held += [("tool", value) for each, value in values.items() if each in over]
        return outcome


def _entries(rows: Iterable[Row]) -> list[Entry]:
    """What is in rows that must not be lost."""
    entries: list[Entry] = []
    for row in rows:
        match row:
            case UserRow(text=text):
                entries.append(("user", text))
            case ToolResultRow(value=str(value)):
                entries.append(("tool", value))
            case _:
                pass
    return entries
