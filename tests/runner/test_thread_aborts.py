"""Stops of agents with threads: one that comes in a thread's own step, one that is held up."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from harness.core.choices import Choices
from harness.core.durations import SECOND
from harness.core.events import CancelDelivered, CancelRequested, LoopEvent, RequestSent
from harness.core.messages import ModelRequest, user
from harness.core.ports import Aborted, Env
from harness.runner.drive import Play
from harness.runner.files.load import load_text
from harness.runner.run import run
from harness.sim.kernel import Kernel

CASE = """
about: A reply in two parts, and a stop after one of them.
turns:
  - user: Go.
    model: [{say: one two, chunk: 3, takes: 1s}]
    cancel: {after: CUT}
"""


class Asks:
    """Reads the model in a thread until it is stopped, and then waits for a while."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self.told: list[str] = []

    def turn(self, text: str | None) -> list[str]:
        worker = threading.Thread(target=self.work, args=[text])
        worker.start()
        worker.join()
        return self.told

    def work(self, text: str | None) -> None:
        try:
            list(self.env.model_sync.generate(ModelRequest("m", "", (user(text or ""),))))
        except Aborted:
            self.told.append("aborted")
        self.env.clock.wait(5)
        self.told.append("waited")

    def cancel(self) -> None:
        self.env.abort()


@pytest.mark.parametrize("cut", ["delta text", "request_sent", "reply_ended"])
def test_an_abort_in_the_step_of_a_thread_ends_with_its_call(cut: str) -> None:
    agents: list[Asks] = []

    def build(env: Env) -> Asks:
        agents.append(Asks(env))
        return agents[0]

    result = run(load_text(CASE.replace("CUT", cut), "aborts.yaml"), build)
    assert not result.trace.stop, str(result)
    assert agents[0].told[: agents[0].told.index("waited")] in ([], ["aborted"])
    assert "waited" in agents[0].told


class Locks:
    """Its stop takes a lock that nobody holds; `waits` says whether the turn goes on for long."""

    def __init__(self, env: Env, *, waits: bool) -> None:
        self.env = env
        self.waits = waits
        self.lock = threading.Lock()
        self.stopped = False

    def turn(self, _text: str | None) -> None:
        list(self.env.model_sync.generate(ModelRequest("m", "", (user("Go."),))))
        self.env.observe(LoopEvent("here", None))
        self.env.observe(LoopEvent("stopped" if self.stopped else "not yet", None))
        if self.waits:
            self.env.clock.wait(1)

    def cancel(self) -> None:
        with self.lock:
            self.stopped = True


@pytest.mark.parametrize(
    ("held_up", "waits", "seen"),
    [
        (0, False, "here stop stopped"),
        (1, True, "here not yet stop"),
        (1, False, "here not yet"),
    ],
)
def test_a_stop_that_is_held_up_is_delivered_when_it_is_through(
    held_up: int, waits: bool, seen: str
) -> None:
    def pick(source: str, label: str, _bound: int) -> int:
        return held_up if source == "switch" and label.startswith("cancel1#") else 0

    choices = Choices((), pick)
    scenario = load_text(CASE.replace("CUT", "loop_event here"), "held_up.yaml")
    kernel = Kernel(choices=choices, order="completions")
    played = Play(scenario, lambda env: Locks(env, waits=waits), choices, kernel).play()
    told = [
        "stop" if isinstance(entry.event, CancelDelivered) else entry.event.subject
        for entry in played.trace
        if isinstance(entry.event, CancelDelivered | LoopEvent)
    ]
    assert " ".join(map(str, told)) == seen


class Busy(Asks):
    """Its stop takes a lock that a thread holds as it asks; another one asks meanwhile."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.lock = threading.Lock()

    def turn(self, text: str | None) -> list[str]:
        holder = threading.Thread(target=self.hold)
        holder.start()
        super().turn(text)
        holder.join()
        return self.told

    def hold(self) -> None:
        with self.lock:
            self.env.observe(LoopEvent("held", None))
            self.env.clock.wait(SECOND)

    def cancel(self) -> None:
        with self.lock:
            self.env.abort()


def test_a_stop_that_waits_for_a_lock_is_delivered_when_it_has_it() -> None:
    result = run(load_text(CASE.replace("CUT", "loop_event held"), "held.yaml"), Busy)
    delivered = [e.at for e in result.trace if isinstance(e.event, CancelDelivered)]
    assert delivered == [SECOND], str(result)


class Interrupted(Asks):
    """On Ctrl-C it raises a flag for its thread, which asks again and again, and waits for it."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.stopped = threading.Event()

    def turn(self, text: str | None) -> list[str]:
        worker = threading.Thread(target=self.work, args=[text])
        worker.start()
        try:
            self.env.clock.wait(SECOND)
        except KeyboardInterrupt:
            self.stopped.set()
            self.env.abort()
        worker.join()
        return self.told

    def work(self, text: str | None) -> None:
        while not self.stopped.is_set():
            self.env.observe(LoopEvent("asks", None))
            super().work(text)


class Guarded(Interrupted):
    """The flag is guarded by a lock, which the thread holds as it looks."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.stopped = _Guard(env)  # type: ignore[assignment]


class _Guard:
    def __init__(self, env: Env) -> None:
        self.env, self.lock, self.raised = env, threading.Lock(), False

    def set(self) -> None:
        with self.lock:
            self.raised = True

    def is_set(self) -> bool:
        with self.lock:
            raised = self.raised
            self.env.observe(LoopEvent("asks", None))
            self.env.observe(LoopEvent("looked", None))
            return raised


@pytest.mark.parametrize(("kind", "first"), [(Interrupted, 1), (Guarded, 0)])
def test_an_interrupt_is_delivered_when_the_agent_could_tell_its_threads(
    kind: Any, first: int
) -> None:
    def pick(source: str, label: str, _bound: int) -> int:
        return first if source == "switch" and label.startswith("1#") else 0

    choices = Choices((), pick)
    case = CASE.replace("after: CUT", "after: loop_event asks, by: task")
    kernel = Kernel(choices=choices, order="completions")
    trace = Play(load_text(case, "interrupted.yaml"), kind, choices, kernel).play().trace
    told = [type(entry.event) for entry in trace]
    assert told.count(CancelDelivered) == 1
    assert told.index(CancelRequested) < told.index(RequestSent) < told.index(CancelDelivered)
