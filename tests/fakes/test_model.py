"""The fake model: the stream of a reply, its faults, its end."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.choices import Choices, choices_from
from harness.core.errors import RequestRefused
from harness.core.events import Delta, FaultInjected, GeneratorAbandoned, ReplyEnded, RequestSent
from harness.core.messages import Message, Text, Usage, assistant, user
from harness.core.ports import ProviderFailed
from harness.core.reply import (
    ReplyDone,
    ReplyFailed,
    TextDelta,
    ThinkingDelta,
    UsageReport,
)
from harness.fakes.script import (
    DoneTwice,
    GenerateFails,
    Hang,
    LateThinking,
    Reply,
    StreamFails,
    Torn,
)
from tests.fakes.world import MS, World, calls, request, turn

HI = user("hi")
ABC = assistant("abc")


def abc(**fields):
    return World(turn("hi", Reply("abc", chunk=1, **fields)))


def ended(world):
    (event,) = world.of(ReplyEnded)
    return event


def opened(world):
    return world.play(world.model.generate(request(HI)))


def some(world, stream, count):
    async def reading():
        return [await anext(stream) for _part in range(count)]

    return world.play(reading())


def nothing_more(world, stream):
    with pytest.raises(StopAsyncIteration):
        world.play(_next(stream))


async def _next(stream):
    return await stream.__anext__()


# --- an ordinary reply


def test_a_reply_is_recorded_as_it_is_given():
    reply = Reply("to be", "hm", None, usage=Usage(1, 2, 3))
    with World(turn("hi", reply)) as world:
        message = world.ask(HI)
        assert world.kinds == ["request_sent", "delta", "delta", "reply_ended"]
        assert world.of(Delta) == [Delta("1.1", "thinking", "hm"), Delta("1.1", "text", "to be")]
        assert ended(world) == ReplyEnded("1.1", "complete", message, Usage(1, 2, 3))


def test_the_reply_takes_its_time_and_each_later_part_its_own():
    with World(turn("hi", Reply("abc", chunk=1, takes=5 * MS, each=MS))) as world:
        world.read(HI)
        times = [entry.at for entry in world.recorder.entries]
        assert times == [0, 5 * MS, 6 * MS, 7 * MS, 8 * MS]
        assert world.kernel.now() == 8 * MS


def test_the_request_every_part_and_the_end_are_each_one_suspension():
    with abc() as world:
        world.read(HI)
        assert len(world.kernel.points) == 1 + 4 + 1


def test_a_reply_is_over_with_its_message_whether_or_not_the_end_is_read():
    with abc() as world:
        assert some(world, opened(world), 4)[-1] == ReplyDone(ABC)
        assert world.kinds[-1] == "reply_ended"
        world.end_turn()
        assert ended(world).end == "complete"


def test_a_stream_that_has_ended_stays_ended():
    with abc() as world:
        stream = opened(world)
        some(world, stream, 4)
        nothing_more(world, stream)
        nothing_more(world, stream)
        world.play(stream.aclose())
        assert ended(world).end == "complete"


def test_two_readers_share_the_parts_in_order():
    with abc() as world:
        stream = opened(world)
        tasks = [world.task(_next(stream)) for _reader in range(2)]
        world.kernel.run_until(lambda: all(task.done() for task in tasks))
        assert [task.result() for task in tasks] == [TextDelta("a"), TextDelta("b")]


def test_an_agent_that_changes_its_arguments_changes_neither_script_nor_trace():
    script = turn("hi", calls("a"))
    with World(script) as world:
        world.ask(HI).calls[0].args["n"] = "changed"
        assert ended(world).message.calls[0].args == script.replies[0].calls[0].args == {"n": 0}


@given(st.text(max_size=12), st.text(max_size=12), st.integers(1, 5), st.integers(0, 3))
def test_what_was_streamed_is_what_the_message_says(say, think, chunk, chunking):
    picked = Choices(picker=lambda source, *_: chunking if source == "chunking" else 0)
    with World(turn("hi", Reply(say, think, chunk=chunk)), choices=picked) as world:
        parts = world.read(HI)
        assert parts[-1].message.text == say
        for kind, part_type, text in (
            ("text", TextDelta, say),
            ("thinking", ThinkingDelta, think),
        ):
            assert "".join([p.text for p in parts if isinstance(p, part_type)]) == text
            assert "".join([d.text for d in world.of(Delta) if d.kind == kind]) == text


def test_the_same_script_gives_the_same_bytes():
    def lines():
        script = turn("hi", calls("b", "a", say="x", think="y", usage=Usage(1)), Reply("bye"))
        with World(script) as world:
            world.ask(HI, world.ask(HI))
            return world.recorder.trace().lines()

    assert lines() == lines()


# --- a request that comes to nothing


def test_a_refused_request_is_answered_with_the_reason_and_uses_up_nothing():
    def refuse(messages):
        return "messages[1]: no" if len(messages) > 1 else None

    with World(turn("hi", Reply("bye", fault=Torn(1), takes=MS)), refuse=refuse) as world:
        with pytest.raises(RequestRefused, match=r"^messages\[1\]: no$"):
            world.ask(HI, HI)
        assert ended(world) == ReplyEnded("1.1", "refused", error="messages[1]: no")
        assert world.kernel.now() == MS
        assert world.read(HI) == [TextDelta("bye")]
        assert world.of(FaultInjected) == [FaultInjected("torn", "1.1~2")]


def test_a_refused_request_does_not_hang():
    script = turn("hi", Reply("bye", fault=Hang()))
    with World(script, refuse=lambda _messages: "no") as world, pytest.raises(RequestRefused):
        world.ask(HI)


def test_a_request_fails_where_the_script_says_so():
    with abc(fault=GenerateFails("overloaded"), takes=MS) as world:
        with pytest.raises(ProviderFailed, match=r"^overloaded$"):
            world.ask(HI)
        assert world.kernel.now() == MS
        assert world.events[1:] == [
            FaultInjected("generate_fails", "1.1"),
            ReplyEnded("1.1", "failed", error="overloaded"),
        ]


def test_a_request_that_is_never_answered_waits_for_its_cancel():
    with abc(fault=Hang()) as world:
        task = world.task(world.reading(request(HI)))
        assert world.kernel.run_until(task.done).reason == "deadlock"
        assert world.end_turn(cut=True) == []
        assert world.kinds == ["request_sent", "fault_injected"]
        task.cancel()
        world.kernel.run_until(task.done)
        assert ended(world) == ReplyEnded("1.1", "closed")


def test_a_cancel_while_the_reply_is_awaited_closes_it():
    with abc(takes=MS) as world:
        task = world.task(world.reading(request(HI)))
        world.kernel.settle()
        task.cancel()
        world.kernel.run_until(task.done)
        assert task.cancelled()
        assert ended(world) == ReplyEnded("1.1", "closed")


# --- faults of the stream


def test_a_stream_breaks_with_an_error():
    with abc(fault=StreamFails(2, "reset")) as world:
        stream = opened(world)
        some(world, stream, 2)
        with pytest.raises(ProviderFailed, match=r"^reset$"):
            some(world, stream, 1)
        nothing_more(world, stream)
        assert world.events[3:] == [
            FaultInjected("stream_fails", "1.1"),
            ReplyEnded("1.1", "failed", error="reset"),
        ]


def test_a_stream_reports_its_own_failure():
    with abc(fault=StreamFails(1, "overloaded", reported=True)) as world:
        assert world.read(HI) == [TextDelta("a"), ReplyFailed("stream", "overloaded")]
        assert world.events[2:] == [
            FaultInjected("stream_fails", "1.1"),
            ReplyEnded("1.1", "failed", error="overloaded"),
        ]


def test_a_stream_that_reported_its_failure_is_to_be_closed_or_read_to_its_end():
    def left(what):
        with abc(fault=StreamFails(1, "overloaded", reported=True)) as world:
            stream = opened(world)
            some(world, stream, 2)
            what(world, stream)
            world.end_turn()
            world.end_turn()
            return world.events[4:]

    assert left(lambda _world, _stream: None) == [GeneratorAbandoned("of reply 1.1")]
    assert left(nothing_more) == []
    assert left(lambda world, stream: world.play(stream.aclose())) == []


def test_a_stream_may_break_after_its_message():
    with abc(fault=StreamFails(99, "reset")) as world:
        stream = opened(world)
        assert some(world, stream, 4)[-1] == ReplyDone(ABC)
        assert world.of(ReplyEnded) == []
        with pytest.raises(ProviderFailed):
            some(world, stream, 1)
        assert ended(world) == ReplyEnded("1.1", "failed", ABC, error="reset")


def test_a_torn_stream_ends_without_a_word():
    with abc(fault=Torn(99), usage=Usage(7)) as world:
        parts = [*map(TextDelta, "abc"), UsageReport(Usage(7))]
        assert world.read(HI) == parts
        assert world.events[4:] == [
            FaultInjected("torn", "1.1"),
            ReplyEnded("1.1", "torn", usage=Usage(7)),
        ]


def test_a_stream_that_hangs_waits_for_its_cancel():
    with abc(fault=Hang(1)) as world:
        task = world.task(world.reading(request(HI)))
        assert world.kernel.run_until(task.done).reason == "deadlock"
        task.cancel()
        world.kernel.run_until(task.done)
        assert world.events[2:] == [FaultInjected("hang", "1.1"), ReplyEnded("1.1", "closed")]


def test_closing_a_stream_that_hangs_ends_the_wait():
    with abc(fault=Hang(99)) as world:
        stream = opened(world)
        assert some(world, stream, 4)[-1] == ReplyDone(ABC)
        task = world.task(_next(stream))
        world.kernel.settle()
        world.play(stream.aclose())
        world.kernel.settle()
        assert isinstance(task.exception(), StopAsyncIteration)
        assert ended(world) == ReplyEnded("1.1", "complete", ABC)


def test_two_readers_of_a_stream_that_hangs_are_one_fault():
    with abc(fault=Hang(0)) as world:
        stream = opened(world)
        tasks = [world.task(_next(stream)) for _reader in range(2)]
        world.kernel.settle()
        world.play(stream.aclose())
        world.kernel.settle()
        assert [type(task.exception()) for task in tasks] == [StopAsyncIteration] * 2
        assert world.events[1:] == [FaultInjected("hang", "1.1"), ReplyEnded("1.1", "closed")]


def test_the_end_signal_may_come_twice():
    with abc(fault=DoneTwice()) as world:
        assert world.read(HI)[3:] == [ReplyDone(ABC), ReplyDone(ABC)]
        assert world.events[4:] == [
            FaultInjected("done_twice", "1.1"),
            ReplyEnded("1.1", "complete", ABC),
        ]


def test_reasoning_may_come_after_the_end_signal():
    with abc(fault=LateThinking("oh")) as world:
        assert world.read(HI)[3:] == [ReplyDone(ABC), ThinkingDelta("oh")]
        assert world.events[4:] == [
            FaultInjected("late_thinking", "1.1"),
            Delta("1.1", "thinking", "oh"),
            ReplyEnded("1.1", "complete", ABC),
        ]


@pytest.mark.parametrize("fault", [StreamFails(3), Torn(3), Hang(3), DoneTwice(), LateThinking()])
def test_a_fault_that_the_agent_does_not_wait_for_did_not_happen(fault):
    with abc(fault=fault) as world:
        stream = opened(world)
        some(world, stream, 3)
        world.play(stream.aclose())
        assert world.of(FaultInjected) == []
        assert ended(world).end == "closed"
        assert world.of(RequestSent)[0].reply == "1.1"
        stream = opened(world)
        some(world, stream, 3)
        if isinstance(fault, Hang | StreamFails):
            task = world.task(_next(stream))
            world.kernel.settle()
        else:
            world.play(_drain(stream))
            task = None
        assert [event.place for event in world.of(FaultInjected)] == ["1.1~2"]
        if task is not None and task.done():
            assert isinstance(task.exception(), ProviderFailed)


async def _drain(stream):
    return [part async for part in stream]


# --- readers that leave


def test_a_reader_that_closes_before_the_message_closed_the_reply():
    with abc(usage=Usage(7)) as world:
        stream = opened(world)
        some(world, stream, 2)
        world.play(stream.aclose())
        world.play(stream.aclose())
        nothing_more(world, stream)
        assert ended(world) == ReplyEnded("1.1", "closed")


def test_what_was_counted_before_a_close_is_kept():
    with abc(usage=Usage(7)) as world:
        stream = opened(world)
        some(world, stream, 4)
        world.play(stream.aclose())
        assert ended(world) == ReplyEnded("1.1", "closed", usage=Usage(7))


def test_a_cancel_while_a_part_is_awaited_closes_the_reply():
    with abc(each=MS) as world:
        stream = opened(world)
        some(world, stream, 1)
        task = world.task(_next(stream))
        world.kernel.settle()
        task.cancel()
        world.kernel.run_until(task.done)
        assert ended(world) == ReplyEnded("1.1", "closed")
        nothing_more(world, stream)


def test_a_cancel_while_the_end_is_awaited_changes_nothing():
    with abc() as world:
        stream = opened(world)
        some(world, stream, 4)
        task = world.task(_next(stream))
        task.cancel()
        world.kernel.run_until(task.done)
        nothing_more(world, stream)
        assert ended(world) == ReplyEnded("1.1", "complete", ABC)


def test_a_close_while_a_part_is_awaited_ends_that_wait():
    with abc(each=MS) as world:
        stream = opened(world)
        some(world, stream, 1)
        task = world.task(_next(stream))
        world.kernel.settle()
        world.play(stream.aclose())
        world.kernel.run_until(task.done)
        assert isinstance(task.exception(), StopAsyncIteration)
        assert ended(world).end == "closed"


def test_a_stream_that_was_dropped_is_closed_at_the_end_of_the_turn():
    with abc() as world:
        some(world, opened(world), 2)
        assert world.of(ReplyEnded) == []
        world.end_turn()
        assert ended(world) == ReplyEnded("1.1", "abandoned")


def test_a_stream_that_was_dropped_after_its_message_is_complete():
    with abc(fault=Hang(99)) as world:
        some(world, opened(world), 4)
        world.end_turn()
        assert ended(world) == ReplyEnded("1.1", "complete", ABC)


def test_a_stream_that_a_task_still_reads_outlives_its_turn():
    with abc(each=MS) as world:
        stream = opened(world)
        some(world, stream, 1)
        task = world.task(_next(stream))
        world.kernel.settle()
        world.end_turn()
        assert world.of(ReplyEnded) == []
        world.kernel.run_until(task.done)
        assert task.result() == TextDelta("b")


# --- choices


def test_the_time_of_a_reply_is_a_choice_among_the_replies_of_its_turn():
    def taken(way):
        script = turn("hi", Reply("a", takes=MS), Reply("b", takes=3 * MS))
        choices = choices_from({("latency", "model 1.1"): (way, 5)} if way else {})
        with World(script, choices=choices) as world:
            world.read(HI)
            return world.kernel.now()

    assert [taken(way) for way in range(5)] == [MS, 0, 3 * MS, 3 * MS, 10 * MS]


def test_every_choice_of_a_run_has_a_label_of_its_own():
    asked = []

    def pick(source, label, bound):
        asked.append((source, label, bound))
        return 0

    with World(turn("hi", Reply("abc"), Reply("d")), choices=Choices(picker=pick)) as world:
        world.ask(HI)
        world.ask(HI, world.ask(HI))
        assert asked == [
            ("latency", "model 1.1", 5),
            ("chunking", "1.1", 4),
            ("latency", "model 1.1~2", 5),
            ("chunking", "1.1~2", 4),
            ("latency", "model 1.2", 5),
        ]


def test_a_reply_is_cut_as_chosen():
    choices = choices_from({("chunking", "1.1"): (1, 4)})
    with World(turn("hi", Reply("abc", chunk=1)), choices=choices) as world:
        assert world.read(HI) == [TextDelta("abc"), ReplyDone(ABC)]


def test_lone_surrogates_and_wide_characters_survive():
    text = "a\ud800\U0001f600b"
    choices = choices_from({("chunking", "1.1"): (2, 4)})
    with World(turn("hi", Reply(text)), choices=choices) as world:
        parts = world.read(HI)
        assert [part.text for part in parts[:-1]] == list(text)
        assert parts[-1].message == Message("assistant", (Text(text),))


def test_a_stream_works_under_stock_asyncio():
    with abc() as world:

        async def reading():
            return [part async for part in await world.model.generate(request(HI))]

        world.recorder.task = lambda: ""
        assert asyncio.run(reading())[-1] == ReplyDone(ABC)
