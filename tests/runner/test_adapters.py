"""Agents made of a function, of an object with a method, of a command: what they are given, what is
taken of what they return, and what is said where they do not fit.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.core.errors import UsageError
from harness.core.messages import ModelRequest, user
from harness.core.outcome import STEP_LIMIT, Completed, Error, StepLimit
from harness.core.ports import Env
from harness.runner.adapters import from_command, from_function, from_object
from harness.runner.agents import agent_subject
from harness.runner.result import Result

TWO = """
about: Two turns.
turns:
  - user: One?
    model: [{say: First., optional: true}]
  - user: Two?
    model: [{say: Second., optional: true}]
"""

CALL = """
about: A call of a tool.
tools:
  clock: {returns: noon, takes: 1s}
turns:
  - user: Time?
    model: [{calls: [clock]}]
"""

Message = dict[str, Any]
Seen = list[list[Message]]


def play(agent: Any, scenario: str = TWO) -> Result:
    return harness.run(scenario, agent)


def said(text: str) -> Message:
    return {"role": "user", "content": text}


def replied(text: str) -> Message:
    return {"role": "assistant", "content": text}


def refusal(make: Callable[[], Any]) -> str:
    with pytest.raises(UsageError) as caught:
        make()
    return str(caught.value)


REQUEST = ModelRequest("some-model", "", (user("Time?"),))


async def hear(env: Env) -> None:
    """Hear the model out."""
    async for _part in await env.model.generate(REQUEST):
        pass


def hear_waiting(env: Env) -> None:
    """The same for synchronous code."""
    for _part in env.model_sync.generate(REQUEST):
        pass


def answering(seen: Seen, value: Any) -> Callable[..., Any]:
    """A function of messages that keeps what it is given and returns `value`, a turn's each."""
    values = iter([value, value] if not isinstance(value, tuple) else value)

    async def answer(messages: list[Message]) -> Any:
        seen.append(list(messages))
        return next(values)

    return answer


@pytest.mark.parametrize(
    ("value", "then"),
    [
        ("Yes.", [said("One?"), replied("Yes."), said("Two?")]),
        (replied("Yes."), [said("One?"), replied("Yes."), said("Two?")]),
        ([said("Short.")], [said("Short."), said("Two?")]),
        (None, [said("One?"), said("Two?")]),
    ],
)
def test_what_a_function_of_messages_returns_is_in_the_next_turn(
    value: Any, then: list[Message]
) -> None:
    seen: Seen = []
    assert play(from_function(answering(seen, value))).ok
    assert seen == [[said("One?")], then]


def test_what_it_adds_itself_stays_and_its_text_is_not_added_twice() -> None:
    seen: Seen = []

    async def answer(messages: list[Message]) -> str:
        messages += [replied("Yes.")]
        seen.append(list(messages))
        return "Yes."

    assert play(from_function(answer)).ok
    assert seen[1] == [said("One?"), replied("Yes."), said("Two?"), replied("Yes.")]


def test_a_message_that_it_adds_and_returns_too_is_there_once() -> None:
    seen: Seen = []

    async def answer(messages: list[Message]) -> Message:
        seen.append(list(messages))
        messages.append(replied("Yes."))
        return messages[-1]

    assert play(from_function(answer)).ok
    assert seen[1] == [said("One?"), replied("Yes."), said("Two?")]


def test_a_text_after_a_message_that_is_an_object_is_added_unless_that_is_the_assistants() -> None:
    class Given:
        role = "assistant"

    seen: Seen = []

    async def answer(messages: list[Any]) -> str:
        seen.append(list(messages))
        messages.append(Given() if len(seen) == 1 else object())
        return "Yes."

    play(from_function(answer))
    assert len(seen[1]) == 3  # the user's, the object, the user's


def test_what_it_has_added_stays_where_it_raises() -> None:
    seen: Seen = []

    async def answer(messages: list[Message]) -> None:
        seen.append(list(messages))
        messages.append(replied("half"))
        if len(seen) == 1:
            raise ValueError("lost")

    result = play(from_function(answer))
    assert isinstance(result.outcomes[0], Error)
    assert result.outcomes[0].kind == "ValueError"
    assert seen[1] == [said("One?"), replied("half"), said("Two?")]


