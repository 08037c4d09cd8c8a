"""The cancels of one run of a function: each is fired at its place, and what it came to is told."""

from __future__ import annotations

import gc
import inspect
from asyncio import CancelledError
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from harness.core.wording import counted
from harness.exploration.probe import NOT_REACHED, REFUSED, Landing, Shot
from harness.runner.blocking import Frame
from harness.runner.functions.kernel import MAIN, FunctionKernel
from harness.runner.shots import arm
from harness.sim import where
from harness.sim.cancel import Point
from harness.sim.tasks import DTask

PROPAGATED = "propagated"
SWALLOWED = "swallowed"
ACKNOWLEDGED = "acknowledged"
CONVERTED = "converted"
INTERRUPTED = "cleanup interrupted"
DETACHED = "shield detached"
LOST = "result lost"
UNENDED = "never ended"

_GROUP = "TaskGroup.__aexit__"
"""Where a group waits for its tasks, asyncio's and anyio's."""


class Fired(Struct, eq=False):
    """A cancel that a task took: when, how often it had been suspended by then, and what waits.

    `shield` says whether it waited behind a shield, and `open` whether for something that was not
    done; `had` whether it was about to go on with a result, `cleaning` whether it was cleaning up
    after a cancel that came before. `plain` is what plays the code of a function that blocks, which
    had waited so often by then (`waits`).
    """

    shot: Shot
    task: DTask
    at: int
    k: int
    shield: bool
    open: bool
    had: bool
    cleaning: bool
    plain: Frame | None = None
    waits: int = 0


class Landings:
    """Fires the shots of one run, and keeps who took them."""

    def __init__(self, kernel: FunctionKernel, shots: Sequence[Shot]) -> None:
        self.fired: list[Fired] = []
        self.armed = bool(shots)
        """Whether a cancel may come."""
        self.shielded: set[str] = set()
        """The tasks that some task waited for behind a shield when a cancel came."""
        self._kernel = kernel
        self._behind: set[Shot] = set()
        """The late shots at tasks that wait behind a shield."""
        self._unbegun: list[Any] = []
        """What tasks would have run that were cancelled before their first step."""
        self._frame: Frame | None = None
        """What plays the function's own code, where it blocks."""
        self._came_to = dict.fromkeys(shots, NOT_REACHED)
        for shot in shots:
            self._arm(shot)

    def interrupts(self, frame: Frame, name: str) -> DTask:
        """Start the main task of a function that blocks: its cancels are interrupts of its code.

        Suspensions are labelled by whether that waits: elsewhere, no code could be right.
        """
        self._frame = frame
        self._kernel.label = lambda: int(frame.waiting)
        task = frame.start()
        task.get_coro().__qualname__ = name  # type: ignore[union-attr]
        return task

    def _arm(self, shot: Shot) -> None:
        arm(self._kernel, shot, lambda: self._fire(shot))
        if shot.mode == "late":  # by then the shield has let go of what it guards
            before = Point(shot.path, shot.k, "early")
            self._kernel.plan(before, lambda task: self._note_shield(shot, task))

    def _note_shield(self, shot: Shot, task: DTask) -> None:
        if _shielded(task) is not None:
            self._behind.add(shot)

    def _fire(self, shot: Shot) -> None:
        kernel = self._kernel
        task = kernel.find(shot.path)
        if task is None:
            self._came_to[shot] = REFUSED
            return
        again = any(each.task is task for each in self.fired)
        inner = _shielded(task)
        fired = Fired(
            shot,
            task,
            kernel.now(),
            task.k,
            shot in self._behind or inner is not None,
            inner is not None,
            shot.mode == "late" and _has_result(task),
            again and _cleans_up(task),
        )
        if self._frame is not None and task.path == MAIN:
            fired.plain, fired.waits = self._frame, self._frame.waits
        behind = [_shielded(each) for each in kernel.living()]
        unbegun = _handed_to(task) if shot.mode == "start" else []
        try:
            taken = task.cancel(str(shot))
        except RecursionError:  # of tasks that wait for one another in a circle
            taken = False
        if not taken:
            self._came_to[shot] = REFUSED
            return
        self._unbegun += unbegun
        self.shielded.update([each.path for each in behind if each is not None])
        self.fired.append(fired)
        kernel.note_cancelled(task, shot)

    def close(self) -> None:
        """Close what was never begun since its task was cancelled: that is no mistake of anybody's,
        and Python would warn of it.
        """
        for coro in self._unbegun:
            if inspect.getcoroutinestate(coro) == inspect.CORO_CREATED:
                coro.close()

    def told(self) -> tuple[Landing, ...]:
        """What each shot came to, in one phrase; ask once the run is over."""
        words = {each.shot: came_to(each) for each in self.fired}
        return tuple([Landing(shot, words.get(shot, at)) for shot, at in self._came_to.items()])


