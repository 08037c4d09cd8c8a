"""The part of the pytest plugin that tells what came of all tests together: a block in the
terminal, a file of JSON, and a page.

Each result goes with the report of its test, so that those of xdist's workers come together.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.report.json_report import Item

RESULTS = pytest.StashKey[list["Item"]]()
"""What the test that runs has run, swept, searched or replayed so far."""

_FILES = {"json": "--harness-json", "html": "--harness-html"}
_QUIET = -1
"""At which verbosity the block is still told: at -q, and not at -qq."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Refuse what no file can be written to, and gather what the tests tell."""
    for kind, option in _FILES.items():
        given = config.getoption(f"harness_{kind}")
        if given is None:
            continue
        if not given or Path(given).is_dir():
            raise pytest.UsageError(f"{option} is {given!r}; expected the name of a file")
        from harness.core.files import is_source

        if is_source(Path(given)):
            raise pytest.UsageError(
                f"{option} is {given!r}, which is named as tests and scenarios are, and would be "
                "overwritten; expected another name"
            )
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Gathered(config), "harness_results")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Have the last report of a test carry what it came to; it may be an error of the user's."""
    report = yield
    if report.failed and call.excinfo is not None:
        _note_error(item, call.excinfo.value)
    if call.when == "teardown" and RESULTS in item.stash:
        from harness.testing.results import carried

        report.harness_results = carried(item)  # type: ignore[attr-defined]
        del item.stash[RESULTS]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Have the report of a file that is no scenario as it stands carry what is wrong with it."""
    report = yield
    if RESULTS in collector.stash:
        from harness.testing.results import carried

        report.harness_results = carried(collector)  # type: ignore[attr-defined]
    return report


def _note_error(item: pytest.Item, error: BaseException) -> None:
    from harness.core.errors import HarnessError

    if isinstance(error, HarnessError):
        from harness.report.not_run import NotRun
        from harness.testing.results import note

        note(item, NotRun("test", str(error), item.name))


class _Gathered:
    """What all tests came to, those of other processes too."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._carried: list[str] = []
        self._told: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what the report of a test carries."""
        self._take(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Take what the report of a file carries that could not be collected."""
        self._take(report)

    def _take(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if hasattr(report, "harness_results"):
            self._carried.append(report.harness_results)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the files; the session does not pass where one cannot be written."""
        asked = any(self._config.getoption(f"harness_{kind}") for kind in _FILES)
        if not self._carried and not asked:
            return  # no test has used the plugin
        from harness.testing.results import finish

        self._told, error = finish(self._carried, self._config)
        if error and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Tell the totals."""
        if self._told and self._config.get_verbosity() >= _QUIET:
            from harness.testing.results import narrowed

            columns = self._config.get_terminal_writer().fullwidth
            terminalreporter.ensure_newline()  # else it comes behind the block
            terminalreporter.section("harness")
            for line in narrowed(self._told, columns):
                terminalreporter.line(line, red=line.startswith("ERROR"))
