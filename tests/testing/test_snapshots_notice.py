"""What went wrong inside a loop shows in the view that is there for it."""

from collections.abc import Callable

import pytest

from harness.core.ports import Agent, Env
from harness.loops.turn.agent import KIND
from harness.runner.files.load import load_text
from harness.runner.run import run
from tests.testing import altered
from tests.testing.noticing import Noticing

CASE = """\
about: Of two tools one is cut off; the history grows and is cut.
tools:
  clock: {returns: "14:05", takes: 10ms}
  read: {returns: "line after line of a file that is long enough to fill a small window"}
  weather: {returns: sunny, takes: 2s}
turns:
  - user: Time and weather?
    model: [{calls: [{clock: {}}, {weather: {}}]}]
    cancel: {after: tool_ended clock}
  - user: Read the file, and then the other one, and tell me what stands in them.
    model: [{calls: [{read: {file: a}}, {read: {file: b}}]}, {say: Lines.}]
  - user: Once more, from the start to the end, every line of it.
    model: [{calls: [{read: {file: a}}]}, {say: Lines and lines.}]
"""

NOTICED = {
    altered.SwapsTwoRows: ("log", ["log", "requests", "trace"]),
    altered.SaysCompleted: ("terminals", ["terminals", "trace"]),
    altered.CutsOneTooMuch: ("trims", ["trims", "requests", "trace"]),
    altered.MissesASynthesizedRow: ("synthesis", ["log", "synthesis", "requests", "trace"]),
}
"""For each altered loop the view that is there for its bug, and all views in which it shows.

What is written or cut otherwise is sent otherwise, so requests change too; the whole trace always
does.
"""


def test_the_loop_put_together_from_its_seams_is_the_loop() -> None:
    scenario = load_text(CASE, "case.yaml")
    config = {"context_window_tokens": 200, "context_keep_recent": 1, "system_prompt": ""}
    sound = run(scenario, altered.Sound)
    assert sound.ok, str(sound)
    assert sound.trace == run(scenario, lambda env: KIND.build(env, config, "safe")).trace


@pytest.mark.parametrize("build", NOTICED, ids=lambda build: build.__name__)
def test_it_fails_in_its_own_view(pytester: pytest.Pytester, build: Callable[[Env], Agent]) -> None:
    noticing = Noticing(pytester, __name__, altered)
    views = {"log", "notifications", "terminals", "trims", "synthesis", "requests", "trace"}
    assert noticing.pinned == views
    noticing.fails(build, *NOTICED[build])
