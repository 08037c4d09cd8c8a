"""Agents that are run on what was recorded: as it was then, in virtual time, judged as any run."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import httpx2
import pytest
from msgspec.structs import replace

from harness.core.errors import FileError, UsageError
from harness.core.events import (
    Delta,
    FaultInjected,
    InteractionUnused,
    Mismatch,
    Received,
    ReplyEnded,
    RequestMissed,
    RequestSent,
    ToolStarted,
    TurnEnded,
)
from harness.core.messages import Usage
from harness.core.ports import Agent, Env
from harness.core.replayed import by_task
from harness.core.trace import Trace
from harness.fakes.script import Also, AlsoWhen, Fault, Reply, ScriptedCall, StreamFails, Torn
from harness.fakes.tool_spec import Behaviour, Returns, ToolSpec
from harness.fakes.wire_faults import (
    BadJson,
    Dropped,
    ErrorFrame,
    Http,
    Incomplete,
    JsonError,
    Refused,
    Reset,
)
from harness.runner.agents import (
    Subject,
    at_level,
    command_subject,
    find_loop,
    loop_subject,
    subject_for,
)
from harness.runner.cassettes.subject import on_cassette
from harness.runner.cassettes.taped import taped
from harness.runner.exploring import sweep
from harness.runner.files.load import load
from harness.runner.relate import relate, with_relations
from harness.runner.result import Result
from harness.runner.run import run
from harness.runner.scenario import Cancel, Expect, Scenario, Turn
from harness.transport.cassettes.file import save
from harness.transport.cassettes.form import Cassette, Chunk, Interaction
from harness.transport.rules import Rules
from harness.wire import CODECS
from harness.wire.http import Request
from harness.wire.writing import bytes_of
from tests.subjects.hand_loop import MendedHandLoop
from tests.subjects.sdk import chat, gemini, messages, responses
from tests.subjects.sdk.loop import AsyncLoop, SyncLoop
from tests.test_exports import loaded_by

MS = 1_000_000
PROTOCOLS = [codec.name for codec in CODECS]
CASE = Scenario(
    "weather",
    turns=(
        Turn(
            "What is the weather?",
            (
                Reply(
                    think="Two tools will do.",
                    say="Let me look that up, it will not take long.",
                    calls=(ScriptedCall("weather", {"city": "Rome"}), ScriptedCall("clock")),
                    usage=Usage(10, 5, 15),
                    takes=300 * MS,
                    each=20 * MS,
                    chunk=8,
                ),
                Reply(say="Sunny at noon.", takes=100 * MS, each=7 * MS, chunk=4),
            ),
            expect=Expect(say="Sunny at noon."),
        ),
        Turn("And now?", (Reply(say="Still.", takes=50 * MS),)),
    ),
    tools=(
        ToolSpec("weather", Behaviour(Returns("sunny"), takes=50 * MS)),
        ToolSpec("clock", Behaviour(Returns("12:00"), takes=10 * MS)),
    ),
)
SILENT = replace(CASE, turns=tuple([replace(turn, replies=()) for turn in CASE.turns]))
"""The same without a reply: those are the cassette's."""
SDKS: dict[str, tuple[Any, Any]] = {
    "openai_chat": (chat.AsyncChat, chat.SyncChat),
    "openai_responses": (responses.AsyncResponses, responses.SyncResponses),
    "anthropic": (messages.AsyncMessages, messages.SyncMessages),
    "gemini": (gemini.AsyncGemini, gemini.SyncGemini),
}


def record(agent: Any, level: str = "http", case: Scenario = CASE) -> tuple[Trace, Cassette]:
    return taped(case, at_level(subject_for(agent, case), level).build)


def sdk(protocol: str, **how: bool) -> Callable[[Env], Agent]:
    dialect = SDKS[protocol][bool(how.get("sync"))]
    loop = SyncLoop if how.get("sync") else AsyncLoop
    return lambda env: loop(env, dialect(env, **how))


