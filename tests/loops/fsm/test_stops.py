"""A run is stopped, or replaced, at every moment at which anything of it can be seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from harness.core.events import StateEntered
from harness.core.pairing import breaches
from harness.loops.fsm.messages import Message, user
from harness.loops.fsm.pending import PendingToolResult
from harness.loops.fsm.policy import POLICIES, SAFE, Policy
from harness.loops.fsm.session import Settings
from tests.loops.fsm.test_context import core
from tests.loops.fsm.world import GIVEN_UP, SKIPPED, World, call, says, shape

SETTINGS = Settings(model="small", windows=(("small", 90),), max_nudges=1)


class Late(PendingToolResult):
    """A late result that comes when somebody waits for it."""

    def __init__(self, world: Stopped) -> None:
        super().__init__(world.threads)
        self.world = world

    def wait(self) -> Any:
        self.world.moment()
        self.deliver("late")
        return super().wait()


class Stopped(World):
    """A run with tools, a late result, a compaction and a nudge; `stop` runs at one moment.

    A moment is whatever the run does to the world: a notice, a state, a request, a tool, a save.
    """

    def __init__(self, stop: Callable[[Stopped], None], at: int, policy: Policy) -> None:
        super().__init__(settings=SETTINGS, policy=policy)
        self.stop, self.left = stop, at
        self.saved_before: int | None = None
        for name, give in {"now": lambda: "n" * 80, "late": lambda: Late(self)}.items():
            self.tool(name, lambda give=give: self.moment() or give())
        self.client.replies = [
            self.replying(says("", call("1", "now"), call("2", "late"), call("3", "now"))),
            self.replying(says("more", call("4", "now"))),
            self.replying(says("answer")),
            self.replying(says("")),
        ]
        self.client.short = [self.replying(says("sum")) for _ in range(3)]
        observe, save = self.session.ports.observe, self.session.ports.save

        def observed(event: Any) -> None:
            observe(event)
            if isinstance(event, StateEntered):
                self.moment()

        def saving(text: str, system: str | None) -> None:
            save(text, system)
            self.moment()

        self.session.ports = replace(self.session.ports, observe=observed, save=saving)

    def replying(self, message: Message) -> Callable[[], Message]:
        return lambda: self.moment() or message

    def moment(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.stop(self)
            self.saved_before = len(self.saved)

    def _notify(self, kind: str, payload: Any) -> None:
        super()._notify(kind, payload)
        self.moment()


def cancel(world: Stopped) -> None:
    world.session.cancel()


def begin(world: Stopped) -> None:
    world.session.begin_run()
    world.session.last_messages = [user("new run")]


def played(stop: Callable[[Stopped], None], at: int, policy: Policy = SAFE) -> Stopped:
    world = Stopped(stop, at, policy)
    world.loop().run()
    return world


MOMENTS = 1000 - played(cancel, 1000).left
AT = range(1, MOMENTS + 1)


def test_the_run_has_everything_in_it() -> None:
    world = played(cancel, 1000)
    assert {"compact", "tools", "context", "tool_start"} <= set(world.kinds)
    assert world.ran == ["now", "late", "now", "now"]
    assert len(world.saved) == 4
    assert world.session.title == "sum"
    assert MOMENTS > 40


@pytest.mark.parametrize("policy", POLICIES)
def test_what_a_cancel_leaves_can_go_on(policy: Policy) -> None:
    for at in AT:
        world = played(cancel, at, policy)
        left = world.session.last_messages
        assert left, at
        assert breaches(core(left)) == (), at
        world.session.begin_run()
        world.client.replies = [says("went on")]
        assert world.loop(*left, user("go on")).run() is not None
        world.session.registry.unregister("late")


def test_what_a_tool_did_is_not_forgotten() -> None:
    for at in AT:
        world = played(cancel, at)
        told = [m.text() for m in world.session.last_messages if m.role == "tool"]
        assert {*told} <= {"n" * 80, "late", GIVEN_UP, SKIPPED}, at
        summed_up = "compact" in world.kinds
        assert summed_up or len(told) - told.count(SKIPPED) == len(world.ran), at


def test_no_request_is_made_after_a_cancel() -> None:
    for at in AT:
        asked: list[int] = []

        def stop(world: Stopped, asked: list[int] = asked) -> None:
            world.session.cancel()
            asked.append(len(world.client.requests) + len(world.client.asked))

        world = played(stop, at)
        assert [len(world.client.requests) + len(world.client.asked)] == asked, at


def test_a_replaced_run_writes_nothing() -> None:
    for at in AT:
        world = played(begin, at)
        assert shape(world.session.last_messages) == ["u:new run"], at
        assert len(world.saved) == world.saved_before, at
        assert world.session.title is None or at == MOMENTS, at


def test_a_later_cancel_leaves_no_less() -> None:
    last: list[str] = []
    for at in AT:
        world = played(cancel, at)
        left = shape(world.session.last_messages)
        if "compact" in world.kinds:
            break
        assert len(left) >= len(last), at
        last = left
    assert len(last) > 4
