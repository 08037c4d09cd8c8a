"""What fixtures that try many runs of a scenario have in common: one of them can be replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from msgspec.structs import replace

from harness.core.errors import UsageError
from harness.core.ports import Build
from harness.runner.agents import Subject
from harness.runner.exploring import replay
from harness.runner.scenario import Scenario
from harness.runner.token import Token, digest
from harness.testing.running import OnScenarios, rerun_line

_REPLAYED = pytest.StashKey[bool]()
"""Whether the test has replayed the token that pytest was given."""

_Number = TypeVar("_Number", int, float)


class Replaying(OnScenarios):
    """A base for fixtures whose failures are replayed by `--harness-replay`."""

    def __init__(self, node: pytest.Item, build: Build | str | None) -> None:
        super().__init__(node, build)
        self._token: str | None = node.config.getoption("harness_replay")

    def finish(self) -> None:
        """Fail where a token was given that this test has no scenario for."""
        if self._token is not None and not self._node.stash.get(_REPLAYED, False):
            pytest.fail(
                "--harness-replay: the token was made of another scenario than this test runs; "
                "choose the test that gave it, or the file as it was then",
                pytrace=False,
            )

    def _replay(self, scenario: Scenario, subject: Subject) -> None:
        """Replay the token that pytest was given, if it is this scenario's, before all else."""
        if self._token is None or Token.parse(self._token).digest != digest(scenario):
            return
        self._node.stash[_REPLAYED] = True
        replayed = replay(self._token, scenario, subject)
        if not replayed.ok:
            report = replace(replayed.report, rerun=self._rerun(self._token))
            pytest.fail(str(replace(replayed, report=report)), pytrace=False)

    def _rerun(self, token: str) -> str:
        """The line that replays a run in this test."""
        return f"{rerun_line(self._node)} --harness-replay {token}"

    def _setting(
        self, name: str, kind: Callable[[str], _Number], default: _Number, expected: str
    ) -> _Number:
        """The number that a setting of pytest's says; `default` where it is not set."""
        setting: str = self._node.config.getini(name)
        try:
            return kind(setting.replace("_", "")) if setting else default
        except ValueError:
            raise UsageError(f"{name} is {setting!r}; expected {expected}") from None
