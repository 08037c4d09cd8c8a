"""The pytest plugin: scenario files as tests, and fixtures to run and to pin scenarios.

It is there wherever pytest is (`-p no:harness` switches it off), and loads the rest of the package
when a scenario is collected or a fixture is used.

A scenario file is a test where it stands below a folder that pytest's setting `harness_scenarios`
names, or where it is given on the command line; no other YAML or JSON is looked at. What it runs
on is, in this order, what the fixture `harness_build` gives, what the setting `harness_agent`
names, the loops that the file names.

    [tool.pytest.ini_options]
    harness_scenarios = ["scenarios"]
    harness_agent = "my_agent:MyAgent"
    harness_pin = true

With `harness_pin` what each did is pinned too, in `__snapshots__` beside the file. In tests of your
own:

    def test_the_next_question_works_after_a_cancel(harness_run, harness_snapshot):
        result = harness_run("scenarios/weather.yaml")
        harness_snapshot(result)

    def test_it_can_be_cancelled_anywhere(harness_sweep):
        harness_sweep("scenarios/weather.yaml")

`pytest --harness-replay TOKEN` replays one failure of a sweep before the test sweeps again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.core.ports import Build
    from harness.testing.running import HarnessRun
    from harness.testing.scenario_file import ScenarioFile
    from harness.testing.snapshot import HarnessSnapshot
    from harness.testing.sweeping import HarnessSweep

_ENDINGS = (".yaml", ".yml", ".json")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plugin's settings, and its option."""
    parser.getgroup("harness").addoption(
        "--harness-replay",
        dest="harness_replay",
        metavar="TOKEN",
        help="first replay this failure of a sweep, in the test that swept its scenario",
    )
    parser.addini(
        "harness_sweep_budget",
        type="string",
        default="",
        help="harness: the most runs that a sweep may take in a test; 20000 if not set",
    )
    parser.addini(
        "harness_scenarios",
        type="paths",
        default=[],
        help="harness: folders (or files) of scenarios; each scenario below them is a test, "
        "and a plain `pytest` runs them beside testpaths",
    )
    parser.addini(
        "harness_agent",
        type="string",
        default="",
        help="harness: the agent that scenarios run on, as package.module:build; "
        "the fixture harness_build goes before it, the loops that a file names come after",
    )
    parser.addini(
        "harness_pin",
        type="bool",
        default=False,
        help="harness: pin each scenario file's run in __snapshots__ beside it, as the fixture "
        "harness_snapshot does",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker, check the option, and let a plain `pytest` run the scenarios too where it
    has testpaths.
    """
    config.addinivalue_line("markers", "harness: a test that is a scenario file")
    token: str | None = config.getoption("harness_replay")
    if token is not None:
        _check_token(token)
    roots = _roots(config)
    for root in roots:
        if not root.exists():
            raise pytest.UsageError(f"harness_scenarios names {root}, and there is nothing there")
    if config.args_source is config.ArgsSource.TESTPATHS:
        given = [config.invocation_params.dir / argument for argument in config.args]
        config.args += [
            str(root) for root in roots if not any(root.is_relative_to(each) for each in given)
        ]


def _check_token(token: str) -> None:
    from harness.core.errors import UsageError
    from harness.runner.token import Token

    try:
        Token.parse(token)
    except UsageError as error:
        raise pytest.UsageError(f"--harness-replay: {error}") from None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    """A scenario file is a collector of tests; all other files are left to others."""
    if not file_path.name.endswith(_ENDINGS) or file_path.name.startswith("."):
        return None
    below = any(file_path.is_relative_to(root) for root in _roots(parent.config))
    if not below and not parent.session.isinitpath(file_path):
        return None
    from harness.testing.scenario_file import ScenarioFile, resembles_scenario

    if not below and not resembles_scenario(file_path):
        return None
    return ScenarioFile.from_parent(parent, path=file_path)


def _roots(config: pytest.Config) -> list[Path]:
    roots: list[Path] = config.getini("harness_scenarios")
    return roots


@pytest.fixture
def harness_build() -> Build | str | None:
    """What scenarios run on; define your own fixture of this name to say it.

    It gives a function that takes the env and returns the agent, or the name of one, as
    `package.module:build`, or None to leave it to the settings. It may have parameters.
    """
    return None


@pytest.fixture
def harness_run(request: pytest.FixtureRequest, harness_build: Build | str | None) -> HarnessRun:
    """Runs a scenario and gives the result; the test fails where the run is not as it should be.

    result = harness_run("scenarios/weather.yaml")      # or a Scenario, or the text of one
    result = harness_run(scenario, agent=MyAgent)       # or "my_agent:MyAgent", or "turn"
    result = harness_run(scenario, check=False)         # gives the result, whatever came out
    """
    from harness.testing.running import HarnessRun

    return HarnessRun(request.node, harness_build)


@pytest.fixture
def harness_sweep(
    request: pytest.FixtureRequest, harness_build: Build | str | None
) -> Iterator[HarnessSweep]:
    """Cancels a scenario at every point there is; the test fails where a run goes wrong.

    harness_sweep("scenarios/weather.yaml")             # scenario and agent as for harness_run
    harness_sweep(scenario, MyAgent, modes=["late"], roles=["tool"], whom=["turn"], budget=500)
    """
    from harness.testing.sweeping import HarnessSweep

    sweeper = HarnessSweep(request.node, harness_build)
    yield sweeper
    sweeper.finish()


@pytest.fixture
def harness_snapshot(request: pytest.FixtureRequest) -> HarnessSnapshot:
    """Pins what a run did, a file for each view; `pytest --snapshot-update` accepts what is new.

    harness_snapshot(result)                            # every view that has something to show
    harness_snapshot(result, "log", "terminals")        # these views only
    harness_snapshot(second_result, name="second")      # another run in the same test
    """
    if not request.config.pluginmanager.hasplugin("syrupy"):
        pytest.fail(
            "harness_snapshot builds on syrupy, which is not installed or switched off: "
            "pip install 'agent-loop-harness[test]'",
            pytrace=False,
        )
    from harness.testing.snapshot import HarnessSnapshot

    return HarnessSnapshot(request.getfixturevalue("snapshot"), request.config.rootpath)
