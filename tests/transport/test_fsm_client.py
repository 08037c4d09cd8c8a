"""The state-machine loop's own client: what it asks, what it tries again, what it reads."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harness.core.choices import Choices
from harness.core.durations import SECOND
from harness.core.ports import Aborted
from harness.loops.fsm.client import RequestOptions, Usage
from harness.loops.fsm.messages import Message, ToolCall, user
from harness.runner.agents import agent_subject, at_level
from harness.runner.drive import Play
from harness.runner.files.load import load
from harness.runner.run import run
from harness.transport.fsm_client import ChatClient, agent
from harness.transport.fsm_reply import ApiError, Lines, Reply

SCENARIOS = Path(__file__).parents[2] / "scenarios"
KEY = "sk-secret"


class Clock:
    """Time that passes at once, and is counted."""

    def __init__(self) -> None:
        self.slept = 0.0
        self.naps: list[float] = []

    def now(self) -> int:
        return round(self.slept * SECOND)

    def sleep(self, nanoseconds: int) -> None:
        self.naps.append(nanoseconds / SECOND)
        self.slept += nanoseconds / SECOND


class Provider:
    """Answers what it is told to, in order; the last again and again."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.bodies: list[Any] = []
        self.keys: list[str] = []
        self.made = 0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.bodies.append(json.loads(request.content))
        self.keys.append(request.headers["authorization"])
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer

    def connect(self) -> httpx2.Client:
        self.made += 1
        return httpx2.Client(transport=httpx2.MockTransport(self))


def streamed(*chunks: Any, done: bool = True, error: Exception | None = None) -> Any:
    def pieces() -> Iterator[bytes]:
        for chunk in chunks:
            text = chunk if isinstance(chunk, str) else json.dumps(chunk)
            yield f"data: {text}\n\n".encode()
        if error is not None:
            raise error
        if done:
            yield b"data: [DONE]\n\n"

    def answer() -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=pieces())

    return answer


def delta(**said: Any) -> Any:
    return {"choices": [{"index": 0, "delta": said}]}


HELLO = streamed(delta(content="Hel"), delta(content="lo"))


class World:
    """A client, its provider, its clock, and what it was told."""

    def __init__(self, *answers: Any, chance: float = 0.0, keys: Callable[[], str] | None = None):
        self.provider = Provider(*answers)
        self.clock = Clock()
        self.deltas: list[str] = []
        self.retries = 0
        self.client = ChatClient(
            "http://provider.test/v1/",
            "gpt-x",
            keys or (lambda: KEY),
            clock=self.clock,
            chance=lambda: chance,
            connect=self.provider.connect,
        )

    def retried(self) -> None:
        self.retries += 1

    def chat(self, cancel: Callable[[], bool] = lambda: False, **options: Any) -> Any:
        return self.client.chat(
            [user("Hi")],
            tools=[{"type": "function", "function": {"name": "look"}}],
            system="Be kind.",
            options=RequestOptions(**options),
            on_delta=self.deltas.append,
            cancel_check=cancel,
            on_retry=self.retried,
        )


def failing(status: int, body: str = "slow down", **headers: str) -> httpx2.Response:
    return httpx2.Response(status, text=body, headers=headers)


