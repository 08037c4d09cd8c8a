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

    def test_it_is_right_in_any_order(harness_explore):
        harness_explore("scenarios/weather.yaml", runs=500)

    def test_it_speaks_to_a_provider(harness_server, monkeypatch):
        server = harness_server("scenarios/weather.yaml")
        monkeypatch.setenv("OPENAI_BASE_URL", server.variables["OPENAI_BASE_URL"])

A test whose requests are to be recorded once and replayed ever after is marked:

    @pytest.mark.cassette
    def test_it_answers():
        assert "Rome" in my_agent.ask("Where am I?")

Its cassette is `cassettes/<module>/<test>.yaml` beside the test; `pytest --cassette-mode missing`
records what is not there yet, `all` records anew, `drift` asks again and tells what has changed.

A test that uses one of these fixtures, or replays a cassette, fails where it reaches for another
machine than this one, with the line that did; the setting `harness_network = true` lets it.

`pytest --harness-replay TOKEN` replays one failure of a sweep or a search before its test tries all
the others again; tests that sweep or search something else are skipped.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatch
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.core.ports import Build
    from harness.testing.exploring import HarnessExplore
    from harness.testing.running import HarnessRun
    from harness.testing.scenario_file import ScenarioFile
    from harness.testing.serving import HarnessServer
    from harness.testing.snapshot import HarnessSnapshot
    from harness.testing.sweeping import HarnessSweep

pytest_plugins = ("harness.testing.cassette_plugin",)

_ENDINGS = (".yaml", ".yml", ".json")
_EXPLORING = {
    "harness_sweep_budget": "the most runs that a sweep may take in a test; 20000 if not set",
    "harness_explore_runs": "the most runs that a search may take in a test; 10000 if not set",
    "harness_explore_seconds": "the most seconds that a search may take in a test; 30 if not set",
    "harness_explore_seed": "what decides the random runs of a search in a test; 0 if not set",
}
_SETTINGS = (
    "harness_agent",
    "harness_cassette_mode",
    "harness_network",
    "harness_pin",
    "harness_scenarios",
    *_EXPLORING,
)
_FIXTURES = (
    "harness_run",
    "harness_sweep",
    "harness_explore",
    "harness_snapshot",
    "harness_server",
)


class HarnessNotUsed(pytest.PytestWarning):
    """A test asks for a fixture of this plugin and passes without having called it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plugin's settings, and its option."""
    parser.getgroup("harness").addoption(
        "--harness-replay",
        dest="harness_replay",
        metavar="TOKEN",
        help="first replay this failure of a sweep or a search, in the test that found it",
    )
    for name, says in _EXPLORING.items():
        parser.addini(name, type="string", default="", help=f"harness: {says}")
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
        "harness_network",
        type="bool",
        default=False,
        help="harness: let tests that use its fixtures reach other machines than this one",
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
        from harness.testing.replaying import Taken

        config.pluginmanager.register(Taken(), "harness_replay")
    _check_settings(config)
    roots = _roots(config)
    for root in roots:
        if not root.exists():
            raise pytest.UsageError(f"harness_scenarios names {root}, and there is nothing there")
    if _plain(config):
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


def _check_settings(config: pytest.Config) -> None:
    """Refuse a setting that begins like ours and is nobody's: without it less would be run."""
    own = vars(config)  # the public name of this mapping came to warn
    for name in own.get("_inicfg") or own.get("inicfg") or ():
        if not name.startswith("harness_") or name in _SETTINGS:
            continue
        try:
            config.getini(name)  # another plugin's
        except ValueError:
            from harness.core.errors import unknown

            raise pytest.UsageError(unknown("setting", name, _SETTINGS)) from None


def _plain(config: pytest.Config) -> bool:
    """Whether pytest runs all there is, and was not told by paths or by its folder what to run."""
    source = config.ArgsSource
    if config.args_source is source.INVOCATION_DIR:
        return config.invocation_params.dir == config.rootpath
    return config.args_source is source.TESTPATHS


