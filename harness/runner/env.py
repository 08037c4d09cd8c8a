"""What an agent is given in a run under the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from harness.core.choices import Choices
from harness.core.durations import SECOND
from harness.core.errors import UsageError
from harness.core.events import INSIDE, InsideEvent
from harness.core.messages import Message
from harness.core.pairing import Follower
from harness.core.ports import Model, SyncModel
from harness.core.trace import Recorder, common_prefix
from harness.fakes.model import FakeModel
from harness.fakes.place import Stage
from harness.fakes.script import Fault
from harness.runner.blocking import Blocking
from harness.runner.levels import MODEL, Level
from harness.runner.scenario import Scenario
from harness.runner.sync_env import RunClock, RunModel, RunTools
from harness.sim.kernel import Kernel
from harness.sim.virtual import BEGINNING

if TYPE_CHECKING:
    from harness.transport.in_memory import Answer
    from harness.transport.provider import Provider

_KEY = "key-of-the-run"
"""What the run's own clients sign their requests with."""


class RunEnv:
    """The fakes of one run, on one kernel; implements `harness.core.ports.Env`.

    `level` is where the agent meets its model; it may be set before the agent is built. `search`
    are faults that the choices may add to replies.
    """

    base_url = "http://provider.test"

    def __init__(
        self,
        scenario: Scenario,
        kernel: Kernel,
        recorder: Recorder,
        stage: Stage,
        choices: Choices,
        blocking: Blocking,
        search: Sequence[Fault] = (),
    ) -> None:
        refuse = Refusal() if scenario.strict else None
        self.level: Level = MODEL
        self._fake = FakeModel(stage, recorder, choices, refuse, search=search)
        self._blocking = blocking
        self.tools = RunTools(scenario.tools, stage, recorder, choices, blocking)
        self.clock = RunClock(kernel, blocking)
        self.block = blocking.call
        self.abort = blocking.abort
        self._step = blocking.step
        self._record = recorder.record
        over_http = FakeModel(stage, recorder, choices, search=search)
        self._make_provider = partial(_provider, scenario, kernel, stage, over_http)

    @cached_property
    def model(self) -> Model:
        """The model, for asynchronous agents."""
        if self.level == MODEL:
            return self._fake
        from harness.transport.model import HttpModel

        client, streamed = self._patient(sync=False), self.level.streamed
        return HttpModel(self.level.codec, self.base_url, _KEY, client, stream=streamed)

    @cached_property
    def model_sync(self) -> SyncModel:
        """The model, for synchronous agents."""
        if self.level == MODEL:
            return RunModel(self._fake, self._blocking)
        from harness.transport.model import SyncHttpModel

        client, streamed = self._patient(sync=True), self.level.streamed
        return SyncHttpModel(self.level.codec, self.base_url, _KEY, client, stream=streamed)

    @cached_property
    def answer(self) -> Answer:
        """What answers the requests of the run's clients: its provider, unless another was set."""
        return self.provider.answer

    @cached_property
    def provider(self) -> Provider:
        """What answers as the script says; made when the first request is there."""
        return self._make_provider()

    def http(self, library: str = "httpx2", *, sync: bool = False) -> Any:
        """A client of a library, whose requests the run's provider answers."""
        from harness.transport import in_memory, loopback

        carried = loopback if self.level.name == "server" else in_memory
        call = partial(self.block, abortable=True) if sync else None
        return carried.client(library, self.answer, self.base_url, call)

    def _patient(self, *, sync: bool) -> Any:
        """A client that waits as long as the model's script says."""
        client = self.http(sync=sync)
        client.timeout = None
        return client

    def observe(self, event: InsideEvent) -> None:
        """Record what the loop reports; UsageError where it is not one of the inside events."""
        if not isinstance(event, INSIDE):
            names = ", ".join(kind.__name__ for kind in INSIDE)
            raise UsageError(f"observe takes one of {names}; found {event!r}")
        self._record(event)
        self._step()


def _provider(scenario: Scenario, kernel: Kernel, stage: Stage, model: FakeModel) -> Provider:
    from harness.transport.provider import Provider

    return Provider(
        stage,
        model,
        lambda: (BEGINNING + kernel.now()) / SECOND,
        strict=scenario.strict,
    )


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