def test_every_run_begins_with_nothing_said() -> None:
    seen: Seen = []
    agent = from_function(answering(seen, ("Yes.",) * 4))
    play(agent)
    play(agent)
    assert seen[2] == [said("One?")]


def test_an_outcome_is_the_turns_and_a_function_of_text_may_return_anything() -> None:
    async def stops(messages: list[Message]) -> StepLimit:
        return STEP_LIMIT

    async def chats(text: str) -> object:
        return object()

    assert play(from_function(stops)).outcomes == (STEP_LIMIT, STEP_LIMIT, STEP_LIMIT)
    assert play(from_function(chats)).outcomes == (Completed(), Completed())


@pytest.mark.parametrize(
    ("value", "found"), [(7, "an object of class int"), (["Y", "es."], "a list with texts")]
)
def test_a_value_that_cannot_be_taken_fails_the_turn(value: object, found: str) -> None:
    result = play(from_function(answering([], value)))
    [first, *_] = result.outcomes
    assert isinstance(first, Error)
    assert f"answer returned {found}; return the reply's text" in first.message


def test_a_turn_that_resumes_says_nothing() -> None:
    seen: list[Any] = []

    async def answer(messages: list[Message], text: str | None) -> None:
        seen.append((text, len(messages)))

    assert play(from_function(answer), TWO.replace("user: Two?", "resume: true")).ok
    assert seen == [("One?", 1), (None, 1)]


def test_a_text_is_added_where_nothing_was_said() -> None:
    seen: Seen = []

    async def answer(messages: list[Message]) -> str:
        seen.append(list(messages))
        messages.clear()
        return "Yes."

    play(from_function(answer))
    assert seen[1] == [replied("Yes."), said("Two?")]


def test_parameters_are_given_by_name_and_others_as_they_are_told() -> None:
    got: dict[str, Any] = {}

    async def answer(
        history: list[Message], prompt: str, tools: Any, env: Env, deep: int = 3
    ) -> None:
        await hear(env)
        got.update(history=history, prompt=prompt, deep=deep, clock=await tools["clock"]())

    agent = from_function(answer, history="messages", prompt="text")
    assert play(agent, CALL).ok
    assert got == {"history": [said("Time?")], "prompt": "Time?", "deep": 3, "clock": "noon"}
    assert agent.__qualname__.endswith("answer")  # type: ignore[attr-defined]


def test_parameters_without_names_and_open_ends_do_no_harm() -> None:
    seen: list[Any] = []

    async def answer(messages: list[Message], /, *more: Any, **others: Any) -> None:
        seen.append((len(messages), more, others))

    play(from_function(answer))
    assert seen[0] == (1, (), {})


def test_what_is_known_by_its_place_only_is_found_behind_defaults() -> None:
    seen: list[Any] = []

    def answer(deep: int = 3, text: str = "", /) -> None:
        seen.append((deep, text))

    play(from_function(answer))
    assert seen[0] == (3, "One?")


def test_a_plain_function_waits_for_its_tools() -> None:
    times: list[int] = []

    def answer(text: str, tools: Any, env: Env) -> None:
        hear_waiting(env)
        before = env.clock.now()
        assert tools["clock"].__name__ == "clock"
        assert tools["clock"]() == "noon"
        times.append(env.clock.now() - before)

    assert play(from_function(answer), CALL).ok
    assert times == [1_000_000_000]


def test_a_plain_function_waits_for_its_tools_also_where_a_test_is_asynchronous() -> None:
    got: list[object] = []

    def answer(text: str, tools: Any, env: Env) -> None:
        hear_waiting(env)
        got.append(tools["clock"]())

    async def test() -> None:
        assert play(from_function(answer), CALL).ok

    asyncio.run(test())
    assert got == ["noon"]


