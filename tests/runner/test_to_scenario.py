"""Recorded sessions as scenarios: a loop that made one makes the same requests there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from harness.core.errors import UsageError
from harness.core.json_text import dumps
from harness.core.ports import Env
from harness.fakes.script import Also, AlsoWhen, Hang, Reply, ScriptedCall, Torn
from harness.fakes.tool_spec import Answers, Behaviour, Returns, ToolSpec
from harness.fakes.wire_faults import (
    BadJson,
    BadUtf8,
    CutLine,
    Dropped,
    ErrorFrame,
    Http,
    Incomplete,
    JsonError,
    Refused,
    Reset,
    Stall,
)
from harness.runner.exploring import sweep
from harness.runner.files.load import read_script
from harness.runner.result import Result
from harness.runner.scenario import Cancel, Scenario, Turn
from harness.runner.served import serve
from harness.runner.to_scenario import Converted, convert, to_scenario
from harness.transport.cassettes.file import load
from harness.transport.cassettes.form import Cassette, Chunk, Interaction
from harness.transport.cassettes.use import cassette as cassette_at
from harness.wire.canonical import canonical
from harness.wire.http import Request
from tests.runner import recordings
from tests.runner.recordings import asking, gave, replying, said, user
from tests.runner.taping import (
    CASE,
    CLOCK,
    MS,
    OSLO,
    PLACE,
    PROTOCOLS,
    ROME,
    WEATHER,
    sdk,
    taped,
)
from tests.subjects.sdk import chat, messages, responses
from tests.subjects.sdk.loop import AsyncLoop


def wrong(result: Result) -> set[str]:
    hard = {each.invariant for each in result.verdict.violations if each.severity == "hard"}
    return hard | {each.kind for each in result.failures}


def asked(cassette: Cassette) -> list[bytes]:
    return [canonical(each.request).digest for each in cassette.interactions]


def same(case: Scenario, agent: Any, level: str = "http:openai_chat") -> Converted:
    """Record a session, convert it, and play that, also as a file: the requests are the same."""
    cassette, result = taped(case, agent, level)
    made = convert(cassette, "again")
    loaded = read_script(made.text)
    assert loaded == replace(
        made.scenario, name=loaded.name, source=loaded.source, turns=loaded.turns
    )
    for scenario in (made.scenario, loaded):
        again, found = taped(scenario, agent, level)
        assert asked(again) == asked(cassette), made.text
        assert wrong(found) == wrong(result), (found.failures, made.text)
    return made


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("loop", ["turn", "fsm"])
def test_the_reference_loops_ask_the_same(loop: str, protocol: str) -> None:
    made = same(CASE, loop, f"http:{protocol}")
    assert made.level == f"http:{protocol}"


@pytest.mark.parametrize("way", [{}, {"sync": True}, {"stream": False}], ids=str)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_agent_on_a_library_asks_the_same(protocol: str, way: dict[str, bool]) -> None:
    same(CASE, sdk(protocol, **way), "model")


# --- what goes wrong, and where it is cut


SAID = "Let me look that up, it will not take long at all."
LONG = Reply(say=SAID, chunk=8, takes=300 * MS, each=20 * MS)
TITLE = Also(
    "title",
    AlsoWhen(system_contains="Give this conversation a title"),
    (Reply(say="Weather"),),
)
TASK = ScriptedCall(
    "Agent", {"description": "look", "subagent_type": "general", "prompt": "the weather of Rome"}
)
WORKER = Also(
    "worker",
    AlsoWhen(system_contains="You work on one task"),
    (Reply(calls=(ROME,)), Reply(say="Sunny.")),
)


def case(
    *replies: Reply, cancel: Cancel | None = None, then: tuple[str, ...] = ("And now?",)
) -> Scenario:
    """A turn of these replies, and plain ones after it."""
    first = Turn("What is the weather?", replies, cancel)
    return Scenario(
        "x",
        turns=(first, *[Turn(text, (Reply(say="Still."),)) for text in then]),
        tools=(CLOCK, WEATHER),
    )


def delta(nth: int, kind: str = "text", mode: Any = "early") -> Cancel:
    return Cancel(after="delta", name=kind, nth=nth, mode=mode)


def told(*values: Any) -> Scenario:
    """A reply that calls tools which give these values."""
    names = "abcdefgh"[: len(values)]
    calls = tuple([ScriptedCall(name) for name in names])
    return Scenario(
        "x",
        turns=(Turn("go", (Reply(calls=calls), Reply(say="Done."))),),
        tools=tuple(
            [
                ToolSpec(name, Behaviour(Returns(value)))
                for name, value in zip(names, values, strict=True)
            ]
        ),
    )


THOUGHT = replace(LONG, think="Hm, a long thought about the weather.")
CALLS = Reply(say="So.", calls=(ROME, ScriptedCall("clock")))
CITY = ScriptedCall("weather", {"city": "Rome", "day": 1})
FAULTS: tuple[Any, ...] = (
    Http(429, retry_after=2_000 * MS),
    Http(503, "unavailable", html=True),
    Http(529, "overloaded", retry_after=500 * MS, retry_as="milliseconds"),
    Http(429, "later", retry_after=2_000 * MS, retry_as="date"),
    Http(400, "no", should_retry=False),
    JsonError(),
    Refused(),
    Dropped(),
    Incomplete(2),
    Reset(2),
    CutLine(2),
    ErrorFrame(2),
    BadJson(2),
    BadUtf8(2),
    Torn(2),
    Stall(2, 5_000 * MS),
)
ODD: dict[str, Scenario] = {
    **{
        f"fault {type(fault).__name__} {n}": case(replace(LONG, fault=fault))
        for n, fault in enumerate(FAULTS)
    },
    "429 twice": case(replace(LONG, fault=Http(429), fault_times=2)),
    "500 always": case(replace(LONG, fault=Http(500), fault_times=None)),
    "cancel in the text": case(LONG, cancel=delta(3)),
    "cancel as it comes": case(LONG, cancel=delta(3, mode="now")),
    "cancel late": case(LONG, cancel=delta(1, mode="late")),
    "cancel before the answer": case(LONG, cancel=Cancel(at=100 * MS)),
    "cancel in the reasoning": case(THOUGHT, cancel=delta(2, "thinking")),
    "cancel behind the reasoning": case(THOUGHT, cancel=delta(2)),
    "cancel in the second step": case(Reply(say="So.", calls=(ROME,)), LONG, cancel=delta(3)),
    "cancel as a tool starts": case(
        CALLS, cancel=Cancel(after="tool_started", name="weather", mode="early")
    ),
    "cancel while tools run": case(CALLS, cancel=Cancel(at=20 * MS)),
    "cancel before tools": case(
        CALLS, cancel=Cancel(after="reply_ended", name="complete", mode="early")
    ),
    "no objects": case(
        Reply(calls=(ScriptedCall("clock", [1]),)), Reply(calls=(ScriptedCall("clock", [2]),)), LONG
    ),
    "cancel the last turn": case(LONG, cancel=delta(3), then=()),
    "cancel before it begins": case(cancel=Cancel(after="turn_started")),
    "three cancels": Scenario(
        "x", turns=tuple([Turn(f"turn {n}", (LONG,), delta(3)) for n in range(3)]), tools=(CLOCK,)
    ),
    "goes on": Scenario(
        "x", turns=(Turn("go", (LONG,), delta(3)), Turn(None, (Reply(say="Done."),)))
    ),
    "goes on behind a tool": Scenario(
        "x",
        turns=(
            Turn("go", (Reply(calls=(ROME,)),), Cancel(after="tool_started", name="weather")),
            Turn(None, (Reply(say="Done."),)),
        ),
        tools=(WEATHER,),
    ),
    "length": case(replace(LONG, stop="length")),
    "refusal": case(Reply(refusal="I will not.")),
    "no JSON": case(Reply(calls=(ScriptedCall("weather", None, "{bad"),)), LONG),
    "no such tool": case(Reply(calls=(ScriptedCall("wether", {"a": 1}),)), LONG),
    "the same call twice": case(Reply(calls=(ScriptedCall("clock"), ScriptedCall("clock"))), LONG),
    "the same id twice": case(
        Reply(calls=(ScriptedCall("clock", id="a"),)),
        Reply(calls=(ScriptedCall("clock", id="a"),)),
        LONG,
    ),
    "the same text again": case(LONG, then=("What is the weather?", "What is the weather?")),
    "a part of the arguments": Scenario(
        "x",
        turns=(
            Turn("go", (Reply(calls=(CITY, ROME, OSLO)), Reply(calls=(ROME,)), Reply(say="ok"))),
        ),
        tools=(ToolSpec("weather", calls=tuple([Behaviour(Returns(f"r{n}")) for n in range(4)])),),
    ),
    "values": told({"x": [1, None, True]}, 14, None, True, "text"),
    "no texts": told({"x": [1, None, True]}, 14, True),
    "odd texts": told("14", "", '{"a": 1}', "Error: x"),
    "an empty text": told(""),
    "a title": replace(
        case(Reply(say="So.", calls=(ROME,)), LONG), config={"fsm": {"titles": True}}, also=(TITLE,)
    ),
    "a sub-agent": replace(
        case(Reply(say="So.", calls=(TASK,)), LONG),
        config={"fsm": {"subagents": True}},
        also=(WORKER,),
    ),
    "a limit of steps": replace(
        case(Reply(say="So.", calls=(ROME,))),
        config={"turn": {"max_steps": 1}, "fsm": {"max_rounds": 1}},
    ),
}
UNSAID = {
    ("no JSON", "async gemini"),
    ("no JSON", "sync gemini"),
    *[
        ("no objects", f"{who} {protocol}")
        for who in ("turn", "fsm", "async", "sync")
        for protocol in ("anthropic", "gemini")
    ],
}
"""Arguments that are no objects cannot be said in these protocols."""


def agents() -> Iterator[tuple[str, Any, str]]:
    for protocol in PROTOCOLS:
        yield f"turn {protocol}", "turn", f"http:{protocol}"
        yield f"fsm {protocol}", "fsm", f"http:{protocol}"
        yield f"async {protocol}", sdk(protocol), "model"
        yield f"sync {protocol}", sdk(protocol, sync=True), "model"


EVERY = {name: (agent, level) for name, agent, level in agents()}
FOUR = 4
PAIRS = [
    (name, who)
    for at, name in enumerate(ODD)
    for which, who in enumerate(EVERY)
    if (which // FOUR - which - at) % FOUR == 0 and (name, who) not in UNSAID
]
"""Each session by four agents, each of another protocol: turn, fsm, async and sync in turn."""


@pytest.mark.parametrize(("name", "who"), PAIRS)
def test_what_went_wrong_goes_wrong_again(name: str, who: str) -> None:
    scenario = ODD[name]
    agent, level = EVERY[who]
    cassette, result = taped(scenario, agent, level)
    made = convert(cassette, "again")
    loaded = read_script(made.text)
    # What the loop itself is set to is no matter of requests.
    own = replace(loaded, config={**scenario.config, **loaded.config})
    again, found = taped(own, agent, level)
    # A last turn that was cut is followed by one of the runner's, which is recorded as well.
    assert asked(again)[: len(cassette.interactions)] == asked(cassette), made.text
    assert wrong(found) <= wrong(result), (found.failures, made.text)


# --- what is said of a session


def test_times_are_kept() -> None:
    made = same(CASE, "turn").scenario
    first = made.turns[0].replies[0]
    assert (first.takes, first.each, first.chunk) == (300 * MS, 20 * MS, 8)
    assert [each.takes for each in made.turns[0].replies] == [300 * MS, 100 * MS, 200 * MS]
    clock, weather = made.tools
    assert (clock.name, clock.calls[0].action) == ("clock", Returns("12:00"))
    assert [case.args for case in weather.cases] == [{"city": "Rome"}, {"city": "Oslo"}]
    assert weather.cases[0].behaviour.takes == 25 * MS  # of 50 ms for two calls
    assert weather.parameters == PLACE


def test_a_recording_may_begin_in_the_middle() -> None:
    cassette, _result = taped(CASE, "turn", "http:anthropic")
    late = replace(cassette, interactions=cassette.interactions[2:])
    made = convert(late, "late")
    assert [turn.user for turn in made.scenario.turns] == ["What is the weather?", "And now?"]
    assert len(made.scenario.turns[0].replies) == 3
    assert [tool.name for tool in made.scenario.tools] == ["clock", "weather"]
    again, _result = taped(made.scenario, "turn", "http:anthropic")
    assert asked(again) == asked(cassette)
    cut, _result = taped(ODD["cancel while tools run"], "turn", "http:anthropic")
    made = convert(replace(cut, interactions=cut.interactions[1:]), "late")
    again, _result = taped(made.scenario, "turn", "http:anthropic")
    assert asked(again) == asked(cut)
    last = convert(replace(cassette, interactions=cassette.interactions[3:]), "last")
    assert "turn 1 was before the recording" in last.text
    again, _result = taped(last.scenario, "turn", "http:anthropic")
    assert asked(again) == asked(cassette)


class Pictured(chat.AsyncChat):
    """An agent that shows the model a picture beside the user's text."""

    def say(self, text: str) -> None:
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        self.history.append({"role": "user", "content": [{"type": "text", "text": text}, picture]})


