"""One run of a function: its main task to the end, then what it left, then its own check."""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harness.core.durations import SECOND
from harness.core.errors import HarnessError, OutOfSimulation, UsageError
from harness.core.located import shortened
from harness.runner.functions.kernel import CHECK, MAIN, MAKING, FunctionKernel
from harness.runner.functions.landing import Fired, Landings
from harness.runner.functions.subject import Function, Program
from harness.runner.leaving import asked_by
from harness.runner.outcomes import describe
from harness.sim.stop import OVER, Stop
from harness.sim.tasks import DTask, TaskInfo

PATIENCE = 60 * SECOND
"""How long a cancelled task may go on, what is left may take to end, and a check may take, each in
virtual nanoseconds."""


class Play:
    """Plays a function once, and keeps what there is to judge."""

    def __init__(self, function: Function, kernel: FunctionKernel, landings: Landings) -> None:
        self.main: DTask | None = None
        """The main task, None where there is none yet."""
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
        main = self.main = kernel.spawn(program.main, MAIN)
        self.stop = self._until_over(main)
        if main.done() and self.stop.reason not in OVER:
            self._drain()
        self._count()
        if program.check is not None and self._over():
            self._check(program.check)

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

    def _until_over(self, main: DTask) -> Stop:
        """Run until the main task is done, or a cancelled one is not within `PATIENCE`."""
        if not self._landings.armed:
            return self._run(main, main.done)
        while True:
            stop = self._until_news(main, self._landings.fired)
            if stop.reason != "done" or main.done():
                return stop

    def _until_news(self, main: DTask, fired: Sequence[Fired]) -> Stop:
        """Run until the main task is done, or the last that was cancelled, or another is."""
        seen = len(fired)
        waited = next((each for each in reversed(fired) if not each.task.done()), None)
        if waited is None:
            return self._run(main, lambda: main.done() or len(fired) > seen)
        cancelled = waited.task.done
        deadline = waited.at + PATIENCE
        return self._run(main, lambda: main.done() or cancelled() or len(fired) > seen, deadline)

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

    def _check(self, check: Callable[[], Any]) -> None:
        """Call the check inside the run."""

        async def checking() -> None:
            answer = check()
            if inspect.isawaitable(answer):
                answer = await answer
            if answer is not None:
                raise UsageError(
                    f"{self._function.name}'s check gave {_shown(answer)}, which nobody looks at; "
                    "it must raise where something is wrong, and give nothing"
                )

        task = self._kernel.spawn(checking(), CHECK)
        stop = self._run(task, task.done, self._kernel.now() + PATIENCE)
        if not task.done():
            self.check_open = "; ".join([stop.detail, *stop.waits])
            return
        try:
            self.check_error = task.exception()
        except CancelledError as error:
            self.check_error = error


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
