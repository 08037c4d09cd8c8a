"""The fake tools: what a run does, which call it answers to, what a cancel does to it."""

import asyncio

import pytest

from harness.core.choices import Choices, choices_from
from harness.core.errors import UnknownFakeTool, UnrequestedTool, UsageError
from harness.core.events import Mismatch, ToolEffect, ToolEnded, ToolStarted
from harness.core.messages import ToolSchema, user
from harness.core.ports import ToolFailed
from harness.fakes.script import DoneTwice, Reply, ScriptedCall
from harness.fakes.tool_spec import (
    Answers,
    Behaviour,
    CancelsItself,
    Case,
    Hangs,
    Raises,
    Returns,
    ToolSpec,
)
from harness.fakes.tools import fits
from tests.fakes.world import MS, World, request, tool, turn

HI = user("hi")


def asking(*scripted, tools, **fields):
    """A world whose model has just asked for the scripted calls."""
    world = World(turn("hi", Reply(calls=scripted)), tools=tools, **fields)
    world.ask(HI)
    del world.recorder.entries[:]
    return world


def once(spec, args=None, **fields):
    """A world whose model has asked for one run of one tool."""
    return asking(ScriptedCall(spec.name, args or {}), tools=[spec], **fields)


# --- what a run does


def test_a_tool_that_cancels_itself_has_broken_and_nobody_was_cancelled():
    with once(tool("a", CancelsItself(), takes=MS)) as world:
        with pytest.raises(asyncio.CancelledError):
            world.call("a", {}, "call_1_1_1")
        assert [(entry.at, entry.event) for entry in world.recorder.entries[1:]] == [
            (MS, ToolEffect("call_1_1_1", "a")),
            (MS, ToolEnded("call_1_1_1", "a", "raised", error="CancelledError")),
        ]


def test_a_tool_returns_its_value_after_its_time_and_its_effect():
    with once(tool("a", Returns({"t": 5}), takes=MS), {"n": 1}) as world:
        assert world.call("a", {"n": 1}, "call_1_1_1") == {"t": 5}
        assert [(entry.at, entry.event) for entry in world.recorder.entries] == [
            (0, ToolStarted("call_1_1_1", "a", {"n": 1})),
            (MS, ToolEffect("call_1_1_1", "a")),
            (MS, ToolEnded("call_1_1_1", "a", "returned", {"t": 5})),
        ]


def test_a_tool_without_time_takes_one_suspension():
    with once(tool("a")) as world:
        before = len(world.kernel.points)
        world.call("a", {}, "call_1_1_1")
        assert len(world.kernel.points) == before + 1


@pytest.mark.parametrize("value", [None, "", [], False, 0, "text", {"a": [1, {"b": None}]}])
def test_any_value_comes_back_as_a_copy(value):
    spec = tool("a", Returns(value))
    with once(spec) as world:
        got = world.call("a", {}, "call_1_1_1")
        assert got == value
        if isinstance(got, dict):
            got["a"].append("changed")
        assert world.of(ToolEnded)[0].value == spec.behaviour.action.value == value
        assert "changed" not in str(world.recorder.trace().lines())


@pytest.mark.parametrize(
    ("action", "error", "end"),
    [(Answers("not today"), ToolFailed, "error"), (Raises("it broke"), RuntimeError, "raised")],
)
def test_a_tool_fails(action, error, end):
    with once(tool("a", action)) as world:
        with pytest.raises(error) as raised:
            world.call("a", {}, "call_1_1_1")
        assert type(raised.value) is error
        assert str(raised.value) == action.message
        assert world.events[-1] == ToolEnded("call_1_1_1", "a", end, error=action.message)


@pytest.mark.parametrize(
    ("effect", "kinds"),
    [
        ("start", ["tool_started", "tool_effect", "tool_ended"]),
        ("none", ["tool_started", "tool_ended"]),
    ],
)
def test_an_effect_may_come_at_the_start_or_not_at_all(effect, kinds):
    with once(tool("a", takes=MS, effect=effect)) as world:
        world.call("a", {}, "call_1_1_1")
        assert world.kinds == kinds
        assert [entry.at for entry in world.recorder.entries][-2:] == [0, MS]