class Chained(responses.AsyncResponses):
    """An agent that refers to what was said by the id of the response."""

    stored = True

    def __init__(self, env: Env, **how: bool) -> None:
        super().__init__(env, **how)
        self.before: Any = None

    def asked(self) -> dict[str, Any]:
        new, self.history = self.history, []
        known = {} if self.before is None else {"previous_response_id": self.before}
        return {**super().asked(), "input": new, **known}

    async def ask(self) -> list[Any]:
        reply = await self.client.responses.create(**self.asked())
        if self.stream:
            reply = [event async for event in reply][-1].response
        self.before = reply.id
        calls = self.keep(reply.output)
        self.history = []
        return calls


class Backwards(AsyncLoop):
    """A loop that tells the results of calls in the other order."""

    async def run_tools(self, calls: Any) -> None:
        results = [await self.run_tool(call) for call in calls]
        self.dialect.answer(results[::-1])


class Experienced(chat.AsyncChat):
    """An agent that brings an example of a conversation with it."""

    def __init__(self, env: Env, **how: bool) -> None:
        super().__init__(env, **how)
        self.history += [
            {"role": "user", "content": "Weather in Rome?"},
            {"role": "assistant", "content": "Sunny."},
        ]


class Dated(chat.AsyncChat):
    """An agent whose system prompt tells what changes from one request to the next."""

    def __init__(self, env: Env, **how: bool) -> None:
        super().__init__(env, **how)
        self.count = 0

    def asked(self) -> dict[str, Any]:
        self.count += 1
        system = {"role": "system", "content": f"Be brief. This is request {self.count}."}
        return {**super().asked(), "messages": [system, *self.history[1:]]}


