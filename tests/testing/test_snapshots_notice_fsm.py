"""What went wrong inside the state-machine loop shows in the view that is there for it."""

from collections.abc import Callable

import pytest

from harness.core.ports import Agent, Env
from harness.loops.fsm.agent import KIND
from harness.runner.files.load import load_text
from harness.runner.run import run
from tests.testing import altered_fsm
from tests.testing.noticing import Noticing

CASE = """\
about: Of two tools the second is cut off, and the round is left out; then a round is kept.
tools:
  clock: {returns: "14:05", takes: 10ms}
  weather: {returns: sunny, takes: 2s}
turns:
  - user: Time?
    model: [{calls: [clock]}, {say: "14:05."}]
  - user: Time and weather?
    model: [{calls: [clock, weather]}]
    cancel: {after: tool_started weather}
  - user: And now?
    model: [{say: No idea.}]
"""

NOTICED = {
    altered_fsm.SwapsTwoStates: ("states", ["log", "states", "trace"]),
    altered_fsm.ForgetsToTell: ("notifications", ["log", "notifications", "trace"]),
    altered_fsm.SalvagesOneTooFew: ("salvage", ["salvage", "requests", "trace"]),
}
"""For each altered loop the view that is there for its bug, and all views in which it shows."""


def test_the_loop_that_is_not_altered_is_the_loop() -> None:
    scenario = load_text(CASE, "case.yaml")
    sound = run(scenario, altered_fsm.Sound)
    assert (
        sound.trace
        == run(scenario, lambda env: KIND.build(env, {"system_prompt": ""}, "reference")).trace
    )


@pytest.mark.parametrize("build", NOTICED, ids=lambda build: build.__name__)
def test_it_fails_in_its_own_view(pytester: pytest.Pytester, build: Callable[[Env], Agent]) -> None:
    noticing = Noticing(pytester, __name__, altered_fsm)
    assert noticing.pinned >= {"states", "notifications", "salvage"}
    noticing.fails(build, *NOTICED[build])
