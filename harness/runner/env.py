"""What an agent is given in a run under the kernel."""

from __future__ import annotations

from harness.core.choices import Choices
from harness.core.errors import UsageError
from harness.core.events import INSIDE, InsideEvent
from harness.core.messages import Message
from harness.core.pairing import Follower
from harness.core.trace import Recorder, common_prefix
from harness.fakes.model import FakeModel
from harness.fakes.place import Stage
from harness.runner.blocking import Blocking
from harness.runner.scenario import Scenario
from harness.runner.sync_env import RunClock, RunModel, RunTools
from harness.sim.kernel import Kernel


class RunEnv:
    """The fakes of one run, on one kernel; implements `harness.core.ports.Env`."""

    def __init__(
        self,
        scenario: Scenario,
        kernel: Kernel,
        recorder: Recorder,
        stage: Stage,
        choices: Choices,
        blocking: Blocking,
    ) -> None:
        refuse = Refusal() if scenario.strict else None
        self.model = FakeModel(stage, recorder, choices, refuse)
        self.model_sync = RunModel(self.model, blocking)
        self.tools = RunTools(scenario.tools, stage, recorder, choices, blocking)
        self.clock = RunClock(kernel, blocking)
        self.block = blocking.call
        self.abort = blocking.abort
        self._step = blocking.step
        self._record = recorder.record

    def observe(self, event: InsideEvent) -> None:
        """Record what the loop reports; UsageError where it is not one of the inside events."""
        if not isinstance(event, INSIDE):
            names = ", ".join(kind.__name__ for kind in INSIDE)
            raise UsageError(f"observe takes one of {names}; found {event!r}")
        self._record(event)
        self._step()


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