class Reminding(messages.AsyncMessages):
    """An agent that says something of its own behind the results of tools."""

    def answer(self, results: Any) -> None:
        super().answer(results)
        text = "<system-reminder>\nMind the list.\n</system-reminder>"
        self.history[-1]["content"].append({"type": "text", "text": text})


@pytest.mark.parametrize(
    ("dialect", "loop", "stream"),
    [
        (Reminding, AsyncLoop, True),
        (Dated, AsyncLoop, True),
        (Pictured, AsyncLoop, True),
        (Chained, AsyncLoop, False),
        (Chained, AsyncLoop, True),
        (chat.AsyncChat, Backwards, True),
        (messages.AsyncMessages, Backwards, True),
    ],
)
def test_unusual_agents_ask_the_same(dialect: Any, loop: Any, stream: bool) -> None:
    made = same(CASE, lambda env: loop(env, dialect(env, stream=stream)), "model")
    assert ("picture" in made.text) == (dialect is Pictured)
    assert ("request 2: its system prompt" in made.text) == (dialect is Dated)


def test_an_agents_own_words_in_a_history_are_no_turn() -> None:
    cassette, _result = taped(CASE, lambda env: AsyncLoop(env, Reminding(env)), "model")
    late = convert(replace(cassette, interactions=cassette.interactions[2:]), "late")
    assert [turn.user for turn in late.scenario.turns] == ["What is the weather?", "And now?"]


