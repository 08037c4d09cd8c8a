"""The threads of a run: real ones, of which one runs at a time, as steps of the kernel.

For each thread there is a task. When it is the task's turn, the kernel's thread gives the turn to
the real one and waits until that hands it back, with what it wants to have awaited; the task awaits
it. So a thread has a path, suspensions and a place in the order of what is ready, as any task has.

Ordinarily a thread goes on until it waits, as in a process whose threads get their turns seldom. To
let others go first, at each place where it can, is a choice of the source `switch`. A thread that
does, one that begins and one that waited for a lock go on as something outside does that is over:
in which order they do at one instant is a choice too.
"""

from __future__ import annotations

import _thread
import asyncio
import sys
import threading
from asyncio import events
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import count
from types import FrameType
from typing import Any, NoReturn

from harness.core.ports import Aborted
from harness.sim import where
from harness.sim.actors import Actor, Shown, Unfinished, Work, become, current
from harness.sim.expel import Expelled, Expulsion
from harness.sim.stillness import LOOK, Stillness
from harness.sim.task_tree import TaskTree
from harness.sim.tasks import DTask
from harness.sim.watchdog import Stuck

_start = threading.Thread.start
_join = threading.Thread.join
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


class Threads(TaskTree):
    """The part of an event loop that has threads."""

    def __init__(self) -> None:
        super().__init__()
        self.acting: Worker | None = None
        """The thread that makes the step that goes on, where it is not the kernel's own."""
        self.abortable: dict[Worker, None] = {}
        """The threads that wait for what may be broken off, in the order in which they began to."""
        self._stoppers: list[Carrier] = []
        """The threads in which somebody outside has stopped something; and those that are idle."""
        self._stops: list[Carrier] = []
        self.switching = False
        """Whether threads may let others go first where they need not."""
        self._workers: dict[threading.Thread, Worker] = {}
        self._names = count(1)
        self._hook = threading.excepthook
        """What heard of the errors of threads when the run began: nothing that is of the run."""

    async def turn(self) -> None:
        """Wait for no time, with all that is due now."""
        future = self.create_future()
        self.call_in(0, _end, future)
        await future

    async def moment(self, actor: Actor) -> None:
        """Be suspended for no time, and go on at once; or let others go first."""
        if self.goes_last(actor):
            await self.turn()
        else:
            self.first = True
            await _Bare()

    async def give_way(self, actor: Actor) -> None:
        """Let others go first, where that is chosen."""
        if self.goes_last(actor):
            await self.turn()

    def alone(self) -> bool:
        """Whether nobody could go first now."""
        return not (self._ready or self.alarmed or self._schedule.next() == self._schedule.now)

    def goes_last(self, actor: Actor, *, amid: bool = False) -> bool:
        """Whether an actor lets others go first, where it can and there are any."""
        others = amid or self._ready or self._schedule.next() == self._schedule.now
        if not (self.switching and others) or self.choices is None:
            return False
        return self.choices.choose("switch", f"{actor.path}#{actor.switches}", 2) > 0

    def place(self, task: DTask) -> str:
        """The line at which a task is suspended; that of a thread which only passes a place."""
        acting = self.acting
        if acting is None or acting.task is not task or acting.line is None:
            return where.suspended(task.get_coro())
        return where.show(acting.line)

    def next_name(self) -> int:
        """A number for the name of a thread: the same in every run."""
        return next(self._names)

    def start_thread(self, thread: threading.Thread) -> None:
        """Start a thread as one of this run; it begins when its turn comes."""
        actor = current()
        path = self.child_path() if actor is None else actor.child_path()
        worker = Worker(self, path, where.calling(2))
        run = thread.run
        thread.run = lambda: worker.carry(lambda: self._run_thread(run))  # type: ignore[method-assign]
        daemon = thread.daemon
        try:
            thread._daemonic = True  # type: ignore[attr-defined]  # the process does not wait for it
            with outside():
                _start(thread)
            worker.arrive()
        finally:
            thread._daemonic = daemon  # type: ignore[attr-defined]
            del thread.run
        self._workers[thread] = worker
        worker.thread = thread
        given = None if _is_default(thread.name) else thread.name
        worker.stand(self._make_task(worker.drive(), path, given, None))

    def _run_thread(self, run: Callable[[], object]) -> None:
        """Run a thread's code; a hook that the code under test has set hears of its errors."""
        try:
            run()
        except (Unfinished, Expelled, Stuck):
            raise
        except BaseException as error:
            hook = threading.excepthook
            if hook is self._hook:
                raise
            thread = threading.current_thread()
            hook(threading.ExceptHookArgs((type(error), error, error.__traceback__, thread)))

    def abort_threads(self) -> None:
        """Break off what threads wait for, where it may be."""
        for worker in tuple(self.abortable):
            worker.abort()

    def worker_of(self, thread: threading.Thread) -> Worker | None:
        """What stands for a thread of this run; None for others."""
        return self._workers.get(thread)

    def note_ended(self, worker: Worker) -> None:
        """A thread is over: wait until it is gone, and tell of an error that nobody caught."""
        if not worker.over:
            return
        if worker.thread is not None:
            join_outside(worker.thread)
        error = worker.error
        if error is not None and not isinstance(error, Stuck):
            context = {"message": "an error that no thread caught", "exception": error}
            self.call_exception_handler({**context, "task": worker.task})

    def acting_thread(self) -> int | None:
        """The thread that makes the step, where it is not the kernel's own."""
        return None if self.acting is None else self.acting.ident

    def current_path(self) -> str:
        """The path of the task or thread that runs, "" outside of any."""
        return super().current_path() if self.acting is None else self.acting.path

    def child_path(self) -> str:
        """A path for what the task or thread that runs starts."""
        return super().child_path() if self.acting is None else self.acting.child_path()

    def begin_thread(
        self,
        path: str,
        carrier: Carrier,
        body: Callable[[], object],
        ended: Callable[[], None],
        *,
        amid: bool = False,
    ) -> Worker:
        """Have a thread do `body` at once, until it waits or lets others go first; then it is a
        task.

        `ended` is called when it is over. `amid` says that it may be in the midst of a step, whose
        code would be the first to go on.
        """
        worker = Worker(self, path)
        worker.amid = amid
        carrier.take(worker, body)
        try:
            waits = worker.resume()
            if waits and worker.gives_way and worker.yields:
                worker.go_last()
        except BaseException:
            worker.end()  # it has no task that would
            raise
        if waits:
            worker.stand(self._make_task(_go_on(worker, ended), path, None, None))
        else:
            self.note_ended(worker)
            ended()
        return worker

    def close(self) -> None:
        """Close the loop, and end its threads."""
        super().close()
        for carrier in self._stoppers:
            carrier.dismiss()
        self._stoppers.clear()

    def begin_stop(self, path: str, stop: Callable[[], object]) -> Worker:
        """Have somebody outside call a function that is to stop something, from a thread."""
        if not self._stops:
            self._stops.append(Carrier("somebody-outside"))
            self._stoppers += self._stops
        carrier = self._stops.pop()

        def ended() -> None:
            self._stops.append(carrier)

        return self.begin_thread(path, carrier, stop, ended, amid=True)

    def unwatched(self) -> bool:
        """Whether nothing is to be done at a point, or after a step."""
        return not self.armed

    def pass_by(self, task: DTask, *, running: bool) -> bool:
        """Take note of a suspension and the step after it, in which a task does nothing."""
        raise NotImplementedError

    @property
    def is_stuck(self) -> bool:
        """Whether a step was told that it does not give way."""
        raise NotImplementedError

    def note_stuck(self, detail: str) -> None:
        """Stop the run as soon as its step ends."""
        raise NotImplementedError

    def note_still(self, path: str, frame: FrameType | None) -> None:
        """Stop the run: a thread waits for something that the simulation does not control."""
        raise NotImplementedError


class _Bare:
    """Suspends a task for one step."""

    def __await__(self) -> Generator[None, None, None]:
        yield


async def _go_on(worker: Worker, ended: Callable[[], None]) -> None:
    """Be the task of a thread that has had its first turn."""
    try:
        await worker.drive(begun=True)
    finally:
        if worker.over:
            ended()


@contextmanager
def outside() -> Iterator[None]:
    """What runs here is no part of a run: it waits for real."""
    running, actor = events._get_running_loop(), become(None)
    events._set_running_loop(None)
    try:
        yield
    finally:
        events._set_running_loop(running)
        become(actor)


def start_outside(body: Callable[[], object], name: str) -> threading.Thread:
    """Start a real thread that the process does not wait for."""
    with outside():
        thread = threading.Thread(target=body, name=name, daemon=True)
        _start(thread)
    return thread


def join_outside(thread: threading.Thread) -> None:
    """Wait for real until a thread is gone."""
    with outside():
        _join(thread)


def locked() -> Any:
    """A real lock that somebody else will release."""
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock


def _is_default(name: str) -> bool:
    return name.startswith("Thread-")


def _end(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
