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

import asyncio
import threading
from collections.abc import Callable, Generator
from itertools import count
from types import FrameType

from harness.sim import where
from harness.sim.actors import Actor, Unfinished, current
from harness.sim.expel import Expelled
from harness.sim.outside import begin_outside, join_outside
from harness.sim.task_tree import TaskTree
from harness.sim.tasks import DTask
from harness.sim.watchdog import Stuck
from harness.sim.workers import Carrier, Worker


class Threads(TaskTree):
    """The part of an event loop that has threads."""

    def __init__(self) -> None:
        super().__init__()
        self.acting: Worker | None = None
        """The thread that makes the step that goes on, where it is not the kernel's own."""
        self.abortable: dict[Worker, None] = {}
        """The threads that wait for what may be broken off, in the order in which they began to."""
        self._stoppers: list[Carrier] = []
        """The threads in which somebody outside has stopped something."""
        self._idle_stoppers: list[Carrier] = []
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
            begin_outside(thread)
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

    def maker(self) -> str:
        """The path of whoever makes something now: the same, and a turn's own code."""
        actor = current()
        return self.current_path() if actor is None else actor.path

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
        if not self._idle_stoppers:
            self._idle_stoppers.append(Carrier("somebody-outside"))
            self._stoppers += self._idle_stoppers
        carrier = self._idle_stoppers.pop()

        def ended() -> None:
            self._idle_stoppers.append(carrier)

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


def _is_default(name: str) -> bool:
    return name.startswith("Thread-")


def _end(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
