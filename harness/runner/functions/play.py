"""One run of a function: its main task to the end, then what it left, then its own check."""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

from harness.core.durations import SECOND
from harness.core.errors import HarnessError, OutOfSimulation, UsageError
from harness.core.located import shortened
from harness.runner.blocking import Frame
from harness.runner.functions.kernel import CHECK, MAIN, MAKING, FunctionKernel
from harness.runner.functions.landing import Fired, Landings
from harness.runner.functions.subject import Function, Program
from harness.runner.leaving import asked_by
from harness.runner.outcomes import describe
from harness.sim.stop import OVER, Stop
from harness.sim.tasks import DTask, TaskInfo
from harness.sim.where import Line

PATIENCE = 60 * SECOND
"""How long a cancelled task may go on, what is left may take to end, and a check may take, each in
virtual nanoseconds."""


_NO_LOOP = "no running event loop"
"""What asyncio says where there is none."""


class Play:
    """Plays a function once, and keeps what there is to judge."""

    def __init__(self, function: Function, kernel: FunctionKernel, landings: Landings) -> None:
        self.main: DTask | None = None
        """The main task, None where there is none yet."""
        self.plain = False
        """Whether the main task is of a function that blocks."""
        self.over = False
        """Whether the main task has ended by itself, and the run was not stopped later on."""
        self.stop = Stop("done")
        """Why the run stopped before its main task was done, or while what was left ended."""
        self.outlive: list[TaskInfo] = []
        """The tasks that still lived when the main task had ended and all that was ready had run.
        """
        self.ending: frozenset[str] = frozenset()
        """Those of them that have been cancelled, and clean up."""
        self.left: list[TaskInfo] = []
        """The tasks that live at the end, or when the run was stopped."""
        self.steps = self.suspensions = self.ended = 0
        self.order: list[str] = []
        """How many there were before the check began, and when that was; whose steps they were."""
        self.check_error: BaseException | None = None
        """What the check raised."""
        self.check_open: str | None = None
        """Why the check had not ended, where it had not."""
        self.unseen: list[str] = []
        """Errors that nobody caught or retrieved."""
        self.abandoned: list[str] = []
        """The async generators that nobody closed."""
        self.exit: str | None = None
        """What asked the process to end in a task other than the main one: its type and text."""
        self._function = function
        self._kernel = kernel
        self._landings = landings
        kernel.on_abandoned = self.abandoned.append

    def play(self) -> None:
        """Play all, and leave the kernel as it is then: tear it down."""
        try:
            self._play()
        except (KeyboardInterrupt, SystemExit) as error:
            if not asked_by(error):
                raise
            self.exit = f"{type(error).__name__}: {describe(error).strip()}"
            self._count()
        self.over = self._over()
        if not self.over:
            self.left = self._kernel.alive()
        self.unseen += self._kernel.callback_errors

    def tear_down(self) -> None:
        """Tear the kernel down; nobody is left who could be asked to end."""
        try:
            self._kernel.tear_down()
        except KeyboardInterrupt as error:
            if not asked_by(error):
                raise
        finally:
            self._landings.close()

    def _play(self) -> None:
        kernel = self._kernel
        program = self._function.call() if self._function.direct else self._made()
        if isinstance(program.main, Coroutine):
            main = self.main = kernel.spawn(program.main, MAIN)
            self.stop = self._until_over(main, main.done)
        else:
            frame = Frame(kernel, MAIN, _no_call)
            frame.begins = _begins(program.main)
            self.plain = self._function.blocks = True
            main = self.main = self._landings.interrupts(frame, self._function.qualname)
            self.stop = self._play_plain(frame, main, program.main)
        if main.done() and self.stop.reason not in OVER:
            self._drain()
        self._count()
        if program.check is not None and self._over():
            blocks = not isinstance(program.main, Coroutine)
            self._check(
                program.check, blocks=blocks and not inspect.iscoroutinefunction(program.check)
            )

    def _play_plain(self, frame: Frame, main: DTask, run: Callable[[], Any]) -> Stop:
        """Play a function that blocks where it waits, in this thread, unless it is kept from it."""

        def code() -> None:
            value = run()
            if inspect.iscoroutine(value):
                value.close()
                raise UsageError(
                    f"{self._function.name} is a plain function and gave a coroutine where others "
                    "had given none; write `async def`"
                )

        stop = self._run(main, lambda: main.done() or bool(main.k))
        if main.done() or stop.reason != "done":
            return stop
        return frame.play(code, lambda done: self._until_over(main, done))

    def mistake(self) -> HarnessError | None:
        """An error of ours that the function, or its check, has met: a wrong use, or a tape that
        does not fit.
        """
        main = self.main
        ended = main is not None and main.done() and not main.cancelled()
        errors = (main.exception() if main is not None and ended else None, self.check_error)
        return next((found for each in errors for found in _ours(each)), None)

    def _over(self) -> bool:
        main = self.main
        ended = main is not None and main.done() and self.exit is None
        return ended and self.stop.reason not in OVER

    def gives(self) -> bool:
        """Run the function as one that blocks, and say whether it makes what is to be run.

        One that asks for the running loop does, as it may do where it is called to make something.
        """
        gave: list[bool] = []
        frame = Frame(self._kernel, MAIN, _no_call)
        main = frame.start()
        try:
            frame.play(
                lambda: gave.append(self._function.gives()), lambda done: self._run(main, done)
            )
        except (KeyboardInterrupt, SystemExit) as leaves:
            if not asked_by(leaves):
                raise
        error = main.exception() if main.done() and not main.cancelled() else None
        return any(gave) or (isinstance(error, RuntimeError) and str(error) == _NO_LOOP)

    def _made(self) -> Program:
        """Call the factory inside the run: it may make tasks and futures."""
        name = self._function.name

        async def making() -> Program:
            return self._function.call()

        task = self._kernel.spawn(making(), MAKING)
        stop = self._kernel.run_until(task.done)
        error = None if not task.done() or task.cancelled() else task.exception()
        if isinstance(error, HarnessError):
            raise error
        if error is not None or not task.done():
            why = stop.detail if error is None else f"{type(error).__name__}: {describe(error)}"
            raise UsageError(
                f"{name} gave nothing to run: {why}; it is called anew for each run"
            ) from error
        program: Program = task.result()
        return program

    def _until_over(self, main: DTask, done: Callable[[], bool]) -> Stop:
        """Run until `done`, or a task that was cancelled is not within `PATIENCE`."""
        if not self._landings.armed:
            return self._run(main, done)
        while True:
            stop = self._until_news(main, done, self._landings.fired)
            if stop.reason != "done" or done():
                return stop

    def _until_news(self, main: DTask, done: Callable[[], bool], fired: Sequence[Fired]) -> Stop:
        """Run until `done`, or the last task that was cancelled has ended, or another is."""
        seen = len(fired)
        waited = next((each for each in reversed(fired) if not each.task.done()), None)
        if waited is None:
            return self._run(main, lambda: done() or len(fired) > seen)
        cancelled = waited.task.done
        deadline = waited.at + PATIENCE
        return self._run(main, lambda: done() or cancelled() or len(fired) > seen, deadline)

    def _run(self, main: DTask, done: Callable[[], bool], deadline: int | None = None) -> Stop:
        """Run until `done`; what asks the process to end only ends the main task that raised it."""
        try:
            return self._kernel.run_until(done, deadline)
        except (KeyboardInterrupt, SystemExit) as error:
            own = main.done() and not main.cancelled() and main.exception() is error
            if not (own and asked_by(error)):
                raise
            return Stop("done")

    def _drain(self) -> None:
        """Let what is ready run, name what is left, and give it time."""
        kernel = self._kernel
        if kernel.quiet:
            return
        stop = kernel.settle()
        self.outlive = kernel.alive()
        self.ending = frozenset([each.path for each in kernel.living() if each.cancelling()])
        if stop.reason == "deadline":
            stop = kernel.drain(kernel.now() + PATIENCE)
        self.left = kernel.alive()
        if stop.reason in OVER:
            self.stop = stop

    def _count(self) -> None:
        self.steps = self._kernel.steps
        self.suspensions = len(self._kernel.suspensions)
        self.order = self._kernel.order.copy()
        self.ended = self._kernel.now()

    def _check(self, check: Callable[[], Any], *, blocks: bool) -> None:
        """Call the check inside the run; one that `blocks` as the main thread."""

        def looked(answer: Any) -> None:
            if answer is not None:
                raise UsageError(
                    f"{self._function.name}'s check gave {_shown(answer)}, which nobody looks at; "
                    "it must raise where something is wrong, and give nothing"
                )

        async def checking() -> None:
            answer = check()
            looked(await answer if inspect.isawaitable(answer) else answer)

        deadline = self._kernel.now() + PATIENCE
        if blocks:
            frame = Frame(self._kernel, CHECK, _no_call)
            task = frame.start()
            stop = frame.play(lambda: looked(check()), lambda done: self._run(task, done, deadline))
        else:
            task = self._kernel.spawn(checking(), CHECK)
            stop = self._run(task, task.done, deadline)
        if not task.done():
            self.check_open = "; ".join([stop.detail, *stop.waits])
            return
        try:
            self.check_error = task.exception()
        except CancelledError as error:
            self.check_error = error


def _begins(run: Callable[[], Any]) -> Line | None:
    """Where a function begins, if it is written in Python."""
    code = getattr(run, "__code__", None)
    return None if code is None else (code, -1)


def _no_call() -> None:
    """A function's calls are nobody's business."""


def _shown(answer: object) -> str:
    """A value that is a truth or a number, the class of any other."""
    if isinstance(answer, bool | int | float):
        return shortened(repr(answer))
    return f"an object of class {type(answer).__name__}"


def _ours(error: BaseException | None) -> Iterator[HarnessError]:
    """The errors of ours in an error, which may be a group; the boundary's are told by the stop."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _ours(each)
    elif isinstance(error, HarnessError) and not isinstance(error, OutOfSimulation):
        yield error
