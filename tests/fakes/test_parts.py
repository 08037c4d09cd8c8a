"""How a reply is cut into parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.choices import Choices, choices_from
from harness.core.messages import Text, Thinking, ToolCall, Usage
from harness.core.reply import ReplyDone, TextDelta, ThinkingDelta, UsageReport
from harness.fakes.line import whole_message
from harness.fakes.parts import CHUNKINGS, choose_chunking, cut, stream_parts
from harness.fakes.script import (
    DoneTwice,
    GenerateFails,
    Hang,
    LateThinking,
    Reply,
    ScriptedCall,
    StreamFails,
    Torn,
)

texts = st.text(st.characters(), max_size=40)
chunkings = st.integers(0, CHUNKINGS - 1)


@given(texts, chunkings, st.none() | st.integers(1, 50))
def test_pieces_make_the_text_whole_and_none_is_empty(text, chunking, chunk):
    pieces = cut(text, chunking, chunk)
    assert "".join(pieces) == text
    assert all(pieces)


@given(texts, texts, chunkings, st.none() | st.integers(1, 50))
def test_deltas_make_the_message_whole_however_they_are_cut(say, think, chunking, chunk):
    reply = Reply(say, think, chunk=chunk)
    message = whole_message(reply, "1", 1)
    parts, _fault_at = stream_parts(reply, message, chunking, None)
    assert "".join([p.text for p in parts if isinstance(p, TextDelta)]) == message.text == say
    thinking = "".join([p.text for p in parts if isinstance(p, ThinkingDelta)])
    assert thinking == "".join([b.text for b in message.content if isinstance(b, Thinking)])
    assert parts[-1] == ReplyDone(message)


def test_parts_come_as_thinking_then_text_then_usage_then_the_message():
    reply = Reply("to be", "hmm", "sig", (ScriptedCall("a", {"n": 1}),), Usage(1, 2, 3), chunk=2)
    message = whole_message(reply, "3", 2)
    assert message.content == (
        Thinking("hmm", "sig"),
        Text("to be"),
        ToolCall("call_3_2_1", "a", {"n": 1}),
    )
    assert stream_parts(reply, message, 0, None)[0] == [
        ThinkingDelta("hm"),
        ThinkingDelta("m"),
        TextDelta("to"),
        TextDelta(" b"),
        TextDelta("e"),
        UsageReport(Usage(1, 2, 3)),
        ReplyDone(message),
    ]


def test_a_signature_alone_makes_a_thinking_block():
    assert whole_message(Reply(signature="s"), "1", 1).content == (Thinking("", "s"),)


def test_a_call_has_its_own_id_and_its_own_broken_arguments_where_the_script_says_so():
    scripted = (ScriptedCall("a", {}, id=""), ScriptedCall("b", {"x": 1}, raw="{x"))
    assert whole_message(Reply(calls=scripted), "title", 1).calls == [
        ToolCall("", "a", {}),
        ToolCall("call_title_1_2", "b", None, "{x"),
    ]


def test_the_arguments_that_are_handed_out_are_copies():
    reply = Reply(calls=(ScriptedCall("a", {"list": [1]}),))
    message = whole_message(reply, "1", 1)
    done = stream_parts(reply, message, 0, None)[0][-1]
    assert isinstance(done, ReplyDone)
    done.message.calls[0].args["list"].append(2)
    assert message.calls[0].args == reply.calls[0].args == {"list": [1]}


REPLY = Reply("abc", chunk=1)
PARTS = ["a", "b", "c", "done"]


@pytest.mark.parametrize(
    ("fault", "parts", "at"),
    [
        (GenerateFails(), PARTS, -1),
        (Hang(), PARTS, -1),
        (Hang(0), [], 0),
        (Hang(2), ["a", "b"], 2),
        (Hang(9), PARTS, 4),
        (StreamFails(0), [], 0),
        (StreamFails(3), ["a", "b", "c"], 3),
        (StreamFails(9), PARTS, 4),
        (StreamFails(1, reported=True), ["a", "failed"], 1),
        (Torn(0), [], 0),
        (Torn(1), ["a"], 1),
        (Torn(9), ["a", "b", "c"], 3),
        (DoneTwice(), [*PARTS, "done"], 4),
        (LateThinking("oh"), [*PARTS, "oh"], 4),
    ],
)
def test_a_fault_stands_where_it_happens(fault, parts, at):
    found, fault_at = stream_parts(REPLY, whole_message(REPLY, "1", 1), 0, fault)
    names = [getattr(part, "text", type(part).__struct_config__.tag) for part in found]
    assert (names, fault_at) == (parts, at)


def test_the_way_of_cutting_is_a_choice_where_there_is_something_to_cut():
    three = choices_from({("chunking", "1.1"): (3, CHUNKINGS)})
    assert choose_chunking(three, "1.1", Reply("abc"), LateThinking()) == 3
    left = [(Reply("a", "b"), None)]
    left += [(Reply("abc"), fault) for fault in (Torn(), Hang(), StreamFails(), GenerateFails())]
    for reply, fault in left:
        asked = Choices(picker=lambda *_label: 1)
        assert choose_chunking(asked, "1.1", reply, fault) == 0