def test_what_an_agent_brings_is_a_turn_that_says_so() -> None:
    cassette, _result = taped(CASE, lambda env: AsyncLoop(env, Experienced(env)), "model")
    made = convert(cassette, "again")
    assert made.notes[0] == (
        "turn 1 was before the recording: it is what the first request shows of it; leave it out "
        "where the agent brings that by itself"
    )
    assert made.scenario.turns[0] == Turn("Weather in Rome?", (Reply(say="Sunny."),))
    without = replace(made.scenario, turns=made.scenario.turns[1:])
    again, _result = taped(without, lambda env: AsyncLoop(env, Experienced(env)), "model")
    assert asked(again) == asked(cassette)


# --- single interactions


def chat_request(*texts: str, **more: Any) -> Request:
    body = {"model": "m", "messages": [{"role": "user", "content": each} for each in texts], **more}
    return Request("POST", "http://x.test/v1/chat/completions", (), dumps(body).encode())


def whole(text: str = "Hi.", **more: Any) -> dict[str, Any]:
    """What an interaction with a whole reply is made of."""
    reply = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        ],
    }
    return {
        "protocol": "openai_chat",
        "status": 200,
        "headers": (("content-type", "application/json"),),
        "chunks": (Chunk(0, dumps(reply).encode()),),
        **more,
    }


