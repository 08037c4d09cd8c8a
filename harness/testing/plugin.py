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

A test is run once for each loop, policy and level that its marker names:

    @pytest.mark.harness(loops="all", levels=["model", "http:anthropic"])
    def test_it_can_be_cancelled_anywhere(harness_sweep):
        harness_sweep("scenarios/weather.yaml")

Clients of openai, anthropic and google, and others of httpx and httpx2, are answered in the process
by `harness_provider`. An `async def` test that uses a fixture of ours, or has the marker `harness`,
needs no other plugin: it is run in virtual time, where nothing takes long and nothing is left to
chance.

    async def test_my_client_waits_for_its_turn(harness_provider):
        harness_provider("[{say: Hi., after: 40s}]")
        assert await my_agent.ask("Hello") == "Hi."

`pytest --harness-replay TOKEN` replays one failure of a sweep or a search before its test tries all
the others again; tests that sweep or search something else are skipped.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from harness.core.ports import Build
    from harness.testing.exploring import HarnessExplore
    from harness.testing.providing import HarnessProvider
    from harness.testing.running import HarnessRun
    from harness.testing.scenario_file import ScenarioFile
    from harness.testing.serving import HarnessServer
    from harness.testing.snapshot import HarnessSnapshot
    from harness.testing.sweeping import HarnessSweep
    from harness.testing.variants import Variant

T = TypeVar("T")

pytest_plugins = (  # imported by nothing at the top, before pytest could rewrite their asserts
    "harness.testing.cassette_plugin",
    "harness.testing.options_plugin",
    "harness.testing.results_plugin",
)

_VALUES = pytest.StashKey[dict[str, Any]]()
"""The values of our fixtures that a test has, by their names, also where a fixture of its own of
the same name stands before one of them; one that has nothing to do with ours is not among them.
"""


