"""What fixtures that try many runs of a scenario have in common: one of them can be replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

import pytest
from msgspec.structs import replace

from harness.core.errors import UsageError
from harness.core.ports import Build
from harness.exploration.attempts import Many
from harness.report.replay import FunctionReplay, Replay
from harness.runner.agents import Subject
from harness.runner.exploring import explored_for, replay
from harness.runner.functions.subject import Factory
from harness.runner.scenario import Scenario
from harness.runner.token import Token
from harness.sim.orders import Order
from harness.testing.jobs import in_processes
from harness.testing.results import note
from harness.testing.running import OnScenarios, rerun_line
from harness.testing.variants import Variant

REPLAYED = "harness_replayed"
"""The property of a test that has replayed the token that pytest was given."""

_Number = TypeVar("_Number", int, float)


def headline(status: str, keys: Iterable[str], otherwise: str) -> str:
    """The first line of a failure, which pytest's summary shows: which findings there are, and
    otherwise why there is nothing to say.
    """
    found = dict.fromkeys([key.partition(":")[0] for key in keys])
    return f"{status}: {', '.join(found) or otherwise}"


class Part(NamedTuple):
    """One failure of several: its name, all that is shown of it, and what replays it."""

    name: str
    text: str
    rerun: str


class Taken:
    """A plugin of a session with a token, which ends with an error where no test has taken it.

    It looks at the reports of tests, since other processes may have run these.
    """

    def __init__(self) -> None:
        self._taken = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note whether the test has taken the token."""
        self._taken = self._taken or any(name == REPLAYED for name, _ in report.user_properties)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let no session pass that has not done what it was asked for."""
        if not self._taken and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say last that nobody has taken the token."""
        if not self._taken:
            terminalreporter.write_line(
                "ERROR: --harness-replay: no test that was run is of the scenario or function that "
                "the token was made of; choose the test that gave it, or the file as it was then",
                red=True,
            )


class Replaying(OnScenarios):
    """A base for fixtures whose failures are replayed by `--harness-replay`."""

    def __init__(
        self,
        request: pytest.FixtureRequest,
        build: Build | str | None,
        variant: Variant | None = None,
    ) -> None:
        super().__init__(request, build, variant)
        self._token: str | None = request.config.getoption("harness_replay")

    @property
    def passed_over(self) -> bool:
        """Whether a token was given that nothing is of which the test has asked for."""
        replayed = (REPLAYED, self._token) in self._node.user_properties
        return self.used and self._token is not None and not replayed

    def _target(
        self,
        scenario: str | Path | Scenario | Factory,
        agent: Build | Subject | str | None,
        level: str | None,
    ) -> tuple[Scenario | Factory, Build | Subject | str | None]:
        """What the test runs: a scenario and its subject, or a function as it is."""
        if isinstance(scenario, str | Path | Scenario) or not callable(scenario):
            read = self._read(scenario)
            return read, self._subject(agent, read, level)
        self.used = True
        if level is not None:
            raise UsageError("a level is where an agent meets its model; a function has none")
        return scenario, agent

    def _replay(
        self,
        what: Scenario | Factory,
        subject: Build | Subject | str | None,
        allow: Sequence[str],
    ) -> None:
        """Replay the token that pytest was given, if it was made of this, before all else."""
        token = self._token
        if token is None or Token.parse(token).digest != explored_for(what, subject).digest:
            return
        self._node.user_properties.append((REPLAYED, token))
        rerun = self._rerun(token)
        replayed: Replay | FunctionReplay
        if isinstance(what, Scenario):
            replayed = replay(token, what, subject)
            replayed = replace(replayed, report=replace(replayed.report, rerun=rerun))
        else:
            replayed = replace(replay(token, what, allow=allow), rerun=rerun)
        note(self._node, replayed)
        if not replayed.ok:
            keys = [each.key for each in replayed.run.findings]
            why = headline(replayed.status, keys, str(replayed.open))
            pytest.fail(f"{why}\n{replayed}", pytrace=False)

    def _rerun(self, token: str) -> str:
        """The line that replays a run in this test."""
        return f"{rerun_line(self._node)} --harness-replay {token}"

    def _most(self, setting: str, default: int) -> int:
        """The most runs there may be, where a test does not say it itself."""
        given = self._given("budget")
        expected = "a whole number, such as 2000"
        return self._setting(setting, int, default, expected) if given is None else given

    def _given(self, option: str) -> int | None:
        """The number that an option of pytest's gives, None where it was not given."""
        given: int | None = self._node.config.getoption(f"harness_{option}")
        return given

    def _many(
        self,
        what: Scenario | Factory,
        subject: Build | Subject | str | None,
        order: Order = "fifo",
        **options: Any,
    ) -> AbstractContextManager[Many | None]:
        """What makes the runs in as many processes as pytest was told; None for this one alone."""
        jobs: int = self._node.config.getoption("harness_jobs")
        if not (isinstance(what, Scenario) and isinstance(subject, Subject)):
            return nullcontext()  # a function may be anything, and has no name elsewhere
        return in_processes(jobs, what, subject, order, **options)

    def _fail(self, why: str, whole: str, parts: Sequence[Part], rest: str) -> NoReturn:
        """Fail with `why`, which pytest's summary shows in a line, and the `whole` report.

        Where pytest shows parts of a test and there are several failures, each is a part, and the
        test itself says the `rest` and how to replay the last of them.
        """
        if len(parts) < 2 or not self._subresults.shown:
            pytest.fail(f"{why}\n{whole}", pytrace=False)
        for part in parts:
            self._subresults.fail(part.name, part.text)
        again = f"run it again:\n{parts[-1].rerun}"
        pytest.fail(f"{why}\n{rest.rstrip()}\n{again}", pytrace=False)

    def _setting(
        self, name: str, kind: Callable[[str], _Number], default: _Number, expected: str
    ) -> _Number:
        """The number that a setting of pytest's says; `default` where it is not set."""
        setting: str = self._node.config.getini(name)
        try:
            return kind(setting.replace("_", "")) if setting else default
        except ValueError:
            raise UsageError(f"{name} is {setting!r}; expected {expected}") from None
