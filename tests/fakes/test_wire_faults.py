"""What faults on the wire come to where no HTTP is spoken."""

from typing import get_args

import pytest
from msgspec.structs import replace

from harness.core.choices import choices_from
from harness.core.durations import SECOND
from harness.core.events import Delta, FaultInjected, ReplyEnded
from harness.core.messages import user
from harness.core.ports import ProviderFailed
from harness.core.reply import ReplyDone, ReplyFailed, ReplyInterrupted
from harness.fakes.line import describe
from harness.fakes.model import FakeModel
from harness.fakes.neutral import HARMLESS, neutral
from harness.fakes.script import DoneTwice, Fault, Reply, ScriptedCall
from harness.fakes.wire_faults import (
    SEARCHED,
    BadJson,
    BadUtf8,
    CutAt,
    CutLine,
    Dropped,
    ErrorFrame,
    Http,
    Incomplete,
    JsonError,
    Refused,
    Reset,
    Stall,
    WireFault,
)
from tests.fakes.world import World, request, turn

HI = user("hi")


def abc(**fields):
    return World(turn("hi", Reply("abc", chunk=1, **fields)))


def ends(world):
    events = world.of(FaultInjected, ReplyEnded)
    return [each.fault if isinstance(each, FaultInjected) else each.end for each in events]


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Http(503, "busy"), "status 503: busy"),
        (Refused(), "the connection was refused"),
        (Dropped(), "the connection was closed without an answer"),
    ],
    ids=str,
)
def test_a_request_fails(fault, told):
    with abc(fault=fault) as world:
        with pytest.raises(ProviderFailed, match=f"^{told}$"):
            world.read(HI)
        assert ends(world) == [fault.__struct_config__.tag, "failed"]
        assert world.ask(HI).text == "abc"


def test_the_trace_tells_the_status_and_when_to_ask_again():
    with abc(fault=Http(429, retry_after=2 * SECOND, should_retry=True)) as world:
        with pytest.raises(ProviderFailed):
            world.read(HI)
        (event,) = world.of(FaultInjected)
        assert event == FaultInjected("http", "1.1", 429, 2 * SECOND, True)


@pytest.mark.parametrize(
    "fault",
    [
        Incomplete(2),
        Reset(2),
        BadJson(2),
        BadUtf8(2),
        JsonError(),
        CutAt(9, "incomplete"),
        CutAt(9, "reset"),
    ],
    ids=str,
)
def test_a_stream_fails(fault):
    with abc(fault=fault) as world:
        with pytest.raises(ProviderFailed):
            world.read(HI)
        assert ends(world) == [fault.__struct_config__.tag, "failed"]
        deltas = 0 if isinstance(fault, CutAt | JsonError) else 2
        assert len(world.of(Delta)) == deltas


@pytest.mark.parametrize("fault", [CutLine(2), CutAt(9)], ids=str)
def test_a_stream_tears(fault):
    with abc(fault=fault) as world:
        parts = world.read(HI)
        assert not [part for part in parts if isinstance(part, ReplyDone)]
        assert ends(world) == [fault.__struct_config__.tag, "torn"]


def test_an_error_frame_is_reported():
    with abc(fault=ErrorFrame(2, "busy")) as world:
        assert world.read(HI)[-1] == ReplyFailed("stream", "busy")
        assert ends(world) == ["error_frame", "failed"]


@pytest.mark.parametrize("after", range(4))
def test_a_stall_takes_its_time(after):
    with abc(fault=Stall(after, 5 * SECOND), takes=SECOND) as world:
        parts = world.read(HI)
        assert world.kernel.now() == 6 * SECOND
        assert len(parts) == 4
        assert world.kinds.index("fault_injected") == 1 + after
        assert ends(world) == ["stall", "complete"]


def test_who_reads_no_more_while_it_stalls_closes_the_reply():
    with abc(fault=Stall(1, 5 * SECOND)) as world:
        task = world.task(world.reading(request(HI)))
        world.run_for(SECOND)
        task.cancel()
        world.run_for(0)
        assert ends(world) == ["stall", "closed"]


@pytest.mark.parametrize("kind", HARMLESS, ids=lambda kind: kind.__name__)
def test_what_does_no_harm_is_told_and_does_nothing(kind):
    with abc(fault=kind()) as world:
        assert world.ask(HI).text == "abc"
        assert ends(world) == [kind.__struct_config__.tag, "complete"]


def test_every_fault_comes_to_something_that_has_nothing_to_do_with_http():
    wire = {kind for group in get_args(WireFault) for kind in get_args(group) or (group,)}
    for kind in get_args(Fault):
        found = neutral(kind())
        assert (found is None) is (kind in HARMLESS)
        assert type(found) not in wire - {Stall}
    assert neutral(None) is None


def test_a_search_may_add_faults():
    choices = choices_from({("fault", "1.1"): (7, len(SEARCHED) + 1)})
    with World(turn("hi", Reply("abc")), choices=choices) as world:
        world.model = FakeModel(world.stage, world.recorder, choices, search=SEARCHED)
        with pytest.raises(ProviderFailed):
            world.read(HI)
        assert ends(world) == [SEARCHED[6].__struct_config__.tag, "failed"]
        assert world.ask(HI).text == "abc"


@pytest.mark.parametrize("stop", ["length", "filtered"])
def test_a_reply_that_was_cut_off_is_interrupted(stop):
    reply = Reply("abc", calls=(ScriptedCall("clock"),), stop=stop)
    with World(turn("hi", reply)) as world:
        assert world.read(HI)[-1] == ReplyInterrupted()
        (end,) = world.of(ReplyEnded)
        assert (end.end, end.message) == ("torn", None)
        assert end.error == f"the model was cut off: {stop}"


def test_the_end_of_a_reply_that_was_cut_off_comes_once_only():
    with abc(stop="length", fault=DoneTwice()) as world:
        assert [type(part) for part in world.read(HI)].count(ReplyInterrupted) == 1


@pytest.mark.parametrize("stop", ["end", "calls", "refused", "paused"])
def test_other_reasons_leave_the_message_whole(stop):
    with abc(stop=stop) as world:
        assert world.ask(HI).text == "abc"
    assert Reply("abc", stop=stop).stopped == stop


def test_a_refusal_is_no_text_of_the_message():
    reply = Reply(refusal="I would rather not.")
    assert reply.stopped == "refused"
    assert replace(reply, stop="length").stopped == "refused"
    assert not replace(reply, stop="length").cut_off
    with World(turn("hi", reply)) as world:
        assert world.ask(HI).text == ""


def test_a_reply_is_described_with_why_it_stops():
    assert describe(Reply("a", stop="length")) == "say: 'a'; stop: length"
    assert describe(Reply(refusal="no", fault=Refused())) == "refusal: 'no'; fault: refused"