def events(result: Result | Trace, *kinds: type[Any]) -> list[Any]:
    trace = result if isinstance(result, Trace) else result.trace
    return [entry.event for entry in trace if isinstance(entry.event, kinds)]


def story(trace: Trace) -> dict[str, list[str]]:
    """What happened in each task, without the numbers of the entries."""
    return {task: [text for _at, text in lines] for task, lines in by_task(trace).items()}


def broken(result: Result) -> list[tuple[str, str]]:
    return [(each.invariant, each.message) for each in result.verdict.violations]


# --- as it was recorded


@pytest.mark.parametrize("loop", ["turn", "fsm"])
@pytest.mark.parametrize("way", ["", ":whole"])
@pytest.mark.parametrize("name", ["http", "server"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_loop_plays_the_recorded_run_again(
    protocol: str, name: str, way: str, loop: str, tmp_path: Path
) -> None:
    was, made = record(loop, f"{name}:{protocol}{way}")
    assert len(made.interactions) == 3
    path = tmp_path / "kept.yaml"
    save(path, made)
    result = run(SILENT, loop, level=name, cassette=path)
    assert broken(result) == []
    assert result.ok, result.failures
    assert story(result.trace) == story(was)
    assert result.subject.name.endswith(f"at {name}:{protocol}{way} on {path}")
    assert "MISS" not in result.verdict.not_judged


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_vendors_library_plays_it_again(protocol: str, stream: bool, sync: bool) -> None:
    agent = sdk(protocol, stream=stream, sync=sync)
    was, made = record(agent)
    result = run(SILENT, agent, cassette=made)
    assert result.ok, str(result)
    assert story(result.trace) == story(was)


def test_replies_come_at_the_recorded_moments() -> None:
    _was, made = record("turn")
    first = made.interactions[0]
    slower = replace(
        first, chunks=tuple([Chunk(each.at + 1_000 * MS, each.data) for each in first.chunks])
    )
    result = run(
        SILENT, "turn", cassette=replace(made, interactions=(slower, *made.interactions[1:]))
    )
    assert result.ok
    said = [entry.at for entry in result.trace if isinstance(entry.event, Delta)]
    assert said[0] == 1_300 * MS
    assert said[1] == 1_320 * MS


def test_a_reply_that_is_not_streamed_may_come_in_several_chunks() -> None:
    was, made = record("turn", "http:anthropic:whole", FAILED)
    [only] = made.interactions
    [chunk] = only.chunks
    cut = (Chunk(chunk.at, chunk.data[:9]), Chunk(chunk.at, chunk.data[9:]))
    halves = replace(made, interactions=(replace(only, chunks=cut),))
    result = run(FAILED, "turn", cassette=halves)
    assert result.ok
    assert story(result.trace) == story(was)


class Eager:
    """Runs a tool as soon as a reply names it."""

    tools: ClassVar = ["clock", "weather"]

    def __init__(self, env: Env) -> None:
        self.env = env
        self.client = env.http()

    async def turn(self, text: str | None) -> None:
        left = self.tools.copy()
        body = {"model": "m", "messages": [{"role": "user", "content": text}], "stream": True}
        url = f"{self.env.base_url}/v1/chat/completions"
        async with self.client.stream("POST", url, json=body) as response:
            async for data in response.aiter_bytes():
                for name in [each for each in left if each.encode() in data]:
                    left.remove(name)
                    await self.env.tools.call(name, {"city": "Rome"} if name == "weather" else {})


def test_the_calls_of_a_recorded_reply_may_run_before_it_is_over() -> None:
    reply = replace(CASE.turns[0].replies[0], usage=None)
    case = replace(CASE, turns=(Turn("Go.", (reply,)),))
    _was, made = record(Patient, case=case)
    result = run(case, Eager, cassette=made)
    assert not events(result, Mismatch)
    assert [type(each) for each in events(result, ToolStarted, ReplyEnded)] == [
        ToolStarted,
        ToolStarted,
        ReplyEnded,
    ]


class Patient(Eager):
    """Runs none."""

    tools: ClassVar = []


class Titled(MendedHandLoop):
    """Asks for a title behind each answer."""

    title = False

    async def turn(self, text: str | None) -> None:
        await super().turn(text)
        self.title, kept = True, self.messages
        self.messages = kept[:1]
        await self.ask()
        self.title, self.messages = False, kept

    def request(self) -> Any:
        made = super().request()
        return replace(made, system="A title, please.") if self.title else made


def test_what_is_beside_the_turns_keeps_its_place() -> None:
    title = Also("title", AlsoWhen(system_contains="title"), (Reply(say="Greeting"),))
    case = Scenario("titled", turns=(Turn("Hello.", (Reply(say="Hi."),)),), also=(title,))
    was, made = record(Titled, case=case)
    bare = replace(case, turns=(Turn("Hello."),), also=(replace(title, replies=()),))
    result = run(bare, Titled, cassette=made)
    assert result.ok, str(result)
    assert story(result.trace) == story(was)
    assert [each.reply for each in events(result, RequestSent)] == ["1.1", "title.1"]


# --- what failed then


FAILED = replace(
    CASE, turns=(Turn("Go on.", (Reply(say="Here we go, slowly.", chunk=4, each=MS),)),), tools=()
)


def failing(fault: Fault | None, **how: Any) -> Scenario:
    [turn] = FAILED.turns
    return replace(
        FAILED, turns=(replace(turn, replies=(replace(turn.replies[0], fault=fault, **how),)),)
    )


class Stubborn(MendedHandLoop):
    """Asks again once where it fails."""

    async def ask(self) -> Any:
        try:
            return await super().ask()
        except Exception:
            return await super().ask()


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Http(429, retry_after=2_000 * MS), FaultInjected("http", "1.1", 429, 2_000 * MS)),
        (Http(503, should_retry=False), FaultInjected("http", "1.1", 503, None, False)),
        (Refused(), FaultInjected("refused", "1.1")),
        (Dropped(), FaultInjected("dropped", "1.1")),
        (Incomplete(2), FaultInjected("incomplete", "1.1")),
        (Reset(2), FaultInjected("reset", "1.1")),
        (StreamFails(2), FaultInjected("reset", "1.1")),
        (ErrorFrame(2), FaultInjected("error_frame", "1.1")),
        (BadJson(2), FaultInjected("bad_json", "1.1")),
        (Reset(20), FaultInjected("reset", "1.1")),
    ],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_failed_fails_again_and_is_told_of(
    protocol: str, fault: Fault, told: FaultInjected
) -> None:
    case = failing(fault)
    was, made = record(Stubborn, f"http:{protocol}", case)
    result = run(case, Stubborn, cassette=made)
    assert story(result.trace) == story(was)
    assert events(result, FaultInjected) == [told]
    ends = [each.end for each in events(result, ReplyEnded)]
    assert ends == [each.end for each in events(was, ReplyEnded)] == ["failed", "complete"]
    assert [each.reply for each in events(result, RequestSent)] == ["1.1", "1.1~2"]


