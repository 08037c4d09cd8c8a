"""An abort that comes in the very step of a thread, as where a part of a reply is recorded."""

from __future__ import annotations

import threading

import pytest

from harness.core.messages import ModelRequest, user
from harness.core.ports import Aborted, Env
from harness.runner.files.load import load_text
from harness.runner.run import run

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
