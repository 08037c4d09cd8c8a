"""The steps of a run: batch by batch as in stock asyncio, until nothing more can happen."""

from __future__ import annotations

import re
from asyncio import Handle
from collections import Counter
from collections.abc import Callable
from types import BuiltinMethodType, FrameType
from typing import Any

from harness.core.choices import Choices
from harness.core.durations import SECOND, format_duration
from harness.core.errors import OutOfSimulation, ReplayMismatch
from harness.core.wording import counted
from harness.sim import real_locks, where
from harness.sim.jobs import Jobs
from harness.sim.orders import Lanes, Order, Ties
from harness.sim.stillness import PATIENCE
from harness.sim.stop import Limits, Reason, Stop
from harness.sim.tasks import STEP, WAKE_UP, DTask, is_step, waits
from harness.sim.watchdog import Stuck

_DONE = Stop("done")
_QUIESCENT = Stop("quiescent")
_RECENT = 1_000
"""How many suspensions are looked at to say who keeps a run busy."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Steps(Jobs):
    """The part of an event loop that runs what is ready, counts it, and says why it stopped."""

    def __init__(self, limits: Limits, choices: Choices | None, order: Order) -> None:
        super().__init__()
        self.choices = choices
        self._debug = False  # whatever the environment says: it puts paths into messages
        self.limits = limits
        self.callback_errors: list[str] = []
        """What stock asyncio would log: exceptions that nobody caught or retrieved."""
        self._told = 0
        self._steps = 0
        self._steps_at_instant = 0
        self._points_before_instant = 0
        self._stuck = ""
        """What did not give way, where something did not."""
        self._still = ""
        """The thread that stands still, of which the stop's detail says where it is."""
        self._paused = False
        self._ties: Ties | None = None
        self._lanes: Lanes | None = None
        if choices is not None and order != "fifo":
            self.switching = True
            self._ties = Ties(self._schedule, choices)
            if order != "completions":
                self._lanes = Lanes(choices, promised=order == "tasks")

    def _run(self, done: Callable[[], bool], deadline: int | None) -> Stop:
        ready, limits = self._ready, self.limits
        horizon = limits.time if deadline is None or deadline > limits.time else deadline
        while True:
            if self.alarmed and (stop := self._alarm()) is not None:
                return stop
            if done():
                return _DONE
            if not self._fill(horizon):
                return self._idle(deadline)
            batch = len(ready)
            self._steps += batch
            self._steps_at_instant += batch
            if self._steps > limits.steps or self._steps_at_instant > limits.steps_per_instant:
                return self._overrun(batch)
            if batch == 1 or self._lanes is None:
                left = self._run_batch(batch)
            else:
                left = self._lanes.run(ready, batch, self._run_batch, lambda: self._paused)
            if self._paused:
                self._paused = False
                self._steps -= left
                self._steps_at_instant -= left

    def pause(self) -> None:
        """Look whether to stop right after the step that runs, and not at the end of its batch."""
        self._paused = True

    def _fill(self, horizon: int) -> bool:
        """Have handles ready, by moving time on to at most `horizon` where need be."""
        ready, schedule = self._ready, self._schedule
        heap = schedule.heap
        if not heap:
            return bool(ready)
        if ready and heap[0][0] > schedule.now:
            return True
        when = schedule.next()
        if when is None or (when > schedule.now and (ready or when > horizon)):
            return bool(ready)
        if when > schedule.now:
            self._move_on(when)
        if self._ties is None:
            schedule.release(ready)
        else:
            self._ties.release(ready)
        return True

    def _move_on(self, when: int) -> None:
        self._schedule.now = when
        self._begin_instant()

    def _begin_instant(self) -> None:
        self._steps_at_instant = 0
        self._points_before_instant = len(self._suspended)

    def _run_batch(self, batch: int) -> int:
        """Run the first `batch` ready handles, as stock asyncio does, and count suspensions.

        A task goes on by one of two callbacks; all others, its own methods too, are not its steps.
        Gives how many of the handles were left to a later batch, since there was to be a pause.
        """
        popleft = self._ready.popleft
        suspended = self._suspended.append
        left = batch
        while left:
            left -= 1
            handle: Any = popleft()
            if handle._cancelled:
                continue
            callback = handle._callback
            kind = type(callback)
            try:
                if kind is STEP:
                    task = callback.__self__
                    if type(task) is not DTask:
                        self._track(task)
                    if self.watched:
                        self.note_resuming(task)
                    handle._context.run(callback)
                elif kind is BuiltinMethodType and callback.__name__ == WAKE_UP:
                    task = callback.__self__
                    if type(task) is not DTask:
                        self._track(task)
                    if self.watched:
                        self.note_resuming(task)
                    handle._context.run(callback, handle._args[0])
                else:
                    handle._context.run(callback, *handle._args)
                    continue
            except (SystemExit, KeyboardInterrupt, Stuck, ReplayMismatch):
                if is_step(handle) and task.done():
                    self._note_step(task)
                raise
            except BaseException as error:
                self._note_failed(handle, error)
                continue
            if task.done():  # what follows is `_note_step`, without the call
                self._alive.pop(task.seq, None)
            else:
                task.k += 1
                suspended(task.path)
            if self.watched:
                self.note_stepped(task)
            if self._paused:
                break
        # The frame may live on in the traceback of a task's exception, which the task holds.
        handle = callback = task = None
        return left

    def pass_by(self, task: DTask, *, running: bool) -> bool:
        """Take note of a suspension and the step after it, in which a task does nothing.

        Of a task that is `running`, the suspension comes first. Where the step may do something,
        for somebody acts on it, or where it would be one too many, it is False: it is to be made.
        """
        limits = self.limits
        if self._steps >= limits.steps or self._steps_at_instant >= limits.steps_per_instant:
            return False
        if self.watched and not running:
            self.note_resuming(task)
            if self._ready or task.cancelling():
                return False
        self._steps += 1
        self._steps_at_instant += 1
        task.k += 1
        self._suspended.append(task.path)
        if self.watched:
            self.note_stepped(task)
            if running:
                self.note_resuming(task)
        return True

    # --- why it stopped

    def _alarm(self) -> Stop | None:
        """The stop that is due, if it has not been told; that of a stuck step is told for ever."""
        if self._stuck:
            return self._stop("stuck", self._stuck)
        self.alarmed = False
        told, self._told = self._told, len(self.escapes)
        if told == self._told:
            return None
        return self._stop("out_of_simulation", self.escapes[told])

    def _stop(self, reason: Reason, detail: str) -> Stop:
        return Stop(reason, detail, waits(t for t in self.living() if t.path != self._still))

    def _idle(self, deadline: int | None) -> Stop:
        """Nothing is ready, and time must not move on."""
        when = self._schedule.next()
        if when is None:
            alive = len(self.living())
            if not alive:
                return _QUIESCENT
            foreign = self.foreign()
            if foreign is not None:
                self.note_escape(foreign)
                self._told = len(self.escapes)
                return self._stop("out_of_simulation", foreign)
            return self._stop("deadlock", f"{counted(alive, 'task')} will never be woken")
        due = f"the next timer is due at {format_duration(when)}"
        if deadline is None or deadline > self.limits.time:
            limit = format_duration(self.limits.time)
            return self._stop("time_limit", f"{due}, past the run's limit of {limit}")
        if deadline > self._schedule.now:
            self._move_on(deadline)
        return self._stop("deadline", f"{due}, past {format_duration(deadline)}")

    def _overrun(self, batch: int) -> Stop:
        """The batch that is ready would be one too many; who keeps the run so busy?"""
        self._steps -= batch
        self._steps_at_instant -= batch
        now = format_duration(self._schedule.now)
        if self._steps + batch > self.limits.steps:
            reason: Reason = "step_limit"
            since = 0
            detail = f"the run took {counted(self._steps, 'step')} to get to {now}"
        else:
            reason = "instant_limit"
            since = self._points_before_instant
            detail = f"{counted(self._steps_at_instant, 'step')} at {now}, and time stands still"
        recent = Counter(self._suspended[max(since, len(self._suspended) - _RECENT) :])
        busy = [f"{path} ({counted(n, 'suspension')})" for path, n in recent.most_common(3)]
        others = (handle for handle in self._ready if not is_step(handle))
        busy += dict.fromkeys(_callback_name(handle) for handle in others)
        return self._stop(reason, f"{detail}; most of the last by {', '.join(busy[:5])}")

    # --- what the watchdog asks and tells, from a thread of its own

    def progress(self) -> tuple[object, ...]:
        """The batches, the steps and the callbacks of a batch that have begun, so to say."""
        try:
            first = id(self._ready[0])
        except IndexError:
            first = 0
        return self._steps, len(self._suspended), first

    def patience(self) -> float:
        """The real seconds of work that one step may take."""
        return self.limits.work / SECOND

    def note_stuck(self, detail: str) -> None:
        """Stop the run as soon as its step ends."""
        self._stuck = detail
        self.alarmed = True

    def note_still(self, path: str, frame: FrameType | None) -> None:
        """Stop the run: a thread waits for something that the simulation does not control."""
        detail = f"the thread {path} has stood still for {PATIENCE:g} s of real time"
        lines = [] if frame is None else where.stack(frame)
        if lines:
            detail += f"; it is at {', called from '.join(lines)}"
        held = real_locks.held()
        if held:
            detail += f"; made before the run, and locked: {', '.join(held)}"
        self._still = path
        self.note_stuck(detail)

    @property
    def is_stuck(self) -> bool:
        """Whether a step was told that it does not give way."""
        return bool(self._stuck)

    # --- errors that stock asyncio logs

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep what stock asyncio would log, in a form that is the same in every run."""
        if isinstance(context.get("exception"), Stuck | OutOfSimulation):
            return  # the stop tells it
        message = context.get("message") or "an error that nobody caught"
        who = context.get("task") or context.get("future")
        path = f" in {who.path}" if isinstance(who, DTask) else ""
        error = context.get("exception")
        told = "" if error is None else f": {type(error).__name__}: {error}"
        self.callback_errors.append(_ADDRESS.sub("", f"{message}{path}{told}"))

    def _note_failed(self, handle: Handle, error: BaseException) -> None:
        message = f"exception in callback {_callback_name(handle)}"
        self.call_exception_handler({"message": message, "exception": error, "handle": handle})


def _callback_name(handle: Any) -> str:
    callback = handle._callback
    return str(getattr(callback, "__qualname__", type(callback).__qualname__))