@pytest.mark.parametrize(
    "fault",
    [Torn(2), JsonError("busy"), BadJson(2), Torn(20)],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("way", ["", ":whole"])
@pytest.mark.parametrize("loop", ["turn", "fsm"])
def test_a_body_that_is_no_whole_reply_is_none_again(loop: str, way: str, fault: Fault) -> None:
    case = failing(fault)
    was, made = record(loop, f"http:openai_chat{way}", case)
    result = run(case, loop, cassette=made)
    assert story(result.trace) == story(was)
    assert {name for name, _message in broken(result)} <= {"TERMINAL-TRUTH"}


@pytest.mark.parametrize("fault", [ErrorFrame(2), BadJson(2)], ids=lambda each: type(each).__name__)
def test_a_client_that_left_when_it_had_read_of_a_failure_has_failed(fault: Fault) -> None:
    case = failing(fault)
    _was, made = record(Stubborn, case=case)
    first = replace(made.interactions[0], ended="cancelled")
    left = replace(made, interactions=(first, *made.interactions[1:]))
    result = run(case, Stubborn, cassette=left)
    assert broken(result) == []
    assert [each.fault for each in events(result, FaultInjected)] == [
        fault.__struct_config__.tag,
    ]


class Content(Eager):
    """Is content with what it has got of a reply, and goes on from there."""

    async def turn(self, text: str | None) -> None:
        asked = [{"role": "user", "content": text}]
        for _ in range(2):
            body = {"model": "m", "messages": asked, "stream": True}
            url, got = f"{self.env.base_url}/v1/chat/completions", b""
            with suppress(httpx2.HTTPError):
                async with self.client.stream("POST", url, json=body) as response:
                    async for data in response.aiter_bytes():
                        got += data
            said = re.findall(rb'"content": "([^"]+)"', got)
            asked.append({"role": "assistant", "content": b"".join(said).decode()})


@pytest.mark.parametrize("after", [0, 20])
def test_a_broken_reply_that_a_client_goes_on_from_is_not_asked_for_again(after: int) -> None:
    case = failing(Reset(after))
    first = case.turns[0].replies[0]
    case = replace(case, turns=(Turn("Go on.", (first, Reply(say="More."))),))
    was, made = record(Content, case=case)
    result = run(case, Content, cassette=made)
    assert story(result.trace) == story(was)
    again = "1.2" if after else "1.1~2"
    assert [each.reply for each in events(result, RequestSent)] == ["1.1", again]


def test_a_reply_that_nobody_reads_any_more_is_left() -> None:
    class LeavesOpen(Eager):
        async def turn(self, text: str | None) -> None:
            body = {"model": "m", "messages": [{"role": "user", "content": text}], "stream": True}
            request = self.client.build_request("POST", "/v1/chat/completions", json=body)
            self.left = await self.client.send(request, stream=True)

        async def close(self) -> None:
            await self.left.aclose()

    was, made = record(LeavesOpen, case=FAILED)
    [held] = made.interactions
    whole = replace(held, ended="complete")
    result = run(FAILED, LeavesOpen, cassette=replace(made, interactions=(whole,)))
    assert [each.end for each in events(result, ReplyEnded)] == ["abandoned"]
    assert [each.end for each in events(was, ReplyEnded)] == ["abandoned"]


def test_what_the_rules_leave_out_need_not_be_read() -> None:
    class Odd(Eager):
        heat: ClassVar[Any] = 1

        async def turn(self, text: str | None) -> None:
            said = [{"role": "user", "content": text}]
            body = {"model": "m", "messages": said, "temperature": self.heat}
            assert (await self.client.post("/v1/chat/completions", json=body)).status_code == 200

    class Odder(Odd):
        heat: ClassVar[Any] = "hot"

    _was, made = record(Odd, case=FAILED)
    result = run(FAILED, Odder, cassette=replace(made, rules=Rules(ignore=("temperature",))))
    assert broken(result) == []
    assert result.trace.requests()[0].temperature == 1


def test_a_reply_that_hung_hangs_again() -> None:
    _was, made = record("turn", case=failing(None))
    [whole] = made.interactions
    torn = replace(whole, chunks=whole.chunks[:2], ended="timeout", ended_at=whole.chunks[1].at)
    nothing = replace(whole, status=None, chunks=(), ended="timeout", ended_at=0)
    for hung in (torn, nothing):
        case = replace(FAILED, turns=(replace(FAILED.turns[0], cancel=Cancel(at=1_000 * MS)),))
        result = run(case, "turn", cassette=Cassette(interactions=(hung,)))
        assert broken(result) == []
        assert [each.fault for each in events(result, FaultInjected)] == ["hang"]
        assert [each.end for each in events(result, ReplyEnded)] == ["closed"]


def test_a_request_that_was_refused_is_refused_by_the_same_rule() -> None:
    class Odd(MendedHandLoop):
        def request(self) -> Any:
            return replace(super().request(), messages=(*self.messages[:1], *self.messages))

    case = Scenario("odd", turns=(Turn("", (Reply(say="Hi."),)),))
    was, made = record(MendedHandLoop, "http:anthropic", case)
    assert made.interactions[0].status == 400
    result = run(case, MendedHandLoop, cassette=made)
    assert story(result.trace) == story(was)
    assert broken(result)[0][0] == "ACCEPTED"
    assert events(result, Received)[0].rule is not None
    assert events(result, ReplyEnded)[0].end == "refused"


def test_a_model_that_was_cut_off_is_cut_off_again() -> None:
    case = failing(None, stop="length")
    was, made = record("turn", case=case)
    result = run(case, "turn", cassette=made)
    assert story(result.trace) == story(was)
    ended = events(result, ReplyEnded)[0]
    assert (ended.end, ended.error, ended.message) == (
        "torn",
        "the model was cut off: length",
        None,
    )


def test_a_client_that_stops_reading_has_the_reply_where_it_was_whole() -> None:
    class Leaves(MendedHandLoop):
        async def turn(self, text: str | None) -> None:
            body = {"model": "m", "messages": [{"role": "user", "content": text}], "stream": True}
            url = f"{self.env.base_url}/v1/chat/completions"
            async with self.env.http().stream("POST", url, json=body) as response:
                async for data in response.aiter_bytes():
                    if self.last in data:
                        return

        last = b'finish_reason": "stop'

    class LeavesEarly(Leaves):
        last = b"Here"

    for agent, end in ((Leaves, "complete"), (LeavesEarly, "closed")):
        was, made = record(agent, case=failing(Reset(20), fault_times=None))
        result = run(FAILED, agent, cassette=made)
        assert [each.end for each in events(result, ReplyEnded)] == [end]
        assert [each.end for each in events(was, ReplyEnded)] == [end]


SCENARIOS = Path(__file__).parents[2] / "scenarios"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("loop", ["turn", "fsm"])
@pytest.mark.parametrize("name", ["at_end_of_reply", "task_twice_in_a_row"])
def test_a_cancel_is_played_where_it_was_taped(name: str, loop: str, protocol: str) -> None:
    case = load(SCENARIOS / "cancel" / f"{name}.yaml")
    agent = at_level(loop_subject(find_loop(loop), case), f"http:{protocol}")
    was, made = taped(case, agent.build)
    result = run(case, agent, cassette=made)
    assert not broken(result)
    assert events(result, TurnEnded) == events(was, TurnEnded)
    assert events(result, ReplyEnded) == events(was, ReplyEnded)


@pytest.mark.parametrize("protocol", ["openai_chat", "anthropic"])
def test_what_stands_behind_the_end_of_a_reply_is_missed_by_who_reads_it(protocol: str) -> None:
    case = load(SCENARIOS / "cancel" / "at_end_of_reply.yaml")
    agent = at_level(loop_subject(find_loop("turn"), case), f"http:{protocol}")
    _was, made = taped(case, agent.build)
    unhurried = replace(case, turns=(replace(case.turns[0], cancel=None, expect=None),))
    result = run(unhurried, agent, cassette=made)
    assert [each.end for each in events(result, ReplyEnded)] == ["complete"]
    told = [each.message for each in events(result, RequestMissed)]
    assert [each.startswith("the client left reply 1.1 here") for each in told] == [True, False]


# --- what does not fit


def test_a_changed_prompt_is_told_with_what_differs() -> None:
    _was, made = record(MendedHandLoop)

    class Changed(MendedHandLoop):
        def request(self) -> Any:
            return replace(super().request(), system="Be long.")

    result = run(SILENT, Changed, cassette=replace(made, path="kept.yaml"))
    [(name, message)] = broken(result)
    assert name == "MISS"
    assert "is none of those recorded in kept.yaml" in message
    assert '"Be {+long+}." came' in message
    assert message.endswith("record all anew in the mode all (harness record: --mode all)")
    assert result.failures == ()  # no expectation: the turn ended in the miss
    assert not result.ok
    missed = events(result, RequestMissed)[0]
    assert missed.message == message
    assert events(result, InteractionUnused)
    assert "MISS" in str(result)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_library_asks_again_for_what_is_not_recorded(protocol: str) -> None:
    _was, made = record(sdk(protocol))
    other = replace(SILENT, turns=(Turn("Something else?"),))
    result = run(other, sdk(protocol), cassette=made)
    assert len(events(result, RequestMissed)) == 1
    assert [name for name, _message in broken(result)] == ["MISS"]


def test_what_nobody_asks_for_is_told() -> None:
    _was, made = record("turn")
    result = run(replace(SILENT, turns=SILENT.turns[:1]), "turn", cassette=made)
    [(name, message)] = broken(result)
    assert name == "MISS"
    assert message.startswith(
        "the cassette's POST /v1/chat/completions, interaction 3, was never asked for; "
    )
    none = run(Scenario("none", turns=(Turn("Hm."),)), Silent, cassette=made)
    [(name, message)] = broken(none)
    assert "was never asked for, nor were 2 more behind it; " in message


class Silent:
    """Asks for nothing."""

    def __init__(self, env: Env) -> None:
        self.env = env

    async def turn(self, text: str | None) -> None:
        """Do nothing."""


def test_a_client_that_goes_on_where_it_left_then_is_told_so() -> None:
    case = replace(FAILED, turns=(replace(FAILED.turns[0], cancel=Cancel(at=2 * MS)),))
    was, made = record("turn", case=case)
    assert [each.ended for each in made.interactions] == ["cancelled", "complete"]
    again = run(case, "turn", cassette=made)
    assert again.ok, str(again)
    assert story(again.trace) == story(was)
    result = run(FAILED, "turn", cassette=made)
    [(name, message)] = broken(result)
    assert name == "MISS"
    assert message.startswith("the client left reply 1.1 here when it was recorded, and this one ")


def test_a_client_that_left_with_all_it_wanted_left_a_whole_reply() -> None:
    was, made = record("turn", case=FAILED)
    left = replace(made.interactions[0], ended="cancelled")
    result = run(FAILED, "turn", cassette=replace(made, interactions=(left,)))
    assert result.ok
    assert story(result.trace) == story(was)


def test_a_turn_that_fails_is_not_followed_by_one_that_was_not_recorded() -> None:
    case = failing(Http(400), fault_times=None)
    was, made = record("turn", case=case)
    assert len(made.interactions) == 2  # the runner's own turn too
    result = run(case, "turn", cassette=made)
    assert story(result.trace) == story(was)
    first = replace(made, interactions=made.interactions[:1])
    assert len(run(case, "turn", cassette=first).outcomes) == 1


def test_what_is_no_request_to_a_model_is_played_and_not_told_of() -> None:
    asked = Request("POST", "http://provider.test/v1/embeddings", (), b'{"input": "x"}')
    known = Interaction(
        request=asked, status=200, chunks=(Chunk(0, b"[1]"),), head_at=5 * MS, ended_at=5 * MS
    )
    _was, made = record("turn", case=FAILED)

    class Embeds(MendedHandLoop):
        async def turn(self, text: str | None) -> None:
            client, url = self.env.http(), f"{self.env.base_url}/v1/embeddings"
            assert (await client.post(url, json={"input": "x"})).json() == [1]
            assert self.env.clock.now() == 5 * MS
            assert (await client.post(url, json={"input": "y"})).status_code == 400

    cassette = replace(made, interactions=(known, *made.interactions))
    result = run(FAILED, Embeds, cassette=cassette)
    assert [type(each) for each in events(result, RequestSent, RequestMissed)] == [RequestMissed]


def test_a_request_outside_of_any_turn_has_no_place() -> None:
    class Asks:
        def __init__(self, env: Env) -> None:
            self.loop = MendedHandLoop(env)

        async def turn(self, text: str | None) -> None:
            """Do nothing."""

        async def close(self) -> None:
            await self.loop.turn("Go on.")

    _was, made = record(MendedHandLoop, case=FAILED)
    result = run(FAILED, Asks, cassette=made)
    [mismatch] = events(result, Mismatch)
    assert mismatch.error == "NoPlace"


def test_a_request_that_refers_to_what_was_said_before_is_read_as_it_was_recorded() -> None:
    def body(text: str, **more: str) -> bytes:
        return bytes_of({"model": "m", "input": text, "stream": True, **more})

    class Refers:
        def __init__(self, env: Env) -> None:
            self.client, self.url = env.http(), f"{env.base_url}/v1/responses"

        async def turn(self, text: str | None) -> None:
            first = await self.client.post(self.url, content=body("Go on."))
            name = first.text.partition('"id": "')[2].partition('"')[0]
            assert name.startswith("resp_")
            said = await self.client.post(self.url, content=body("And?", previous_response_id=name))
            assert said.status_code == 200

    case = replace(
        FAILED, turns=(Turn("Go on.", (Reply(say="One."), Reply(say="Two."))),), order="calls"
    )
    was, made = record(Refers, case=case)
    result = run(case, Refers, cassette=made)
    assert story(result.trace) == story(was)
    assert [len(each.messages) for each in result.trace.requests()] == [1, 3]


# --- what may be run on a cassette


def test_a_level_without_a_protocol_takes_the_cassettes_own() -> None:
    _was, made = record("turn", "http:gemini:whole")
    kept = replace(made, path="kept.yaml")
    subject = subject_for("turn", CASE)
    assert str(on_cassette(subject, kept).level) == "http:gemini:whole"
    assert str(on_cassette(subject, kept, "server").level) == "server:gemini:whole"
    assert str(on_cassette(subject, kept, "http:gemini").level) == "http:gemini"
    assert on_cassette(subject, kept, "server").options == (
        *("--loop", "turn", "--cassette", "kept.yaml", "--level", "server"),
    )
    assert on_cassette(subject, kept).options == ("--loop", "turn", "--cassette", "kept.yaml")
    assert on_cassette(subject, made).options == ()
    assert on_cassette(Subject("own", Silent), kept).options == ()
    result = run(replace(CASE, source="case.yaml"), "turn", cassette=kept)
    assert result.rerun == "harness run case.yaml --loop turn --cassette kept.yaml"


def test_a_cassette_for_no_model_is_refused(tmp_path: Path) -> None:
    asked = Request("POST", "http://provider.test/v1/embeddings")
    unread = Request("POST", "http://provider.test/v1/chat/completions", (), b"no JSON")
    held = tuple([Interaction(request=each, status=200) for each in (asked, unread)])
    with pytest.raises(UsageError, match=r"^the cassette has no request that a model could answer"):
        run(CASE, "turn", cassette=Cassette(interactions=held))
    with pytest.raises(UsageError, match=r"a program is not run on a cassette"):
        on_cassette(command_subject("node agent.mjs"), Cassette())
    (tmp_path / "torn.yaml").write_text("version: 1\ninteractions: [", encoding="utf-8")
    with pytest.raises(FileError, match=r"torn\.yaml:"):
        run(CASE, "turn", cassette=tmp_path / "torn.yaml")


def test_only_one_run_is_made_on_a_cassette() -> None:
    _was, made = record("turn")
    subject = on_cassette(subject_for("turn", CASE), made)
    for ask in (lambda: relate(CASE, subject), lambda: sweep(CASE, subject)):
        with pytest.raises(UsageError, match=r"can be run, but not swept, searched"):
            ask()
    with pytest.raises(UsageError, match=r"harness cassette to-scenario"):
        with_relations(run(CASE, subject))


def test_an_ordinary_run_loads_nothing_of_it() -> None:
    loaded = loaded_by("import harness\nharness.run('scenarios/basics/two_turns.yaml', 'turn')")
    ours = {name for name in loaded if ".cassettes." in name}
    assert ours == {"harness.transport.cassettes.form"}
