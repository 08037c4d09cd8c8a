"""One thread of a run, seen from both sides: its own, and the kernel's, which gives it its turn."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from harness.core.ports import Aborted
from harness.sim import where
from harness.sim.actors import Actor, Shown, Unfinished, Work, become
from harness.sim.expel import Expelled, Expulsion
from harness.sim.outside import join_outside, locked, start_outside
from harness.sim.stillness import LOOK, Stillness
from harness.sim.tasks import DTask
from harness.sim.watchdog import Stuck

if TYPE_CHECKING:
    from harness.sim.threads import Threads

_CALLS_AT_THE_END = 100
"""How often a thread is told that its run is over before it is driven out, and again as often
before it is left where it is."""
_PLACES_AT_ONCE = 100
"""At how many places where others could go first a thread goes on before it is a task."""
_LOOKS_WHEN_STUCK = 12
"""How many looks a thread gets that was told that it does not give way."""


class Worker(Actor):
    """One thread of a run, from its start to its end.

    `task` stands for it among the tasks, and `error` is what it ended with. `line` is where it has
    handed over, or passed a place where it could have.
    """

    def __init__(self, kernel: Threads, path: str, line: where.Line | None = None) -> None:
        super().__init__(kernel, path)
        self.task: DTask | None = None
        self.thread: threading.Thread | None = None
        """The real thread, where it carries this one alone."""
        self.over = False
        self.error: BaseException | None = None
        self.ident = 0
        self._children = 0
        self._go = locked()
        self._back = locked()
        self._work: Work | None = None
        self.line = line
        self._value: Any = None
        self._raises: BaseException | None = None
        self._aborted = False
        self._ending = False
        self._told = 0
        self._places = 0
        self.amid = False
        """Whether it began in the midst of a step, whose code would be the first to go on."""
        self.yields = False
        """Whether it lets others go first, before it is a task."""
        self._expulsion = Expulsion()
        self._carrying: FrameType | None = None
        """The frame that carries the thread's code."""

    # --- in the thread itself

    def carry(self, body: Callable[[], object]) -> None:
        """Wait for one's turn, run `body`, and give the turn back for good."""
        self.ident = threading.get_ident()
        self._back.release()
        self._go.acquire()
        around, self._carrying = become(self), sys._getframe()
        try:
            if not self._ending:
                body()
        except (Unfinished, Expelled, SystemExit):
            pass
        except BaseException as error:
            self.error = error
        finally:
            self._expulsion.end()
            self._carrying = None
            become(around)
            self.over = True
            self._back.release()

    def call(self, work: Work, *, abortable: bool = False) -> Any:
        """Hand over, have `work` awaited, and give what it gives; raises what it raises."""
        if not self._ending:
            self._work, self.line = work, where.calling(2) or self.line
            if abortable:
                self.kernel.abortable[self] = None
            self._hand_over()
            self.kernel.abortable.pop(self, None)
        if self._ending:
            self._refuse(sys._getframe(1))
        value, self._value = self._value, None
        error, self._raises = self._raises, None
        if error is not None:
            raise error
        return value

    def passes(self) -> bool:
        """Whether it is suspended and goes on at once, without any hand-over."""
        task, kernel = self.task, self.kernel
        if task is None:
            return self._goes_on()
        if self._ending or task.cancelling() or not (kernel.alone() and kernel.unwatched()):
            return False
        self.line = where.calling(3) or self.line
        return kernel.pass_by(task, running=True)

    def _goes_on(self) -> bool:
        """The same before it is a task, which it becomes where it lets others go first."""
        if self._ending or self._places == _PLACES_AT_ONCE:
            return False
        self._places += 1
        self.yields = self.kernel.goes_last(self, amid=self.amid)
        return not self.yields

    def at_end(self) -> bool:
        """Whether the run is over, and it was not told so too often since."""
        self._told += self._ending
        return self._ending and self._told <= _CALLS_AT_THE_END

    def _refuse(self, caller: FrameType) -> NoReturn:
        """The run is over; code that will not hear of that is driven out."""
        self._told += 1
        if self._told > 2 * _CALLS_AT_THE_END:
            self._hand_over()  # for good: nobody gives it its turn any more
        if self._told > _CALLS_AT_THE_END and self._carrying is not None:
            self._expulsion.begin(caller, self._carrying)
        raise Unfinished("the run is over")

    def child_path(self) -> str:
        """A path for a thread that this one starts."""
        if self.task is None:
            self._children += 1
            return f"{self.path}.{self._children}"
        self.task.children += 1
        return f"{self.path}.{self.task.children}"

    def _hand_over(self) -> None:
        self._back.release()
        self._go.acquire()

    # --- in the kernel's thread

    def stand(self, task: DTask) -> None:
        """From here on `task` stands for the thread."""
        self.task = task
        task.thread = True
        task.children = self._children

    def arrive(self) -> None:
        """Wait until the thread waits for its turn."""
        self._back.acquire()

    @property
    def gives_way(self) -> bool:
        """Whether it has handed over only to let others go first."""
        return self._work in (self._moment, self.kernel.turn)

    def go_last(self) -> None:
        """Go on when others have, where it has handed over to let them."""
        self._work = self.kernel.turn

    @property
    def held_up(self) -> bool:
        """Whether it only lets others go first, or waits for a lock that another one holds."""
        return self.gives_way or self.wanted is not None

    async def drive(self, *, begun: bool = False) -> None:
        """Be the thread's task; with `begun`, the thread has had its first turn."""
        try:
            if not begun:
                await self._await(self.kernel.turn)
            while begun or self.resume():
                begun = False
                assert self._work is not None, "a thread hands over with what it waits for"
                await self._await(self._work)
        finally:
            self.end()
        if isinstance(self.error, Stuck):
            raise self.error

    def resume(self) -> bool:
        """Give the thread its turn until it hands it back; False where it is over."""
        kernel = self.kernel
        self._go.release()
        around, kernel.acting = kernel.acting, self
        try:
            self._wait_for_turn()
        finally:
            kernel.acting = around
        return not self.over

    def end(self) -> None:
        """Have the thread end, if it has not: each call tells it that the run is over."""
        self._ending = True
        if not self.over and not self._lost:
            self.resume()
        self.kernel.note_ended(self)

    def abort(self) -> None:
        """Break off what the thread waits for, which is abortable."""
        if self.task is not None and not self._aborted:
            self._aborted = True
            self.task.cancel()

    async def _await(self, work: Work) -> None:
        task = self.task
        assert task is not None, "a thread that hands over has a task"
        try:
            self._value = await Shown(self, self.line, work())
        except asyncio.CancelledError as error:
            if task.cancelling() > self._aborted:  # the run is over: nobody else cancels a thread
                raise
            self._raises = Aborted("the call was broken off") if self._aborted else error
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            self._raises = error
        if self._aborted:
            try:
                await asyncio.sleep(0)  # one that came in the last step arrives now
            except asyncio.CancelledError:
                if task.cancelling() > 1:  # the run is over too
                    raise
            self._aborted = False
            task.uncancel()

    def _wait_for_turn(self) -> None:
        """Wait for the thread to hand over; Stuck where it never will.

        An interrupt that comes meanwhile is raised when it is the kernel's turn again.
        """
        interrupt: KeyboardInterrupt | None = None
        still = Stillness(self.ident)
        stuck = 0
        came = [False]
        while True:
            try:  # an interrupt after it was acquired must not hide that it was
                came.extend(map(self._back.acquire, (True,), (LOOK,)))
            except KeyboardInterrupt as error:
                interrupt = error
            if came[-1]:
                break
            stuck += self.kernel.is_stuck
            if still.found() or stuck > _LOOKS_WHEN_STUCK:
                self._ending = self._lost = True
                self.kernel.note_still(self.path, still.frame())
                raise Stuck
        if interrupt is not None:
            raise interrupt

    _lost = False
    """Whether nobody waits for the thread any more: it does not give way."""


class Carrier:
    """A real thread that carries jobs, one after the other, and waits in between."""

    def __init__(self, name: str) -> None:
        self._next = locked()
        self._worker: Worker | None = None
        self._body: Callable[[], object] | None = None
        self._thread = start_outside(self._carry, name)
        self._thread._daemonic = False  # type: ignore[attr-defined]  # as a pool's; see `start_thread`

    def take(self, worker: Worker, body: Callable[[], object]) -> None:
        """Carry `body`, which waits for the turn of `worker`."""
        self._worker, self._body = worker, body
        self._next.release()
        worker.arrive()

    def dismiss(self) -> None:
        """End the thread, and wait for it unless its job never ends."""
        waits = self._worker is None or self._worker.over
        self._worker = self._body = None
        self._next.release()
        if waits:
            join_outside(self._thread)

    def _carry(self) -> None:
        while True:
            self._next.acquire()
            worker, body = self._worker, self._body
            if worker is None or body is None:
                return
            worker.carry(body)