def test_what_is_asked() -> None:
    world = World(HELLO)
    message, usage = world.chat(max_tokens=9, reasoning_effort="low")
    assert (message, usage) == (Message("assistant", "Hello"), Usage())
    assert world.deltas == ["Hel", "lo"]
    assert world.provider.keys == [f"Bearer {KEY}"]
    assert world.provider.bodies == [
        {
            "model": "gpt-x",
            "messages": [
                {"role": "system", "content": "Be kind."},
                {"role": "user", "content": "Hi"},
            ],
            "tools": [{"type": "function", "function": {"name": "look"}}],
            "temperature": 0.0,
            "max_tokens": 9,
            "reasoning_effort": "low",
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ]


def test_a_request_that_is_not_streamed() -> None:
    call = {"id": "a", "function": {"name": "look", "arguments": '{"at": 1}'}}
    message = {"content": "So.", "reasoning_content": "Hm. ", "tool_calls": [call, {"id": "b"}]}
    body = {"choices": [{"message": message}], "usage": {"input_tokens": 7, "output_tokens": 2}}
    world = World(httpx2.Response(200, json=body))
    said, usage = world.chat(stream=False, temperature=None)
    assert said == Message(
        "assistant",
        "Hm. So.",
        [ToolCall("a", "look", '{"at": 1}'), ToolCall("b", "", "{}")],
        reasoning="Hm. ",
    )
    assert usage == Usage(7, 2)
    assert not {"stream", "stream_options", "temperature"} & set(world.provider.bodies[0])


def test_a_request_on_the_side() -> None:
    world = World(httpx2.Response(200, json={"choices": [{"message": {"content": "Title"}}]}))
    assert world.client.chat_sync([user("Hi")], system="", temperature=0.5).content == "Title"
    assert world.client.chat_sync([user("Hi")], system="S").content == "Title"
    assert world.provider.bodies[0]["temperature"] == 0.5
    assert len(world.provider.bodies[0]["messages"]) == 1
    assert "temperature" not in world.provider.bodies[1]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_tried_three_times(status: int) -> None:
    world = World(failing(status), chance=1.0)
    with pytest.raises(ApiError, match=f"^API error {status}: slow down$"):
        world.chat()
    assert len(world.provider.bodies) == 3
    assert world.clock.slept == pytest.approx(1.3 + 2.6)
    assert max(world.clock.naps) == 0.25
    assert world.retries == 0


def test_another_attempt_may_come_to_something() -> None:
    world = World(failing(500), HELLO)
    assert world.chat()[0].content == "Hello"
    assert world.clock.slept == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("told", "slept"), [("3", 3.5), ("500", 30.5), ("-1", 0.5), ("soon", 1.3), ("0", 0.5)]
)
def test_a_provider_says_how_long_to_wait(told: str, slept: float) -> None:
    world = World(failing(429, **{"retry-after": told}), HELLO, chance=1.0)
    world.chat()
    assert world.clock.slept == pytest.approx(slept)


def test_what_will_not_pass_is_not_tried_again() -> None:
    world = World(failing(400, "x" * 600))
    with pytest.raises(ApiError) as caught:
        world.chat()
    assert str(caught.value) == f"API error 400: {'x' * 500}"
    assert len(world.provider.bodies) == 1


def test_an_error_does_not_show_the_key() -> None:
    world = World(failing(400, f"bad key {KEY}"))
    with pytest.raises(ApiError, match=r"bad key \[key\]"):
        world.chat()
    assert KEY not in repr(world.client)


def test_a_broken_connection_is_made_anew() -> None:
    torn = streamed(delta(content="Hel"), error=httpx2.ReadError("reset"))
    world = World(torn, OSError("no route"), HELLO)
    assert world.chat()[0].content == "Hello"
    assert world.retries == 2
    assert world.provider.made == 3
    assert world.deltas == ["Hel", "Hel", "lo"]
    assert world.clock.slept == pytest.approx(3.0)


def test_a_connection_that_always_breaks() -> None:
    world = World(httpx2.ConnectError("refused"))
    with pytest.raises(ApiError, match=r"^network error: refused$"):
        world.chat()
    assert len(world.provider.bodies) == 3
    with pytest.raises(ApiError, match=r"^network error: OSError$"):
        World(OSError()).chat()


@pytest.mark.parametrize(
    ("told", "at", "asked"), [({}, 0.5, 1), ({}, 1.5, 2), ({"retry-after": "30"}, 1.0, 1)]
)
def test_a_cancel_ends_a_wait(told: dict[str, str], at: float, asked: int) -> None:
    world = World(failing(500, **told))
    with pytest.raises(Aborted):
        world.chat(cancel=lambda: world.clock.slept >= at)
    assert world.clock.slept == pytest.approx(at)
    assert len(world.provider.bodies) == asked


def test_an_abort_ends_a_wait() -> None:
    world = World(failing(500))

    def cancel() -> bool:
        world.client.abort()
        return False

    with pytest.raises(Aborted):
        world.chat(cancel=cancel)
    world.provider.answers = [HELLO]
    assert world.chat()[0].content == "Hello"


def test_an_abort_between_requests_is_nothing() -> None:
    world = World(HELLO)
    world.client.abort()
    assert world.chat()[0].content == "Hello"


def test_an_aborted_stream_is_read_no_further() -> None:
    world = World(streamed(delta(content="a"), delta(content="b")))
    world.deltas = _Aborts(world)
    with pytest.raises(Aborted):
        world.chat()
    assert list(world.deltas) == ["a"]


class _Aborts(list[str]):
    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def append(self, text: str) -> None:
        super().append(text)
        self.world.client.abort()


