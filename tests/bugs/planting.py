"""What a planted bug is, and short words for the scenarios that show one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from harness.core.ports import Agent, Env
from harness.fakes.script import Reply, ScriptedCall
from harness.fakes.tool_spec import Answers, Behaviour, Raises, Returns, ToolSpec
from harness.runner.agents import Subject, at_level
from harness.runner.cassettes.taped import taped
from harness.runner.scenario import Cancel, Scenario, Turn
from harness.transport.cassettes.form import Cassette
from tests.subjects.hand_loop import MendedHandLoop

MS = 1_000_000


@dataclass(frozen=True)
class Planted:
    """A bug: who has it, what shows it, and the one invariant that must say so; `mended` is the
    same agent without the bug. `exotic` says what generated scenarios lack to show it, if anything;
    `too` are invariants that the bug cannot but break as well, or that the mended agent breaks,
    which may only show them. `soft` says that the bug too is only shown, as all are of invariants
    that never fail a run. With `recorded`, what shows it is a recording of the mended agent.
    """

    caught_by: str
    build: Callable[[Env], Agent]
    scenario: Scenario
    mended: Callable[[Env], Agent] = MendedHandLoop
    exotic: str = ""
    too: frozenset[str] = frozenset()
    soft: bool = False
    recorded: bool = False
    loops: ClassVar[tuple[str, ...]] = ()
    """Those whose settings generated scenarios are to have; none: any will do."""

    def cassette(self) -> Cassette | None:
        """What the agents are run on, where that is a recording."""
        if not self.recorded:
            return None
        return taped(self.scenario, at_level(Subject("mended", self.mended), "http").build)[1]

    def under(self, settings: Scenario) -> Callable[[Env], Agent]:
        """What has the bug, set up as a scenario says, where it has any settings."""
        return self.build

    def mended_under(self, settings: Scenario) -> Callable[[Env], Agent]:
        """The same without the bug."""
        return self.mended


SLOW = ToolSpec("slow", Behaviour(Returns("ok"), takes=50 * MS))
QUICK = ToolSpec("quick", Behaviour(Returns("ok"), takes=10 * MS))
PAYS_THEN_FAILS = ToolSpec("pay", Behaviour(Raises("timeout"), takes=10 * MS, effect="start"))
ANSWERS = ToolSpec("no", Behaviour(Answers("not today")))


def asks_for(*names: str, cancel: Cancel | None = None) -> Turn:
    calls = tuple(ScriptedCall(name, {"n": n}) for n, name in enumerate(names))
    return Turn("Go.", (Reply(calls=calls), Reply(say="Gone.")), cancel)


def scenario(*turns: Turn, tools: tuple[ToolSpec, ...] = ()) -> Scenario:
    return Scenario("planted", turns=turns, tools=tools)
