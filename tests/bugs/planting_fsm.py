"""What a planted bug in the state-machine loop is: a loop, or a policy, that goes another way."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec.structs import replace

from harness.core.ports import Agent, Env
from harness.fakes.script import Also, AlsoWhen, Reply
from harness.fakes.tool_spec import ToolSpec
from harness.loops.fsm.agent import KIND, FsmAgent
from harness.loops.fsm.loop import Loop
from harness.loops.fsm.policy import SAFE, Policy
from harness.loops.fsm.prompts import TEXTS
from harness.runner.agents import loop_config
from harness.runner.scenario import Scenario, Turn
from tests.bugs.planting import Planted, scenario

IN_A_ROW = frozenset({"SHAPE"})
"""The loop says what it says in the user's place, beside what the user says."""


@dataclass(frozen=True)
class FsmPlanted(Planted):
    """A bug of the state-machine loop, which can be had with the settings of any scenario."""

    make: type[Loop] = Loop
    policy: Policy = SAFE
    loops: ClassVar[tuple[str, ...]] = (KIND.name,)

    def under(self, settings: Scenario) -> Callable[[Env], Agent]:
        return on_fsm(self.make, self.policy, settings)

    def mended_under(self, settings: Scenario) -> Callable[[Env], Agent]:
        return on_fsm(Loop, SAFE, settings)


def on_fsm(make: type[Loop], policy: Policy, settings: Scenario) -> Callable[[Env], Agent]:
    """Builds an agent that runs `make` as a scenario sets it up; it has the name of `make`."""

    def build(env: Env) -> Agent:
        config = {**KIND.settings, **loop_config(KIND, settings.config)}
        return FsmAgent(env, config, policy, make)

    build.__name__ = make.__name__
    return build


def planted(
    caught_by: str,
    make: type[Loop],
    shown_by: Scenario,
    exotic: str = "",
    too: frozenset[str] = IN_A_ROW,
    **policy: Any,
) -> FsmPlanted:
    """A bug of a loop that is safe but for it; `policy` is what else it goes another way in."""
    other = replace(SAFE, **policy)
    build, mended = on_fsm(make, other, shown_by), on_fsm(Loop, SAFE, shown_by)
    return FsmPlanted(caught_by, build, shown_by, mended, exotic, too, make=make, policy=other)


def fsm_scenario(
    *turns: Turn,
    tools: tuple[ToolSpec, ...] = (),
    also: tuple[Also, ...] = (),
    **config: Any,
) -> Scenario:
    return replace(scenario(*turns, tools=tools), also=also, config={"fsm": config})


def asides(prompt: str, *replies: Reply) -> Also:
    """Replies to requests beside the conversation, known by how the loop's prompt begins."""
    optional = tuple([replace(reply, optional=True) for reply in replies])
    return Also("aside", AlsoWhen(system_contains=prompt[:24]), optional)


def summaries(*replies: Reply) -> tuple[Also, ...]:
    return (asides(TEXTS.compact_prompt, *replies),)


def titles(*replies: Reply) -> tuple[Also, ...]:
    return (asides(TEXTS.title_prompt, *replies),)


def helpers(*replies: Reply) -> tuple[Also, ...]:
    return (asides(TEXTS.subagent_prompt, *replies),)
