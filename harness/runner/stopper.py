"""How a turn is stopped: by the agent's own means, or through its task."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from harness.core.events import CancelDelivered, CancelRequested
from harness.core.ports import Agent
from harness.core.trace import Recorder
from harness.runner.outcomes import describe
from harness.sim.kernel import Kernel


class Stopper:
    """Stops one turn, as often as it is asked to while the turn goes on.

    `fired_at` is when it first did, in virtual nanoseconds; `wrong` what is wrong with the agent's
    own stop; `stopping` the agent's own stop, where it takes time.

    An interrupt of a synchronous agent that has threads is delivered when its own code waits again,
    or ends: it may have to let others go first before it can tell them.

    A turn whose code has not begun cannot be stopped by the agent's own means, which a synchronous
    agent may well reset as it begins; there, that stop is held until `release`.
    """

    def __init__(self, turn: int, agent: Agent, kernel: Kernel, recorder: Recorder) -> None:
        self.fired_at: int | None = None
        self.wrong: str | None = None
        self.stopping: asyncio.Task[None] | None = None
        self.turn = turn
        self._agent = agent
        self._kernel = kernel
        self._recorder = recorder
        self._task: asyncio.Task[object] | None = None
        self._threaded = False
        self._holding = False
        self._telling = False
        self._held: list[Callable[[], Any]] = []

    @property
    def running(self) -> bool:
        """Whether there is something to stop."""
        return self._task is not None and not self._task.done()

    def begin(self, task: asyncio.Task[object], *, synchronous: bool = False) -> None:
        """From here on there is something to stop: `task` plays the turn.

        The own stop of a `synchronous` agent waits for `release`, and is called from a thread.
        """
        self._task, self._holding, self._threaded = task, synchronous, synchronous

    def release(self) -> None:
        """The turn's own code waits; where it has just begun, stop it as often as was asked for."""
        self._told()
        self._holding = False
        held, self._held = self._held, []
        for own in held:
            self._by_agent(own)

    def end(self) -> None:
        """From here on there is not."""
        self._told()
        self._task = None

    def stop(self, by: Literal["agent", "task"] | None, trigger: str) -> bool:
        """Stop the turn, `by` None through the agent's own means where it has some.

        False where the turn is not running. `trigger` says why, for the trace.
        """
        task = self._task
        if task is None or task.done():
            return False
        if self.fired_at is None:
            self.fired_at = self._kernel.now()
        own: Callable[[], Any] | None = getattr(self._agent, "cancel", None)
        if by == "agent" and own is None:
            self.wrong = "the scenario cancels by the agent, which has no cancel()"
        if by != "task" and own is not None:
            self._recorder.record(CancelRequested(self.turn, "agent", trigger))
            if self._holding:
                self._held.append(own)
            else:
                self._by_agent(own)
        else:
            self._recorder.record(CancelRequested(self.turn, "task", trigger))
            task.cancel()
            self._kernel.before_resume(str(self.turn), lambda _task: self._interrupted())
        return True

    def _interrupted(self) -> None:
        self._telling = True
        if not (self._threaded and self._kernel.has_threads()):
            self._told()

    def _told(self) -> None:
        """Who was interrupted has told whom it had to."""
        if self._telling:
            self._telling = False
            self._delivered("task")

    def _by_agent(self, own: Callable[[], Any]) -> None:
        answers: list[Any] = []

        def call() -> None:
            try:
                answers.append(own())
            except Exception as error:
                self._broke(error)

        if self._threaded:
            worker = self._kernel.begin_stop(f"cancel{self.turn}", call)
            self.stopping = worker.task
            if self.stopping is not None and worker.held_up:
                self.stopping.add_done_callback(lambda _task: self._through())
                return
        else:
            call()
        answer = answers[0] if answers else None
        if inspect.isawaitable(answer):
            path = f"cancel{self.turn}"
            self.stopping = self._kernel.spawn(self._stopping(answer), path)
            self._kernel.after_suspend(path, lambda _task: self._delivered("agent"))
        else:
            self._delivered("agent")

    def _through(self) -> None:
        """The agent's own stop, which had let others go first, is through; that may be too late."""
        if self.running:
            self._delivered("agent")

    def _delivered(self, by: Literal["agent", "task"]) -> None:
        scheduled = self._kernel.on_their_way()
        self._recorder.record(CancelDelivered(self.turn, by, scheduled))

    async def _stopping(self, stop: Awaitable[Any]) -> None:
        try:
            await stop
        except Exception as error:
            self._broke(error)

    def _broke(self, error: Exception) -> None:
        self.wrong = f"cancel() raised {type(error).__name__}: {describe(error)}"
