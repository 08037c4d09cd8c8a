"""Which reply a request gets: the step after the last one that its history shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import NoPlace, ScriptExhausted, TwoPlaces
from harness.core.events import Mismatch, ReplyEnded, RequestSent
from harness.core.messages import Message, Text, ToolCall, assistant, tool_result, user
from harness.fakes.script import (
    Also,
    AlsoWhen,
    GenerateFails,
    Reply,
    ScriptedCall,
    StreamFails,
    Torn,
)
from tests.fakes.world import World, calls, request, tool, turn

HI = user("hi")


def answered(message, text="ok"):
    """A message with a result for each of its calls."""
    return [message, *(tool_result(call.id, text) for call in message.calls)]


def sent(world):
    return [event.reply for event in world.of(RequestSent)]


def failing(world, error, *messages, **fields):
    """The text of the error that a request gets; it is in the trace too."""
    with pytest.raises(error) as raised:
        world.ask(*messages, **fields)
    assert world.events[-1] == Mismatch(error.__name__, str(raised.value))
    return str(raised.value)


# --- the main conversation


def test_a_step_follows_the_replies_that_the_history_shows():
    with World(turn("hi", calls("a"), calls("a", "b"), Reply(say="bye"))) as world:
        history = [HI]
        for _step in range(3):
            history += answered(world.ask(*history))
        assert sent(world) == ["1.1", "1.2", "1.3"]
        assert [call.id for message in history for call in message.calls] == [
            "call_1_1_1",
            "call_1_2_1",
            "call_1_2_2",
        ]
        assert history[-1].text == "bye"


def test_a_request_that_is_sent_again_gets_the_same_reply_under_a_new_label():
    with World(turn("hi", calls("a"), Reply(say="bye"))) as world:
        first, second = world.ask(HI), world.ask(HI)
        assert first == second
        assert world.ask(HI, *answered(second)).text == "bye"
        assert sent(world) == ["1.1", "1.1~2", "1.2"]


@pytest.mark.parametrize(
    "stored",
    [
        assistant("Let me look.", ToolCall("x1", "a", {"n": 0})),
        assistant("Let me look."),
        assistant("I think: Let me look. Then more."),
        assistant("", ToolCall("x1", "a", {"n": 0})),
    ],
    ids=["new id", "text alone", "text within text", "name and arguments"],
)
def test_a_reply_is_recognised_where_the_agent_did_not_keep_its_ids(stored):
    with World(turn("hi", calls("a", say="Let me look."), Reply(say="bye"))) as world:
        world.ask(HI)
        assert world.ask(HI, *answered(stored)).text == "bye"


def test_a_message_that_is_no_reply_of_the_script_shows_nothing():
    with World(turn("hi", calls("a", say="Let me look."), Reply(say="bye"))) as world:
        world.ask(HI)
        other = assistant("Hm.", ToolCall("x1", "b", {"n": 0}))
        assert world.ask(HI, *answered(other)).calls


def test_a_text_only_reply_in_the_middle_of_a_turn_is_recognised_by_its_text():
    with World(turn("hi", Reply(say="Thinking."), Reply(say="Thinking."), Reply(say="bye"))) as w:
        first = w.ask(HI)
        second = w.ask(HI, first, user("go on"))
        assert w.ask(HI, first, user("go on"), second, user("go on")).text == "bye"


def test_a_reply_without_text_or_call_counts_as_taken_in_when_it_came_whole():
    script = turn("hi", Reply(), Reply(say="half", fault=Torn()), Reply(say="bye"))
    with World(script) as world:
        assert world.ask(HI) == Message("assistant")
        world.read(HI, user("You said nothing."))
        again = world.ask(HI, user("You said nothing."))
        assert world.ask(HI, user("You said nothing."), again, user("More.")).text == "bye"
        assert sent(world) == ["1.1", "1.2", "1.2~2", "1.3"]


def test_ids_that_the_script_gives_twice_tell_the_steps_by_their_order():
    same = Reply(calls=(ScriptedCall("a", {}, id="call_0"),))
    with World(turn("hi", same, same, same, Reply(say="bye"))) as world:
        history = [HI]
        for _step in range(4):
            history += answered(world.ask(*history))
        assert history[-1].text == "bye"


def test_a_message_that_the_agent_sends_twice_counts_once():
    with World(turn("hi", calls("a"), calls("a"), Reply(say="bye"))) as world:
        first = world.ask(HI)
        second = world.ask(HI, *answered(first))
        twice = [*answered(first), *answered(first)]
        assert world.ask(HI, *twice).calls == second.calls


def test_the_same_words_in_an_earlier_turn_show_nothing_of_this_one():
    with World(turn("Go on.", Reply(say="Done.")), turn("Go on.", Reply(say="Done."))) as world:
        go, done = user("Go on."), assistant("Done.")
        world.ask(go)
        world.next_turn()
        assert world.ask(go, done, go).text == "Done."
        assert sent(world) == ["1.1", "2.1"]


def test_the_text_may_stand_within_what_the_agent_makes_of_it():
    with World(turn("  hi there ", Reply(say="bye"))) as world:
        assert world.ask(user("<q>hi there</q>"), user("<time>12:00</time>")).text == "bye"


def test_an_empty_text_is_held_by_any_user_message():
    with World(turn("", Reply(say="bye"))) as world:
        assert world.ask(user("")).text == "bye"


def test_a_resume_needs_no_text():
    with World(
        turn("hi", calls("a"), Reply(say="x")), turn(None, calls("b"), Reply(say="bye"))
    ) as w:
        old = answered(w.ask(HI))
        w.next_turn(cut=True)
        new = answered(w.ask(HI, *old))
        assert w.ask(HI, *old, *new).text == "bye"
        assert sent(w) == ["1.1", "2.1", "2.2"]


def test_a_resume_may_come_first():
    with World(turn(None, calls("a"), Reply(say="bye"))) as world:
        old = [user("before"), assistant("yes")]
        assert world.ask(*old, *answered(world.ask(*old))).text == "bye"


def test_what_changes_before_the_turn_does_not_matter():
    with World(turn("hi", calls("a"), calls("b"), Reply(say="bye"))) as world:
        history = [HI]
        for step in range(3):
            head = user(f"It is 12:0{step}.")
            history += answered(world.ask(head, *history))
        assert history[-1].text == "bye"


def test_a_reminder_that_comes_and_goes_does_not_matter():
    with World(turn("hi", calls("a"), calls("b"), Reply(say="bye"))) as world:
        history = [HI]
        for step in range(3):
            history += answered(world.ask(*history, user(f"Reminder {step}.")))
        assert history[-1].text == "bye"


def test_a_reply_that_was_dropped_under_a_changing_head_is_given_again():
    with World(turn("hi", Reply(say="Hm."), Reply(say="bye"))) as world:
        world.ask(user("12:00"), HI)
        assert world.ask(user("12:01"), HI, user("Try again.")).text == "Hm."


def test_a_call_id_of_an_earlier_turn_shows_nothing_of_this_one():
    old = Reply(calls=(ScriptedCall("a", {}, id="x"),))
    with World(turn("hi", old), turn(None, calls("b"))) as world:
        before = [HI, *answered(world.ask(HI))]
        world.next_turn(cut=True)
        assert world.ask(user("12:00"), *before) == world.ask(user("12:01"), *before)


def test_a_conversation_is_known_by_its_replies_where_all_else_changes():
    with World(turn("hi", calls("a"), Reply(say="bye"))) as world:
        message = world.ask(user("12:00"), HI, user("Reminder."), system="12:00")
        history = [user("12:01"), HI, *answered(message)]
        assert world.ask(*history, system="12:01").text == "bye"


def test_a_resume_may_begin_without_any_message():
    with World(turn(None, calls("a"), Reply(say="bye"))) as world:
        world.ask(system="12:00")
        message = world.ask(system="12:01")
        assert world.ask(*answered(message), system="12:02").text == "bye"
        assert sent(world) == ["1.1", "1.1~2", "1.2"]
        assert failing(world, NoPlace, user("Sum up."), system="other").startswith(
            "no place in the script: the request does not go on with the conversation of turn 1; "
        )


# --- a history that was cut


def looking(world, steps):
    """Play `steps` steps of calls of the tool a; the history after them."""
    history = [HI]
    for _step in range(steps):
        message = world.ask(*history)
        world.call("a", message.calls[0].args, message.calls[0].id)
        history += answered(message)
    return history


THREE = turn("hi", calls("a"), calls("a"), calls("a"), Reply(say="bye"))


def test_a_trimmed_history_goes_on_after_the_last_whole_reply():
    with World(THREE, tools=[tool("a")]) as world:
        history = looking(world, 3)
        marker = Message("system", (Text("[cut]"),))
        assert world.ask(marker, *history[5:]).text == "bye"


def test_a_summary_in_the_place_of_everything_goes_on_too():
    with World(THREE, tools=[tool("a")]) as world:
        looking(world, 3)
        assert world.ask(user("A summary.")).text == "bye"


def test_a_summary_that_keeps_the_text_goes_on_too():
    with World(THREE, tools=[tool("a")]) as world:
        looking(world, 3)
        assert world.ask(HI, user("A summary.")).text == "bye"


def test_a_reply_that_was_shown_once_and_is_no_more_was_cut():
    with World(THREE) as world:
        first = answered(world.ask(HI))
        world.ask(HI, *first)
        world.ask(HI, user("A summary."))
        assert sent(world) == ["1.1", "1.2", "1.3"]


def test_a_torn_reply_that_the_agent_kept_is_counted_after_a_cut():
    torn = Reply(say="half", fault=Torn(1), fault_times=None)
    with World(turn("hi", torn, torn, Reply(say="bye"))) as world:
        world.read(HI)
        world.read(HI, assistant("half"), user("Go on."))
        world.read(user("A summary."))
        assert sent(world) == ["1.1", "1.2", "1.2~2"]


def test_a_cut_may_come_after_a_reply_of_text_alone():
    with World(turn("hi", Reply(say="Hm."), Reply(say="bye"))) as world:
        world.ask(HI)
        assert world.ask(user("A summary.")).text == "bye"


def test_a_cut_may_leave_the_last_message_alone_of_all_that_was_said():
    with World(turn("hi", Reply(say="Hm."), Reply(say="so"), Reply(say="bye"))) as world:
        nudge = user("Go on.")
        first = world.ask(HI, system="12:00")
        world.ask(HI, first, nudge, system="12:01")
        assert world.ask(user("A summary."), nudge, system="12:02").text == "bye"


def test_a_summary_right_after_a_step_whose_tool_ran_goes_on_too():
    with World(THREE, tools=[tool("a")]) as world:
        looking(world, 1)
        world.ask(HI, user("A summary."))
        assert sent(world) == ["1.1", "1.2"]


def test_after_a_summary_new_steps_are_counted_on():
    with World(THREE, tools=[tool("a")]) as world:
        looking(world, 2)
        third = answered(world.ask(user("A summary.")))
        assert world.ask(user("A summary."), *third).text == "bye"


def test_a_reply_that_broke_off_after_a_cut_is_given_again():
    script = turn("hi", calls("a"), Reply(say="half an answer", fault=Torn(1)))
    with World(script, tools=[tool("a")]) as world:
        looking(world, 1)
        world.read(user("A summary."))
        assert world.ask(user("A summary.")).text == "half an answer"
        assert sent(world) == ["1.1", "1.2", "1.2~2"]


def test_a_later_turn_may_begin_with_a_cut_that_took_its_text():
    with World(turn("hi", Reply(say="Done.")), turn("more", calls("a"), Reply(say="bye"))) as world:
        world.ask(HI)
        world.next_turn()
        message = world.ask(user("A summary."))
        assert world.ask(user("A summary."), *answered(message)).text == "bye"


def test_an_undone_turn_may_be_said_again():
    with World(turn("hi", calls("a")), turn("hi", Reply(say="bye"))) as world:
        world.ask(HI)
        world.next_turn(cut=True)
        assert world.ask(HI).text == "bye"


# --- requests that have no place


def test_a_model_that_repeats_the_text_is_no_user():
    with World(turn("hi", Reply(say="bye"))) as world:
        failing(world, NoPlace, user("Make a title."), assistant("hi"))


def test_a_request_of_another_conversation_is_no_turns_first():
    with World(turn("hi", Reply(say="Done.")), turn("more", Reply(say="bye"))) as world:
        done = world.ask(HI)
        world.next_turn()
        failing(world, NoPlace, user("Make a title."), system="other")
        assert world.ask(HI, done, user("more")).text == "bye"


def test_a_request_without_the_text_has_no_place():
    with World(turn("What is the weather in Paris today, and is it so in Rome as well?")) as world:
        assert failing(world, NoPlace, user("Make a title.")) == (
            "no place in the script: no user message holds the text of turn 1, "
            "'What is the weather in Paris today, and…'; its last user message is 'Make a title.'; "
            "for a title, a summary or a sub-agent add an `also` entry"
        )


def test_an_agent_that_forgets_the_new_text_is_not_excused_by_an_older_turn():
    with World(turn("hi", Reply(say="Done.")), turn("hi", Reply(say="x"))) as world:
        done = world.ask(HI)
        world.next_turn()
        assert failing(world, NoPlace, HI, done).startswith(
            "no place in the script: no user message holds the text of turn 2, 'hi'; "
        )


def test_a_request_of_another_conversation_has_no_place_and_changes_nothing():
    with World(turn("hi", calls("a"), Reply(say="bye"))) as world:
        message = world.ask(HI)
        assert failing(world, NoPlace, user("Sum up: user: hi"), system="other") == (
            "no place in the script: the request does not go on with the conversation of turn 1; "
            "its last user message is 'Sum up: user: hi'; "
            "for a title, a summary or a sub-agent add an `also` entry"
        )
        failing(world, NoPlace, user("Look into it."), system="other")
        assert world.ask(HI, *answered(message)).text == "bye"


def test_between_turns_there_is_no_place():
    with World(turn("hi", Reply(say="bye"))) as world:
        world.ask(HI)
        world.end_turn()
        assert failing(world, NoPlace, HI) == (
            "no place in the script: no turn is played; "
            "for a title, a summary or a sub-agent add an `also` entry"
        )


def test_a_request_without_messages_is_told_so():
    with World(turn("hi", Reply(say="bye"))) as world:
        assert "; it has no user message; " in failing(world, NoPlace)


def test_the_nearest_also_entry_is_named():
    also = (
        Also("title", AlsoWhen(system_contains="title", model="small")),
        Also("summary", AlsoWhen("Sum up", "please", user_contains="pl")),
    )
    with World(turn("hi"), also=also) as world:
        assert failing(world, NoPlace, user("please"), system="Sum it up").endswith(
            "the nearest `also` entry is 'summary', which wants a system prompt with 'Sum up' "
            "and a last message with 'please' and a message of the user with 'pl'"
        )


def test_a_turn_that_runs_out_names_its_last_reply():
    with World(turn("hi", Reply(say="bye"))) as world:
        message = world.ask(HI)
        assert failing(world, ScriptExhausted, HI, message, user("Really?")) == (
            "the script has no reply 2 for turn 1: it ends with reply 1 (say: 'bye'); "
            "add a reply, or see why the agent asks again"
        )


def test_a_turn_without_replies_says_so():
    with World(turn("hi")) as world:
        assert failing(world, ScriptExhausted, HI) == "the script has no reply for turn 1; add one"


# --- also entries


TITLES = Also("title", AlsoWhen(system_contains="title"), (Reply(say="One"), Reply(say="Two")))


def test_an_also_entry_comes_before_the_turn_and_leaves_it_alone():
    with World(turn("hi", calls("a"), Reply(say="bye")), also=[TITLES]) as world:
        assert world.ask(HI, system="Make a title.").text == "One"
        message = world.ask(HI)
        assert world.ask(HI, system="Make a title.").text == "Two"
        assert world.ask(HI, *answered(message)).text == "bye"
        assert sent(world) == ["title.1", "1.1", "title.2", "1.2"]
        assert [e.conversation for e in world.of(RequestSent)] == ["title", "main"] * 2


@pytest.mark.parametrize(
    ("when", "fields"),
    [
        (AlsoWhen(system_contains="Sum"), {"system": "Sum up."}),
        (AlsoWhen(model="small"), {"model": "small"}),
        (AlsoWhen(message_contains="up."), {}),
        (AlsoWhen(user_contains="up."), {}),
    ],
)
def test_each_condition_picks_its_requests(when, fields):
    also = [Also("it", when, (Reply(say="yes"),))]
    with World(turn("hi", Reply(say="no")), also=also) as world:
        assert world.ask(HI).text == "no"
        assert world.ask(HI, user("Sum up."), **fields).text == "yes"
        assert sent(world) == ["1.1", "it.1"]


def test_a_conversation_is_known_by_what_its_user_said():
    entry = Also("it", AlsoWhen(user_contains="Sum up"), (calls("a"), Reply(say="yes")))
    with World(turn("hi", Reply(say="no")), also=[entry]) as world:
        message = world.ask(user("Sum up."))
        assert world.ask(user("Sum up."), *answered(message)).text == "yes"
        assert world.ask(HI, Message("assistant", (Text("Sum up"),)), HI).text == "no"


def test_all_conditions_of_an_entry_must_hold():
    also = [Also("it", AlsoWhen("Sum", "hi", "small"), (Reply(say="yes"),))]
    with World(turn("hi", Reply(say="no")), also=also) as world:
        assert world.ask(HI, system="Sum").text == "no"
        assert world.ask(HI, system="Sum", model="small").text == "yes"


def test_the_system_prompt_may_stand_among_the_messages():
    with World(turn("hi"), also=[TITLES]) as world:
        system = Message("system", (Text("Make a title."),))
        assert world.ask(system, HI, system="").text == "One"


def test_an_also_entry_answers_between_turns_too():
    with World(turn("hi", Reply(say="bye")), also=[TITLES]) as world:
        world.ask(HI)
        world.end_turn()
        assert world.ask(HI, system="title").text == "One"


def test_an_also_reply_that_broke_off_is_given_again():
    replies = (Reply(say="One", fault=Torn()), Reply(say="Two"))
    with World(turn("hi"), also=[Also("t", AlsoWhen(model="s"), replies)]) as world:
        world.read(HI, model="s")
        assert [world.ask(HI, model="s").text for _request in range(2)] == ["One", "Two"]
        assert sent(world) == ["t.1", "t.1~2", "t.2"]


def test_an_also_reply_that_is_still_coming_is_not_given_to_another_request():
    replies = (Reply(say="One", takes=5), Reply(say="Two"))
    with World(turn("hi"), also=[Also("t", AlsoWhen(model="s"), replies)]) as world:
        first = world.task(world.reading(request(HI, model="s")))
        world.kernel.settle()
        assert world.ask(HI, model="s").text == "Two"
        assert world.kernel.run_until(first.done).reason == "done"
        assert sent(world) == ["t.1", "t.2"]


def test_an_also_entry_that_runs_out_is_named():
    with World(turn("hi"), also=[TITLES]) as world:
        world.ask(HI, system="title")
        world.ask(HI, system="title")
        assert failing(world, ScriptExhausted, HI, system="title") == (
            "the script has no reply 3 for `also` entry 'title': it ends with reply 2 "
            "(say: 'Two'); add a reply, or see why the agent asks again"
        )


def test_two_also_entries_for_one_request_are_an_error():
    also = [TITLES, Also("any", AlsoWhen(), (Reply(say="x"),))]
    with World(turn("hi"), also=also) as world:
        assert failing(world, TwoPlaces, HI, system="title") == (
            "two places in the script for one request: the `also` entries 'title' (wants a system "
            "prompt with 'title') and 'any' (wants any request) both hold; "
            "make one `when` exclude the other"
        )


# --- plain call order


def test_in_call_order_every_request_gets_the_next_reply():
    replies = (Reply(say="a", fault=GenerateFails("no")), Reply(say="b"), Reply(say="b"))
    with World(turn("hi", *replies), order="calls", also=[TITLES]) as world:
        with pytest.raises(Exception, match="no"):
            world.ask(user("anything"))
        assert [world.ask(user("anything")).text for _request in range(2)] == ["b", "b"]
        assert world.ask(HI, system="title").text == "One"
        failing(world, ScriptExhausted, user("anything"))
        assert sent(world) == ["1.1", "1.2", "1.3", "title.1"]


@given(st.lists(st.lists(st.text(max_size=3), min_size=1, max_size=4), min_size=1, max_size=3))
def test_in_call_order_the_nth_request_of_a_turn_gets_its_nth_reply(turns):
    script = [turn("hi", *(Reply(say=text) for text in texts)) for texts in turns]
    with World(*script, order="calls") as world:
        for number, texts in enumerate(turns):
            if number:
                world.next_turn()
            assert [world.ask().text for _text in texts] == texts


# --- faults, and asking again


@pytest.mark.parametrize(
    "fault", [GenerateFails(), StreamFails(1), StreamFails(1, reported=True), Torn(1)]
)
def test_a_fault_happens_once_and_then_the_reply_comes_whole(fault):
    with World(turn("hi", Reply(say="bye", fault=fault))) as world:
        task = world.task(world.reading(request(HI)))
        world.kernel.run_until(task.done)
        assert world.ask(HI).text == "bye"
        ends = [(event.reply, event.end) for event in world.of(ReplyEnded)]
        assert ends == [("1.1", "torn" if fault == Torn(1) else "failed"), ("1.1~2", "complete")]
        task.exception()


def test_a_fault_may_happen_several_times():
    reply = Reply(say="bye", fault=Torn(), fault_times=2)
    with World(turn("hi", reply)) as world:
        assert world.read(HI) == world.read(HI) == []
        assert world.ask(HI).text == "bye"


def test_a_fault_may_happen_always():
    with World(turn("hi", Reply(say="bye", fault=Torn(), fault_times=None))) as world:
        assert [world.read(HI) for _request in range(5)] == [[]] * 5


# --- what is left


def test_unused_replies_are_named_with_what_they_say():
    script = turn(
        "hi",
        Reply(say="bye"),
        Reply(say="A sentence that is longer than anybody wants to read."),
        calls("weather", "clock", say="Let me look."),
        Reply(think="hm", fault=Torn()),
        Reply(),
        Reply(say="x", optional=True),
    )
    with World(script) as world:
        world.ask(HI)
        assert world.end_turn() == [
            "reply 2 of turn 1 (say: 'A sentence that is longer than anybody …')",
            "reply 3 of turn 1 (say: 'Let me look.'; calls: weather, clock)",
            "reply 4 of turn 1 (think: 'hm'; fault: torn)",
            "reply 5 of turn 1 (an empty message)",
        ]
        assert world.end_turn() == []


def test_a_turn_that_was_cut_excuses_its_replies():
    with World(turn("hi", Reply(say="bye"))) as world:
        assert world.end_turn(cut=True) == []


def test_unused_also_replies_are_named_unless_a_turn_was_cut():
    with World(turn("hi"), turn("hi"), turn("hi"), also=[TITLES]) as world:
        world.ask(HI, system="title")
        world.end_turn()
        assert world.stage.unused_also() == ["reply 2 of `also` entry 'title' (say: 'Two')"]
        world.start_turn()
        world.end_turn(cut=True)
        world.start_turn()
        world.end_turn()
        assert world.stage.unused_also() == []


# --- cost


class Counted(tuple):
    """The content of a message, which counts how often it is read."""

    reads = 0

    def __iter__(self):
        Counted.reads += 1
        return super().__iter__()


def counting(message):
    return Message(message.role, Counted(message.content), message.tool_call_id, message.is_error)


@pytest.mark.parametrize("cut_every", [None, 50])
def test_a_long_turn_reads_each_message_only_a_few_times(cut_every):
    def visits(steps):
        script = turn("hi", *(calls("a") for _step in range(steps)))
        with World(script, tools=[tool("a")]) as world:
            Counted.reads = 0
            history = [counting(HI)]
            for step in range(steps):
                if cut_every and step % cut_every == cut_every - 1:
                    history = [counting(HI)]
                placed = world.stage.locate(request(*history))
                world.stage.opened(placed, lambda: None)
                world.stage.delivered(placed)
                world.stage.ended(placed, "complete")
                assert placed.step == step + 1
                call = placed.given.message.calls[0]
                world.stage.claim("a", call.args, call.id, {})
                history += map(counting, answered(placed.given.message))
            return Counted.reads

    assert visits(400) <= 2 * visits(200) + 10 <= 5 * 400
