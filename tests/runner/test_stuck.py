"""A loop that never awaits ends its run with a name and a line; it does not hang the process."""

from __future__ import annotations

from typing import Any

import pytest

from harness.core.events import RunStopped
from harness.runner.load import load_text
from harness.runner.run import run
from harness.sim.kernel import Kernel

SCENARIO = """\
about: It never awaits.
turns:
  - user: Hello
    model: [{say: Hi.}]
"""


class Spinning:
    def __init__(self, env: Any) -> None:
        self.env = env

    async def turn(self, text: str | None) -> None:
        while True:
            pass


def test_an_agent_that_never_awaits_is_stopped_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kernel, "patience", lambda kernel: 0.05)
    result = run(load_text(SCENARIO, "spinning.yaml"), Spinning)
    assert not result.ok
    (stopped,) = [e.event for e in result.trace if isinstance(e.event, RunStopped)]
    assert stopped.reason == "stuck"
    assert "test_stuck.py:" in stopped.detail
    assert " in Spinning.turn" in stopped.detail
