"""Plays a synchronous agent: its turn runs in the driver's own frame, its waits in a task.

The task bears the turn's path, as that of an asynchronous agent does, so that cancels, sites and
reports know one kind of turn only. While the agent's own code runs, the kernel does not. Threads
that the agent starts are the kernel's own business, and may use the same calls.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any, NoReturn, TypeAlias, TypeVar

from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.ports import Aborted
from harness.sim import where
from harness.sim.actors import Actor, Shown, Unfinished, Work, become, current
from harness.sim.boundary import simulation
from harness.sim.expel import Expelled, Expulsion
from harness.sim.kernel import Kernel
from harness.sim.stop import Stop
from harness.sim.tasks import DTask
from harness.sim.watchdog import WATCHDOG

T = TypeVar("T")
Wait: TypeAlias = Callable[[Callable[[], bool]], Stop]
"""Runs the kernel until something is so, within what the turn may take."""
AWAIT = (
    "await what waits there, or hand the call to asyncio.to_thread(); a synchronous agent may wait "
    "in `turn` and its threads, but neither as it is built nor in `close`"
)
REFUSALS = 100
"""How often a turn is told by its calls that the run is over, before it is driven out."""


class Blocking:
    """What a synchronous agent waits with; between turns, nothing waits."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._frame: Frame | None = None

    def path(self) -> str:
        """Who acts now: the path of the task that runs, else of the turn whose own code does."""
        return self._kernel.current_path() or ("" if self._frame is None else self._frame.path)

    def play(self, frame: Frame, turn: Callable[[], object], wait: Wait) -> Stop:
        """Play a turn whose task has started, in this thread; say why the kernel stopped."""
        self._frame = frame
        try:
            return frame.play(turn, wait)
        finally:
            self._frame = None

    def call(self, work: Callable[[], Awaitable[T]], *, abortable: bool = False) -> T:
        """Do `work` in the turn's task and give what it gives; raises what it raises.

        KeyboardInterrupt where the turn's task was cancelled, Aborted where `abort` broke off what
        is `abortable`, Unfinished where the run is over, OutOfSimulation in code of an event loop.
        """
        actor = current()
        if actor is not None and actor.kernel is self._kernel:
            value: T = actor.call(work, abortable=abortable)
            return value
        loop = simulation()
        if loop is not None:
            loop.refuse("a blocking call of the env in a task", AWAIT)
        raise UsageError(
            "a blocking call was made after the run, or in a thread that is no part of the run; "
            "start the thread in `turn`"
        )

    def step(self) -> None:
        """Let others go on for a moment, where a synchronous agent's own code runs."""
        actor = current()
        if actor is not None and actor.kernel is self._kernel and not actor.steps():
            actor.call(_moment)

    def abort(self) -> None:
        """Break off what the turn and each thread wait for, where that is abortable; callable from
        anywhere.
        """
        if self._frame is not None:
            self._frame.abort()
        self._kernel.abort_threads()


