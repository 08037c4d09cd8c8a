"""Plays a scenario's turns on an agent, under the kernel."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from harness.core.choices import Choices
from harness.core.durations import SECOND
from harness.core.errors import UsageError
from harness.core.events import (
    ErrorUnseen,
    GeneratorAbandoned,
    NetworkReached,
    RunStopped,
    TaskLeaked,
    TurnEnded,
    TurnStarted,
)
from harness.core.outcome import Completed, Outcome
from harness.core.ports import Agent, Build
from harness.core.trace import Recorder, Trace
from harness.fakes.place import Stage
from harness.fakes.script import Fault, Reply
from harness.runner.blocking import Blocking, Frame
from harness.runner.built import agent_of, name_of, raised
from harness.runner.env import RunEnv
from harness.runner.leaving import asked_by
from harness.runner.outcomes import describe, outcome_of
from harness.runner.result import Failure
from harness.runner.scenario import Scenario, Turn
from harness.runner.stopper import Stopper
from harness.runner.trigger import Trigger
from harness.sim.hold import swap_also
from harness.sim.kernel import Kernel
from harness.sim.stop import OVER, Stop
from harness.sim.tasks import TaskInfo
from harness.sim.virtual import BEGINNING
from harness.transport.router import Routes, swaps

if TYPE_CHECKING:
    from harness.runner.cassettes.replayed import Replayed
    from harness.transport.cassettes.form import Cassette

swap_also(swaps)

CANCEL_DEADLINE = 30 * SECOND
"""How long a turn may go on after its cancel, in virtual nanoseconds."""
DRAIN = 60 * SECOND
"""How long what a turn left behind is watched before the next turn, in virtual nanoseconds."""
DEFAULT_TURN = Turn(
    "Continue.", (Reply(say="Done."), *[Reply(say="Done.", optional=True) for _ in range(9)])
)
"""What is said after a last turn that was cut short, to see whether the conversation can go on.

