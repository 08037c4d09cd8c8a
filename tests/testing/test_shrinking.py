"""What the scenarios shrink to in which a planted bug shows: pinned, since people read them."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import Phase, find, settings

from harness.core.ports import Build
from harness.runner.agents import Subject
from harness.runner.files.spell import spell_text
from harness.runner.run import run
from harness.runner.scenario import Scenario
from harness.testing.strategies import scenarios
from tests.bugs.planted import PLANTED
from tests.bugs.planting import Planted

BUGS = {bug.build.__name__: bug for bug in PLANTED}
SEARCH = settings(
    settings.get_profile("ci"),
    max_examples=400,
    database=None,
    phases=[Phase.generate, Phase.shrink],
)
CLASSIC = """\
about: Generated.
tools:
  clock: {returns: sunny}
turns:
- user: Hello.
  model:
  - calls: [clock]
  - {say: Hello.}
  cancel: {after: %s}
"""
SMALLEST = {
    ("TakesATornStreamForAnAnswer", "model"): """\
about: Generated.
turns:
- user: Hello.
  model:
  - say: Hello.
    fault:
      stream_fails: {reported: true}
""",
    ("HidesFailures", "model"): """\
about: Generated.
tools:
  clock: {error: no such city}
turns:
- user: Hello.
  model:
  - calls: [clock]
  - {say: Hello.}
""",
    ("HandLoop", "model"): CLASSIC % "reply_ended",
    ("HandLoop", "http:anthropic"): CLASSIC % "tool_effect",
    ("KnowsCallsById", "model"): """\
about: Generated.
tools:
  clock: {returns: sunny}
turns:
- user: Hello.
  model:
  - calls:
    - {tool: clock, id: one}
    - {tool: clock, id: one}
  - {say: Hello.}
""",
    ("KeepsTheLastCall", "http:anthropic"): """\
about: Generated.
tools:
  clock: {returns: sunny}
turns:
- user: Hello.
  model:
  - calls: [clock, clock]
  - {say: Hello.}
""",
}
FIRST, *OTHERS = SMALLEST
"""One of them is tried in every run of the tests, the quickest."""


def shows(bug: Planted, scenario: Scenario, level: str) -> bool:
    """Whether a bug is reported, and nothing of the kind without it."""

    def told(build: Build) -> bool:
        verdict = run(scenario, Subject("planted", build), level=level).verdict
        return any(each.invariant == bug.caught_by for each in verdict.violations)

    return told(bug.build) and not told(bug.mended)


@pytest.mark.parametrize(
    ("name", "level"),
    [FIRST, *[pytest.param(*other, marks=pytest.mark.nightly) for other in OTHERS]],
)
def test_what_is_found_shrinks_to_what_shows_the_bug_and_nothing_else(
    name: str, level: str
) -> None:
    bug = BUGS[name]
    smallest = find(
        scenarios(loops=(), level=level),
        lambda scenario: shows(bug, scenario, level),
        settings=SEARCH,
        random=Random(1),
    )
    assert spell_text(smallest) == SMALLEST[name, level]