def test_a_plain_function_awaits_its_tools_in_a_loop_that_it_runs_itself() -> None:
    got: list[object] = []

    def answer(text: str, tools: Any, env: Env) -> None:
        hear_waiting(env)

        async def inside() -> object:
            return await tools["clock"]()

        got.append(asyncio.run(inside()))

    assert play(from_function(answer), CALL).ok
    assert got == ["noon"]


def test_generators_are_run_to_their_end() -> None:
    seen: Seen = []

    async def streams(messages: list[Message]) -> AsyncIterator[str]:
        yield "one"
        seen.append(list(messages))

    def steps(messages: list[Message]) -> Iterator[str]:
        yield "one"
        seen.append(list(messages))
        return "Yes."

    assert play(from_function(streams)).ok
    assert play(from_function(steps)).ok
    assert seen[:2] == [[said("One?")], [said("One?"), said("Two?")]]
    assert seen[3] == [said("One?"), replied("Yes."), said("Two?")]


def test_a_partial_and_a_callable_object_are_as_what_they_call() -> None:
    class Answers:
        async def __call__(self, messages: list[Message]) -> str:
            return "Yes."

    async def answer(messages: list[Message], suffix: str) -> str:
        return f"Yes{suffix}"

    assert play(from_function(Answers())).ok
    assert play(from_function(partial(answer, suffix="."))).ok


def test_a_plain_function_that_returns_a_coroutine_is_told_to_await_it() -> None:
    [first, *_] = play(from_function(lambda text: answering([], "")([]))).outcomes
    assert isinstance(first, Error)
    assert "returned a coroutine, and is no `async def`" in first.message


def test_functions_that_do_not_fit() -> None:
    def asks(mesages: Any) -> None: ...
    def builds(env: Any) -> None: ...
    def forgets() -> None: ...
    def takes(prompt: str) -> None: ...
    def remembers(history: Any = None) -> None: ...
    def hides(*words: Any, **others: Any) -> None: ...

    assert refusal(lambda: from_function(asks)).endswith(
        "needs 'mesages' (did you mean 'messages'?), which is none of messages, text, tools, env; "
        'rename it, or give mesages="messages"'
    )
    assert "; a function that makes an agent is given as it is" in refusal(
        lambda: from_function(builds)
    )
    assert refusal(lambda: from_function(forgets)).endswith("so that it never hears the user")
    assert refusal(lambda: from_function(remembers)).endswith(
        'never hears the user; say what is which, as in history="messages"'
    )
    assert refusal(lambda: from_function(hides)).endswith(
        "never hears the user; write a function around it that takes them"
    )
    assert "unknown value 'txt' (did you mean 'text'?)" in refusal(
        lambda: from_function(takes, prompt="txt")  # type: ignore[arg-type]
    )
    assert "unknown parameter 'promt' (did you mean 'prompt'?)" in refusal(
        lambda: from_function(takes, promt="text")
    )
    assert "found 7 (from_object takes a class)" in refusal(
        lambda: from_function(7)  # type: ignore[arg-type]
    )
    assert "from_object takes a class" in refusal(lambda: from_function(Path))
    assert refusal(lambda: from_function(dict.update)) == (
        "dict.update does not say which parameters it has; wrap it"
    )


class Chat:
    """An object as people have it: it keeps its own history."""

    def __init__(self, tools: Any, env: Env) -> None:
        self.heard: list[str] = []
        self.tools = tools
        self.env = env
        self.stopped = False

    async def run(self, text: str) -> str:
        self.heard.append(text)
        await hear(self.env)
        return str(await self.tools["clock"]())

    def halt(self) -> None:
        self.stopped = True


@pytest.fixture
def made() -> list[Chat]:
    return []


@pytest.fixture
def make(made: list[Chat]) -> Callable[..., Chat]:
    def make_chat(tools: Any, env: Env) -> Chat:
        made.append(Chat(tools, env))
        return made[-1]

    return make_chat


def test_an_object_is_made_for_each_run_and_lives_through_its_turns(
    made: list[Chat], make: Callable[..., Chat]
) -> None:
    twice = f"{CALL}  - user: Again?\n    model: [{{calls: [clock]}}]\n"
    agent = from_object(make)
    play(agent, twice)
    play(agent, twice)
    assert [chat.heard[:2] for chat in made] == [["Time?", "Again?"]] * 2


