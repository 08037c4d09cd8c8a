"""Plan mode: what may be written, what the model is told, and how it ends."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from harness.loops.fsm.plan_mode import PLAN_EXIT, PlanMode
from harness.loops.fsm.policy import REFERENCE, SAFE, Policy
from harness.loops.fsm.prompts import TEXTS
from harness.runner.real_ports import FolderFiles
from tests.loops.fsm.world import SOON, World, call, says, shape

PLAN = "/plans/p.md"


def planning(*replies: Any, **more: Any) -> World:
    world = World(*replies, **more)
    world.session.plan.plan_file = PLAN
    world.session.plan.enter()
    return world


@pytest.mark.parametrize(
    ("name", "arguments", "refusal"),
    [
        ("Bash", {}, TEXTS.plan_blocks_bash),
        ("mcp__a__b", {}, TEXTS.plan_blocks_mcp),
        ("Read", {}, None),
        ("Write", {"path": "/plans", "filename": "p.md"}, None),
        ("Write", {"path": "/plans"}, TEXTS.plan_blocks_write),
        ("Write", {"path": "/plans", "filename": 7}, TEXTS.plan_blocks_write),
        ("Write", {"path": "/plans/", "filename": "p.md"}, None),
        ("Write", {"path": "/other", "filename": PLAN}, None),
        ("Mkdir", {"parent": "/plans", "name": "d"}, TEXTS.plan_blocks_write),
        ("Insert", {"path": PLAN}, None),
        ("Insert", {"path": "/other"}, TEXTS.plan_blocks_write),
        ("Edit", {"path": PLAN}, None),
        ("Edit", {"path": "/other"}, TEXTS.plan_blocks_diff),
        ("Edit", {"path": "/other", "old_str": "a"}, TEXTS.plan_blocks_write),
    ],
)
def test_only_the_plan_may_be_written(
    name: str, arguments: dict[str, Any], refusal: str | None
) -> None:
    world = planning()
    assert world.session.plan.refusal(name, arguments) == refusal
    world.session.plan.leave()
    assert world.session.plan.refusal(name, arguments) is None


def test_a_refused_call_runs_nothing_and_is_told_by_nobody() -> None:
    world = planning(says("", call("1", "Bash")))
    world.tool("Bash")
    loop = world.loop()
    loop.run()
    assert shape(loop.messages)[-2] == f"t(1)={TEXTS.plan_blocks_bash}"
    assert world.ran == []
    assert "tool" not in world.kinds


@pytest.mark.parametrize(("policy", "allowed"), [(SAFE, True), (REFERENCE, False)])
def test_a_plan_below_a_link_is_the_plan_all_the_same(policy: Policy, allowed: bool) -> None:
    world = planning(policy=policy)
    world.files.links[PLAN] = "/private/plans/p.md"
    assert (world.session.plan.refusal("Edit", {"path": PLAN}) is None) == allowed


def test_a_name_that_leads_out_of_the_plans_folder_is_not_the_plan(tmp_path: Path) -> None:
    world = planning()
    plan = PlanMode(
        FolderFiles(tmp_path), str, world.session.registry, TEXTS, SAFE, ask=bool, approved=str
    )
    plan.plan_file = f"{tmp_path}/p.md"
    plan.enter()
    assert plan.refusal("Write", {"path": str(tmp_path), "filename": "p.md"}) is None
    out = {"path": str(tmp_path), "filename": "/p.md"}  # a tool that joins them writes to /p.md
    assert plan.refusal("Write", out) == TEXTS.plan_blocks_write


def test_without_a_plan_nothing_may_be_written_and_its_place_is_new_each_time() -> None:
    world = World()
    world.session.plan.on = True
    assert world.session.plan.refusal("Insert", {"path": PLAN}) == TEXTS.plan_blocks_write
    first, second = world.session.plan.reminder(), world.session.plan.reminder()
    assert first != second
    assert (first, second) == tuple(
        TEXTS.plan_reminder.replace("%s", f"plans/t{at}.md") for at in (0, 1)
    )


def test_entering_empties_the_plan_and_tells_the_model_before_the_users_words() -> None:
    world = World(says("fine"))
    world.session.plan.enter()
    path = world.session.plan.plan_file
    assert path == "plans/t0.md"
    assert world.files.written == {path: ""}
    loop = world.loop()
    loop.run()
    assert shape(loop.messages) == [
        f"u:{TEXTS.plan_entered.replace('%s', path)}",
        f"u:{TEXTS.plan_how.replace('%s', path)}",
        "u:do the task",
        "a:fine",
    ]
    assert world.session.plan.queue == []


def test_where_the_plan_cannot_be_written_nothing_is_switched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()

    def full(_path: str, _text: str) -> None:
        raise OSError("full")

    monkeypatch.setattr(world.files, "write", full)
    with pytest.raises(OSError, match="full"):
        world.session.plan.enter()
    plan = world.session.plan
    assert (plan.on, plan.plan_file, plan.queue) == (False, None, [])
    assert world.session.registry.get(PLAN_EXIT) is None


def test_each_switch_replaces_what_was_to_be_told() -> None:
    world = planning()
    world.session.plan.leave()
    assert world.session.plan.queue == [TEXTS.plan_left]
    assert world.session.registry.get(PLAN_EXIT) is None
    world.session.plan.enter()
    assert len(world.session.plan.queue) == 2


def test_an_approved_plan_ends_plan_mode_and_is_said_with_the_next_request() -> None:
    world = planning(says("", call("1", PLAN_EXIT)), says("working"))
    loop = world.loop()
    world.session.plan.queue = []
    assert loop.run() == "working"
    assert shape(loop.messages)[2:] == [
        f"t(1)={TEXTS.plan_exit_approved}",
        f"u:{TEXTS.plan_left}",
        f"u:{TEXTS.plan_approved.replace('%s', PLAN)}",
        "a:working",
    ]
    assert not world.session.plan.on


def test_a_plan_is_asked_about_when_nobody_else_asks() -> None:
    world = planning(says("", call("1", PLAN_EXIT)))
    loop = world.loop()
    with world.session.turnstile.through():
        thread = threading.Thread(target=loop.run)
        thread.start()
        thread.join(0.05)
        assert world.session.plan.on
    thread.join(SOON)
    assert not world.session.plan.on


def test_a_declined_plan_stays_in_plan_mode() -> None:
    world = planning(says("", call("1", PLAN_EXIT)), ask=lambda: False)
    loop = world.loop()
    loop.run()
    assert shape(loop.messages)[-2] == f"t(1)={TEXTS.plan_exit_declined}"
    assert world.session.plan.on
