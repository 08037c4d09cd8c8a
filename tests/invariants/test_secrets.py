"""SECRETS: keys in requests, which nobody had told the agent."""

import pytest

from harness.core.events import Delta, ReplyEnded, RequestHead, RequestSent, ToolEnded, TurnStarted
from harness.core.messages import Message, Text, Thinking, ToolCall, ToolSchema, assistant, user
from harness.invariants.secrets import Secrets
from tests.invariants.traces import found, judged, sent, started

KEY = "gsk_" + "aB3d" * 13
SHOWN = (
    "request 1.1 holds a Groq key, which nobody had told the agent in this run: gsk_..., "
    "56 characters"
)


@pytest.mark.parametrize(
    "message",
    [
        user(f"Go. My key is {KEY}."),
        assistant("", ToolCall("1", "pay", {"a": ["x", {"key": KEY, "n": 1}]})),
        assistant("", ToolCall("1", "pay", None, f'{{"key": "{KEY}')),
        Message("tool", (Text("x" * 5000 + f" {KEY}"),), "1"),
    ],
)
def test_a_key_that_comes_from_nowhere_is_told_once_and_without_it(message: Message) -> None:
    (violation,) = found(Secrets, started(), sent(message), sent(message, kept=1, reply="1.2"))
    assert violation.message == SHOWN


def test_so_is_one_in_the_system_prompt_or_a_tool() -> None:
    head = RequestHead("m", f"Use {KEY}", (ToolSchema("a", f"or {KEY}"),))
    request = RequestSent(
        "main", "1.1", 0, (user("Go."), Message("user", (Thinking(KEY),))), "d", head
    )
    (violation,) = found(Secrets, started(), request)
    assert violation.message == SHOWN


@pytest.mark.parametrize(
    "event",
    [
        TurnStarted(1, f"use {KEY}"),
        ToolEnded("1", "read", "returned", f"KEY={KEY}"),
        ToolEnded("1", "read", "returned", {"env": [KEY]}),
        ToolEnded("1", "read", "raised", None, f"bad {KEY}"),
        ReplyEnded("1.1", "complete", assistant(f"It is {KEY}")),
        ReplyEnded("1.1", "complete", assistant("", ToolCall("1", "pay", {"key": KEY}))),
    ],
)
def test_what_the_agent_was_told_it_may_say(event: TurnStarted | ToolEnded | ReplyEnded) -> None:
    assert found(Secrets, started(text=None), event, sent(user(f"I was told {KEY}"))) == []
    assert len(found(Secrets, started(), sent(user(f"I was told {KEY}")), event)) == 1


def test_what_a_reply_said_before_it_was_cut_off_too() -> None:
    pieces = (Delta("1.1", "text", f"It is {KEY[:9]}"), Delta("1.1", "text", KEY[9:]))
    torn = ReplyEnded("1.1", "torn")
    assert found(Secrets, started(), sent(), *pieces, torn, sent(user(KEY), reply="1.2")) == []


def test_every_request_is_judged() -> None:
    again = RequestSent("main", "1.2", 1, (user(KEY),), "d")
    assert len(found(Secrets, started(), sent(), again)) == 1
    assert judged(Secrets, started(), sent())
    assert not judged(Secrets, started())