def failing(status: int = 429, body: bytes = b"", **headers: str) -> dict[str, Any]:
    kept = {
        "content-type": "application/json",
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    chunks = (Chunk(0, body),) if body else ()
    return {"status": status, "headers": tuple(kept.items()), "chunks": chunks}


def once(*given: dict[str, Any]) -> Converted:
    """One request, answered in these ways one after the other."""
    asked_for = chat_request("Hello", stream=True)
    return convert(
        Cassette(interactions=tuple([Interaction(request=asked_for, **each) for each in given])),
        "x",
    )


def the_fault(*given: dict[str, Any]) -> Any:
    """The fault that a failed request comes to, where another one then comes to its end."""
    [turn] = once(*given, whole()).scenario.turns
    [reply] = turn.replies
    assert reply.fault_times == len(given)
    return reply.fault


DATE = "Tue, 14 Nov 2023 22:13:20 GMT"


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (failing(retry_after="2"), Http(429, "status 429", retry_after=2_000 * MS)),
        (
            failing(retry_after_ms="250"),
            Http(429, "status 429", retry_after=250 * MS, retry_as="milliseconds"),
        ),
        (
            failing(retry_after="Tue, 14 Nov 2023 22:13:23 GMT", date=DATE),
            Http(429, "status 429", retry_after=3_000 * MS, retry_as="date"),
        ),
        (failing(retry_after=DATE), Http(429, "status 429", headers={"retry-after": DATE})),
        (failing(retry_after_ms="soon"), Http(429, "status 429")),
        (failing(x_should_retry="false"), Http(429, "status 429", should_retry=False)),
        (
            failing(
                503, b"<html><style>x</style><h1>503</h1> Sorry\n</html>", content_type="text/html"
            ),
            Http(503, "Sorry", html=True),
        ),
        (
            failing(400, b'{"error": {"message": "no", "type": "mine", "code": "c1"}}'),
            Http(400, "no", "mine", "c1"),
        ),
        (failing(302), Http(500, "status 302")),
        (failing(200, b"nonsense"), BadJson()),
        (failing(200, b'{"error": {"message": "busy"}}'), JsonError("busy", None, None)),
        ({"ended": "refused"}, Refused()),
        ({"ended": "dropped"}, Dropped()),
        ({"ended": "reset"}, Dropped()),
        ({"ended": "timeout"}, Hang()),
    ],
)
def test_a_failed_request_is_a_fault(given: dict[str, Any], fault: Any) -> None:
    assert the_fault(given) == fault