class Frame(Actor):
    """One turn of a synchronous agent: `serve` is its task, `play` its own code.

    `called` hears of each call, in the task, before what it asks for begins.
    """

    def __init__(self, kernel: Kernel, path: str, called: Callable[[], None]) -> None:
        super().__init__(kernel, path)
        self._kernel = kernel
        self._called = called
        self._bell = asyncio.Event()
        self._task: DTask | None = None
        self._job: _Job | None = None
        self._wait: Wait | None = None
        self._stop: Stop | None = None
        """Why the run is over, where a call found it so."""
        self._foreign: BaseException | None = None
        """What came out of the kernel itself, and is not the agent's."""
        self._error: BaseException | None = None
        self._interrupted = False
        self._over = False
        self._refused = 0
        self.waits = 0
        """How often the agent's own code has waited for something."""
        self.begins: where.Line | None = None
        """What is shown where it waits before its first call."""
        self._shown: Shown | None = None
        """What its task awaits while its own code runs."""
        self._expulsion = Expulsion()
        self._playing: FrameType | None = None
        """The frame that plays the turn, where it does."""

    def start(self) -> DTask:
        """Start the turn's task."""
        task = self._task = self.kernel.spawn(self._serve(), self.path)
        task.created = None  # its code begins before it does, and no line of the agent's made it
        return task

    def play(self, turn: Callable[[], object], wait: Wait) -> Stop:
        """Run the turn's own code, then end its task as that ended; say why the kernel stopped."""
        assert self._task is not None, "the turn's task is started first"
        self._wait, self._playing = wait, sys._getframe()
        watch = WATCHDOG.enter(self._kernel, own=self.path)
        around = become(self)
        try:
            turn()
        except (Unfinished, Expelled):
            pass
        except BaseException as error:
            if not self._kernel.is_stuck:  # else it is what ended the code that did not go on
                self._error = error
        finally:
            self._expulsion.end()
            become(around)
            WATCHDOG.leave(watch)
            self._over, self._playing = True, None
        if self._foreign is not None:
            raise self._foreign
        if self._stop is not None:
            return self._stop
        self._bell.set()
        return wait(self._task.done)

    def child_path(self) -> str:
        """A path for a thread that the agent starts."""
        assert self._task is not None, "the turn's task is started first"
        self._task.children += 1
        return f"{self.path}.{self._task.children}"

    def passes(self) -> bool:
        """Whether nobody could go first, and nothing is to happen here; then it has gone on."""
        task, shown = self._task, self._shown
        if shown is None or task is None or self._interrupted or task.cancelling():
            return False
        if not self._kernel.alone():
            return False
        shown.move(where.calling(3))
        return self._kernel.pass_by(task, running=False)

    def steps(self) -> bool:
        """The same for a call of the agent's; the first is made, as a stop may wait for it."""
        if not self.waits or self._stop is not None or self._foreign is not None:
            return False
        self.waits += 1
        passes = self.passes()
        self.waits -= not passes
        return passes

    def _moment(self) -> Awaitable[None]:
        return self._kernel.give_way(self)

    def at_end(self) -> bool:
        """Whether the run is over, and it was not told so too often since."""
        ending = self._stop is not None or self._foreign is not None
        self._refused += ending
        return ending and self._refused <= REFUSALS

    def call(self, work: Work, *, abortable: bool = False) -> Any:
        """Have the task do `work`."""
        task = self._task
        assert self._wait is not None, "the turn is played"
        assert task is not None, "its task is started first"
        if self._stop is not None or self._foreign is not None:
            self._refuse(sys._getframe(2))
        job = self._job = _Job(work, abortable, where.calling(2))
        if work == self._moment:
            self._kernel.first = True  # the agent's own code has the turn
        else:
            self.waits += 1
        self._bell.set()
        try:
            stop = self._wait(lambda: job.ended or task.done())  # done: cancelled as it began
        except BaseException as error:
            self._foreign = error
            raise Unfinished("the run is over") from error
        self._job = None
        if not job.ended or stop.reason == "stuck":
            self._stop = stop
            raise Unfinished(f"the run is over: {stop.reason}")
        if job.error is not None:
            raise job.error
        return job.value

    def _refuse(self, caller: FrameType) -> NoReturn:
        """The run is over; code that will not hear of that is driven out."""
        self._refused += 1
        if self._refused > REFUSALS and self._playing is not None:
            self._expulsion.begin(caller, self._playing)
        raise Unfinished("the run is over")

    @property
    def waiting(self) -> bool:
        """Whether its own code waits for something, other than for its turn."""
        job = self._job
        return job is not None and not job.ended and job.work != self._moment

    def abort(self) -> None:
        """Break off the job, if it is abortable."""
        job, task = self._job, self._task
        if job is None or task is None or job.ended or job.aborted or not job.abortable:
            return
        job.aborted = True
        task.cancel()

    async def _serve(self) -> None:
        """Do the jobs of the turn, one after the other."""
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in its task"
        line = self.begins
        while not self._over:
            try:
                self._shown = Shown(self, line, self._bell.wait())
                await self._shown
            except asyncio.CancelledError:
                self._cancelled(task, self._job)
            self._bell.clear()
            job = self._job
            if job is not None and not job.ended:
                line = job.line
                if not (self._interrupted or self.wanted or job.work == self._moment):
                    self._called()  # it neither is broken off nor only lets others go first
                await self._do(job, task)
                job.ended = True
                self._kernel.pause()  # the agent's own code goes on now, before all others
        error, self._error = self._error, None
        if error is not None:
            raise error

    async def _do(self, job: _Job, task: asyncio.Task[Any]) -> None:
        await self._take_cancel(job, task)
        if self._breaks(job):
            return
        try:
            job.value = await Shown(self, job.line, job.work())
        except asyncio.CancelledError as error:
            job.error = error
            if task.cancelling():
                self._cancelled(task, job)
                self._breaks(job)
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            job.error = error
        await self._take_cancel(job, task)
        if job.aborted and job.error is None:  # it was done in the step in which it was broken off
            job.error = Aborted("the call was broken off")

    async def _take_cancel(self, job: _Job, task: asyncio.Task[Any]) -> None:
        """Have a cancel of the task arrive that comes with its next step, or that was caught."""
        if task.cancelling():
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                self._cancelled(task, job)

    def _cancelled(self, task: asyncio.Task[Any], job: _Job | None) -> None:
        """A cancel of the task has arrived: it is an abort's, or an interrupt of the agent."""
        aborts = int(job is not None and job.aborted)
        self._interrupted = self._interrupted or task.cancelling() > aborts
        while task.cancelling():
            task.uncancel()

    def _breaks(self, job: _Job) -> bool:
        """Whether the job is over because of what has arrived."""
        if self._interrupted:
            self._interrupted = False
            job.error = KeyboardInterrupt()
        elif job.aborted:
            job.error = Aborted("the call was broken off")
        return job.error is not None


class _Job(Struct):
    """What the agent's own code waits for, and what came of it."""

    work: Work
    abortable: bool
    line: where.Line | None
    aborted: bool = False
    ended: bool = False
    value: Any = None
    error: BaseException | None = None


async def _moment() -> None:
    await asyncio.sleep(0)