An agent may want to hear more than once that it is done.
"""


class Played(Struct, frozen=True):
    """What came of playing a scenario."""

    outcomes: tuple[Outcome, ...]
    trace: Trace
    failures: tuple[Failure, ...]


class Play:
    """One run of one scenario; use it once.

    `search` are faults that the choices may add. With a `cassette` its replies are given, and not
    those of the scenario.
    """

    def __init__(
        self,
        scenario: Scenario,
        build: Build,
        choices: Choices,
        kernel: Kernel | None = None,
        search: Sequence[Fault] = (),
        cassette: Cassette | None = None,
    ) -> None:
        self.scenario = scenario
        self.kernel = kernel or Kernel()
        self.blocking = Blocking(self.kernel)
        self.recorder = Recorder(self.kernel.now, self.blocking.path)
        self.kernel.on_abandoned = lambda name: self.recorder.record(GeneratorAbandoned(name))
        self.kernel.on_network = lambda message: self.recorder.record(NetworkReached(message))
        self.replayed = None if cassette is None else self._replayed(cassette)
        if self.replayed is None:
            self.stage = Stage(scenario.also, self.recorder, by_place=scenario.order == "place")
        else:
            self.stage = self.replayed.stage
        self.env = RunEnv(
            scenario, self.kernel, self.recorder, self.stage, choices, self.blocking, search
        )
        if self.replayed is not None:
            self.env.answer = self.replayed.answer
        self.kernel.routes = Routes(
            lambda: self.env.answer,
            partial(self.blocking.call, abortable=True),
            self.env.base_url,
        )
        self.build = build
        self.stopper: Stopper | None = None
        """Stops the turn that is played now."""
        self.trigger: Trigger | None = None
        """Cuts that turn where the scenario says so."""
        self.has_stop = False
        """Whether the agent has a stop of its own."""
        self.outcomes: list[Outcome] = []
        self.failures: list[Failure] = []

    @property
    def playing(self) -> int:
        """The turn that is played now and that its scenario has not cut yet; 0 without one."""
        stopper, trigger = self.stopper, self.trigger
        if stopper is None or not stopper.running or (trigger is not None and trigger.fired):
            return 0
        return stopper.turn

    def play(self) -> Played:
        """Build the agent and play every turn, the default one too where it is due."""
        try:
            agent = self._agent()
            self.has_stop = hasattr(agent, "cancel")
            for number, turn in enumerate(self._turns(), 1):
                if not self._turn(agent, number, turn):
                    break
            else:
                self._finish(agent)
            if self.replayed is not None:
                self.replayed.finish()
        except SystemExit as error:
            detail = f"SystemExit({error.code!r}) was raised outside the turn's own task"
            self.recorder.record(RunStopped("exit", detail))
        finally:
            self.recorder.watch = None
            self.kernel.on_abandoned = self.kernel.on_network = None
            trace = self.recorder.trace()
            self.kernel.tear_down()
        return Played(tuple(self.outcomes), trace, tuple(self.failures))

    def _replayed(self, cassette: Cassette) -> Replayed:
        from harness.runner.cassettes.replayed import Replayed

        kernel = self.kernel
        return Replayed(cassette, self.scenario, self.recorder, lambda: BEGINNING + kernel.now())

    def _turns(self) -> Iterator[Turn]:
        yield from self.scenario.turns
        if not self.outcomes or isinstance(self.outcomes[-1], Completed):
            return
        if self.replayed is None or self.replayed.goes_on:
            yield DEFAULT_TURN

    def _agent(self) -> Agent:
        async def building() -> Agent:
            return self.build(self.env)

        task = self.kernel.spawn(building(), "0")
        stop = self._run(task, task.done)
        if stop.reason == "stuck":
            raise UsageError(f"{name_of(self.build)} never returned: {stop.detail}")
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if isinstance(error, UsageError):
            raise error  # it says itself what is wrong
        if error is not None:
            raise raised(self.build, error) from error
        return agent_of(self.build, task.result())

    def _turn(self, agent: Agent, number: int, turn: Turn) -> bool:
        """Play one turn; False where the run cannot go on."""
        default = turn is DEFAULT_TURN
        before = self._known()
        self.stage.start_turn(number, turn.user, turn.replies)
        stopper = self.stopper = Stopper(number, agent, self.kernel, self.recorder)
        trigger = self.trigger = None
        if turn.cancel is not None:
            trigger = self.trigger = Trigger(turn.cancel, number, stopper, self.kernel)
            if turn.cancel.after is not None:
                self.recorder.watch = trigger.watch
        returned: list[Any] = []
        if inspect.iscoroutinefunction(agent.turn):
            frame = None
            task = self.kernel.spawn(_call_turn(agent, turn.user, returned), str(number))
        else:
            frame = Frame(self.kernel, str(number), stopper.release)
            task = frame.start()
        stopper.begin(task, synchronous=frame is not None)
        if trigger is not None:
            trigger.arm()
        self.recorder.record(TurnStarted(number, turn.user, default))
        wait = partial(self._wait, task, stopper)
        if frame is None:
            stop = wait(task.done)
        else:
            stop = self.blocking.play(frame, lambda: _play_turn(agent, turn.user, returned), wait)
        stopper.end()
        self.recorder.watch = None
        if trigger is not None:
            trigger.disarm()
            self._check_fired(trigger, number)
        if not task.done() or stop.reason == "stuck":
            self._stopped(stop)
            return False
        outcome, wrong = outcome_of(agent, task, returned)
        if wrong is not None:
            self.failures.append(Failure("agent", wrong, number))
        self.outcomes.append(outcome)
        cut = not isinstance(outcome, Completed) or stopper.fired_at is not None
        for unused in self.stage.end_turn(cut=cut):
            self.failures.append(
                Failure("unused reply", f"{unused} was never asked for", number, turn.line)
            )
        self.recorder.record(TurnEnded(number, outcome))
        if stopper.stopping is not None:
            self._await_stop(stopper.stopping, number)
        if stopper.wrong is not None:
            self.failures.append(Failure("agent", stopper.wrong, number))
        return self._settle(number, before)

    def _await_stop(self, stopping: asyncio.Task[None], number: int) -> None:
        stop = self._run(stopping, stopping.done, self.kernel.now() + CANCEL_DEADLINE)
        if not stopping.done():
            self._unended("cancel()", stop, number)

    def _unended(self, what: str, stop: Stop, number: int | None = None) -> None:
        """Say why `what` goes on; where the run itself is over, `_settle` says it."""
        if stop.reason in OVER:
            return
        if stop.reason == "deadline":
            why = f"{CANCEL_DEADLINE // SECOND} virtual seconds had passed"
        else:
            why = "nothing will ever wake it"
        self.failures.append(Failure("agent", f"{what} had not ended: {why}", number))

    def _wait(self, task: asyncio.Task[Any], stopper: Stopper, done: Callable[[], bool]) -> Stop:
        """Run until `done`, past a cancel only for so long."""
        if stopper.fired_at is None:
            stop = self._run(task, lambda: done() or stopper.fired_at is not None)
            if done() or stopper.fired_at is None:
                return stop
        return self._run(task, done, stopper.fired_at + CANCEL_DEADLINE)

    def _run(
        self, task: asyncio.Task[Any], done: Callable[[], bool], deadline: int | None = None
    ) -> Stop:
        """Run until `done`; code that asks the whole process to end, ends its turn with that.

        Ctrl-C ends the run, whatever code it comes into.
        """
        try:
            return self.kernel.run_until(done, deadline)
        except (KeyboardInterrupt, SystemExit) as error:
            theirs = task.done() and not task.cancelled() and task.exception() is error
            if not theirs or not asked_by(error):
                raise
            return self.kernel.run_until(done, deadline)

    def _check_fired(self, trigger: Trigger, number: int) -> None:
        if trigger.fired:
            return
        seen = f"; that happened {trigger.seen} time(s)" if trigger.cancel.after is not None else ""
        self.failures.append(
            Failure(
                "cancel did not fire",
                f"turn {number} was over before its cancel ({trigger.text}) could act{seen}",
                number,
                trigger.cancel.line,
            )
        )

    def _stopped(self, stop: Stop) -> None:
        match stop.reason:
            case "deadline":
                detail = "it goes on although it was told to stop"
                self.recorder.record(RunStopped("cancel_deadline", detail, stop.waits))
            case "done" | "quiescent" | "deadlock":
                self.recorder.record(RunStopped("deadlock", stop.detail, stop.waits))
            case reason:
                self.recorder.record(RunStopped(reason, stop.detail, stop.waits))

    def _settle(self, number: int, before: set[str]) -> bool:
        """Let what is ready run, name what is left, and give it time; False where that fails."""
        stop = self.kernel.settle()
        unseen, self.kernel.callback_errors = self.kernel.callback_errors, []
        for message in unseen:
            self.recorder.record(ErrorUnseen(number, message))
        alive = [*self.kernel.alive(), *self.kernel.open_pools()]
        stubborn = _held_up(alive, set(self.env.tools.stubborn_paths()))
        for info in alive:
            if info.path not in before:
                owner: Literal["agent", "tool"] = "tool" if info.path in stubborn else "agent"
                started = info.created if info.thread else None
                self.recorder.record(TaskLeaked(number, info.path, info.where, owner, started))
        if stop.reason == "deadline":  # something is due later, of a leak or of a timer
            stop = self.kernel.drain(self.kernel.now() + DRAIN)
        if self.kernel.escapes:
            self.recorder.record(RunStopped("out_of_simulation", self.kernel.escapes[0]))
            return False
        if stop.reason in OVER:
            self._stopped(stop)
            return False
        return True

    def _known(self) -> set[str]:
        """The paths of what there is by now: tasks, threads and pools of threads."""
        return {info.path for info in [*self.kernel.alive(), *self.kernel.pools()]}

    def _finish(self, agent: Agent) -> None:
        if all(isinstance(outcome, Completed) for outcome in self.outcomes):
            for unused in self.stage.unused_also():
                self.failures.append(Failure("unused reply", f"{unused} was never asked for"))
        close = getattr(agent, "close", None)
        if close is None:
            return
        before = self._known()
        task = self.kernel.spawn(_call(close), "close")
        stop = self._run(task, task.done, self.kernel.now() + CANCEL_DEADLINE)
        if not task.done():
            self._unended("close()", stop)
        elif stop.reason in OVER or task.cancelled():
            pass  # an error in a run that is over is how its end got into close()
        elif (error := task.exception()) is not None:
            wrong = f"close() raised {type(error).__name__}: {describe(error)}"
            self.failures.append(Failure("agent", wrong))
        self._settle(len(self.outcomes), before)


def _held_up(alive: Sequence[TaskInfo], stubborn: set[str]) -> set[str]:
    """The tasks that are stubborn tools', and those that only wait for such a task."""
    found, size = set(stubborn), -1
    while len(found) > size:
        size = len(found)
        found |= {info.path for info in alive if info.awaits and found.issuperset(info.awaits)}
    return found


async def _call_turn(agent: Agent, text: str | None, returned: list[Any]) -> None:
    returned.append(await agent.turn(text))


def _play_turn(agent: Agent, text: str | None, returned: list[Any]) -> None:
    value = agent.turn(text)
    if inspect.iscoroutine(value):
        value.close()
        raise UsageError("`turn` is a plain function and returned a coroutine; write `async def`")
    returned.append(value)


async def _call(function: Callable[[], Any]) -> None:
    answer = function()
    if inspect.isawaitable(answer):
        await answer
