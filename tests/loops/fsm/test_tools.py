"""The calls of one reply: order, containment, late results, and asking the user."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.events import ResultSynthesized
from harness.loops.fsm.messages import ToolCall
from harness.loops.fsm.pending import PendingToolResult, Turnstile
from harness.loops.fsm.policy import POLICIES, REFERENCE, SAFE, Policy
from harness.loops.fsm.prompts import TEXTS
from harness.loops.fsm.tools import Answer, Tools, arguments_of, sanitised
from tests.loops.fsm.world import RealThreads, World, call, says, shape

SCHEMA = {"type": "object", "required": ["a", "b"]}


def tools(world: World, *, top_level: bool = True) -> Tools:
    loop = world.loop(top_level=top_level)
    return loop.tools


def answers(world: World, *calls: ToolCall, top_level: bool = True) -> list[str]:
    made = tools(world, top_level=top_level)
    results = made.run(calls)
    return [results[made.key(index, each)].text for index, each in enumerate(calls)]


def raising(error: BaseException) -> Any:
    def run() -> Any:
        raise error

    return run


def test_what_is_wrong_with_a_call_is_its_result() -> None:
    world = World()
    world.tool("need", parameters=SCHEMA)
    world.tool("odd", parameters={"required": 7})
    world.tool("bad", raising(ValueError("boom")))
    world.tool("none", lambda: None)
    given_calls = [
        call("1", "need", '{"a": null}'),
        call("2", "odd"),
        call("3", "bad"),
        call("4", "none"),
        call("5", "who"),
        call("6", "need", {"a": 1, "b": None}),
    ]
    assert answers(world, *given_calls) == [
        TEXTS.missing_arguments.format(name="need", missing="b"),
        TEXTS.crashed.format(name="odd", error="'int' object is not iterable"),
        TEXTS.tool_raised.format(name="bad", error="boom"),
        TEXTS.no_result,
        TEXTS.unknown_tool.format(name="who"),
        "seen",
    ]
    assert world.ran == ["bad", "none", "need"]
    assert world.kinds.count("tool") == 4
    told = [each.call_id for each in world.observed if isinstance(each, ResultSynthesized)]
    assert told == ["1", "2", "5"]


@pytest.mark.parametrize("text", ["", "null", "[]", "{", '"a"', "[" * 100_000])
def test_arguments_that_are_no_object_are_none(text: str) -> None:
    assert arguments_of(call("1", arguments=text)) == {}
    assert arguments_of(call("1", arguments=None)) == {}


@pytest.mark.parametrize(
    ("value", "text"), [(None, TEXTS.no_result), ("", ""), (0, "0"), ({"a": None}, "{'a': None}")]
)
def test_every_result_is_a_text(value: Any, text: str) -> None:
    assert sanitised(value, TEXTS) == text


class Unspeakable:
    """A value that has no text."""

    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize("late", [True, False])
def test_a_result_that_has_no_text_is_a_crash(late: bool) -> None:
    world = World()
    if late:
        world.late(value=Unspeakable())
    else:
        world.tool(give=Unspeakable())
    assert answers(world, call("1")) == [TEXTS.crashed.format(name="look", error="no words")]


def test_what_is_no_ordinary_exception_is_raised() -> None:
    world = World()
    world.tool(give=raising(SystemExit("out")))
    with pytest.raises(SystemExit, match="out"):
        tools(world).run([call("1")])


def test_late_results_are_waited_for_when_all_calls_were_made() -> None:
    world = World()
    handle = PendingToolResult(world.threads)
    world.tool("slow", lambda: handle)
    world.tool("fast", lambda: handle.deliver("late") or "fast")
    first, second = call("1", "slow"), call("2", "fast")
    assert answers(world, first, second) == ["late", "fast"]
    assert world.kinds == ["tool_running", "tool", "tool_running", "tool"]
    assert (first.elapsed, second.elapsed) == (0, 0)


def test_the_time_of_a_late_result_begins_with_its_wait() -> None:
    world = World()
    handle = PendingToolResult(world.threads)
    handle.wait = lambda: world.clock.sleep(7)  # type: ignore[method-assign]
    world.tool("slow", lambda: world.clock.sleep(100) or handle)
    world.tool("fast", lambda: world.clock.sleep(5))
    calls = [call("1", "slow"), call("2", "fast")]
    tools(world).run(calls)
    assert [each.elapsed for each in calls] == [7, 5]


def test_a_late_failure_is_a_crash_and_has_no_time() -> None:
    world = World()
    handle = PendingToolResult(world.threads)
    handle.fail(ValueError("boom"))
    handle.deliver("too late")
    world.tool(give=handle)
    asked = call("1")
    assert answers(world, asked) == [TEXTS.crashed.format(name="look", error="boom")]
    assert asked.elapsed is None


def test_the_first_delivery_counts() -> None:
    handle = PendingToolResult(RealThreads())
    handle.deliver("a")
    handle.deliver("b")
    handle.give_up()
    assert (handle.wait(), handle.given_up) == ("a", False)


@pytest.mark.parametrize("policy", POLICIES)
@given(late=st.lists(st.booleans(), min_size=1, max_size=5))
def test_results_are_delivered_in_the_models_order(policy: Policy, late: list[bool]) -> None:
    calls = [call(str(at), "late" if is_late else "now") for at, is_late in enumerate(late)]
    world = World(says("", *calls), policy=policy)
    world.late("late", "L")
    world.tool("now", "N")
    loop = world.loop()
    assert loop.run() == "done"
    answered = [f"t({at})={'L' if is_late else 'N'}" for at, is_late in enumerate(late)]
    assert shape(loop.messages)[2:-1] == answered
    assert [each.result for each in calls] == ["L" if is_late else "N" for is_late in late]


def test_a_diff_goes_with_the_call_that_noted_it() -> None:
    world = World()

    def edit(arguments: Any, running: Any) -> str:
        running.diff = arguments["to"]
        return "ok"

    world.tool("edit")
    tool = world.session.registry.get("edit")
    assert tool is not None
    world.session.registry.register(type(tool)("edit", edit))
    results = tools(world).run([call("1", "edit", {"to": "+a"}), call("2", "edit", {"to": "+b"})])
    assert list(results.values()) == [Answer("ok", "+a"), Answer("ok", "+b")]


def test_a_sub_agent_is_told_nothing_and_lacks_the_parents_tools() -> None:
    world = World()
    world.tool("Agent")
    world.tool("look")
    made = [call("1", "Agent", "{"), call("2", "Question"), call("3")]
    assert answers(world, *made, top_level=False) == [
        TEXTS.excluded.format(name="Agent"),
        TEXTS.excluded.format(name="Question"),
        "seen",
    ]
    assert world.kinds == ["tool"]


def test_a_tool_goes_away_while_it_is_asked_for() -> None:
    world = World()
    world.tool()
    world.session.registry.unregister("look")
    world.session.registry.unregister("look")
    assert answers(world, call("1")) == [TEXTS.unknown_tool.format(name="look")]


class Asking:
    """A tool that asks the user, and how many of its prompts are open."""

    def __init__(self, world: World) -> None:
        self.open = self.most = 0
        self.order: list[str] = []
        self.asked = threading.Event()
        self.answer = threading.Event()
        self.world = world

    def run(self, arguments: Any, _running: Any) -> str:
        self.order.append(arguments["who"])
        self.open += 1
        self.most = max(self.most, self.open)
        self.asked.set()
        assert self.answer.wait(5)
        self.open -= 1
        return "yes"


def asks(world: World) -> Asking:
    asking = Asking(world)
    world.tool("ask", interactive=True)
    registered = world.session.registry.get("ask")
    assert registered is not None
    world.session.registry.register(type(registered)("ask", asking.run, interactive=True))
    return asking


class Line(RealThreads):
    """Threads whose events tell when somebody waits for them."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = threading.Semaphore(0)

    def event(self) -> Any:
        event = super().event()
        wait = event.wait

        def waits() -> bool:
            self.waiting.release()
            return wait()

        event.wait = waits  # type: ignore[method-assign, assignment]
        return event