def test_a_class_makes_its_objects() -> None:
    assert play(from_object(Chat), CALL).ok


def test_a_class_whose_method_is_synchronous_gets_tools_that_wait() -> None:
    class Waits:
        def __init__(self, tools: Any, env: Env, hour: str = "noon") -> None:
            self.tools = tools
            self.env = env
            self.hour = hour

        def ask(self, prompt: str) -> None:
            hear_waiting(self.env)
            assert self.tools["clock"]() == self.hour

    assert play(from_object(Waits, "ask", prompt="text"), CALL).ok
    assert play(from_object(partial(Waits, hour="noon"), "ask", prompt="text"), CALL).ok


def test_a_stop_is_the_agents_own(made: list[Chat], make: Callable[..., Chat]) -> None:
    cancelled = f"{CALL}    cancel: {{at: 500ms}}\n"
    play(from_object(make, stop="halt"), cancelled)
    play(from_object(make), cancelled)
    assert [chat.stopped for chat in made] == [True, False]


def test_objects_that_do_not_fit() -> None:
    class Needs:
        def __init__(self, client: Any) -> None: ...

    class Runs:
        def run(self) -> None: ...

    class Asks:
        def run(self, prompt: str) -> None: ...

    assert refusal(lambda: from_object(Runs())).endswith(  # type: ignore[arg-type]
        "found an object of class Runs: write from_object(lambda: Runs(...))"
    )

    async def makes() -> Runs:
        return Runs()

    assert "makes is asynchronous" in refusal(lambda: play(from_object(makes)))
    assert (
        "needs 'client', which is none of env, tools; pass it yourself: from_object(lambda: "
        in (refusal(lambda: from_object(Needs)))
    )
    assert refusal(lambda: play(from_object(Chat, "rum"))) == (
        "Chat: unknown method 'rum' (did you mean 'run'?); known: env, halt, heard, run, stopped, "
        "tools"
    )
    assert refusal(lambda: play(from_object(Asks))).endswith('rename it, or give prompt="text"')
    assert refusal(lambda: play(from_object(Runs))) == (
        "Runs.run takes neither messages nor text, so that it never hears the user"
    )


def test_a_command_may_have_limits() -> None:
    process = from_command("node agent.mjs", turn_limit=3, cancel_limit=1).process
    assert process is not None
    assert (process.words, process.turn_limit, process.cancel_limit) == (
        ("node", "agent.mjs"),
        3,
        1,
    )


@pytest.mark.parametrize("limit", [0, -1, float("nan")])
def test_a_limit_is_a_time(limit: float) -> None:
    assert refusal(lambda: from_command("x", turn_limit=limit)).startswith("turn_limit is ")
    assert refusal(lambda: from_command("x", cancel_limit=limit)).endswith("seconds, more than 0")


def test_a_command_is_one_line_and_no_shells() -> None:
    assert refusal(lambda: from_command(["node", "a.mjs"])).endswith(  # type: ignore[arg-type]
        "takes one line of text, as a shell does; found ['node', 'a.mjs']"
    )
    assert "no shell reads the line" in refusal(lambda: play(from_command("cd nowhere && ls")))


def test_each_is_found_as_an_agent_of_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "adapted_agents.py").write_text(
        "import harness\n\n@harness.from_function\nasync def answer(messages): return 'Yes.'\n\n"
        f"program = harness.from_command('{sys.executable} -c \"input(); print()\"')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    subject = agent_subject("adapted_agents:answer")
    assert (subject.name, subject.options) == (
        "adapted_agents:answer",
        ("--agent", "adapted_agents:answer"),
    )
    assert play("adapted_agents:answer").ok
    program = agent_subject("adapted_agents:program")
    assert program.process is not None
    assert program.options == ("--agent", "adapted_agents:program")
    assert program.name.endswith("(in real time: a replay may differ)")
    sys.modules.pop("adapted_agents")
