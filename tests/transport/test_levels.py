"""Every shipped scenario comes to the same at every level and in every protocol.

What a protocol cannot say is named here, each scenario with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.core.choices import Choices
from harness.core.errors import UsageError
from harness.core.events import ReplyEnded
from harness.core.json_text import Json
from harness.core.messages import Usage
from harness.exploration.probe import Shot
from harness.fakes.script import Reply, ScriptedCall
from harness.fakes.tool_spec import Behaviour, Returns, ToolSpec
from harness.loops import LOOPS
from harness.loops.kind import LoopKind
from harness.runner.agents import at_level, loop_subject
from harness.runner.drive import Play
from harness.runner.explored import OnAgent
from harness.runner.exploring import replay, sweep
from harness.runner.files.load import find, load
from harness.runner.levels import MODEL, PROTOCOL, level_of
from harness.runner.run import run
from harness.runner.scenario import Scenario, Turn
from harness.runner.token import Token, digest
from harness.wire import CODECS

SCENARIOS = Path(__file__).parents[2] / "scenarios"
PROTOCOLS = [codec.name for codec in CODECS]

AFTER_THE_END = {  # in a protocol, nothing comes behind the end of a reply
    "cancel/whole_calls_still_open",
    "cancel/whole_reply_still_open",
    "streams/done_twice",
    "streams/fails_after_answer",
    "streams/fails_after_calls",
    "streams/late_thinking",
    "streams/reports_failure_after_calls",
    "streams/thinking_between_texts",
}
WORDS_OF_ERRORS = {  # the client says what failed, and a sub-agent's error goes to the model
    "fsm/one_of_two_subagents_fails",
    "fsm/subagent_fails",
}
AT_ONCE = {"fsm/two_subagents_at_once"}
"""Two conversations at one instant, each with its own number of chunks."""
EVERYWHERE = AFTER_THE_END | WORDS_OF_ERRORS | AT_ONCE

MORE_AT_ONCE = {"fsm/cancel_while_two_subagents_run", "fsm/one_question_at_a_time"}
"""The same, where a protocol has chunks that say nothing."""
SAYS_NOTHING = {"basics/empty_texts", "basics/silent_answer", "fsm/empty_reply"}
"""A message without words is refused."""
ARGUMENTS = {"tools/arguments_not_an_object", "tools/no_arguments"}
"""Arguments are always an object."""
SAME_IDS = {
    "fsm/call_with_an_empty_id",
    "tools/empty_ids",
    "fsm/one_id_for_two_calls",
    "tools/empty_ids_when_cancelled",
    "tools/nine_calls_one_id",
    "tools/same_id_in_every_step",
    "tools/same_id_twice",
}
"""Two calls with one id, or one with none, are refused."""
NO_JSON = {
    "fsm/arguments_that_are_no_object",
    "tools/arguments_cut_off",
    "tools/arguments_not_json",
    "tools/refused_beside_slow",
}
"""Arguments that are no JSON cannot be sent: the reply is cut off as a malformed call."""

UNSAID: dict[str, set[str]] = {
    "openai_chat": EVERYWHERE,
    "openai_responses": EVERYWHERE | MORE_AT_ONCE,
    "anthropic": EVERYWHERE | MORE_AT_ONCE | SAYS_NOTHING | ARGUMENTS | SAME_IDS,
    "gemini": EVERYWHERE | MORE_AT_ONCE | SAYS_NOTHING | ARGUMENTS | SAME_IDS | NO_JSON,
}


def cases() -> Iterator[tuple[str, Scenario, LoopKind]]:
    for path in find([SCENARIOS]):
        scenario = load(path)
        name = path.relative_to(SCENARIOS).with_suffix("").as_posix()
        for kind in LOOPS:
            if kind.name in scenario.loops:
                yield name, scenario, kind


CASES = [*cases()]


def played(scenario: Scenario, kind: LoopKind, policy: str, level: str) -> list[Json]:
    subject = at_level(loop_subject(kind, scenario, policy), level)
    return Play(scenario, subject.build, Choices()).play().trace.neutral()


def differing(level: str, *, policies: tuple[str, ...] | None = None, every: int = 1) -> set[str]:
    """The scenarios that come to something else at `level` than with the model itself."""
    return {
        name
        for name, scenario, kind in CASES[::every]
        for policy in policies or kind.policies
        if played(scenario, kind, policy, level) != played(scenario, kind, policy, "model")
    }


@pytest.mark.parametrize("level", ["http", "server"])
def test_every_scenario_is_the_same_over_http(level: str) -> None:
    assert differing(level) == UNSAID[PROTOCOL]


@pytest.mark.parametrize("level", ["http", "server"])
@pytest.mark.parametrize("protocol", [each for each in PROTOCOLS if each != PROTOCOL])
def test_other_protocols_say_the_same(protocol: str, level: str) -> None:
    # The recorded policies drop signatures, for which a provider that wants them back refuses.
    every = 3 if level == "http" else 11
    found = differing(f"{level}:{protocol}", policies=("safe",), every=every)
    assert found <= UNSAID[protocol]


def test_a_reply_that_comes_whole_is_the_same_as_one_that_is_streamed() -> None:
    plain = {name for name, _scenario, _kind in CASES if name.startswith(("basics/", "tools/"))}
    found = differing("http:openai_chat:whole", policies=("safe",), every=5)
    assert not found & (plain - EVERYWHERE)


def test_a_run_at_a_level_is_the_same_again() -> None:
    path = SCENARIOS / "tools/parallel.yaml"
    for level in ("http", "server:anthropic"):
        one, other = [run(path, "turn", level=level).trace for _ in range(2)]
        assert one.digest == other.digest


def test_the_line_that_runs_it_again_names_the_level() -> None:
    path = SCENARIOS / "basics/plain_answer.yaml"
    result = run(path, "turn", level="server:gemini")
    assert result.ok
    assert result.subject.name == "turn (safe) at server:gemini"
    assert result.rerun.endswith("--loop turn --level server:gemini")


@pytest.mark.parametrize("level", ["http", "server"])
@pytest.mark.parametrize("loop", ["turn", "fsm"])
def test_cancels_over_http_leave_nothing_open(loop: str, level: str) -> None:
    swept = sweep(SCENARIOS / "cancel/in_stream.yaml", loop, level=level)
    assert swept.ok, str(swept)


def test_a_token_of_a_level_is_replayed_there() -> None:
    path = SCENARIOS / "cancel/in_stream.yaml"
    scenario = load(path)
    shot = Shot("1.1", 2, "early", "turn")
    token = str(Token.of(digest(scenario), shots=(shot,)))
    assert replay(token, path, "turn", level="http").ok
    subject = at_level(loop_subject(LOOPS[0], scenario), "http")
    line = OnAgent(scenario, subject).replay_line(token)
    assert line.endswith("--loop turn --level http:openai_chat")


def test_levels_are_read() -> None:
    assert level_of("model") is MODEL
    assert str(level_of("http")) == f"http:{PROTOCOL}"
    assert str(level_of("server:gemini:whole")) == "server:gemini:whole"
    assert level_of("server:gemini:whole").codec.name == "gemini"


@pytest.mark.parametrize(
    ("level", "says"),
    [
        ("htp", "unknown level 'htp' (did you mean 'http'?); known: model, http, server"),
        ("model:gemini", "the level 'model:gemini' names a protocol; model speaks none"),
        ("http:openai", "unknown protocol 'openai'"),
        ("http:gemini:half", "unknown way of replying 'half'"),
    ],
)
def test_a_level_that_is_none_is_told(level: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        level_of(level)
    assert says in str(caught.value)


LEVELS_OVER_HTTP = [f"http:{codec.name}{way}" for codec in CODECS for way in ("", ":whole")] + [
    "server"
]


@pytest.mark.parametrize("level", LEVELS_OVER_HTTP)
def test_a_sum_that_the_script_leaves_out_is_the_providers_to_tell(level: str) -> None:
    turns = (Turn("Go", (Reply("Hm.", usage=Usage(10, 5)),)),)
    result = run(Scenario("usage", turns=turns), "turn", level=level)
    assert result.ok, result.verdict


@pytest.mark.parametrize("loop", ["turn", "fsm"])
@pytest.mark.parametrize("way", ["", ":whole"])
def test_a_call_that_a_protocol_cannot_say_cuts_its_reply_off(loop: str, way: str) -> None:
    calls = (ScriptedCall("clock", raw="{"),)
    turns = [Turn(text, (Reply("Hm.", calls=calls),)) for text in ("Go", "Well?")]
    scenario = Scenario(
        "odd", turns=tuple(turns), tools=(ToolSpec("clock", Behaviour(Returns("12"))),)
    )
    result = run(scenario, loop, level=f"http:gemini{way}")
    assert result.ok, result.verdict
    ended = [each.event for each in result.trace if isinstance(each.event, ReplyEnded)]
    cut_off = ("torn", "the model was cut off: filtered")
    assert [(each.end, each.error) for each in ended[:2]] == [cut_off, cut_off]


@pytest.mark.parametrize("stop", ["length", "filtered", "refused", "paused"])
@pytest.mark.parametrize("loop", ["turn", "fsm"])
@pytest.mark.parametrize("level", LEVELS_OVER_HTTP)
def test_a_reply_stops_for_the_same_reason_everywhere(level: str, loop: str, stop: Any) -> None:
    first = Reply("Let me look.", think="Hm.", calls=(ScriptedCall("clock"),))
    stopped = Reply("Well, it", think="So.", stop=stop)
    turns = (Turn("Go", (first, stopped)), Turn("And?", (Reply("Done."),)))
    scenario = Scenario("stops", turns=turns, tools=(ToolSpec("clock", Behaviour(Returns("12"))),))
    result, same = run(scenario, loop, level=level), run(scenario, loop)
    assert result.ok, result.verdict
    assert result.trace.neutral() == same.trace.neutral()


class Asks:
    """An agent that keeps what its request was answered with."""

    answered: Any = None

    def __init__(self, env: Any) -> None:
        self._env = env

    async def turn(self, text: str | None) -> None:
        body = {"model": "m", "messages": [{"role": "user", "content": text}]}
        async with self._env.http() as client:
            response = await client.post("/v1/chat/completions", json=body)
        Asks.answered = response


class AsksAndBlocks:
    """The same, synchronous."""

    def __init__(self, env: Any) -> None:
        self._env = env

    def turn(self, text: str | None) -> None:
        body = {"model": "m", "messages": [{"role": "user", "content": text}]}
        with self._env.http(sync=True) as client:
            response = client.post("/v1/chat/completions", json=body)
        Asks.answered = response


@pytest.mark.parametrize("agent", [Asks, AsksAndBlocks])
@pytest.mark.parametrize("level", ["http", "server"])
def test_only_the_level_server_speaks_over_connections(agent: Any, level: str) -> None:
    done = run(Scenario("asks", turns=(Turn("Hi", (Reply("Hello."),)),)), agent, level=level)
    assert done.ok, str(done)
    assert ("network_stream" in Asks.answered.extensions) == (level == "server")