def test_a_tool_that_hangs_never_comes_back():
    with once(tool("a", Hangs())) as world:
        task = world.task(world.tools.call("a", {}, "call_1_1_1"))
        assert world.kernel.run_until(task.done).reason == "deadlock"
        task.cancel()
        world.kernel.run_until(task.done)
        assert world.kinds == ["tool_started", "tool_ended"]
        assert world.events[-1] == ToolEnded("call_1_1_1", "a", "cancelled")


def test_a_run_behaves_as_its_arguments_say():
    spec = ToolSpec(
        "a",
        Behaviour(Returns("other")),
        (
            Case({"at": {"city": "Paris"}}, Behaviour(Returns("paris"))),
            Case({"at": {}}, Behaviour(Returns("somewhere"))),
        ),
    )
    for args, value in (
        ({"at": {"city": "Paris", "day": 1}, "n": 1}, "paris"),
        ({"at": {"city": "Rome"}}, "somewhere"),
        ({"at": "Paris"}, "other"),
    ):
        with once(spec, args) as world:
            assert world.call("a", args, "call_1_1_1") == value


def test_the_nth_run_behaves_as_the_nth_entry_and_the_last_one_repeats():
    spec = ToolSpec(
        "a",
        Behaviour(Returns("never")),
        (Case({"n": 0}, Behaviour(Returns("case"))),),
        (Behaviour(Returns("first")), Behaviour(Returns("later"))),
    )
    asked = [ScriptedCall("a", {"n": n}) for n in (1, 0, 2, 3)]
    with asking(*asked, tools=[spec]) as world:
        values = [world.call("a", scripted.args) for scripted in asked]
        assert values == ["first", "case", "later", "later"]


@pytest.mark.parametrize(
    ("part", "whole", "holds"),
    [
        ({}, {"a": 1}, True),
        ({}, [], False),
        ({"a": 1}, {}, False),
        ({"a": None}, {}, False),
        ([1, {"a": 1}], [1, {"a": 1, "b": 2}], True),
        ([1], [1, 2], False),
        ([1], {"0": 1}, False),
        (1, 1.0, True),
        (0, False, False),
        (True, True, True),
        ("a", "ab", False),
    ],
)
def test_what_fits(part, whole, holds):
    assert fits(part, whole) is holds


# --- which call a run answers to


def test_without_an_id_the_oldest_call_with_equal_arguments_is_taken():
    scripted = (
        ScriptedCall("a", {"x": 1.0, "y": 2}),
        ScriptedCall("a", {"x": 2}),
        ScriptedCall("a", {"y": 2, "x": 1}),
    )
    with asking(*scripted, tools=[tool("a")]) as world:
        for args in ({"x": 2}, {"y": 2, "x": 1}, {"x": 1, "y": 2.0}):
            world.call("a", args)
        started = [(event.call_id, event.inferred) for event in world.of(ToolStarted)]
        assert started == [("call_1_1_2", True), ("call_1_1_1", True), ("call_1_1_3", True)]


def test_a_call_that_was_run_by_its_id_is_not_taken_again_without_one():
    with asking(ScriptedCall("a"), ScriptedCall("a"), tools=[tool("a")]) as world:
        world.call("a", {}, "call_1_1_1")
        world.call("a", {})
        assert [event.call_id for event in world.of(ToolStarted)] == ["call_1_1_1", "call_1_1_2"]


def test_a_call_may_be_run_twice_by_its_id():
    with once(tool("a")) as world:
        world.call("a", {}, "call_1_1_1")
        world.call("a", {}, "call_1_1_1")
        assert [event.call_id for event in world.of(ToolStarted)] == ["call_1_1_1"] * 2


def test_two_calls_with_one_id_are_told_apart_by_their_names():
    scripted = (ScriptedCall("a", id="x"), ScriptedCall("b", id="x"))
    with asking(*scripted, tools=[tool("a"), tool("b", Returns("b"))]) as world:
        assert world.call("b", {}, "x") == "b"
        assert world.call("a", {}, "x") == "ok"


def test_two_calls_with_one_id_and_name_are_run_in_their_order():
    scripted = (ScriptedCall("a", {"n": 1}, id="x"), ScriptedCall("a", {"n": 2}, id="x"))
    with asking(*scripted, tools=[tool("a")]) as world:
        world.call("a", {"n": 1}, "x")
        world.call("a", {"n": 2})
        with pytest.raises(UnrequestedTool, match="was run already"):
            world.call("a", {"n": 1})