def test_a_connection_that_breaks_by_an_abort_is_not_made_anew() -> None:
    world = World(None)

    def breaks() -> httpx2.Response:
        world.client.abort()
        raise httpx2.ReadError("closed")

    world.provider.answers = [breaks]
    with pytest.raises(Aborted):
        world.chat()
    assert len(world.provider.bodies) == 1


def test_a_refused_key_is_looked_for_again() -> None:
    keys = iter(["old", "old", "old", "new", "new"])
    world = World(failing(401, "who?"), HELLO, keys=lambda: next(keys))
    assert world.chat()[0].content == "Hello"
    assert world.provider.keys == ["Bearer old", "Bearer new"]
    assert world.clock.slept == pytest.approx(6.0)


def test_a_bad_key_blocks_for_half_a_minute() -> None:
    world = World(failing(401, "who?"))
    with pytest.raises(ApiError, match=r"^API error 401: who"):
        world.chat()
    assert world.clock.slept == pytest.approx(30.0)
    assert len(world.provider.bodies) == 1


def test_two_bad_keys_are_too_many() -> None:
    keys = iter(["old", "new", "new"])
    world = World(failing(401, "who?"), keys=lambda: next(keys))
    with pytest.raises(ApiError):
        world.chat()
    assert len(world.provider.bodies) == 2


@pytest.mark.parametrize(
    ("error", "says"),
    [({"message": "over"}, "over"), ({"code": 1}, "{'code': 1}"), ("bad", "bad")],
)
def test_an_error_in_an_answer_is_final(error: Any, says: str) -> None:
    world = World(streamed(delta(content="So"), {"error": error}))
    with pytest.raises(ApiError) as caught:
        world.chat()
    assert str(caught.value) == f"API error: {says}"
    assert world.deltas == ["So"]
    assert len(world.provider.bodies) == 1
    with pytest.raises(ApiError):
        World(httpx2.Response(200, json={"error": error})).chat()


def test_a_whole_answer_that_is_no_json() -> None:
    broken = httpx2.Response(200, text="{", headers={"content-type": "application/json"})
    with pytest.raises(ApiError, match="no JSON"):
        World(broken).chat()


def test_a_stream_without_its_end_is_whole() -> None:
    assert World(streamed(delta(content="Hi"), done=False)).chat()[0].content == "Hi"
    assert World(streamed(done=False)).chat()[0] == Message("assistant", "")


def test_what_is_no_chunk_is_passed_over() -> None:
    world = World(streamed("{", "[1]", {"choices": []}, {"choices": [{"delta": 1}]}, delta()))
    assert world.chat()[0].content == ""


def test_what_is_told_in_no_line_counts() -> None:
    lines = Lines()
    assert [*lines.feed(b": hi\ndata: a\r\ndata"), *lines.feed(b":b"), *lines.end()] == ["a", "b"]


def test_a_line_without_an_end_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.transport.fsm_reply.LONGEST", 3)
    with pytest.raises(ApiError, match="more than 3 bytes"):
        [*Lines().feed(b"data: abc")]


def test_a_last_line_that_nothing_has_ended_counts() -> None:
    content = b'data: {"choices": [{"delta": {"content": "Hi"}}]}'
    assert World(httpx2.Response(200, content=content)).chat()[0].content == "Hi"
    content = b"data: [DONE]\n\ndata: {}"
    assert World(httpx2.Response(200, content=content)).chat()[0].content == ""


def test_who_listens_badly_is_not_heard() -> None:
    def breaks(_text: str) -> None:
        raise RuntimeError

    reply = Reply(breaks)
    reply.take('{"choices": [{"delta": {"content": "Hi"}}]}')
    assert reply.whole()[0].content == "Hi"


def calls_of(*fragments: dict[str, Any]) -> list[tuple[str, str, Any]]:
    reply = Reply()
    for each in fragments:
        reply.take(json.dumps(delta(tool_calls=[each])))
    message, _usage = reply.whole()
    return [(call.id, call.name, call.arguments) for call in message.tool_calls or ()]


def piece(index: Any = None, call_id: Any = None, name: str = "", arguments: str = "") -> Any:
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": call_id, "function": function}


def test_an_index_says_of_which_call_a_piece_is() -> None:
    found = calls_of(
        piece(1, "b", "look", "{}"), piece(0, "a", "wa"), piece(0, None, "it", '{"s"'), piece(0)
    )
    assert found == [("a", "wait", '{"s"'), ("b", "look", "{}")]