STREAM = (("content-type", "text/event-stream"),)


def piece(text: str, at: int = 0) -> Chunk:
    delta = {
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}],
        "id": "1",
    }
    return Chunk(at, b"data: " + dumps(delta).encode() + b"\n\n")


@pytest.mark.parametrize(
    ("ended", "last", "fault"),
    [
        ("complete", Chunk(0, b""), Torn(1)),
        ("complete", Chunk(0, b'data: {"a'), CutLine(1)),
        ("complete", Chunk(0, b"data: {\n\n"), BadJson(1)),
        ("complete", Chunk(0, b'data: "\xff"\n\n'), BadUtf8(1)),
        (
            "complete",
            Chunk(0, b'data: {"error": {"message": "busy"}}\n\n'),
            ErrorFrame(1, "busy", None, None),
        ),
        ("torn", Chunk(0, b""), Incomplete(1)),
        ("reset", Chunk(0, b""), Reset(1)),
        ("timeout", Chunk(0, b""), Hang(1)),
    ],
)
def test_a_stream_that_breaks_off_is_a_fault(ended: Any, last: Chunk, fault: Any) -> None:
    given = {"status": 200, "headers": STREAM, "chunks": (piece("Hel"), last), "ended": ended}
    found = the_fault(given)
    assert (
        replace(found, status=503) == replace(fault, status=503)
        if isinstance(fault, ErrorFrame)
        else found == fault
    )


def test_faults_of_several_kinds_are_told() -> None:
    made = once(failing(), {"ended": "refused"}, whole())
    [reply] = made.scenario.turns[0].replies
    assert (reply.fault_times, type(reply.fault)) == (2, Http)
    assert made.notes == (
        "request 1: the reply failed in several ways (Http, Refused); a script's reply fails in "
        "one: the first, 2 times",
    )


def test_what_is_no_request_to_a_model_is_told() -> None:
    models = Interaction(request=Request("GET", "http://x.test/v1/models"), status=200, line=7)
    bad = Interaction(
        request=Request("POST", "http://x.test/v1/chat/completions", (), b"{"), status=400
    )
    good = Interaction(request=chat_request("Hello"), **whole())
    made = convert(Cassette(interactions=(models, bad, good)), "x")
    assert made.notes[0].startswith(
        "request 1 (line 7) is left out: GET /v1/models is of no protocol that is known (openai"
    )
    assert made.notes[1].startswith("request 2 is left out: its body cannot be read: ")
    assert made.text.startswith(f"# {made.notes[0]}\n# {made.notes[1]}\nabout: ")
    with pytest.raises(
        UsageError, match=r"^a\.yaml holds no request to a model; request 1 \(line 7\)"
    ):
        convert(Cassette(interactions=(models,), path="a.yaml"), "x")
    with pytest.raises(UsageError, match=r"^the cassette holds no request to a model$"):
        to_scenario(Cassette(), "x")


def test_a_fault_comes_no_later_than_its_reply_allows() -> None:
    given = {
        "status": 200,
        "headers": STREAM,
        "chunks": tuple(map(piece, "Hello")),
        "ended": "torn",
    }
    made = once(given, whole())
    assert made.scenario.turns[0].replies[0].fault == Incomplete(2)
    assert read_script(made.text).turns[0].replies == made.scenario.turns[0].replies


