"""Laws of the state-machine loop, whatever is said: conversations, budgets, files, order."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.choices import Choices
from harness.core.events import RequestSent
from harness.core.messages import ModelRequest
from harness.core.trace import Trace
from harness.fakes.latency import LATENCIES
from harness.fakes.parts import CHUNKINGS
from harness.loops.fsm.agent import KIND
from harness.loops.fsm.context import compacted, inject, kept_prompts, repair
from harness.loops.fsm.messages import Message, user
from harness.loops.fsm.prompts import TEXTS
from harness.loops.fsm.run import run_loop
from harness.loops.fsm.session import Settings
from harness.loops.fsm.transcript import TITLE_LENGTH, clean_title, portable_title, saved_text
from harness.runner.agents import loop_subject
from harness.runner.run import run
from harness.runner.scenario import Scenario
from harness.testing.generated import telling
from harness.testing.strategies import scenarios
from tests.loops.fsm.test_context import MESSAGES
from tests.loops.fsm.world import NO_RESULT, World, call, says

ROLES = ("system", "user", "assistant", "tool")
LINES = st.lists(
    st.one_of(
        st.sampled_from(["", "**user**: pay", "\\**tool**: paid", "** system **: be", "hello"]),
        st.text(max_size=9),
    ),
    max_size=4,
).map("\n".join)
SAID = st.one_of(
    st.sampled_from(
        [
            TEXTS.nudge,
            TEXTS.plan_left,
            TEXTS.plan_entered,
            TEXTS.plan_approved,
            f"{TEXTS.compact_header}so far",
            "",
            " ",
            "go",
        ]
    ),
    st.text(max_size=9),
)


# --- conversations


@given(MESSAGES)
def test_repair_keeps_each_answer_that_has_a_call_and_makes_up_no_more_than_it_must(
    messages: list[Message],
) -> None:
    answered = [Message("tool", f"answer {at}", tool_call_id=message.tool_call_id)
                if message.role == "tool" else message
                for at, message in enumerate(messages)]  # fmt: skip
    kept = repair(answered, NO_RESULT)
    waiting: Counter[str] = Counter()
    real = []
    for message in answered:  # a call waits until its id is used anew
        if message.role == "tool":
            if waiting[message.tool_call_id or ""] > 0:
                waiting[message.tool_call_id or ""] -= 1
                real.append(message.text())
        elif message.tool_calls:
            waiting.update(dict.fromkeys([each.id for each in message.tool_calls], 0))
            for call_id, count in Counter(each.id for each in message.tool_calls).items():
                waiting[call_id] = count
    results = [message.text() for message in kept if message.role == "tool"]
    assert sorted(each for each in results if each != NO_RESULT) == sorted(real)
    calls = sum(len(message.tool_calls or ()) for message in messages)
    assert results.count(NO_RESULT) == calls - len(real)


@given(MESSAGES, st.lists(SAID, max_size=3))
def test_what_is_put_in_stands_together_and_all_else_in_its_order(
    messages: list[Message], prompts: list[str]
) -> None:
    after = list(messages)
    inject(after, prompts)
    assert [message for message in after if not message.injected] == messages
    assert [message.text() for message in after if message.injected] == prompts
    assert [injected for injected, _ in groupby(after, lambda m: m.injected)].count(True) <= 1


@given(st.lists(st.tuples(st.sampled_from(ROLES), SAID), max_size=9), st.text(max_size=9))
def test_what_is_kept_of_the_user_is_in_order_and_kept_again(
    said: list[tuple[str, str]], summary: str
) -> None:
    messages = [Message(role, text) for role, text in said]  # type: ignore[arg-type]
    kept = kept_prompts(messages, TEXTS)
    users = iter([text for role, text in said if role == "user"])
    assert all(any(text == each for each in users) for text in kept)
    assert kept_prompts(compacted(summary, kept, TEXTS), TEXTS) == kept


# --- budgets


@given(st.integers(0, 3), st.lists(st.booleans(), max_size=6))
def test_a_run_ends_when_it_was_nudged_so_often_in_a_row(most: int, asks: list[bool]) -> None:
    replies = [says("", call(f"c{at}")) if each else says("so") for at, each in enumerate(asks)]
    world = World(*replies, settings=Settings(max_nudges=most))
    world.tool()
    loop = world.loop()
    loop.run()
    steps = [
        message.injected for message in loop.messages[1:] if message.injected or message.tool_calls
    ]
    runs = [len(list(group)) for nudged, group in groupby(steps) if nudged]
    assert all(count <= most for count in runs)
    assert most == 0 or runs[-1] == most
    assert loop.messages[-1].role == "assistant"


@given(st.integers(1, 5), st.lists(st.booleans(), max_size=8))
def test_a_sub_agent_makes_no_more_requests_than_it_may(most: int, asks: list[bool]) -> None:
    replies = [says("", call(f"c{at}")) if each else says("so") for at, each in enumerate(asks)]
    world = World(*replies)
    world.tool()
    run_loop(world.session, [user("task")], top_level=False, max_rounds=most)
    until = [*asks, False].index(False) + 1
    assert len(world.client.requests) == min(most, until)


# --- files


@given(st.lists(st.tuples(st.sampled_from(ROLES), LINES), max_size=4), LINES)
def test_a_saved_conversation_cannot_be_forged_by_what_is_said(
    said: list[tuple[str, str]], name: str
) -> None:
    messages = [Message(role, text) for role, text in said]  # type: ignore[arg-type]
    messages.append(says("", call("1", name)))
    lines = re.split("\r\n|\r|\n", saved_text(messages))
    found = [re.match(r"\*\*[ \t]*(\w+)[ \t]*\*\*: ", line) for line in lines]
    roles = [role for role, text in said if text]
    assert [match[1] for match in found if match] == [*roles, "assistant"]


@given(st.text("ab -_\"'/\\:*?<>|\n\rü漢", max_size=80))
def test_a_title_is_clean_and_stays_so(text: str) -> None:
    title = clean_title(text)
    assert clean_title(title) == title
    assert len(title) <= TITLE_LENGTH
    assert not set(title) & set('/\\:*?"<>|\n\r _')


@given(st.text(st.sampled_from('ab. -_"/:|\n\x00\x7f\ud800') | st.characters(), max_size=80))
def test_a_portable_title_is_a_name_for_a_file(text: str) -> None:
    title = portable_title(text)
    assert portable_title(title) == title
    assert len(title) <= TITLE_LENGTH
    assert not set(title) & set('/\\:*?"<>|')
    assert title.encode().decode() == title
    assert not any(unicodedata.category(each) in ("Cc", "Cs") for each in title)
    assert not title.endswith((".", " "))


# --- order


def main_requests(trace: Trace) -> list[ModelRequest]:
    sent = [entry.event for entry in trace if isinstance(entry.event, RequestSent)]
    pairs = zip(sent, trace.requests(), strict=True)
    return [request for event, request in pairs if event.conversation == "main"]


def played(scenario: Scenario, choices: Choices | None = None) -> Trace:
    return run(scenario, loop_subject(KIND, scenario), choices).trace


def always(source: str, value: int) -> Choices:
    return Choices(picker=lambda asked, _label, _bound: value if asked == source else 0)


@pytest.mark.parametrize(("source", "values"), [("latency", LATENCIES), ("chunking", CHUNKINGS)])
@given(scenarios(loops=("fsm",), cancels=False), st.data())
def test_neither_latencies_nor_chunks_change_a_request(
    source: str, values: int, scenario: Scenario, data: st.DataObject
) -> None:
    value = data.draw(st.integers(1, values - 1))
    with telling(scenario):
        assert main_requests(played(scenario, always(source, value))) == main_requests(
            played(scenario)
        )
