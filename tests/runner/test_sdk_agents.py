"""Agents on the vendors' own libraries: the right ones are right wherever they are cancelled, and a
classic mistake in each is found by a sweep, by the provider's own rules where it takes those.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from harness.core.messages import Usage
from harness.core.ports import Agent, Env
from harness.fakes.script import Reply, ScriptedCall, Torn
from harness.fakes.tool_spec import Behaviour, Returns, ToolSpec
from harness.runner.exploring import sweep
from harness.runner.run import run
from harness.runner.scenario import Scenario, Turn
from tests.subjects.sdk import chat, gemini, messages, responses
from tests.subjects.sdk.loop import AsyncLoop, ForgetfulLoop, SyncLoop

MS = 1_000_000
CASE = Scenario(
    "weather",
    turns=(
        Turn(
            "What is the weather?",
            (
                Reply(
                    think="Two tools.",
                    say="Let me look.",
                    calls=(ScriptedCall("weather", {"city": "Rome"}), ScriptedCall("clock")),
                    usage=Usage(10, 5, 15),
                ),
                Reply(say="Sunny at noon."),
            ),
        ),
        Turn("And now?", (Reply(say="Still."),)),
    ),
    tools=(
        ToolSpec("weather", Behaviour(Returns("sunny"), takes=50 * MS)),
        ToolSpec("clock", Behaviour(Returns("12:00"), takes=10 * MS)),
    ),
)
ASYNC: tuple[Any, ...] = (
    chat.AsyncChat,
    responses.AsyncResponses,
    messages.AsyncMessages,
    gemini.AsyncGemini,
)
SYNC: tuple[Any, ...] = (
    chat.SyncChat,
    responses.SyncResponses,
    messages.SyncMessages,
    gemini.SyncGemini,
)


FOUND = {gemini.SyncGemini: {"QUIESCE"}}
"""google-genai 3.6.1 leaves the response open where Ctrl-C comes while a stream is read, also where
the generator that it gave is closed.
"""


def agent(dialect: Any, loop: Any = None, **how: bool) -> Callable[[Env], Agent]:
    """How to build an agent that speaks so."""
    chosen = loop or (SyncLoop if how.get("sync") else AsyncLoop)
    return lambda env: chosen(env, dialect(env, **how))


WAYS = ((True, False), (False, False), (True, True))
RIGHT = [
    (dialect, stream, dialect in SYNC, own) for dialect in (*ASYNC, *SYNC) for stream, own in WAYS
]


@pytest.mark.parametrize(
    ("dialect", "stream", "sync", "own"),
    RIGHT,
    ids=lambda value: value.__name__ if isinstance(value, type) else str(value),
)
def test_a_right_agent_is_right(dialect: Any, stream: bool, sync: bool, own: bool) -> None:
    result = run(CASE, agent(dialect, stream=stream, sync=sync, own=own))
    assert result.ok, result.verdict
    assert "ACCEPTED" not in result.verdict.not_judged


@pytest.mark.parametrize("dialect", ASYNC, ids=lambda dialect: dialect.__name__)
def test_it_may_be_cancelled_anywhere(dialect: Any) -> None:
    found = sweep(CASE, agent(dialect))
    assert found.report.status == "PASS", [group.key for group in found.report.failed]


@pytest.mark.parametrize("dialect", SYNC, ids=lambda dialect: dialect.__name__)
def test_it_may_be_interrupted_anywhere(dialect: Any) -> None:
    assert keys(CASE, agent(dialect, sync=True)) == FOUND.get(dialect, set())


def keys(scenario: Scenario, build: Callable[[Env], Agent]) -> set[str]:
    """The invariants that a sweep finds broken."""
    return {group.key.partition(":")[0] for group in sweep(scenario, build).report.failed}


def refused(scenario: Scenario, build: Callable[[Env], Agent]) -> list[str]:
    """By which rules requests were refused."""
    violations = run(scenario, build).verdict.violations
    return [each.message for each in violations if each.invariant == "ACCEPTED"]


@pytest.mark.parametrize("dialect", ASYNC, ids=lambda dialect: dialect.__name__)
def test_calls_that_a_cancel_leaves_unanswered_are_refused(dialect: Any) -> None:
    assert {"RESUME", "ACCEPTED"} <= keys(CASE, agent(dialect, ForgetfulLoop))


@pytest.mark.parametrize(
    ("dialect", "rule"),
    [
        (responses.DropsReasoning, "R4 of openai_responses"),
        (messages.SaysItAfterwards, "A3 of anthropic"),
        (gemini.LosesSignatures, "G5 of gemini"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_a_history_that_only_this_provider_refuses_is_found(dialect: Any, rule: str) -> None:
    messages = refused(CASE, agent(dialect))
    assert messages, "the provider takes it"
    assert rule in messages[0]
    assert "ACCEPTED" in keys(CASE, agent(dialect))


class Thinks(messages.AsyncMessages):
    def asked(self) -> dict[str, Any]:
        return {**super().asked(), "thinking": {"type": "adaptive"}}


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_model_that_is_to_think_does_so_without_words_too(stream: bool) -> None:
    first, second = CASE.turns
    silent = replace(first, replies=tuple([replace(each, think="") for each in first.replies]))
    result = run(replace(CASE, turns=(silent, second)), agent(Thinks, stream=stream))
    assert result.ok, result.verdict
    assert result.trace.requests()[1].messages[1].content[0].text == ""


def test_a_stream_that_ends_early_is_no_whole_reply() -> None:
    first, second = CASE.turns
    torn = replace(second, replies=(Reply(say="Still sunny, I think.", chunk=6, fault=Torn(2)),))
    case = replace(CASE, turns=(first, torn))
    assert "TERMINAL-TRUTH" in keys(case, agent(chat.TakesWhatCame))
    assert keys(case, agent(chat.AsyncChat)) == set()