def test_an_end_signal_that_came_twice_asks_once():
    reply = Reply(calls=(ScriptedCall("a"),), fault=DoneTwice())
    with World(turn("hi", reply), tools=[tool("a")]) as world:
        world.ask(HI)
        world.call("a", {})
        with pytest.raises(UnrequestedTool, match="was run already"):
            world.call("a", {})


def test_other_arguments_than_the_model_gave_are_for_others_to_judge():
    with once(tool("a"), {"n": 1}) as world:
        world.call("a", {"n": 1, "unit": "C"}, "call_1_1_1")
        assert world.of(ToolStarted)[0].args == {"n": 1, "unit": "C"}


def test_arguments_that_are_changed_later_do_not_change_the_trace():
    with once(tool("a", takes=MS), {"list": [1]}) as world:
        args = {"list": [1]}
        task = world.task(world.tools.call("a", args, "call_1_1_1"))
        world.kernel.settle()
        args["list"].append(2)
        world.kernel.run_until(task.done)
        assert world.of(ToolStarted)[0].args == {"list": [1]}


def failing(world, error, name, args, call_id=None):
    with pytest.raises(error) as raised:
        world.call(name, args, call_id)
    assert world.of(ToolStarted) == []
    return str(raised.value)


def unrequested(world, *call):
    text = failing(world, UnrequestedTool, *call)
    assert world.events == [Mismatch("UnrequestedTool", text)]
    return text


def test_a_run_that_no_call_asked_for_names_the_nearest():
    with once(tool("a"), {"city": "Paris"}) as world:
        assert unrequested(world, "a", {"city": "paris"}) == (
            'a({"city":"paris"}) was run, and no call of the model waits for that; '
            'the nearest call is \'call_1_1_1\', a({"city":"Paris"}), which waits'
        )


def test_a_run_of_a_call_that_was_run_says_so():
    with once(tool("a")) as world:
        world.call("a", {}, "call_1_1_1")
        del world.recorder.entries[:]
        assert unrequested(world, "a", {}) == (
            "a({}) was run, and no call of the model waits for that; "
            "the nearest call is 'call_1_1_1', a({}), which was run already; "
            "to run it again, say its id: env.tools.call(name, args, call_id)"
        )


def test_a_run_before_any_call_says_so():
    with World(turn("hi"), tools=[tool("a")]) as world:
        assert unrequested(world, "a", {}) == (
            "a({}) was run, and no call of the model waits for that; the model has made no call yet"
        )


def test_a_call_that_has_not_reached_the_agent_whole_cannot_be_run():
    with World(turn("hi", Reply("x", calls=(ScriptedCall("a"),))), tools=[tool("a")]) as world:
        stream = world.play(world.model.generate(request(HI)))
        world.play(stream.aclose())
        del world.recorder.entries[:]
        assert unrequested(world, "a", {}).endswith("the model has made no call yet")


def test_an_id_that_the_model_has_not_given_is_told_with_the_nearest():
    with once(tool("a"), {"n": 1}) as world:
        assert unrequested(world, "a", {"n": 1}, "call_1_1_2") == (
            "a was run for the call 'call_1_1_2', which the model has not made "
            "(did you mean 'call_1_1_1'?); "
            "the nearest call is 'call_1_1_1', a({\"n\":1}), which waits"
        )


def test_an_id_of_another_tool_is_told():
    with asking(ScriptedCall("a", {"n": 1}), tools=[tool("a"), tool("b")]) as world:
        assert unrequested(world, "b", {}, "call_1_1_1") == (
            "b was run for the call 'call_1_1_1', by which the model asked for a({\"n\":1}); "
            "run the tool that the call names"
        )


@pytest.mark.parametrize("call_id", ["call_1_1_1", None])
def test_arguments_that_are_not_json_are_told(call_id):
    with once(tool("a"), {"n": 1}) as world:
        assert unrequested(world, "a", {"n": {1}}, call_id) == (
            "a was run with what no model can ask for: set is not a JSON value: {1}; "
            "expected None, bool, int, float, str, list or dict"
        )


def test_a_tool_that_is_not_declared_is_told_with_the_nearest():
    with World(turn("hi"), tools=[tool("weather"), tool("clock")]) as world:
        text = failing(world, UnknownFakeTool, "wether", {})
        assert text == ("unknown tool 'wether' (did you mean 'weather'?); known: clock, weather")
        assert world.events == [Mismatch("UnknownFakeTool", text)]