def test_without_an_index_the_newest_call_goes_on_until_another_id() -> None:
    found = calls_of(
        piece(None, "a", "look", "{"), piece(None, None, "", "}"), piece(None, "b", "wait")
    )
    assert found == [("a", "look", "{}"), ("b", "wait", "{}")]


def test_a_call_without_an_id_is_called_after_its_index() -> None:
    assert calls_of(piece(3, None, "look"), piece(True, "x")) == [("x", "look", "{}")]
    assert calls_of(piece(3, None, "look")) == [("call_3", "look", "{}")]
    assert calls_of({}, {"function": 1}) == [("call_0", "", "{}")]


def test_what_repeats_a_call_in_every_piece_doubles_it() -> None:
    assert calls_of(piece(0, "a", "A"), piece(0, "a", "A")) == [("aa", "AA", "{}")]


def test_calls_that_are_none_are_passed_over() -> None:
    reply = Reply()
    reply.take(json.dumps(delta(tool_calls=[1])))
    reply.take(json.dumps(delta(tool_calls="x")))
    assert reply.whole()[0].tool_calls is None


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 4}, Usage(3, 4)),
        ({"input_tokens": 3}, Usage(3, 0)),
        ({"prompt_tokens": "many"}, Usage()),
    ],
)
def test_what_a_reply_cost(told: Any, usage: Usage) -> None:
    assert World(streamed({"choices": [], "usage": told})).chat()[1] == usage


def test_a_client_of_its_own_is_made_where_none_is_given() -> None:
    client = ChatClient("http://127.0.0.1:9", "m", lambda: "", clock=Clock(), chance=lambda: 0.0)
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        client.chat_sync([user("Hi")], system="")


def test_a_clone_has_connections_of_its_own() -> None:
    world = World(HELLO)
    other = world.client.clone()
    assert world.provider.made == 2
    other.close()
    assert world.chat()[0].content == "Hello"


def test_a_ctrl_c_breaks_off_the_request_where_somebody_hears_of_it() -> None:
    heard: list[str] = []
    provider = Provider(HELLO)

    def stop() -> str:
        raise KeyboardInterrupt

    def client(interrupted: Callable[[], None] | None) -> ChatClient:
        return ChatClient(
            "http://provider.test",
            "m",
            stop,
            clock=Clock(),
            chance=lambda: 0.0,
            connect=provider.connect,
            interrupted=interrupted,
        )

    with pytest.raises(Aborted):
        client(lambda: heard.append("stop")).chat_sync([], system="")
    with pytest.raises(KeyboardInterrupt):
        client(None).chat_sync([], system="")
    assert heard == ["stop"]


def test_an_abort_wakes_who_reads_from_a_socket() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    client = ChatClient(
        f"http://127.0.0.1:{port}",
        "m",
        lambda: "k",
        clock=Clock(),
        chance=lambda: 0.0,
        connect=lambda: httpx2.Client(trust_env=False),
    )
    ended: list[BaseException] = []

    def asks() -> None:
        try:
            client.chat_sync([user("Hi")], system="")
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=asks)
    thread.start()
    accepted, _ = listener.accept()
    assert accepted.recv(1)
    client.abort()
    thread.join(10)
    accepted.close()
    listener.close()
    client.close()
    assert not thread.is_alive()
    assert isinstance(ended[0], Aborted)


@pytest.mark.parametrize("level", ["http", "server"])
def test_the_loop_runs_on_it_in_virtual_time(level: str) -> None:
    subject = at_level(agent_subject("harness.transport.fsm_client:agent"), level)
    for name in ("basics/two_turns", "tools/serial", "cancel/in_stream", "cancel/late_in_tool"):
        scenario = load(SCENARIOS / f"{name}.yaml")
        one, other = [Play(scenario, subject.build, Choices()).play().trace for _ in range(2)]
        assert one.digest == other.digest
        assert run(scenario, subject).ok, name
    failing_once = load(SCENARIOS / "errors/request_fails.yaml")
    trace = Play(failing_once, subject.build, Choices()).play().trace
    again = [entry.at for entry in trace if type(entry.event).__name__ == "RequestSent"]
    assert SECOND <= again[1] - again[0] <= 2 * SECOND


def test_the_loop_runs_on_it_at_the_level_of_the_model_too() -> None:
    assert run(SCENARIOS / "basics/two_turns.yaml", agent).ok
