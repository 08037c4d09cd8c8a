"""Sub-agents: their own client, prompt, tools and budget; with real threads."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from msgspec.structs import replace

from harness.core.json_text import Json
from harness.loops.fsm.loop import Loop
from harness.loops.fsm.messages import Message, user
from harness.loops.fsm.policy import POLICIES, REFERENCE, SAFE, Policy
from harness.loops.fsm.prompts import TEXTS
from harness.loops.fsm.run import run_loop
from harness.loops.fsm.session import Settings
from harness.loops.fsm.subagent import Subagents
from tests.loops.fsm.world import ScriptClient, World, call, says, shape

TASK = {"subagent_type": "any", "description": "job", "prompt": "look there"}


class Cloning(ScriptClient):
    """A client that is cloned for each sub-agent; clones share its replies."""

    def __init__(self, world: Any, replies: list[Any], *, closes: bool = True) -> None:
        super().__init__(world, [])
        self.replies = replies
        self.clones: list[Cloning] = []
        self.closed = 0
        if closes:
            self.close = self._close

    def clone(self) -> Cloning:
        made = Cloning(self.world, self.replies, closes=hasattr(self, "close"))
        self.clones.append(made)
        return made

    def _close(self) -> None:
        self.closed += 1


def asked(world: World, prompt: str = "look there") -> str:
    return Subagents(world.session).run(prompt, "job")


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (says("found"), "found"),
        (says(""), ""),
        (says("Error: x"), "Error: x"),
        (RuntimeError("down"), "Error: down"),
    ],
)
def test_a_sub_agents_answer_is_passed_on(reply: Any, text: str) -> None:
    world = World(reply)
    assert asked(world) == text
    assert world.client.requests == [[{"role": "user", "content": "look there"}]]
    [options] = world.client.options
    assert options["system"] == "SUB"
    assert (options["on_delta"], options["on_retry"]) == (None, None)
    assert world.saved == []
    assert world.session.last_messages == []


def test_a_session_without_a_prompt_for_sub_agents_has_ours() -> None:
    world = World(settings=Settings())
    asked(world)
    assert world.client.options[0]["system"] == TEXTS.subagent_prompt


def test_no_answer_is_a_text_too() -> None:
    world = World()
    world.session.cancel()
    world.client.replies = [world.session.cancel]
    assert asked(world) == TEXTS.subagent_no_string.format(description="job", result=None)


def test_a_run_that_breaks_is_a_text_too() -> None:
    world = World((None, None), policy=REFERENCE)
    assert asked(world) == TEXTS.subagent_raised.format(
        description="job", error="'NoneType' object has no attribute 'text'"
    )


@pytest.mark.parametrize("closes", [True, False])
def test_each_sub_agent_has_a_client_of_its_own(closes: bool) -> None:
    world = World()
    cloning = Cloning(world, [says("a"), says("b")], closes=closes)
    world.session.subagent_client = cloning
    assert (asked(world), asked(world)) == ("a", "b")
    assert [len(clone.requests) for clone in cloning.clones] == [1, 1]
    assert [clone.closed for clone in cloning.clones] == [int(closes)] * 2
    assert (cloning.requests, world.session.helpers) == ([], [])


def test_an_answer_stands_though_its_client_cannot_be_closed() -> None:
    world = World()
    cloning = Cloning(world, [says("a")])
    world.session.subagent_client = cloning

    def broken() -> None:
        raise RuntimeError("gone")

    clone = cloning.clone()
    clone.close = broken
    cloning.clone = lambda: clone  # type: ignore[method-assign]
    assert asked(world) == "a"
    assert world.logs == ["a sub-agent's client could not be closed: gone"]


def test_a_cancel_reaches_the_client_that_is_at_work() -> None:
    world = World()
    cloning = Cloning(world, [world.session.cancel])
    world.session.subagent_client = cloning
    asked(world)
    assert [clone.aborts for clone in cloning.clones] == [1]
    assert cloning.aborts == 1


@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
def test_a_budget_is_exact(rounds: int) -> None:
    world = World(*[says("", call(str(at))) for at in range(12)])
    world.tool()
    given = {"top_level": False, "max_rounds": rounds}
    result = run_loop(world.session, [user("task")], **given)
    assert len(world.client.requests) == rounds
    assert result == (TEXTS.budget_exhausted if rounds else None)
    world.session.settings = replace(world.session.settings, subagent_max_rounds=rounds)
    world.client.requests.clear()
    assert run_loop(world.session, [user("task")], top_level=False) == result
    assert len(world.client.requests) == rounds


def test_a_budget_is_not_the_main_loops() -> None:
    world = World(says("", call("1")), says("end"))
    world.tool()
    assert run_loop(world.session, [user("task")], max_rounds=0) == "end"


def test_out_of_rounds_the_last_words_count() -> None:
    world = World()
    messages = [user("a"), says("old words"), says(" ")]
    assert run_loop(world.session, messages, top_level=False, max_rounds=0) == "old words"
    assert run_loop(world.session, [], top_level=False, max_rounds=0) is None


def test_a_sub_agent_is_told_of_plan_mode_once() -> None:
    world = World(says("", call("1")), says("end"))
    world.tool()
    world.session.plan.on, world.session.plan.plan_file = True, "/p"
    world.session.plan.queue = ["not for it"]
    loop = world.loop(top_level=False)
    assert loop.run() == "end"
    reminder = TEXTS.plan_reminder.replace("%s", "/p")
    assert shape(loop.messages) == ["u:do the task", f"u:{reminder}", "A[1]", "t(1)=seen", "a:end"]
    assert world.session.plan.queue == ["not for it"]


def test_the_agent_tool_refuses_an_empty_prompt() -> None:
    world = World(says("", call("1", "Agent", {**TASK, "prompt": ""})))
    world.session.registry.register(Subagents(world.session).tool())
    loop = world.loop()
    loop.run()
    assert shape(loop.messages)[-2] == f"t(1)={TEXTS.agent_empty_prompt}"
    assert world.threads.started == []


@pytest.mark.parametrize("prompt", ["  ", 5, ["look"], {"text": "look"}, True])
def test_a_task_that_is_no_text_is_not_sent(prompt: Json) -> None:
    for policy in POLICIES:
        world = World(says("", call("1", "Agent", {**TASK, "prompt": prompt})), policy=policy)
        world.session.registry.register(Subagents(world.session).tool())
        loop = world.loop()
        loop.run()
        world.threads.join()
        refused = policy is SAFE
        assert (shape(loop.messages)[-2] == f"t(1)={TEXTS.agent_prompt_no_text}") == refused
        assert len(world.client.requests) == (2 if refused else 3)


def test_several_sub_agents_work_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=5)
    world = World(says("", call("1", "Agent", TASK), call("2", "Agent", TASK)), says("end"))

    def meets() -> Message:
        both.wait()
        return says("met")

    world.session.subagent_client = ScriptClient(world, [meets, meets])
    world.session.registry.register(Subagents(world.session).tool())
    loop = world.loop()
    assert loop.run() == "end"
    assert shape(loop.messages)[2:4] == ["t(1)=met", "t(2)=met"]
    world.threads.join()


def test_what_ends_a_sub_agents_thread_ends_the_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _args: None)
    world = World(says("", call("1", "Agent", TASK)))
    world.session.subagent_client = ScriptClient(world, [SystemExit("out")])
    world.session.registry.register(Subagents(world.session).tool())
    loop = world.loop()
    with pytest.raises(SystemExit, match="out"):
        loop.run()
    world.threads.join()


class Held:
    """Threads that begin when they are let."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.work: list[Any] = []

    def start(self, work: Any) -> None:
        self.work.append(work)
        self.world.session.begin_run()
        self.world.threads.start(work)

    def event(self) -> Any:
        return self.world.threads.event()

    def lock(self) -> Any:
        return self.world.threads.lock()


@pytest.mark.parametrize(("policy", "requests"), [(SAFE, 0), (REFERENCE, 1)])
def test_a_sub_agent_whose_thread_begins_after_a_new_run(policy: Policy, requests: int) -> None:
    world = World(says("", call("1", "Agent", TASK)), policy=policy)
    helper = ScriptClient(world, [says("orphan's work")])
    world.session.subagent_client = helper
    world.session.ports = replace(world.session.ports, threads=Held(world))
    world.session.registry.register(Subagents(world.session).tool())
    loop: Loop = world.loop()
    assert loop.run() is None
    world.threads.join()
    assert len(helper.requests) == requests
