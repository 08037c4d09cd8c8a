"""Synchronous agents: their waits take virtual time, can be cancelled, and never hang a run."""

from __future__ import annotations

import asyncio
import inspect
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import suppress
from typing import Any

import pytest

from harness.core.choices import Choices
from harness.core.durations import SECOND
from harness.core.errors import UsageError
from harness.core.events import (
    CancelDelivered,
    CancelRequested,
    LoopEvent,
    ReplyEnded,
    StateEntered,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from harness.core.messages import ModelRequest, user
from harness.core.outcome import CANCELLED, COMPLETED, Error
from harness.core.ports import Aborted, Env, ProviderFailed, ToolFailed
from harness.exploration.probe import Shot
from harness.exploration.sweep import MODES
from harness.runner.agents import subject_of
from harness.runner.blocking import REFUSALS
from harness.runner.drive import Play
from harness.runner.exploring import sweep
from harness.runner.files.load import load_text
from harness.runner.probe import AgentProbe
from harness.runner.result import Result
from harness.runner.run import run
from harness.runner.scenario import Scenario
from harness.sim.kernel import Kernel, Limits
from tests.subjects import blocking_loop

TWO_TOOLS = """
about: Two tools are run.
tools:
  clock: {returns: "14:05", takes: 1s}
  date: {returns: 1 May, takes: 1s}
turns:
  - user: What time is it?
    model:
      - {calls: [clock, date], takes: 1s}
      - say: It is 14:05 on the first of May.
"""
EVERY = """
about: Tools of all kinds, asked for at once.
tools:
  quick: {returns: 1}
  slow: {returns: 2, takes: 5s}
  broken: {error: no}
  hangs: {hangs: true}
  stubborn: {returns: 3, takes: 5s, on_cancel: ignore}
  leaves: {cancels_itself: true}
turns:
  - user: Go.
    model:
      - calls: [quick, slow, broken, hangs, stubborn, leaves]
"""
TOOLS = ("quick", "slow", "broken", "hangs", "stubborn", "leaves")


class Agent:
    """Asks once, then does what the test says with the calls."""

    def __init__(self, env: Env, then: Callable[[Agent], Any]) -> None:
        self.env = env
        self.then = then
        self.first = True
        self.told: list[Any] = []

    def turn(self, text: str | None) -> Any:
        request = ModelRequest("m", "", (user(text or ""),))
        list(self.env.model_sync.generate(request))
        if self.first:
            self.first = False
            return self.then(self)
        return None

    def call(self, name: str) -> Any:
        return self.env.tools.call_sync(name, {}, self.id(name))

    def id(self, name: str) -> str:
        return f"call_1_1_{TOOLS.index(name) + 1}"


class Stoppable(Agent):
    """The same with a stop that breaks off what it waits for."""

    def cancel(self) -> None:
        self.told.append("cancel")
        self.env.abort()


def play(
    then: Callable[[Agent], Any], cancel: str = "", kind: type[Agent] = Agent, text: str = EVERY
) -> Result:
    cut = f"    cancel: {{{cancel}}}\n" if cancel else ""
    return run(load_text(text + cut, "blocking.yaml"), lambda env: kind(env, then))


class Locking(Agent):
    """A stop that takes locks which nobody holds."""

    def __init__(self, env: Env, then: Callable[[Agent], Any]) -> None:
        super().__init__(env, then)
        self.lock, self.event = threading.Lock(), threading.Event()
        self.stopped = False

    def cancel(self) -> None:
        self.event.set()
        with self.lock:
            self.stopped = True


def stop_of(result: Result) -> str | None:
    return None if result.trace.stop is None else result.trace.stop[1].reason


def limited(then: Callable[[Agent], Any], limits: Limits) -> str | None:
    scenario = load_text(EVERY, "blocking.yaml")
    played = Play(scenario, lambda env: Agent(env, then), Choices(), Kernel(limits)).play()
    return None if played.trace.stop is None else played.trace.stop[1].reason


def two_tools(cancel: str = "") -> Scenario:
    cut = f"    cancel: {{{cancel}}}\n" if cancel else ""
    return load_text(TWO_TOOLS + cut, "two_tools.yaml")


# --- a whole loop


def test_a_synchronous_loop_plays_in_virtual_time_and_in_its_turns_path() -> None:
    result = run(two_tools(), blocking_loop.build)
    assert result.ok
    assert result.outcomes == (COMPLETED,)
    assert result.trace.entries[-1].at == 3 * SECOND
    assert {entry.task for entry in result.trace.entries} == {"", "1"}


def test_the_same_run_twice_is_the_same_trace() -> None:
    first, second = (run(two_tools(), blocking_loop.build) for _ in range(2))
    assert first.trace.fingerprint == second.trace.fingerprint


@pytest.mark.parametrize("by", ["agent", "task"])
@pytest.mark.parametrize("mode", ["now", "early", "late"])
def test_it_is_stopped_by_its_own_means_and_by_an_interrupt(by: str, mode: str) -> None:
    cancel = f"after: tool_started clock, by: {by}, mode: {mode}"
    result = run(two_tools(cancel), blocking_loop.build)
    assert result.ok, str(result)
    assert result.outcomes == (CANCELLED, COMPLETED)
    assert result.trace.entries[-1].at == (2 if mode == "late" else 1) * SECOND


def test_every_cancel_of_it_is_clean_and_names_its_own_lines() -> None:
    subject = subject_of(blocking_loop.build)
    found = sweep(two_tools(), subject, modes=MODES).check()
    assert found.report.whom == ("agent", "turn", "task")
    places = [site.where for site in AgentProbe(two_tools(), subject).run().sites]
    assert places[0] == ""
    assert all("blocking_loop.py" in place for place in places[1:]), places


# --- single calls


def test_a_tool_beside_the_agent_runs_while_the_agent_waits_for_another_one() -> None:
    def then(agent: Agent) -> None:
        slow = agent.env.tools.start("slow", {}, agent.id("slow"))
        slow.then(lambda: agent.told.append(agent.env.clock.now()))
        agent.env.clock.wait(3 * SECOND)
        assert agent.call("quick") == 1
        assert not slow.done()
        assert slow.wait() == 2
        assert slow.done()
        assert slow.wait() == 2
        assert agent.told == [agent.env.clock.now()] == [5 * SECOND]

    result = play(then)
    assert result.outcomes == (COMPLETED,)
    started = [entry for entry in result.trace.entries if isinstance(entry.event, ToolStarted)]
    assert [entry.task for entry in started] == ["1.1", "1"]


def test_a_tool_beside_the_agent_is_told_to_stop() -> None:
    def then(agent: Agent) -> None:
        tool = agent.env.tools.start("hangs", {}, agent.id("hangs"))
        agent.env.clock.wait(0)
        tool.cancel()
        with pytest.raises(asyncio.CancelledError):
            tool.wait()

    result = play(then)
    assert result.outcomes == (COMPLETED,)
    ends = [e.event.end for e in result.trace.entries if isinstance(e.event, ToolEnded)]
    assert ends == ["cancelled"]


def test_a_call_raises_what_the_tool_raises() -> None:
    def then(agent: Agent) -> str:
        with pytest.raises(ToolFailed, match="no"):
            agent.call("broken")
        agent.call("leaves")
        return "not reached"

    assert play(then).outcomes == (CANCELLED, COMPLETED)


def test_a_reply_that_is_left_can_be_closed_once_and_again() -> None:
    class Leaves(Agent):
        def turn(self, text: str | None) -> None:
            reply = self.env.model_sync.generate(ModelRequest("m", "", (user(text or ""),)))
            next(reply)
            reply.close()
            reply.close()
            assert list(reply) == []

    text = "about: x.\nturns:\n  - user: Go.\n    model: [{say: a text in more than one part}]\n"
    result = play(lambda _agent: None, kind=Leaves, text=text)
    assert result.outcomes == (COMPLETED,)
    ends = [e.event.end for e in result.trace.entries if isinstance(e.event, ReplyEnded)]
    assert ends == ["closed"]


def test_a_request_that_fails_raises_in_the_agent() -> None:
    text = "about: x.\nturns:\n  - user: Go.\n    model: [{fault: {generate_fails: busy}}]\n"
    result = play(lambda _agent: None, text=text)
    [outcome, _] = result.outcomes
    assert isinstance(outcome, Error)
    assert outcome.kind == ProviderFailed.__name__
    assert outcome.message.startswith("busy (")


def test_anything_asynchronous_can_be_waited_for() -> None:
    async def work() -> str:
        await asyncio.sleep(2)
        return "done"

    def then(agent: Agent) -> None:
        assert agent.env.block(work) == "done"
        assert agent.env.clock.now() == 2 * SECOND

    assert play(then).outcomes == (COMPLETED,)


# --- cancels


def test_a_cancel_while_its_own_code_runs_interrupts_its_next_call() -> None:
    def then(agent: Agent) -> None:
        agent.env.observe(StateEntered("A"))

    result = play(then, "after: state_entered A, by: task")
    assert result.outcomes == (CANCELLED, COMPLETED)


def test_a_cancel_lands_between_two_things_that_the_agent_tells() -> None:
    def then(agent: Agent) -> None:
        agent.env.observe(StateEntered("A"))
        assert agent.told == ["cancel"]
        agent.env.observe(LoopEvent("b", None))

    for mode in ("now", "early", "late"):
        result = play(then, f"after: state_entered A, mode: {mode}", Stoppable)
        assert result.outcomes == (COMPLETED, COMPLETED)[: len(result.outcomes)]


def test_an_interrupt_that_comes_with_the_end_of_a_call_waits_for_the_next_one() -> None:
    def then(agent: Agent) -> None:
        assert agent.call("quick") == 1
        with pytest.raises(KeyboardInterrupt):
            agent.call("slow")
        assert agent.env.clock.now() == 0
        assert agent.call("slow") == 2

    assert play(then, "after: tool_ended quick, by: task").outcomes[0] == COMPLETED


def test_an_interrupt_that_a_tool_ignores_is_lost() -> None:
    def then(agent: Agent) -> None:
        assert agent.call("stubborn") == 3
        assert agent.call("quick") == 1

    assert play(then, "at: 1s, by: task").outcomes[0] == COMPLETED


def test_an_abort_breaks_off_what_can_be_broken_off() -> None:
    def then(agent: Agent) -> None:
        with pytest.raises(Aborted):
            agent.call("hangs")
        assert agent.env.clock.now() == SECOND

    assert play(then, "at: 1s", Stoppable).outcomes[0] == COMPLETED


def test_an_abort_breaks_off_no_other_work_and_nothing_where_nobody_waits() -> None:
    def then(agent: Agent) -> None:
        agent.env.abort()
        agent.env.block(lambda: asyncio.sleep(2))
        assert agent.told == ["cancel"]

    assert play(then, "at: 1s", Stoppable).outcomes[0] == COMPLETED


def in_threads(agent: Agent, *names: str) -> list[str]:
    """Call tools, each in a thread of its own; what came of each and when, as they ended."""
    told: list[str] = []

    def work(name: str) -> None:
        try:
            came: Any = agent.call(name)
        except Aborted as aborted:
            came = aborted
        told.append(f"{name}: {came} at {agent.env.clock.now() // SECOND} s")

    threads = [threading.Thread(target=work, args=[name]) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def test_an_abort_breaks_off_the_calls_of_threads_too() -> None:
    def then(agent: Agent) -> None:
        agent.told += in_threads(agent, "hangs", "slow", "stubborn")
        assert agent.call("quick") == 1
        assert agent.told == [
            "cancel",
            "hangs: the call was broken off at 1 s",
            "slow: the call was broken off at 1 s",
            "stubborn: 3 at 5 s",
        ]

    result = play(then, "at: 1s", Stoppable)
    assert result.outcomes[0] == COMPLETED, str(result)


def test_an_abort_that_comes_twice_breaks_off_once() -> None:
    class Twice(Stoppable):
        def cancel(self) -> None:
            super().cancel()
            self.env.abort()

    def then(agent: Agent) -> None:
        in_threads(agent, "hangs")
        assert in_threads(agent, "slow") == ["slow: 2 at 6 s"]

    assert play(then, "at: 1s", Twice).outcomes[0] == COMPLETED


def test_an_abort_breaks_off_no_thread_that_waits_for_something_else() -> None:
    def then(agent: Agent) -> None:
        thread = threading.Thread(target=lambda: agent.env.block(lambda: asyncio.sleep(2)))
        thread.start()
        thread.join()
        assert agent.env.clock.now() == 2 * SECOND

    assert play(then, "at: 1s", Stoppable).outcomes[0] == COMPLETED


def test_a_run_that_ends_as_a_call_is_broken_off_is_over() -> None:
    def then(agent: Agent) -> None:
        threading.Thread(target=lambda: agent.call("stubborn"), daemon=True).start()
        agent.call("quick")
        agent.env.block(lambda: asyncio.sleep(2))
        agent.env.block(lambda: asyncio.get_running_loop().create_future())

    text = EVERY.replace("takes: 5s, on_cancel", "takes: 500s, on_cancel")
    assert stop_of(play(then, "at: 1s", Stoppable, text)) == "cancel_deadline"


def test_an_abort_outside_of_a_turn_does_nothing() -> None:
    def build(env: Env) -> Agent:
        env.abort()
        return Agent(env, lambda _agent: None)

    assert run(load_text(EVERY, "x.yaml"), build).outcomes == (COMPLETED,)


def test_an_abort_that_comes_before_its_call_begins_keeps_it_from_that() -> None:
    def then(agent: Agent) -> None:
        agent.env.observe(StateEntered("A"))
        with pytest.raises(Aborted):
            agent.call("quick")

    result = play(then, "point: 1#7/late", Stoppable)
    assert result.outcomes[0] == COMPLETED, str(result)
    assert not [e for e in result.trace.entries if isinstance(e.event, ToolStarted)]


def test_of_an_abort_and_an_interrupt_the_interrupt_counts() -> None:
    class Both(Agent):
        def cancel(self) -> None:
            self.env.abort()
            self.env.abort()
            self.task.cancel()

    def then(agent: Agent) -> None:
        async def own() -> Any:
            return asyncio.current_task()

        agent.task = agent.env.block(own)  # type: ignore[attr-defined]
        with pytest.raises(KeyboardInterrupt):
            agent.call("hangs")

    assert play(then, "at: 1s", Both).outcomes[0] == COMPLETED


def test_a_cancel_of_the_turns_task_before_its_first_call_is_an_interrupt() -> None:
    result = play(lambda _agent: None, "after: turn_started, by: task")
    assert result.outcomes == (CANCELLED, COMPLETED)


def test_its_own_stop_before_its_first_call_keeps_that_call_from_beginning() -> None:
    """A stop is no use to a `turn` that has not begun, and begins by forgetting about stops."""
    scenario = two_tools("after: turn_started")
    result = run(scenario, blocking_loop.build)
    assert result.outcomes == (CANCELLED, COMPLETED)
    assert result.verdict.violations == ()
    assert not [e for e in result.trace.entries if isinstance(e.event, ToolStarted)]
    kinds = [type(entry.event) for entry in result.trace.entries]
    assert kinds[:4] == [TurnStarted, CancelRequested, CancelDelivered, TurnEnded]


def test_a_held_stop_reaches_any_first_call_and_only_once() -> None:
    class Early(Stoppable):
        def turn(self, text: str | None) -> Any:
            self.env.observe(StateEntered("A"))
            self.env.observe(StateEntered("B"))
            assert self.told == ["cancel"]

    result = play(lambda _agent: None, "after: turn_started", Early)
    assert result.outcomes[0] == COMPLETED


def test_a_stop_of_a_turn_that_calls_nothing_never_comes() -> None:
    agents: list[Stoppable] = []

    class Silent(Stoppable):
        def turn(self, text: str | None) -> Any:
            agents.append(self)

    result = play(lambda _agent: None, "after: turn_started", Silent)
    assert result.outcomes == (COMPLETED,)
    assert agents[0].told == []


def test_a_stop_held_for_one_turn_does_not_stop_the_next() -> None:
    text = TWO_TOOLS.replace("model:", "cancel: {after: turn_started}\n    model:")
    text += "  - {user: Go on., model: [{say: Gone.}]}\n"
    result = run(load_text(text, "two_turns.yaml"), blocking_loop.build)
    assert result.outcomes == (CANCELLED, COMPLETED)


# --- ends that are no ends


def test_what_nothing_will_wake_is_a_deadlock() -> None:
    result = play(lambda agent: agent.call("hangs"))
    assert stop_of(result) == "deadlock"
    assert "test_blocking.py" in result.trace.stop[1].waits[0]  # type: ignore[index]


def test_an_agent_that_catches_its_end_gets_it_again_and_ends_all_the_same() -> None:
    seen: list[str] = []

    def then(agent: Agent) -> str:
        for name in ("hangs", "quick", "slow"):
            try:
                agent.call(name)
            except BaseException as error:
                seen.append(type(error).__name__)
        return "as if nothing had happened"

    assert stop_of(play(then)) == "deadlock"
    assert seen == ["Unfinished"] * 3


def swallows(agent: Agent) -> None:
    while True:
        try:
            agent.call("hangs")
        except BaseException:
            agent.told.append("caught")


def swallows_at_two_levels(agent: Agent) -> None:
    while True:
        try:
            swallows(agent)
        except BaseException as error:
            agent.told.append(str(error))


def swallows_by_a_context(agent: Agent) -> None:
    while True:
        with suppress(BaseException):
            agent.call("hangs")
            agent.told.append("called")


def swallows_for_a_while(agent: Agent) -> None:
    for _ in range(10_000):
        with suppress(BaseException):
            agent.call("hangs")


@pytest.mark.parametrize(
    "then",
    [
        swallows,
        swallows_at_two_levels,
        swallows_by_a_context,
        swallows_for_a_while,
    ],
)
def test_an_agent_that_never_takes_its_end_is_driven_out(then: Callable[[Agent], Any]) -> None:
    agents: list[Agent] = []

    def noted(agent: Agent) -> Any:
        agents.append(agent)
        return then(agent)

    before = sys.gettrace()
    for _ in range(2):
        assert stop_of(play(noted)) == "deadlock"
        assert sys.gettrace() is before
        assert sys.exception() is None
    first, second = agents
    assert first.told == second.told
    assert len(first.told) <= REFUSALS + 3


def test_a_turn_that_goes_on_after_its_cancel_comes_to_the_deadline() -> None:
    def then(agent: Agent) -> None:
        while True:
            agent.env.clock.wait(SECOND)

    class Deaf(Agent):
        def cancel(self) -> None:
            pass

    result = play(then, "at: 1s", Deaf)
    assert stop_of(result) == "cancel_deadline"
    assert result.trace.entries[-1].at == 31 * SECOND


def test_a_turn_that_never_ends_comes_to_a_limit() -> None:
    def then(agent: Agent) -> None:
        while True:
            agent.env.observe(StateEntered("A"))

    assert limited(then, Limits(steps=200)) == "step_limit"


def test_code_that_never_waits_is_ended() -> None:
    def then(_agent: Agent) -> None:
        while True:
            pass

    assert limited(then, Limits(work=SECOND // 10)) == "stuck"


def test_a_tool_that_never_gives_way_is_ended() -> None:
    async def spins() -> None:
        while True:
            pass

    assert limited(lambda agent: agent.env.block(spins), Limits(work=SECOND // 10)) == "stuck"


def test_what_leaves_the_process_in_a_call_is_the_turns_error() -> None:
    async def leaves() -> None:
        raise SystemExit(3)

    [outcome, _] = play(lambda agent: agent.env.block(leaves)).outcomes
    assert isinstance(outcome, Error)
    assert outcome.kind == "SystemExit"


def test_what_leaves_the_process_in_another_task_ends_the_run() -> None:
    async def leaves() -> None:
        raise SystemExit(3)

    async def begins() -> Any:
        return asyncio.create_task(leaves())

    def then(agent: Agent) -> None:
        agent.task = agent.env.block(begins)  # type: ignore[attr-defined]
        for _ in range(2):
            try:
                agent.call("slow")
            except BaseException as error:
                agent.told.append(type(error).__name__)
        assert agent.told == ["Unfinished"] * 2

    assert stop_of(play(then)) == "exit"


# --- calls in the wrong place


def test_the_function_that_builds_an_agent_may_not_wait() -> None:
    def build(env: Env) -> Agent:
        env.clock.wait(1)
        return Agent(env, lambda _agent: None)

    with pytest.raises(UsageError, match="neither as it is built"):
        run(load_text(EVERY, "x.yaml"), build)


def test_a_stop_may_wait_as_it_is_called_by_a_thread_of_its_own() -> None:
    class Waits(Agent):
        def cancel(self) -> None:
            self.env.clock.wait(SECOND)
            self.told.append(self.env.clock.now())

    agents: list[Waits] = []

    def then(agent: Any) -> None:
        agents.append(agent)
        agent.call("slow")

    result = play(then, "at: 1s", Waits)
    assert [each for each in result.failures if each.kind == "agent"] == []
    assert agents[0].told == [2 * SECOND]


def test_threads_that_the_agent_starts_may_wait() -> None:
    def then(agent: Agent) -> None:
        def wait(seconds: int) -> None:
            agent.env.clock.wait(seconds * SECOND)
            agent.told.append(seconds)

        threads = [threading.Thread(target=wait, args=(seconds,)) for seconds in (3, 1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert agent.told == [1, 2, 3]

    assert play(then).outcomes == (COMPLETED,)


def test_a_thread_from_before_the_run_may_not_wait() -> None:
    asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
    told: queue.SimpleQueue[str] = queue.SimpleQueue()

    def wait() -> None:
        try:
            asked.get().env.clock.wait(1)
        except UsageError as error:
            told.put(str(error))

    thread = threading.Thread(target=wait)
    thread.start()

    def then(agent: Agent) -> None:
        asked.put(agent)
        assert "in a thread that is no part of the run" in told.get()

    assert play(then).outcomes == (COMPLETED,)
    thread.join()


def test_code_of_an_event_loop_may_not_wait_and_cannot_hide_that_it_did() -> None:
    def then(agent: Agent) -> None:
        async def use() -> None:
            with suppress(Exception):
                agent.call("quick")

        asyncio.run(use())

    result = play(then)
    assert stop_of(result) == "out_of_simulation"
    said = str(result)
    assert "test_blocking.py" in said
    assert "a blocking call of the env in a task" in said
    assert "hand the call to asyncio.to_thread()" in said


def test_an_asynchronous_agent_may_not_make_a_blocking_call() -> None:
    class Async:
        def __init__(self, env: Env) -> None:
            self.env = env

        async def turn(self, text: str | None) -> None:
            with suppress(Exception):
                self.env.clock.wait(1)

    assert stop_of(run(load_text(EVERY, "x.yaml"), Async)) == "out_of_simulation"


PLAIN = """
about: A question.
turns: [{user: Go., model: [{say: Gone.}]}]
"""


def of_asyncio() -> Any:
    return asyncio.get_event_loop()


def of_the_policy() -> Any:
    return asyncio.get_event_loop_policy().get_event_loop()


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="there a loop is made only on request")
@pytest.mark.parametrize("get", [of_asyncio, of_the_policy])
def test_a_turn_has_the_loop_that_a_main_thread_has(get: Callable[[], Any]) -> None:
    loops: list[Any] = []

    class Runs:
        def __init__(self, env: Env) -> None:
            self.env = env

        def turn(self, text: str | None) -> None:
            loops.extend([get(), asyncio.get_event_loop()])
            loops[0].run_until_complete(self.ask(text))

        async def ask(self, text: str | None) -> None:
            async for _ in await self.env.model.generate(
                ModelRequest("m", "", (user(text or ""),))
            ):
                pass

    assert run(load_text(PLAIN, "x.yaml"), Runs).ok
    assert loops[0] is loops[1]


@pytest.mark.parametrize(
    "new", [asyncio.run, lambda it: asyncio.new_event_loop().run_until_complete(it)]
)
def test_a_coroutine_that_an_interrupt_keeps_from_beginning_is_closed(new: Any) -> None:
    made: list[Any] = []

    class Runs:
        def __init__(self, env: Env) -> None:
            self.env = env

        def turn(self, text: str | None) -> None:
            made.append(self.ask(text))
            new(made[-1])

        async def ask(self, text: str | None) -> None:
            async for _ in await self.env.model.generate(
                ModelRequest("m", "", (user(text or ""),))
            ):
                pass

    told = AgentProbe(load_text(TWO_TOOLS, "x.yaml"), subject_of(Runs))
    told.run((), (Shot("1", 0, "start", "turn"),))
    assert [inspect.getcoroutinestate(each) for each in made] == ["CORO_CLOSED"] * 2


def test_what_a_turn_that_is_cancelled_before_it_begins_has_made_does_not_go_on() -> None:
    asked: list[str] = []

    class Runs:
        def __init__(self, env: Env) -> None:
            self.env = env

        def turn(self, text: str | None) -> None:
            loop = asyncio.new_event_loop()
            task = loop.create_task(self.work(text or ""))
            try:
                loop.run_until_complete(task)
            except BaseException:
                task.cancel()
                raise

        async def work(self, text: str) -> None:
            await asyncio.sleep(1)
            asked.append(text)
            async for _ in await self.env.model.generate(ModelRequest("m", "", (user(text),))):
                pass

    told = AgentProbe(load_text(PLAIN, "x.yaml"), subject_of(Runs))
    landed = told.run((), (Shot("1", 0, "start", "turn"),))
    assert [each.came_to for each in landed.landings] == ["cancelled"]
    assert asked == ["Continue."]
    assert not landed.findings


def test_an_interrupt_among_the_locks_of_futures_leaves_none_locked() -> None:
    class Waits(Agent):
        def turn(self, text: str | None) -> Any:
            with ThreadPoolExecutor() as pool:
                jobs = [pool.submit(self.env.clock.wait, seconds * SECOND) for seconds in (2, 1)]
                for job in as_completed(jobs):
                    job.result()
                wait(jobs)
            return super().turn(text)

    text = EVERY.partition("      - calls")[0] + "      - say: done\n"
    swept = sweep(load_text(text, "x.yaml"), lambda env: Waits(env, lambda _agent: None))
    assert "deadlock" not in str(swept)


def test_a_plain_function_that_returns_a_coroutine_is_refused() -> None:
    class Wrapped:
        def turn(self, text: str | None) -> Any:
            async def inner() -> None: ...

            return inner()

    [outcome, _] = run(load_text(EVERY, "x.yaml"), lambda _env: Wrapped()).outcomes
    assert isinstance(outcome, Error)
    assert "write `async def`" in outcome.message


def test_a_stop_that_takes_free_locks_is_through_at_once() -> None:
    seen: list[bool] = []

    def then(agent: Any) -> None:
        agent.env.observe(LoopEvent("here", None))
        seen.append(agent.stopped)

    result = play(then, "after: loop_event here", Locking)
    assert seen == [True]
    events = [entry.event for entry in result.trace.entries]
    assert CancelDelivered(1, "agent", ()) in events


def test_a_stop_that_never_ends_stops_the_run() -> None:
    def spin(agent: Any) -> None:
        agent.cancel = lambda: [None for _ in iter(agent.event.is_set, True)]
        agent.env.clock.wait(SECOND)

    result = play(spin, "at: 500ms", Locking)
    assert stop_of(result) == "instant_limit"