def test_a_stall_is_told_from_slowness() -> None:
    def fault(*times: int) -> Any:
        chunks = tuple([piece("x", at) for at in times])
        choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
        end = b"data: " + dumps({"choices": [choice], "id": "1"}).encode() + b"\n\n"
        given = {"status": 200, "headers": STREAM, "chunks": (*chunks, Chunk(times[-1], end))}
        [reply] = once(given).scenario.turns[0].replies
        return reply.fault, reply.each

    second = 1_000 * MS
    assert fault(0, 10 * MS, 20 * MS, 5 * second, 5 * second + 10 * MS)[0] == Stall(3, 4_980 * MS)
    assert fault(0, 2 * second, 4 * second, 6 * second) == (None, 2 * second)
    assert fault(0, 5 * second) == (None, 5 * second)


def test_texts_that_are_json_stay_as_they_are_unless_all_are_as_we_write_it() -> None:
    def value(text: str) -> Any:
        call = said("Look.", a=("look", {}))
        cassette = recordings.taped(
            (asking(user("Hello"), tools=["look"]), replying(call)),
            (asking(user("Hello"), call, gave("a", text), tools=["look"]), replying(said("Hi."))),
        )
        made = convert(cassette, "x")
        return made.scenario.tools[0].behaviour.action, bool(made.notes)

    assert value('{"a": 1}') == (Returns('{"a": 1}'), False)
    assert value('{"a":1}') == (Returns({"a": 1}), True)
    assert value('"a"') == (Returns("a"), False)
    assert value("a") == (Returns("a"), False)
    assert value("Error: look failed: no") == (Answers("no"), False)
    assert value("Error: no") == (Returns("Error: no"), False)


@pytest.mark.parametrize(
    "then",
    [
        ("You are expert 2.", user("Hello")),
        ("You are expert 2.", user("Hello"), user("Well?")),
        ("Shorten what was said.", user("Hello"), said("Hi."), user("Well?")),
    ],
)
def test_who_has_another_system_prompt_is_somebody_else(then: tuple[str, Any]) -> None:
    system, *rest = then
    cassette = recordings.taped(
        (asking(user("Hello"), system="You are expert 1."), replying(said("Hi."))),
        (asking(*rest, system=system), replying(said("Ho."))),
    )
    made = convert(cassette, "x").scenario
    assert ([len(turn.replies) for turn in made.turns], len(made.also)) == ([1], 1)


@pytest.mark.parametrize("then", [(said("Done."),), ()], ids=["goes on", "ends"])
@pytest.mark.parametrize(
    ("name", "args"), [("cancel_order", {}), ("orders", {"action": "cancel"})], ids=str
)
def test_a_tool_that_cancels_something_was_not_cut(name: str, args: Any, then: Any) -> None:
    call = said(None, a=(name, args))
    again = [user("Hello"), call, gave("a", "Cancelled"), *([] if then else [user("Thanks")])]
    cassette = recordings.taped(
        (asking(user("Hello"), tools=[name]), replying(call)),
        (asking(*again, tools=[name]), replying(*then or (said("Welcome."),))),
    )
    made = convert(cassette, "x").scenario
    assert [(turn.user, turn.cancel) for turn in made.turns] == [
        (text, None) for text in ("Hello", *(() if then else ("Thanks",)))
    ]
    assert made.tools[0].behaviour.action == Returns("Cancelled")


@pytest.mark.parametrize(("name", "cut"), [("Skill", True), ("weather", True), ("kill", False)])
def test_a_tool_that_only_says_that_it_was_cancelled_was_cut(name: str, cut: bool) -> None:
    call = said(None, a=(name, {}))
    history = [user("Hello"), call, gave("a", "Cancelled")]
    cassette = recordings.taped(
        (asking(user("Hello"), tools=[name]), replying(call)),
        (asking(*history, tools=[name]), replying(said("Done."))),
    )
    first = convert(cassette, "x").scenario.turns[0]
    assert (first.cancel is not None) == cut


