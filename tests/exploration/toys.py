"""A probe whose runs are a small world of tasks: what a real probe does, in two hundred lines.

Tasks are generators. A bare ``yield`` lets others go first, ``yield promise`` waits. Cancelling
works as in asyncio: what the task waits for is cancelled too; where that is done already, the task
gets its cancel when it resumes, and what it waited for is lost.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from harness.core.choices import Choices, Picker, Tape
from harness.exploration.probe import (
    NOT_REACHED,
    REFUSED,
    Asked,
    Finding,
    Landing,
    Role,
    Run,
    Shot,
    Site,
    Whom,
)

Steps: TypeAlias = Generator["Promise | None", Any, Any]
Turn: TypeAlias = Callable[["World"], Steps]


class Cancelled(BaseException):
    """What a cancelled task gets where it waits."""


class Promise:
    """Something to wait for."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.done = False
        self.cancelled = False
        self.value: Any = None
        self.waiting: list[Promise] = []

    def resolve(self, value: Any = None) -> None:
        if not self.done:
            self.value = value
            self._finish()

    def cancel(self) -> bool:
        if self.done:
            return False
        self.cancelled = True
        self._finish()
        return True

    def _finish(self) -> None:
        self.done = True
        self.world.ready.extend(self.waiting)
        self.waiting.clear()


class Task(Promise):
    """A generator that runs step by step."""

    def __init__(self, world: World, steps: Steps, path: str, role: Role) -> None:
        super().__init__(world)
        self.steps = steps
        self.path = path
        self.role = role
        self.k = 0
        self.children = 0
        self.waits_for: Promise | None = None
        self.must_cancel = False
        self.told = 0
        """How many cancels came to it."""

    def cancel(self) -> bool:
        if self.done:
            return False
        self.told += 1
        if self.waits_for is None or not self.waits_for.cancel():
            self.must_cancel = True
        return True

    def step(self) -> None:
        awaited, self.waits_for = self.waits_for, None
        cancelled = self.must_cancel or (awaited is not None and awaited.cancelled)
        self.must_cancel = False
        try:
            if cancelled:
                awaited = self.steps.throw(Cancelled())
            else:
                awaited = self.steps.send(None if awaited is None else awaited.value)
        except StopIteration as end:
            self.resolve(end.value)
        except Cancelled:
            self.cancelled = True
            self._finish()
        else:
            self.k += 1
            if awaited is None:
                self.world.ready.append(self)
                return
            self.waits_for = awaited
            if awaited.done:
                self.world.ready.append(self)
            else:
                awaited.waiting.append(self)
                if self.must_cancel and awaited.cancel():
                    self.must_cancel = False