class HarnessNotUsed(pytest.PytestWarning):
    """A test asks for a fixture of this plugin and passes without having called it."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test for each loop, policy and level that its markers name."""
    if any(each.args or each.kwargs for each in metafunc.definition.iter_markers("harness")):
        from harness.testing.variants import parametrize

        parametrize(metafunc)


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an asynchronous test that is ours, and that no other plugin has run by now."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    if not _is_ours(pyfuncitem) and "harness_cassette" not in pyfuncitem.fixturenames:
        return None
    from harness.testing.asynchronous import run_test

    run_test(pyfuncitem)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Skip a test that had nothing for the token that pytest was given; warn of one that passed
    without having called what it asked for; keep one that asked for something from the network.
    """
    from harness.testing.results_plugin import RESULTS

    try:
        with _network(item):
            yield
    except (Exception, pytest.fail.Exception):
        if not _passed_over(item):
            raise
        from harness.testing.results import forget_refused

        forget_refused(item)
    finally:
        if RESULTS in item.stash:
            from harness.testing.results import add_properties

            add_properties(item)
    if _passed_over(item):
        pytest.skip("--harness-replay is of another scenario")
    for name, value in item.stash.get(_VALUES, {}).items():
        if not value.used:
            item.warn(HarnessNotUsed(f"the test asks for {name} and never calls it"))


def _is_ours(item: pytest.Item) -> bool:
    """Whether a test uses the plugin."""
    return bool(item.stash.get(_VALUES, {})) or item.get_closest_marker("harness") is not None


@contextmanager
def _network(item: pytest.Item) -> Iterator[None]:
    """Refuses to reach other machines, for a test that uses the plugin; not where it records."""
    from harness.testing.cassette_plugin import MODE

    recording = item.stash.get(MODE, "replay") != "replay"
    if not _is_ours(item) or recording or item.config.getini("harness_network"):
        yield
        return
    from harness.transport.guard import NetworkUsed, no_network

    passed = False
    try:
        with no_network():
            yield
            passed = True
    except NetworkUsed as error:
        if not passed:
            raise  # with the test's own line
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def _passed_over(item: pytest.Item) -> bool:
    """Whether a test sweeps or searches only what the token that pytest was given is not of."""
    values = item.stash.get(_VALUES, {}).values()
    return any(getattr(each, "passed_over", False) for each in values)


def _kept(request: pytest.FixtureRequest, value: T) -> T:
    """Have it known, until the test ends, that it has this value of the fixture."""
    values = request.node.stash.setdefault(_VALUES, {})
    name = str(request.fixturename)
    values[name] = value
    request.addfinalizer(partial(values.pop, name))
    return value


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    """A scenario file is a collector of tests; all other files are left to others."""
    from harness.testing.options_plugin import ENDINGS, roots

    if not file_path.name.endswith(ENDINGS) or file_path.name.startswith("."):
        return None
    below = any(file_path.is_relative_to(root) for root in roots(parent.config))
    if not below and not parent.session.isinitpath(file_path):
        return None
    from harness.testing.scenario_file import ScenarioFile, resembles_scenario

    if not below and not resembles_scenario(file_path):
        return None
    return ScenarioFile.from_parent(parent, path=file_path)


@pytest.fixture
def harness_build() -> Build | str:
    """What scenarios run on; define your own fixture of this name to say it.

    It gives a function that takes the env and returns the agent, or the name of one, as
    `package.module:build`, or "" to leave it to the settings. It may have parameters.
    """
    return ""


@pytest.fixture
def harness_variant(request: pytest.FixtureRequest) -> Variant | None:
    """The loop, policy and level that a test is run for, where its marker names several."""
    variant: Variant | None = getattr(request, "param", None)
    return variant


@pytest.fixture
def harness_run(
    request: pytest.FixtureRequest,
    harness_build: Build | str | None,
    harness_variant: Variant | None,
) -> HarnessRun:
    """Runs a scenario and gives the result; the test fails where the run is not as it should be.

    result = harness_run("scenarios/weather.yaml")      # or a Scenario, or the text of one
    result = harness_run(scenario, agent=MyAgent)       # or "my_agent:MyAgent", or "turn"
    result = harness_run(scenario, check=False)         # gives the result, whatever came out
    results = harness_run.each("scenarios")             # all of a folder, a sub-result for each
    """
    from harness.testing.running import HarnessRun

    return _kept(request, HarnessRun(request, harness_build, harness_variant))


@pytest.fixture
def harness_sweep(
    request: pytest.FixtureRequest,
    harness_build: Build | str | None,
    harness_variant: Variant | None,
) -> HarnessSweep:
    """Cancels a scenario at every point there is; the test fails where a run goes wrong.

    harness_sweep("scenarios/weather.yaml")             # scenario and agent as for harness_run
    harness_sweep(scenario, MyAgent, modes=["late"], roles=["tool"], whom=["turn"], budget=500)
    """
    from harness.testing.sweeping import HarnessSweep

    return _kept(request, HarnessSweep(request, harness_build, harness_variant))


@pytest.fixture
def harness_explore(
    request: pytest.FixtureRequest,
    harness_build: Build | str | None,
    harness_variant: Variant | None,
) -> HarnessExplore:
    """Runs a scenario in other orders, with other latencies; the test fails where a run goes wrong.

    harness_explore("scenarios/weather.yaml")           # scenario and agent as for harness_run
    harness_explore(scenario, MyAgent, order="tasks", cancels=1, runs=500)
    """
    from harness.testing.exploring import HarnessExplore

    return _kept(request, HarnessExplore(request, harness_build, harness_variant))


@pytest.fixture
def harness_server(request: pytest.FixtureRequest) -> Iterator[HarnessServer]:
    """Serves scripts over HTTP until the test ends; the test fails where a client did wrong.

    server = harness_server("scenarios/weather.yaml")   # or plain replies; options as for `serve`
    server = harness_server(script, check=False)        # look at server.findings() yourself
    """
    from harness.testing.serving import HarnessServer

    with HarnessServer(request.config) as servers:
        yield _kept(request, servers)


@pytest.fixture
def harness_provider(request: pytest.FixtureRequest) -> Iterator[HarnessProvider]:
    """Answers clients in the process from a script; the test fails where a client did wrong.

    provider = harness_provider("scenarios/weather.yaml")    # or plain replies
    client = openai.OpenAI(api_key="any")                    # made before or after, with any host
    provider.requests, provider.findings(), provider.router  # what came, and routes of respx
    """
    from harness.testing.providing import HarnessProvider

    with HarnessProvider(request.config) as provider:
        yield _kept(request, provider)


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

    snapshot = request.getfixturevalue("snapshot")
    return _kept(request, HarnessSnapshot(snapshot, request.config.rootpath))