def test_replies_in_another_order_are_told() -> None:
    content: list[Any] = [
        {"type": "text", "text": "a"},
        {"type": "tool_use", "id": "t", "name": "look", "input": {}},
        {"type": "text", "text": "b"},
    ]
    reply = {"type": "message", "id": "m", "role": "assistant", "model": "c", "content": content}
    body = dumps({**reply, "stop_reason": "tool_use", "usage": {}}).encode()
    ask = {"model": "c", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
    version = (("anthropic-version", "2023-06-01"),)
    request = Request("POST", "http://x.test/v1/messages", version, dumps(ask).encode())
    json = (("content-type", "application/json"),)
    given = Interaction(request=request, status=200, headers=json, chunks=(Chunk(0, body),))
    made = convert(Cassette(interactions=(given,)), "x")
    assert made.scenario.turns[0].replies[0].say == "ab"
    assert "the reply has 0 blocks of reasoning and 2 of text among its calls" in made.notes[0]


def test_a_response_without_ids_can_be_gone_on_with() -> None:
    def response(number: int, text: str) -> tuple[tuple[str, str], bytes]:
        part = {"type": "output_text", "text": text}
        item = {"type": "message", "role": "assistant", "content": [part]}
        body = {"id": f"resp_{number}", "object": "response", "status": "completed", "model": "m"}
        return ("content-type", "application/json"), dumps({**body, "output": [item]}).encode()

    def ask(text: str, **more: Any) -> Request:
        body = dumps({"model": "m", "input": text, **more}).encode()
        return Request("POST", "http://x.test/v1/responses", (), body)

    asks = (ask("Hello"), ask("Bye", previous_response_id="resp_1"))
    given = [
        Interaction(request=each, status=200, headers=(head,), chunks=(Chunk(0, body),), begun=at)
        for at, (each, (head, body)) in enumerate(
            zip(asks, (response(1, "Hi."), response(2, "Bye.")), strict=True)
        )
    ]
    first, second = convert(Cassette(interactions=tuple(given)), "x").scenario.turns
    assert (first.user, first.replies[0].say) == ("Hello", "Hi.")
    assert (second.user, second.replies[0].say) == ("Bye", "Bye.")


class Outside:
    """What an agent is given outside of any run: a real provider's address, tools of its own."""

    def __init__(self, url: str) -> None:
        self.base_url = url
        self.tools = self

    async def call(self, name: str, args: Any, _call_id: str | None = None) -> Any:
        if name == "clock":
            return "12:00"
        if args["city"] == "Rome":
            return "sunny"
        raise RuntimeError("no such city")

    def schemas(self, provider: str) -> list[Any]:
        assert provider == "openai_chat"
        clock = {"name": "clock", "parameters": {"type": "object"}}
        weather = {
            "name": "weather",
            "description": "The weather of a city.",
            "parameters": PLACE,
        }
        return [{"type": "function", "function": each} for each in (clock, weather)]


async def outside(url: str) -> None:
    env: Any = Outside(url)
    dialect = chat.AsyncChat(env, own=True)
    await AsyncLoop(env, dialect).turn(CASE.turns[0].user)
    await dialect.client.close()


def test_a_session_of_a_server_becomes_a_scenario_whose_sweep_runs(tmp_path: Path) -> None:
    quick = [replace(each, takes=0, each=0, chunk=50) for each in CASE.turns[0].replies]
    scenario = replace(CASE, turns=(replace(CASE.turns[0], replies=tuple(quick)),))
    path = tmp_path / "session.yaml"
    with serve(scenario) as server, cassette_at(path, "all"):
        asyncio.run(outside(server.url))
    cassette = load(path)
    assert len(cassette.interactions) == 3
    made = convert(cassette, "session")
    again, result = taped(made.scenario, sdk("openai_chat"), "model")
    assert result.ok, result.failures
    assert asked(again) == asked(cassette)
    found = sweep(made.scenario, sdk("openai_chat"))
    assert found.report.status == "PASS", [group.key for group in found.report.failed]
    assert len(found.report.points) > 20
