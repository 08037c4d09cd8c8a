"""Plain functions played in a run: as a job of a pool, as a thread, as an agent's turn."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

from harness.core.choices import Choices
from harness.core.durations import SECOND
from harness.runner.blocking import Frame
from harness.sim.kernel import Kernel, Limits
from harness.sim.orders import Order
from harness.sim.stop import Stop

Body: TypeAlias = Callable[[], Any]


class Played:
    """What came of it: a value, an error, or why the run stopped; and whose steps there were."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.stop = Stop("done")
        self.values: list[Any] = []
        self.errors: list[BaseException] = []
        self.steps: list[str] = []

    def note(self, body: Body) -> None:
        try:
            self.values.append(body())
        except Exception as error:
            self.errors.append(error)

    @property
    def value(self) -> Any:
        assert self.stop.reason == "done", self.stop
        for error in self.errors:
            raise error
        assert not self.kernel.callback_errors, self.kernel.callback_errors
        [value] = self.values
        return value


def as_job(played: Played, body: Body) -> None:
    async def main() -> None:
        await asyncio.to_thread(played.note, body)

    _until_done(played, main)


def as_thread(played: Played, body: Body) -> None:
    async def main() -> None:
        thread = threading.Thread(target=played.note, args=(body,), name="main thread of a test")
        thread.start()
        await asyncio.to_thread(thread.join)

    _until_done(played, main)


def as_turn(played: Played, body: Body) -> None:
    kernel = played.kernel
    frame = Frame(kernel, "1", lambda: None)
    task = frame.start()
    played.stop = frame.play(lambda: played.note(body), kernel.run_until)
    assert task.done() or played.stop.reason != "done"


def _until_done(played: Played, main: Callable[[], Any]) -> None:
    task = played.kernel.spawn(main(), "1")
    played.stop = played.kernel.run_until(task.done)


WAYS = (as_job, as_thread, as_turn)


def play(
    body: Body,
    way: Callable[[Played, Body], None] = as_turn,
    *,
    order: Order = "fifo",
    choices: Choices | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    look: Callable[[], object] = int,
) -> Played:
    """Play a function once, `look` at what it came to, and tear the run down."""
    kernel = Kernel(limits, choices=choices, order=order)
    played = Played(kernel)
    try:
        way(played, body)
        look()
    finally:
        played.steps = [*kernel._suspended, f"at {kernel.now()}"]
        kernel.tear_down()
    return played


def drawn(seed: int, often: float = 0.5) -> Choices:
    """Choices that are made at random, others than the ordinary as often as said."""
    chance = random.Random(seed)

    def pick(_source: str, _label: str, bound: int) -> int:
        return chance.randrange(bound) if chance.random() < often else 0

    return Choices(picker=pick)


QUICK = Limits(work=SECOND // 10)
"""Ends a step that never gives way after a tenth of a second of work."""