class World:
    """One run: turns that are played one after the other, each until nothing is left to do."""

    def __init__(self, choices: Choices, shots: Sequence[Shot], steps_most: int) -> None:
        self.ready: deque[Promise] = deque()
        self.steps = 0
        self.turn = 0
        self.stop: Callable[[], bool] = lambda: False
        """The agent's own stop: False where it refuses."""
        self.lines: list[str] = []
        self.findings: list[Finding] = []
        self.tolerated: list[Finding] = []
        self.allowed: set[str] = set()
        """Keys of findings that are tolerated."""
        self.reached: set[str] = set()
        self.checks: list[Callable[[], None]] = []
        self.unresolved: str | None = None
        self.asked: list[Asked] = []
        self.sites: list[Site] = []
        self._choices = choices
        self._steps_most = steps_most
        self._now = 0
        self._timers: list[tuple[int, int, Promise]] = []
        self._timers_set = 0
        self._decisions = 0
        self._tasks: dict[str, Task] = {}
        self._current: Task | None = None
        self._open: dict[str, int] = {}
        self._order: list[str] = []
        self._shots: dict[tuple[str, int], list[Shot]] = {}
        self._mids: dict[int, list[Shot]] = {}
        self._hit: dict[Shot, Task | str] = {}
        for shot in shots:
            if shot.step is not None:
                self._mids.setdefault(shot.step, []).append(shot)
            else:
                self._shots.setdefault((shot.path, shot.k), []).append(shot)

    # --- for the code of turns and tasks

    def spawn(self, steps: Steps, role: Role = "other") -> Task:
        parent = self._current
        assert parent is not None, "only tasks make tasks"
        parent.children += 1
        return self._begin(steps, f"{parent.path}.{parent.children}", role)

    def promise(self) -> Promise:
        return Promise(self)

    def settled(self, task: Task) -> Promise:
        """Resolved when `task` has ended in whatever way."""
        promise = Promise(self)
        if task.done:
            promise.resolve()
        else:
            task.waiting.append(promise)
        return promise

    def sleep(self, span: int) -> Promise:
        promise = Promise(self)
        self._timers_set += 1
        heapq.heappush(self._timers, (self._now + span, self._timers_set, promise))
        return promise

    def choose(self, source: str, label: str, bound: int) -> int:
        value = self._choices.choose(source, label, bound)
        self.asked.append(Asked(source, label, bound, value, self.steps))
        return value

    def log(self, text: str) -> None:
        path = self._current.path if self._current else "-"
        self.lines.append(f"{path}: {text}")

    def find(self, key: str, message: str = "") -> None:
        finding = Finding(key, message or key)
        (self.tolerated if key in self.allowed else self.findings).append(finding)

    # --- the run

    def play(self, turns: Sequence[Turn]) -> None:
        for number, turn in enumerate(turns, 1):
            self.turn = number
            self._current = None
            self._begin(turn(self), str(number), "turn")
            while self._fill() and self.unresolved is None:
                self._step()
        for check in self.checks:
            check()

    def landing(self, shot: Shot) -> Landing:
        hit = self._hit.get(shot, NOT_REACHED)
        if isinstance(hit, Task):
            hit = "propagated" if hit.cancelled else "swallowed" if hit.done else "stuck"
        return Landing(shot, hit)

    def close(self) -> None:
        for task in self._tasks.values():
            with suppress(RuntimeError):  # its clean-up waits, but the run is over
                task.steps.close()

    def digest(self) -> str:
        trail = "\n".join([" ".join(self._order), *self.lines])
        return hashlib.blake2b(trail.encode(), digest_size=8).hexdigest()

    def left(self) -> list[Task]:
        return [task for task in self._tasks.values() if not task.done]

    def _begin(self, steps: Steps, path: str, role: Role) -> Task:
        task = self._tasks[path] = Task(self, steps, path, role)
        self.ready.append(task)
        self._wait(task)
        return task

    def _wait(self, task: Task) -> None:
        """Note that `task` waits from now on."""
        self._open[task.path] = len(self.sites)
        frame = task.steps.gi_frame
        where = f"{task.steps.__name__}+{frame.f_lineno - frame.f_code.co_firstlineno}"
        waits = task.waits_for is not None
        playing = self.turn if not self._tasks[str(self.turn)].done else 0
        self.sites.append(
            Site(task.path, task.k, task.role, where, self.steps, None, waits, playing)
        )

    def _fill(self) -> bool:
        if not self.ready and self._timers:
            self._now = self._timers[0][0]
            while self._timers and self._timers[0][0] == self._now:
                self.ready.append(heapq.heappop(self._timers)[2])
        return bool(self.ready)

    def _step(self) -> None:
        if self.steps >= self._steps_most:
            self.unresolved = f"more than {self._steps_most} steps"
            return
        at = 0
        if len(self.ready) > 1:
            self._decisions += 1
            at = self.choose("ready", str(self._decisions), len(self.ready))
        one = self.ready[at]
        del self.ready[at]
        if isinstance(one, Task) and not one.done:
            self._step_task(one)
        else:
            self.steps += 1
            self._order.append("timer")
            one.resolve()
        for shot in self._mids.pop(self.steps, ()):
            task = self._tasks.get(shot.path)
            if task is not None and task.k == shot.k and shot.path in self._open:
                self._tell(shot)

    def _step_task(self, task: Task) -> None:
        for shot in self._shots.get((task.path, task.k), ()):
            if shot.mode != "early":
                self._tell(shot)
        self.steps += 1
        at = self._open.pop(task.path)
        site = self.sites[at]
        self.sites[at] = Site(
            site.path,
            site.k,
            site.role,
            site.where,
            site.first,
            self.steps,
            site.waits,
            site.turn,
        )
        self._order.append(task.path)
        self._current = task
        task.step()
        if not task.done:
            self._wait(task)
            for shot in self._shots.get((task.path, task.k), ()):
                if shot.mode == "early":
                    self._tell(shot)

    def _tell(self, shot: Shot) -> None:
        if shot.whom == "agent":
            self._hit[shot] = "told" if self.stop() else REFUSED
            return
        task = self._tasks[shot.path if shot.whom == "task" else str(self.turn)]
        self._hit[shot] = task if task.cancel() else REFUSED


class Toy:
    """A probe that plays turns in a world of its own for each run."""

    def __init__(
        self,
        *turns: Turn,
        whom: tuple[Whom, ...] = ("task",),
        steps_most: int = 2_000,
        name: str = "toy",
    ) -> None:
        self.turns = turns
        self.whom = whom
        self.name = name
        self.steps_most = steps_most
        self.runs = 0

    def run(
        self, tape: Tape = (), shots: tuple[Shot, ...] = (), picker: Picker | None = None
    ) -> Run:
        self.runs += 1
        choices = Choices(tape, picker)
        world = World(choices, shots, self.steps_most)
        world.play(self.turns)
        choices.check_used()
        landings = tuple([world.landing(shot) for shot in shots])
        for landing in landings:
            if landing.came_to == "swallowed":
                world.find(f"swallowed by {landing.shot.path}", f"{landing.shot} was swallowed")
        if world.unresolved is None:
            for task in world.left():
                world.find(f"{task.role} left", f"{task.path} never ends")
        world.close()
        return Run(
            digest=world.digest(),
            sites=tuple(world.sites),
            steps=world.steps,
            asked=tuple(world.asked),
            landings=landings,
            findings=tuple(world.findings),
            tolerated=tuple(world.tolerated),
            unresolved=world.unresolved,
            reached=frozenset(world.reached),
            lines=tuple(world.lines),
        )