@pytest.hookimpl(tryfirst=True)  # before -k and -m take tests away
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Refuse what would silently be without effect: a fixture named like a setting, and in a plain
    run a folder of `harness_scenarios` that gave no test.
    """
    for name in _SETTINGS:
        if any(session._fixturemanager.getfixturedefs(name, item) for item in items):
            raise pytest.UsageError(
                f"there is a fixture {name}, but {name} is a setting of pytest's and is not read "
                "from fixtures; set it there, or define the fixture harness_build to say what "
                "scenarios run on"
            )
    if session.testsfailed or config.getoption("lf", default=False) or not _plain(config):
        return  # broken files are told already; --lf passes over what was good
    ignored = [config.invocation_params.dir / one for one in config.getoption("ignore") or ()]
    for root in _roots(config):
        wanted = not any(root.is_relative_to(one) for one in ignored)
        if wanted and not any(item.path.is_relative_to(root) for item in items):
            raise pytest.UsageError(
                f"harness_scenarios names {root}, which gave no test: {_why_none(root, config)}"
            )


def _why_none(root: Path, config: pytest.Config) -> str:
    for pattern in config.getini("norecursedirs"):
        for folder in (root, *root.parents):
            below = folder != config.rootpath and folder.is_relative_to(config.rootpath)
            if below and fnmatch(folder.name, pattern):
                return (
                    f"pytest passes over {folder}, since its setting norecursedirs has {pattern!r}"
                )
    return f"pytest finds no scenario there; expected files with the ending {' or '.join(_ENDINGS)}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Skip a test that had nothing for the token that pytest was given; warn of one that passed
    without having called what it asked for; keep one that asked for something from the network.
    """
    funcargs = getattr(item, "funcargs", {})
    asked = {name: funcargs[name] for name in _FIXTURES if name in funcargs}
    try:
        with _network(item, closed=bool(asked)):
            yield
    except (Exception, pytest.fail.Exception):
        if not _passed_over(asked):
            raise
    if _passed_over(asked):
        pytest.skip("--harness-replay is of another scenario")
    for name, value in asked.items():
        if not getattr(value, "used", True):
            item.warn(HarnessNotUsed(f"the test asks for {name} and never calls it"))


def _network(item: pytest.Item, *, closed: bool) -> AbstractContextManager[object]:
    """Refuses to reach other machines, for a test that uses the plugin; not where it records."""
    from harness.testing.cassette_plugin import MODE

    recording = item.stash.get(MODE, "replay") != "replay"
    if not closed or recording or item.config.getini("harness_network"):
        return nullcontext()
    from harness.transport.guard import no_network

    return no_network()


def _passed_over(asked: Mapping[str, object]) -> bool:
    """Whether a test that `asked` for these sweeps or searches only what no token was given of."""
    return any(getattr(each, "passed_over", False) for each in asked.values())


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
    return [Path(normpath(root)) for root in roots]  # as pytest names what it collects


@pytest.fixture
def harness_build() -> Build | str:
    """What scenarios run on; define your own fixture of this name to say it.

    It gives a function that takes the env and returns the agent, or the name of one, as
    `package.module:build`, or "" to leave it to the settings. It may have parameters.
    """
    return ""


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
) -> HarnessSweep:
    """Cancels a scenario at every point there is; the test fails where a run goes wrong.

    harness_sweep("scenarios/weather.yaml")             # scenario and agent as for harness_run
    harness_sweep(scenario, MyAgent, modes=["late"], roles=["tool"], whom=["turn"], budget=500)
    """
    from harness.testing.sweeping import HarnessSweep

    return HarnessSweep(request.node, harness_build)


@pytest.fixture
def harness_explore(
    request: pytest.FixtureRequest, harness_build: Build | str | None
) -> HarnessExplore:
    """Runs a scenario in other orders, with other latencies; the test fails where a run goes wrong.

    harness_explore("scenarios/weather.yaml")           # scenario and agent as for harness_run
    harness_explore(scenario, MyAgent, order="tasks", cancels=1, runs=500)
    """
    from harness.testing.exploring import HarnessExplore

    return HarnessExplore(request.node, harness_build)


@pytest.fixture
def harness_server() -> Iterator[HarnessServer]:
    """Serves scripts over HTTP until the test ends; the test fails where a client did wrong.

    server = harness_server("scenarios/weather.yaml")   # or plain replies; options as for `serve`
    server = harness_server(script, check=False)        # look at server.findings() yourself
    """
    from harness.testing.serving import HarnessServer

    with HarnessServer() as servers:
        yield servers


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
