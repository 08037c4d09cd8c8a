"""The event loop of a run: asyncio in virtual time, the same steps in the same order every time."""

from __future__ import annotations

import asyncio
import sys
import threading
from asyncio import events
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from msgspec import structs

from harness.core.choices import Choices
from harness.core.durations import SECOND
from harness.core.errors import OutOfSimulation, UsageError
from harness.sim import where
from harness.sim.actors import current
from harness.sim.generators import never_free
from harness.sim.hold import hold, release
from harness.sim.orders import Order
from harness.sim.outer import Outer
from harness.sim.steps import Steps
from harness.sim.stop import Limits, Reason, Stop
from harness.sim.tasks import DTask
from harness.sim.watchdog import WATCHDOG, Stuck, Watch

__all__ = ["Kernel", "Limits", "Reason", "Stop"]

_ORDINARY = Limits()
_TEAR_DOWN = Limits(steps=10_000, steps_per_instant=1_000, time=24 * 3_600 * SECOND)
"""What the leftovers of a run may take to end after each cancel."""
_ENDLESS = ("step_limit", "instant_limit", "time_limit")
_CANCELS = 8
"""How often a leftover is cancelled: each cancel gets it past one more wait in its clean-up."""


class Kernel(Steps):
    """A deterministic event loop; one run each.

    Handles run in the order and in the batches of stock asyncio, and timers of one instant fire in
    the order they were set, except for what `order` leaves to `choices`. Time is a whole number of
    virtual nanoseconds that moves only when no handle is ready.

    A kernel holds its process from its creation to `tear_down` (see `hold`), so tear it down.
    """

    _holds = False

    def __init__(
        self,
        limits: Limits = _ORDINARY,
        *,
        choices: Choices | None = None,
        order: Order = "fifo",
    ) -> None:
        super().__init__(limits, choices, order)
        self._interrupt: KeyboardInterrupt | None = None
        """What came while the leftovers were ended, to be raised afterwards."""
        self._outer: Outer | None = None
        """What runs in this thread besides, to go on afterwards."""
        self._watch: Watch | None = None
        try:
            hold()
            self._holds = True
        finally:
            if not self._holds:
                self.close()

    def run_until(self, done: Callable[[], bool], deadline: int | None = None) -> Stop:
        """Run handles, batch by batch, until `done` says so or nothing more can happen.

        Time never goes past `deadline` (virtual nanoseconds); all that is due by then has run
        when it is reached. May be called while another loop runs in the same thread.
        """
        self._check_free()
        actor = current()
        # Not for code of the run that waits: what looks again and again would begin each time anew.
        begins = actor is None or actor.kernel is not self
        try:
            self._enter()
            if begins:
                self._begin_instant()
            return self._run(done, deadline)
        except Stuck:
            return self._stop("stuck", self._stuck)
        finally:
            self._leave()

    def settle(self) -> Stop:
        """Run what can run without time moving on."""
        return self.run_until(_never, self._schedule.now)

    def drain(self, deadline: int) -> Stop:
        """Run, waiting for nothing, until nothing is left to do or time would pass `deadline`."""
        return self.run_until(_never, deadline)

    def run_forever(self) -> None:
        """Run until `stop`, for the functions by which asyncio itself runs a loop.

        UsageError where the run stops before, OutOfSimulation where that is why.
        """
        self._check_running()
        # A loop that is stopped before it runs makes one batch, and waits for nothing.
        asked = iter([False])
        deadline = self.now() if self._stopping else None
        try:
            stop = self.run_until(lambda: next(asked, self._stopping), deadline)
            if self._stopping:
                return
        finally:
            self._stopping = False
        error = OutOfSimulation if stop.reason == "out_of_simulation" else UsageError
        raise error("\n".join([f"{stop.reason}: {stop.detail}", *stop.waits]))

    # --- the state of the thread, and the end

    def _check_free(self) -> None:
        self._check_closed()
        assert self._thread_id is None, "the kernel is already running"

    def _enter(self) -> None:
        """Make this the running loop of the thread."""
        self._outer = Outer()
        self._outer.leave()
        self._watch = WATCHDOG.enter(self)
        self._thread_id = threading.get_ident()
        self._set_coroutine_origin_tracking(enabled=self._debug)
        finalizer: Any = self._asyncgen_finalizer_hook
        sys.set_asyncgen_hooks(self._asyncgen_firstiter_hook, finalizer)
        events._set_running_loop(self)

    def _leave(self) -> None:
        """Undo `_enter`, as far as it came; again where an interrupt kept this from its end."""
        watch, outer = self._watch, self._outer
        if watch is not None:
            WATCHDOG.leave(watch)
            self._watch = None
        self._set_coroutine_origin_tracking(enabled=False)
        self._thread_id = None
        if outer is not None:
            outer.enter()
            self._outer = None

    def tear_down(self) -> None:
        """End all that the run left behind, in the order it was created, and close the loop.

        Tasks are cancelled and run to their end; those that will not end are closed where they
        stand. Async generators that nobody closed are reported and closed. What happens here is
        not part of the run: no actions, no points, no choices, and what is added to
        `callback_errors` tells of the clean-up only. A KeyboardInterrupt is raised again when all
        is ended. A second call does nothing.
        """
        self._leave()
        try:
            if self._ready or self._alive or len(self._asyncgens):
                self._end_leftovers()
        finally:
            self.close()
        interrupt, self._interrupt = self._interrupt, None
        if interrupt is not None:
            raise interrupt

    def _end_leftovers(self) -> None:
        self.stop_watching()
        self.stop_choosing()
        self._ties = self._lanes = None
        self._schedule.part()
        report, self.on_abandoned = self.on_abandoned, None
        suspended, self._suspended = self._suspended, []
        try:
            self._enter()
            self._end_tasks()
            abandoned = list(self._asyncgens)
            for generator in abandoned:
                if report is not None:
                    report(generator.__qualname__)
                self._close_generator(generator)
            self._run_leftovers(self._ended, None)
            self._end_tasks()
            for generator in abandoned:
                if generator.ag_frame is not None:
                    never_free(generator)
        finally:
            self._leave()
            self._suspended = suspended

    def _end_tasks(self) -> None:
        """Cancel what lives until nothing does; close what no cancel ends."""
        for _ in range(_CANCELS):
            if self._ready and not self._stuck:  # what is ready then may be stuck too
                self._run_leftovers(_never, self.now())
            living = self.living()
            if not living:
                break
            for task in living:
                with suppress(RecursionError):  # of tasks that wait for one another in a circle
                    task.cancel()
            if self._run_leftovers(self._ended, None).reason in _ENDLESS:
                break
        self._ready.clear()
        self._schedule.clear()
        while living := self.living():
            for task in living:
                if not task.done():
                    self._close_task(task)

    def _ended(self) -> bool:
        return not (self._alive or self._ready)

    def _run_leftovers(self, done: Callable[[], bool], deadline: int | None) -> Stop:
        self._stuck = ""
        self._steps = self._steps_at_instant = 0
        self.limits = structs.replace(
            _TEAR_DOWN, time=self.now() + _TEAR_DOWN.time, work=self.limits.work
        )
        try:
            return self._run(done, deadline)
        except (SystemExit, Stuck):
            return Stop("done")  # the rest goes on, and gets its next cancel
        except KeyboardInterrupt as error:
            self._interrupt = error
            return Stop("done")

    def _close_task(self, task: DTask) -> None:
        """End a task by closing its coroutine: no step of it runs any more."""
        self._alive.pop(task.seq)
        self._steps += 1
        coro: Any = task.get_coro()
        awaited = list(where.chain(coro))
        task._log_destroy_pending = False
        asyncio.tasks._enter_task(self, task)
        try:
            with suppress(Exception, SystemExit, Stuck):
                coro.close()
        except KeyboardInterrupt as error:
            self._interrupt = error
        asyncio.tasks._leave_task(self, task)
        for each in awaited:
            if where.frame_of(each) is not None:
                never_free(each)

    def close(self) -> None:
        """Close the loop at once and let go of the process; `tear_down` ends the tasks first."""
        if self._closed:
            return
        super().close()
        self._schedule.clear()
        self._alive.clear()
        if self._holds:  # not where it could not be made
            release()


def _never() -> bool:
    return False