def came_to(fired: Fired) -> str:
    """How the task that took a cancel ended."""
    task = fired.task
    if not task.done():
        return UNENDED
    if fired.plain is not None:
        return _plain_came_to(fired, fired.plain)
    if not task.cancelled():
        error = task.exception()
        if error is not None:
            return f"{CONVERTED}:{type(error).__name__}"
        return SWALLOWED if task.cancelling() else ACKNOWLEDGED
    later = task.k - fired.k
    if later:
        return f"{PROPAGATED} after {counted(later, 'await')}"
    if fired.open:
        return DETACHED
    if fired.cleaning and not fired.shield:
        return INTERRUPTED
    return LOST if fired.had else PROPAGATED


def _plain_came_to(fired: Fired, frame: Frame) -> str:
    """How a function that blocks ended, which got KeyboardInterrupt unless it had not begun."""
    error = None if fired.task.cancelled() else fired.task.exception()
    if error is None:
        return PROPAGATED if fired.task.cancelled() else SWALLOWED
    if not isinstance(error, KeyboardInterrupt):
        return f"{CONVERTED}:{type(error).__name__}"
    later = frame.waits - fired.waits
    return f"{PROPAGATED} after {counted(later, 'wait')}" if later else PROPAGATED


def _handed_to(task: DTask) -> list[Any]:
    """The coroutines that a task holds which has not begun, or that an argument of it holds."""
    frame = where.frame_of(task.get_coro())
    given = [] if frame is None else list(frame.f_locals.values())
    return list(filter(inspect.iscoroutine, [*given, *gc.get_referents(*given)]))


def _shielded(task: DTask) -> DTask | None:
    """The task that `task` waits for behind a shield of asyncio's, None without one.

    The callback holds it that `asyncio.shield` puts on the future that it gives.
    """
    waiter: Any = getattr(task, "_fut_waiter", None)
    held = [
        cell.cell_contents
        for callback, _ in getattr(waiter, "_callbacks", None) or ()
        if getattr(callback, "__qualname__", "").startswith("shield.<locals>.")
        for cell in callback.__closure__
    ]
    return next((each for each in held if isinstance(each, DTask) and not each.done()), None)


def _has_result(task: DTask) -> bool:
    """Whether what a task waits for has come to a value; None and True are asyncio's signals."""
    waiter: Any = getattr(task, "_fut_waiter", None)
    return waiter is not None and getattr(waiter, "_result", None) not in (None, True)


def _cleans_up(task: DTask) -> bool:
    """Whether code of the user's has a cancel in hand, in an `except`, a `finally` or a `with`.

    A coroutine holds the error that it handles. A group of tasks waits on until all have ended,
    however often it is cancelled.
    """
    waits = [
        (each, frame)
        for each in where.chain(task.get_coro())
        if (frame := where.frame_of(each)) is not None
    ]
    if not waits or waits[-1][0].__qualname__ == _GROUP:
        return False
    return any(
        isinstance(held, CancelledError)
        for each, frame in waits
        if where.is_users(frame)
        for held in gc.get_referents(each)
    )
