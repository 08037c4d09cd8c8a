"""What is said of a build that gives no agent, and of what would make one of it."""

import pytest

from harness.core.errors import UsageError
from harness.runner.built import agent_of, raised


class Chat:
    def __init__(self, model): ...
    def _post(self, text): ...
    async def ask(self, text): ...


class Runner:
    def reset(self): ...
    async def run(self, text): ...


class Bare: ...


class Agent:
    async def turn(self, text): ...


def converse(messages, tools): ...


async def asynchronous(messages): ...


def build(env): ...


def refusal(build, built):
    with pytest.raises(UsageError) as refused:
        agent_of(build, built)
    return str(refused.value)


def test_a_function_of_messages_is_told_what_makes_an_agent_of_it():
    assert str(raised(converse, TypeError("converse() missing 1 argument: 'tools'"))) == (
        "converse raised TypeError: converse() missing 1 argument: 'tools'; it is called with the "
        "env and must return the agent; of a function of messages, make one by "
        "harness.from_function(converse)"
    )
    assert refusal(asynchronous, asynchronous([])) == (
        "asynchronous is a coroutine function; write `def`, not `async def`; of a function of "
        "messages, make one by harness.from_function(asynchronous)"
    )


@pytest.mark.parametrize(("made", "method"), [(Chat, "ask"), (Runner, "run"), (Bare, "run")])
def test_a_class_whose_turn_is_another_method_is_told_which(made, method):
    assert refusal(made, object.__new__(made)).endswith(
        "for a synchronous agent; of an object whose turn is another method, make one by "
        f'harness.from_object({made.__name__}, "{method}")'
    )


@pytest.mark.parametrize("mine", [Agent, build, lambda model: model, Agent().turn])
def test_what_was_written_for_a_run_is_told_no_more_than_what_broke(mine):
    assert str(raised(mine, ValueError("no"))).endswith(
        " raised ValueError: no; it is called with the env and must return the agent"
    )


def test_an_agent_is_given_back():
    agent = Agent()
    assert agent_of(Agent, agent) is agent


@pytest.mark.parametrize(
    ("turn", "wrong"),
    [
        (None, "is missing"),
        (3, "is no function"),
        (lambda: None, "cannot be called with the user's text (too many positional arguments)"),
    ],
)
def test_a_turn_that_cannot_be_played_is_refused(turn, wrong):
    built = Bare()
    built.turn = turn
    assert f"build returned an object of class Bare whose `turn` {wrong}; " in refusal(build, built)


def test_a_stop_that_is_no_method_is_refused():
    agent = Agent()
    agent.cancel = True
    assert refusal(Agent, agent) == "Agent returned an agent whose `cancel` is no method"