def test_one_prompt_is_open_at_a_time_in_the_order_of_the_calls() -> None:
    world = World()
    line = Line()
    world.session.turnstile = Turnstile(line)
    asking = asks(world)

    def worker(who: str) -> None:
        tools(world).run([call(who, "ask", {"who": who})])

    line.start(lambda: worker("a"))
    assert asking.asked.wait(5)
    for who in "bcd":
        line.start(lambda who=who: worker(who))  # type: ignore[misc]
        assert line.waiting.acquire(timeout=5)
    asking.answer.set()
    line.join()
    assert asking.order == ["a", "b", "c", "d"]
    assert asking.most == 1


@pytest.mark.parametrize(("policy", "text"), [(SAFE, TEXTS.skipped_by_cancel), (REFERENCE, "yes")])
def test_who_stands_in_line_to_ask_and_is_cancelled(policy: Policy, text: str) -> None:
    world = World(policy=policy)
    line = Line()
    world.session.turnstile = Turnstile(line)
    asking = asks(world)
    got: list[str] = []
    line.start(lambda: tools(world).run([call("a", "ask", {"who": "a"})]) and None)
    assert asking.asked.wait(5)
    line.start(lambda: got.extend(answers(world, call("b", "ask", {"who": "b"}))))
    assert line.waiting.acquire(timeout=5)
    world.session.cancel()
    if policy is SAFE:
        line.started[1].join(5)
    asking.answer.set()
    line.join()
    assert got == [text]
    assert asking.order == (["a"] if policy is SAFE else ["a", "b"])


class Answering(PendingToolResult):
    """A prompt that the user answers when somebody waits for it."""

    def __init__(self, world: World, answered: list[int]) -> None:
        super().__init__(world.threads)
        self.answered = answered

    def wait(self) -> Any:
        self.deliver(f"answer {len(self.answered)}")
        self.answered.append(len(self.answered))
        return super().wait()


@pytest.mark.parametrize(("policy", "asked"), [(SAFE, []), (REFERENCE, ["a"])])
def test_nobody_is_asked_after_a_cancel(policy: Policy, asked: list[str]) -> None:
    world = World(policy=policy)
    asking = asks(world)
    asking.answer.set()
    event = world.threads.event

    def cancelled() -> Any:
        world.session.cancel()
        return event()

    world.threads.event = cancelled  # type: ignore[method-assign]
    tools(world).run([call("1", "ask", {"who": "a"})])
    assert asking.order == asked


def test_a_prompt_that_is_answered_late_stays_the_only_one() -> None:
    world = World()
    opened: list[int] = []
    answered: list[int] = []

    def ask() -> PendingToolResult:
        assert opened == answered  # nothing else is asked now
        opened.append(len(opened))
        return Answering(world, answered)

    world.tool("ask", ask, interactive=True)
    assert answers(world, call("1", "ask"), call("2", "ask")) == ["answer 0", "answer 1"]