@pytest.mark.parametrize("call_id", ["call_1_1_1", None])
def test_a_tool_that_only_the_script_knows_is_the_scenarios_wish(call_id):
    with asking(ScriptedCall("wether"), tools=[tool("weather")]) as world:
        failing(world, UnknownFakeTool, "wether", {}, call_id)
        assert world.events == []


# --- cancels


def cancelled(world, at, *, again=()):
    """Run the tool a, cancel it after `at` and each of `again`; when its task was done."""
    task = world.task(world.tools.call("a", {}, "call_1_1_1"))
    for moment in (at, *again):
        world.run_for(moment - world.kernel.now())
        task.cancel()
        world.kernel.settle()
    world.kernel.run_until(task.done)
    return task, world.kernel.now()


def test_a_cancel_stops_a_tool_at_once():
    with once(tool("a", takes=10 * MS)) as world:
        task, at = cancelled(world, 4 * MS)
        assert (task.cancelled(), at) == (True, 4 * MS)
        assert world.kinds == ["tool_started", "tool_ended"]
        assert world.events[-1] == ToolEnded("call_1_1_1", "a", "cancelled")


def test_a_cancel_lets_a_tool_clean_up():
    with once(tool("a", takes=10 * MS, on_cancel="cleanup", cleanup=3 * MS)) as world:
        task, at = cancelled(world, 4 * MS)
        assert (task.cancelled(), at) == (True, 7 * MS)
        assert [(entry.at, entry.event) for entry in world.recorder.entries][1:] == [
            (7 * MS, ToolEnded("call_1_1_1", "a", "cancelled"))
        ]


def test_a_second_cancel_ends_the_cleaning_up():
    with once(tool("a", takes=10 * MS, on_cancel="cleanup", cleanup=3 * MS)) as world:
        task, at = cancelled(world, 4 * MS, again=[5 * MS])
        assert (task.cancelled(), at) == (True, 5 * MS)
        assert world.tools.stubborn_paths() == ()


@pytest.mark.parametrize("again", [[], [5 * MS, 9 * MS]])
def test_a_tool_may_go_on_as_if_there_had_been_no_cancel(again):
    with once(tool("a", Returns("done"), takes=10 * MS, on_cancel="ignore")) as world:
        task, at = cancelled(world, 4 * MS, again=again)
        assert (task.result(), at) == ("done", 10 * MS)
        assert world.events[1:] == [
            ToolEffect("call_1_1_1", "a", told=True),
            ToolEnded("call_1_1_1", "a", "returned", "done"),
        ]


def test_a_tool_may_hang_and_ignore_every_cancel():
    with once(tool("a", Hangs(), on_cancel="ignore")) as world:
        task = world.task(world.tools.call("a", {}, "call_1_1_1"))
        for _cancel in range(3):
            world.kernel.settle()
            task.cancel()
        assert world.kernel.run_until(task.done).reason == "deadlock"
        assert world.tools.stubborn_paths() == ("2",)


@pytest.mark.parametrize(
    ("fields", "stubborn"),
    [
        ({"on_cancel": "honour"}, ()),
        ({"on_cancel": "cleanup", "cleanup": 3 * MS}, ("2",)),
        ({"on_cancel": "ignore"}, ("2",)),
    ],
)
def test_a_tool_that_keeps_a_cancelled_task_alive_is_known(fields, stubborn):
    with once(tool("a", takes=10 * MS, **fields)) as world:
        task = world.task(world.tools.call("a", {}, "call_1_1_1"))
        world.kernel.settle()
        assert world.tools.stubborn_paths() == ()
        task.cancel()
        world.kernel.settle()
        assert world.tools.stubborn_paths() == stubborn
        world.kernel.run_until(task.done)
        assert world.tools.stubborn_paths() == ()


# --- choices


def test_the_time_of_a_run_is_a_choice_among_the_calls_of_its_reply():
    spans = {"a": 1, "b": 3, "c": 2, "d": 3}
    tools = [tool(name, takes=span * MS) for name, span in spans.items()]
    asked = [ScriptedCall(name) for name in (*spans, "unknown")]

    def taken(name, way):
        label = f"{name} call_1_1_{list(spans).index(name) + 1}"
        choices = choices_from({("latency", label): (way, 5)} if way else {})
        with asking(*asked, tools=tools, choices=choices) as world:
            world.call(name, {})
            return world.kernel.now() // MS

    assert [taken("a", way) for way in range(5)] == [1, 0, 3, 3, 10]
    assert [taken("d", way) for way in range(5)] == [3, 0, 3, 0, 30]


