"""What an agent is given in a run under the kernel."""

from __future__ import annotations

from collections.abc import Callable

from harness.core.choices import Choices
from harness.core.events import InsideEvent
from harness.core.messages import Message
from harness.core.pairing import Follower
from harness.core.trace import Recorder, common_prefix
from harness.fakes.model import FakeModel
from harness.fakes.place import Stage
from harness.fakes.tools import FakeTools
from harness.runner.scenario import Scenario
from harness.sim.clock import VirtualClock
from harness.sim.kernel import Kernel


class RunEnv:
    """The fakes of one run, on one kernel; implements `harness.core.ports.Env`."""

    def __init__(
        self, scenario: Scenario, kernel: Kernel, recorder: Recorder, stage: Stage, choices: Choices
    ) -> None:
        refuse = Refusal() if scenario.strict else None
        self.model = FakeModel(stage, recorder, choices, refuse)
        self.tools = FakeTools(scenario.tools, stage, recorder, choices)
        self.clock = VirtualClock(kernel)
        self.observe: Callable[[InsideEvent], None] = recorder.record


class Refusal:
    """Refuses what every provider refuses: a call without its result, a result without its call."""

    def __init__(self) -> None:
        self._follower = Follower()
        self._before: tuple[Message, ...] = ()

    def __call__(self, messages: tuple[Message, ...]) -> str | None:
        """Why a provider would refuse these messages, or None."""
        kept = common_prefix(self._before, messages)
        self._before = messages
        found = self._follower.take(kept, messages[kept:])
        return f"invalid request: {found[0].message}" if found else None
