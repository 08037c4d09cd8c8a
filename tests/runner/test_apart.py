"""An agent whose runs are not apart, since one begins with what was said in another."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import harness
from harness import ModelRequest, assistant, user
from harness.core.ports import Agent, Env
from harness.runner.apart import RunsNotApart

TALK = """
about: Two turns.
turns:
  - user: One?
    model: [say: First.]
  - user: Two?
    model: [say: Second.]
"""
OTHER = TALK.replace("First.", "Third.").replace("Second.", "Fourth.")
EXAMPLES = (user("Hello?"), assistant("First."))


class Talks:
    """An agent whose conversation is a list that it is given."""

    def __init__(self, env: Env, messages: list[Any]) -> None:
        self.env = env
        self.messages = messages

    async def turn(self, text: str) -> None:
        self.messages.append(user(text))
        request = ModelRequest("some-model", "", tuple(self.messages))
        async for part in await self.env.model.generate(request):
            if isinstance(part, harness.ReplyDone):
                self.messages.append(part.message)


@pytest.fixture
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RunsNotApart)
        yield


def test_a_list_that_outlives_a_run_is_told_in_each_run_after_the_first(quiet: None) -> None:
    messages: list[Any] = []

    def build(env: Env) -> Agent:
        return Talks(env, messages)

    harness.run(TALK, build)
    for scenario in (OTHER, TALK, TALK):
        with pytest.warns(
            RunsNotApart, match=r"build began a run with what .*\('First.'\)"
        ) as told:
            harness.run(scenario, build)
        assert told[0].filename == __file__


def test_it_is_told_at_other_levels_too(quiet: None) -> None:
    messages: list[Any] = []

    def build(env: Env) -> Agent:
        return Talks(env, messages)

    harness.run(TALK, build)
    with pytest.warns(RunsNotApart):
        harness.run(TALK, build, level="http:anthropic")


def test_what_each_run_begins_with_is_no_such_thing(quiet: None) -> None:
    def build(env: Env) -> Agent:
        return Talks(env, [*EXAMPLES])

    for _ in range(3):
        harness.run(TALK, build)


def test_what_no_weak_reference_can_be_made_to_is_passed_over(quiet: None) -> None:
    class Builds:
        __slots__ = ("messages",)

        def __init__(self) -> None:
            self.messages: list[Any] = []

        def __call__(self, env: Env) -> Agent:
            return Talks(env, self.messages)

    build = Builds()
    harness.run(TALK, build)
    harness.run(TALK, build)


def test_a_run_without_a_request_has_nothing_to_tell(quiet: None) -> None:
    @harness.from_function
    async def silent(text: str) -> None: ...

    nothing = TALK.replace("say:", "optional: true, say:").replace("[o", "[{o").replace(".]", ".}]")
    assert harness.run(nothing, silent).ok