def test_siblings_count_with_what_they_would_do_now():
    spec = ToolSpec("b", calls=(Behaviour(takes=MS), Behaviour(takes=5 * MS)))
    asked = (ScriptedCall("a"), ScriptedCall("b"), ScriptedCall("b"))
    choices = choices_from({("latency", "a call_1_1_1"): (2, 5)})
    with asking(*asked, tools=[tool("a"), spec], choices=choices) as world:
        world.call("b", {})
        world.call("a", {})
        assert world.kernel.now() == MS + 5 * MS


def test_every_run_has_a_label_of_its_own_and_a_hang_has_none():
    asked = []

    def pick(source, label, bound):
        asked.append((source, label, bound))
        return 0

    tools = [tool("a"), tool("b", Hangs())]
    scripted = (ScriptedCall("a"), ScriptedCall("b"))
    with asking(*scripted, tools=tools, choices=Choices(picker=pick)) as world:
        del asked[:]
        world.call("a", {}, "call_1_1_1")
        world.call("a", {}, "call_1_1_1")
        world.task(world.tools.call("b", {}))
        world.kernel.settle()
        assert asked == [("latency", "a call_1_1_1", 5), ("latency", "a call_1_1_1~2", 5)]


# --- what the model is told, and functions


def test_schemas_are_sorted_and_cannot_be_changed_for_the_next_run():
    spec = ToolSpec("b", parameters={"type": "object", "properties": {}})
    for _run in range(2):
        with World(tools=[spec, ToolSpec("a", description="Does a.")]) as world:
            schemas = world.tools.schemas()
            assert schemas == world.tools.schemas("neutral")
            assert schemas == (
                ToolSchema("a", "Does a.", {"type": "object"}),
                ToolSchema("b", "", {"type": "object", "properties": {}}),
            )
            for schema in schemas:
                schema.parameters["changed"] = True


def test_a_provider_that_is_not_there_is_told():
    with World() as world:
        with pytest.raises(UsageError) as raised:
            world.tools.schemas("openai")
        assert str(raised.value) == "unknown provider 'openai'; known: neutral"


def test_functions_run_the_tools_and_infer_the_call():
    with asking(ScriptedCall("b", {"n": 1}), tools=[tool("b", Returns("b")), tool("a")]) as world:
        functions = world.tools.functions()
        assert list(functions) == ["a", "b"]
        assert world.play(functions["b"](n=1)) == "b"
        assert world.of(ToolStarted) == [ToolStarted("call_1_1_1", "b", {"n": 1}, inferred=True)]


@pytest.mark.parametrize("by_model", [{"city": "Rome"}, {"city": "Rome", "unit": "C"}])
@pytest.mark.parametrize("by_agent", [{}, {"unit": "C"}, {"unit": "C", "day": None}])
def test_a_default_that_either_side_leaves_out_does_not_matter(by_model, by_agent):
    schema = {
        "properties": {"city": {"type": "string"}, "unit": {"default": "C"}, "day": {}},
        "required": ["city"],
    }
    spec = ToolSpec("a", parameters=schema)
    with asking(ScriptedCall("a", by_model), tools=[spec]) as world:
        world.play(world.tools.functions()["a"](city="Rome", **by_agent))
        assert world.of(ToolStarted)[0].args == {"city": "Rome", **by_agent}


def test_a_default_that_differs_does_matter():
    spec = ToolSpec("a", parameters={"properties": {"unit": {"default": "C"}}})
    world = asking(ScriptedCall("a", {"unit": "F"}), tools=[spec])
    with world, pytest.raises(UnrequestedTool):
        world.play(world.tools.functions()["a"](unit="C"))


def test_a_function_may_be_run_side_by_side():
    spec = tool("a", takes=MS)
    with asking(ScriptedCall("a"), ScriptedCall("a"), tools=[spec]) as world:
        function = world.tools.functions()["a"]

        async def both():
            return await asyncio.gather(function(), function())

        assert world.play(both()) == ["ok", "ok"]
        assert world.kernel.now() == MS
