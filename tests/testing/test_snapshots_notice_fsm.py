"""What went wrong inside the state-machine loop shows in the view that is there for it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.ports import Agent, Env
from harness.loops.fsm.agent import KIND
from harness.runner.files.load import load_text
from harness.runner.run import run
from tests.testing import altered_fsm

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

PIN = """\
from tests.testing.test_snapshots_notice_fsm import CASE

def test_pin(harness_run, harness_snapshot):
    harness_snapshot(harness_run(CASE, check=False))
"""

NOTICED = {
    altered_fsm.SwapsTwoStates: ("states", ["log", "states", "trace"]),
    altered_fsm.ForgetsToTell: ("notifications", ["log", "notifications", "trace"]),
    altered_fsm.SalvagesOneTooFew: ("salvage", ["salvage", "requests", "trace"]),
}
"""For each altered loop the view that is there for its bug, and all views in which it shows."""


def build_conftest(build: Callable[[Env], Agent]) -> str:
    return f"""
import pytest
from tests.testing.altered_fsm import {build.__name__}

@pytest.fixture
def harness_build():
    return {build.__name__}
"""


def test_the_loop_that_is_not_altered_is_the_loop() -> None:
    scenario = load_text(CASE, "case.yaml")
    sound = run(scenario, altered_fsm.Sound)
    assert (
        sound.trace
        == run(scenario, lambda env: KIND.build(env, {"system_prompt": ""}, "reference")).trace
    )


@pytest.mark.parametrize("build", NOTICED, ids=lambda build: build.__name__)
def test_it_fails_in_its_own_view(pytester: pytest.Pytester, build: Callable[[Env], Agent]) -> None:
    pytester.makepyfile(test_one=PIN)
    pytester.makeconftest(build_conftest(altered_fsm.Sound))
    pytester.runpytest("--snapshot-update").assert_outcomes(passed=1)
    pytester.runpytest().assert_outcomes(passed=1)
    pinned = {path.stem for path in Path("__snapshots__/test_one").iterdir()}
    assert pinned >= {f"test_pin[{view}]" for view in ("states", "notifications", "salvage")}

    pytester.makeconftest(build_conftest(build))
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    own, every = NOTICED[build]
    assert own in every
    result.stdout.fnmatch_lines([f"not as pinned: {', '.join(every)}", f"--- {own}: *", "@@ *"])
