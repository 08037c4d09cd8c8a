"""The part of the pytest plugin that is about cassettes; it comes and goes with the other.

Nothing but this file is loaded where no test is marked with cassette.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harness.transport.cassettes.use import Session

MODE = pytest.StashKey[str]()
"""What is done with the cassette of a test that runs: the one source for all who ask."""

_MODES = ("replay", "missing", "all", "drift")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The mode, as an option and as a setting."""
    parser.getgroup("harness").addoption(
        "--cassette-mode",
        dest="cassette_mode",
        choices=_MODES,
        help="what tests marked with cassette do: replay what was recorded, without a network; "
        "record what is missing; record all anew; or ask again and tell what has changed (drift)",
    )
    parser.addini(
        "harness_cassette_mode",
        type="string",
        default="",
        help="harness: as --cassette-mode, which goes before it; replay if not set",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker, and check the setting."""
    config.addinivalue_line(
        "markers",
        "cassette(name, mode, rules, ignore, ignore_hosts, timing, split, faults, source, "
        "allow_unused): the test's requests are recorded once and replayed ever after",
    )
    mode: str = config.getini("harness_cassette_mode")
    if mode and mode not in _MODES:
        from harness.core.errors import unknown

        raise pytest.UsageError(unknown("harness_cassette_mode", mode, _MODES))


@pytest.hookimpl(tryfirst=True)  # before fixtures are made
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give a test that is marked with cassette what it is marked for."""
    if item.get_closest_marker("cassette") is not None:
        from harness.testing.cassettes import ask_for_cassette

        ask_for_cassette(item)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was recorded, and what has changed since."""
    reports = [each for some in terminalreporter.stats.values() for each in some]
    told = [each.harness_cassette for each in reports if hasattr(each, "harness_cassette")]
    if told:
        terminalreporter.section("cassettes")
        for each in told:
            terminalreporter.write_line(each)


@pytest.hookimpl(optionalhook=True)
def pytest_recording_configure(config: pytest.Config, vcr: Any) -> None:
    """Let `@pytest.mark.vcr(serializer="harness", match_on=["harness"])` of pytest-recording read,
    match and write cassettes as we do.
    """
    from harness.testing.recording_plugin import register

    register(config, vcr)


@pytest.fixture
def harness_cassette_options() -> Mapping[str, Any]:
    """Options for all cassettes of a project; define your own fixture of this name to give some.

    return {"rules": Rules(names=("x-tenant",)), "ignore_hosts": ("traces.test",)}
    """
    return {}


@pytest.fixture
def harness_cassette(
    request: pytest.FixtureRequest, harness_cassette_options: Mapping[str, Any]
) -> Iterator[Session]:
    """The cassette of a test that is marked with cassette: what was played or recorded so far.

    assert len(harness_cassette.interactions) == 2
    """
    from harness.testing.cassettes import cassette_of

    with cassette_of(request.node, harness_cassette_options) as session:
        yield session
