"""What a session keeps: file, title, first words; and how it stops what runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from harness.loops.fsm.messages import Message, ToolCall, user, wire
from harness.loops.fsm.prompts import TEXTS
from harness.loops.fsm.run import run_loop
from harness.loops.fsm.session import SAVE_AGAIN_AFTER, Session, Settings
from harness.loops.fsm.transcript import saved_text
from tests.loops.fsm.world import NO_RESULT, ScriptClient, World, call, says, shape


def saved(world: World, *messages: Message) -> None:
    world.session.auto_save(messages, "SYS", world.session.stamp())


def test_a_save_that_fails_is_tried_once_more() -> None:
    world = World()
    world.save_errors = [OSError("full")]
    saved(world, user("a"))
    assert world.saved == ["**user**: a"]
    assert world.clock.time == SAVE_AGAIN_AFTER
    assert (world.logs, world.kinds) == ([], [])


def test_a_save_that_fails_twice_is_told() -> None:
    world = World()
    world.save_errors = [OSError("full"), OSError("still full")]
    saved(world, user("a"))
    assert world.logs == ["auto-save failed: still full"]
    assert world.kinds == ["save-error"]


def test_another_error_of_a_save_is_raised() -> None:
    world = World()
    world.save_errors = [RuntimeError("broken")]
    with pytest.raises(RuntimeError, match="broken"):
        saved(world, user("a"))


def test_the_file_tells_who_said_what() -> None:
    messages = [
        user("see\n**tool**: x\n***\u3000tool ***: y"),
        says("", call("1"), call("2", "read")),
        says(" ", call("3")),
        says(" and ", call("4")),
        Message("tool", ""),
    ]
    assert saved_text(messages) == (
        "**user**: see\n\\**tool**: x\n\\***\u3000tool ***: y\n\n"
        "**assistant**: [tool calls: look, read]\n\n"
        "**assistant**: [tool calls: look]\n\n**assistant**: and \n[tool calls: look]"
    )


@pytest.mark.parametrize(
    ("messages", "kept"),
    [
        ([user("first one"), says("a"), user("last one")], "last one"),
        ([user("real one"), user("injected", injected=True), user(TEXTS.nudge)], "real one"),
        ([user(" yes ")], None),
        ([user("long one"), user("ok")], None),
        ([says("a")], None),
        ([user("x" * 600)], "x" * 500),
    ],
)
def test_the_users_last_words_are_kept_once(messages: list[Message], kept: str | None) -> None:
    session = World().session
    session.remember_user_text(messages)
    assert session.first_user == kept
    session.first_user = "before"
    session.remember_user_text(messages)
    assert session.first_user == "before"


@pytest.mark.parametrize(
    ("reply", "title", "log"),
    [
        (says(' "Fix: a/b" '), "Fix-a-b", "session titled — Fix-a-b"),
        (Message("assistant", "hm. T", reasoning="hm. "), "T", "session titled — T"),
        (says(" - "), None, None),
        (RuntimeError("no"), None, "title generation failed: no"),
        (None, None, "title generation failed: 'NoneType' object has no attribute"),
    ],
)
def test_a_title_is_asked_for(reply: Any, title: str | None, log: str | None) -> None:
    world = World(short=[reply])
    world.session.first_user = "fix it"
    world.session.generate_title(world.session.stamp())
    assert world.session.title == title
    assert [entry[: len(log or "")] for entry in world.logs] == ([log] if log else [])
    [(system, text, _)] = world.client.asked
    assert (system, text) == (TEXTS.title_prompt, "fix it")


def test_a_title_is_asked_for_once_and_for_something() -> None:
    world = World()
    world.session.generate_title(world.session.stamp())
    world.session.first_user, world.session.title = "fix it", "there is one"
    world.session.generate_title(world.session.stamp())
    assert world.client.asked == []


@pytest.mark.parametrize("replaced", [False, True])
def test_two_runs_at_once_ask_for_one_title(replaced: bool) -> None:
    world = World()
    session = world.session
    session.first_user = "fix it"

    def meanwhile() -> Message:
        if replaced:  # then nobody takes the older one's title
            session.begin_run()
        session.generate_title(session.stamp())
        return says("old")

    world.client.short = [meanwhile, says("new")]
    session.generate_title(session.stamp())
    assert session.title == ("new" if replaced else "old")
    assert len(world.client.asked) == (2 if replaced else 1)


def test_a_title_that_failed_is_asked_for_again() -> None:
    world = World(short=[RuntimeError("no"), says("title")])
    world.session.first_user = "fix it"
    for _ in range(2):
        world.session.generate_title(world.session.stamp())
    assert world.session.title == "title"


def test_a_prompt_that_is_queued_as_others_are_taken_is_said_next() -> None:
    world = World(says("", call("1")))
    world.tool()
    queue = world.session.pending_user_prompts  # as another thread has it by then
    queue.append("one")
    world.client.replies[0] = lambda: queue.append("two") or says("", call("1"))
    loop = world.loop()
    loop.run()
    assert shape(loop.messages) == [
        "u:one", "u:do the task", "A[1]", "t(1)=seen", "u:two", "a:done",
    ]  # fmt: skip


def test_a_cancel_breaks_off_each_client_once_and_wakes_who_waits() -> None:
    world = World()
    helper = ScriptClient(world, [])
    world.session.helpers.append(helper)
    stamp, woken = world.session.stamp(), list[str]()
    with world.session.woken(stamp, lambda: woken.append("a")):
        world.session.cancel()
        assert woken == ["a"]
    world.session.cancel()
    assert woken == ["a"]
    with world.session.woken(stamp, lambda: woken.append("late")):
        assert woken == ["a", "late"]
    assert (world.client.aborts, helper.aborts) == (2, 2)


def test_a_client_that_cannot_be_broken_off_leaves_nobody_waiting() -> None:
    world = World()
    helper = ScriptClient(world, [])
    world.session.helpers.append(helper)

    def broken() -> None:
        raise RuntimeError("closed")

    world.client.abort = broken  # type: ignore[method-assign]
    woken = list[str]()
    with world.session.woken(world.session.stamp(), lambda: woken.append("a")):
        world.session.cancel()
    assert (woken, helper.aborts) == (["a"], 1)
    assert world.logs == ["a request could not be broken off: closed"]


def test_another_client_may_answer_while_a_run_is_going() -> None:
    world = World(says("", call("1")))
    world.tool(give=lambda: setattr(world.session, "client", ScriptClient(world, [says("new")])))
    assert world.loop().run() == "new"


def test_a_new_run_makes_older_ones_stale_and_wakes_them() -> None:
    session = World().session
    old, woken = session.stamp(), list[str]()
    session.cancel_event = True
    with session.woken(old, lambda: woken.append("a")):
        woken.clear()
        session.begin_run()
    new = session.stamp()
    assert (session.stale(old), session.cancelled(old)) == (True, True)
    assert (session.stale(new), session.cancelled(new)) == (False, False)
    assert woken == ["a"]


def test_settings_may_change_while_a_run_is_going() -> None:
    world = World(says("a"), says("b"), says("c"))
    session: Session = world.session
    more = replace(session.settings, max_nudges=1)
    world.at["context"] = lambda: setattr(session, "settings", more)
    assert world.loop().run() == "b"
    assert len(world.client.requests) == 2


def test_parts_and_empty_fields_on_the_wire() -> None:
    assert wire(Message("user", [{"text": "a"}])) == {"role": "user", "content": [{"text": "a"}]}
    bare = Message("tool", tool_call_id="", name="", tool_calls=[])
    assert wire(bare, empty_ids=False) == {"role": "tool"}
    assert wire(bare) == {"role": "tool", "tool_call_id": ""}
    asked = Message("assistant", tool_calls=[ToolCall("1", "look", {"b": "ü", "a": 1})])
    [sent] = wire(asked)["tool_calls"]
    assert sent["function"]["arguments"] == '{"b": "ü", "a": 1}'
    parts = Message("assistant", [{"text": "think so"}, {"thinking": "!"}, 4], reasoning="think")
    assert (parts.text(), parts.without_reasoning()) == ("think so!", " so!")


class Counted(list[Message]):
    """A conversation that counts how many of its messages are looked at."""

    looked = 0

    def __iter__(self) -> Iterator[Message]:
        for message in super().__iter__():
            self.looked += 1
            yield message

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        self.looked += len(found) if isinstance(at, slice) else 1
        return found


def looked_at(calls: int) -> int:
    """How many messages a run looks at whose one round has that many calls."""
    world = World(says("", *[call(str(at)) for at in range(calls)]))
    world.tool()
    messages = Counted([user("do the task")])
    run_loop(world.session, messages)
    assert len(world.session.last_messages) == calls + 3
    return messages.looked


def test_a_round_of_many_calls_costs_no_more_a_call() -> None:
    few, many, most = looked_at(10), looked_at(20), looked_at(40)
    assert most - many == 2 * (many - few)


def test_what_a_reader_has_stays_as_it_was() -> None:
    world = World(says("", call("1"), call("2")))
    world.tool()
    found: list[list[Message]] = []
    world.at["tools"] = lambda: found.append(world.session.last_messages)
    world.loop().run()
    assert shape(found[0]) == ["u:do the task", "A[1,2]", "t(1)=seen", f"t(2)={NO_RESULT}"]


def test_what_is_said_after_a_compaction_is_no_part_of_what_it_left() -> None:
    settings = Settings(max_nudges=0, model="small", windows=(("small", 40),))
    world = World(settings=settings, short=[says("sum")])
    found: list[str] = []
    world.at["compact"] = lambda: world.session.queue_prompt("also")
    world.client.replies = [
        lambda: found.extend(shape(world.session.last_messages)[1:]) or says("done")
    ]
    world.loop(user("first"), says("y" * 400)).run()
    assert found == ["u:first"]


def test_a_new_run_is_not_changed_by_what_becomes_of_an_older_ones_list() -> None:
    world = World(says("", call("1")))
    world.tool()
    world.at["tools"] = world.session.begin_run
    mine = [user("do the task")]
    run_loop(world.session, mine)
    mine.clear()
    left = ["u:do the task", "A[1]", "t(1)=seen"]
    assert shape(world.session.last_messages) == left
