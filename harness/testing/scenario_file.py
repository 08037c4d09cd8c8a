"""Scenario files as files of tests."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest
from msgspec.structs import replace

from harness.core import json_text
from harness.core.errors import HarnessError, NotAScenario, UsageError, nearest
from harness.report.not_run import NotRun
from harness.runner.files.load import load_text
from harness.runner.scenario import Scenario
from harness.testing.results import note
from harness.testing.running import HarnessRun, shown_path
from harness.testing.variants import VARIED, Variant, variants

AGENT = "agent"
"""The name of a file's test where it runs on the user's agent, and not on a loop."""

_KEY = re.compile(rb"^[\"']?([\w-]+)[\"']?\s*:", re.MULTILINE)
_TURNS = re.compile(rb"^turns\s*:|\"turns\"\s*:", re.MULTILINE)


def resembles_scenario(path: Path) -> bool:
    """Whether a file has the one key that no scenario can do without, or both of them mistyped."""
    return bool(_TURNS.search(path.read_bytes())) or meant(path) == {"about", "turns"}


def meant(path: Path) -> set[str]:
    """Which of the keys about and turns a file has, or has something near to."""
    data = path.read_bytes()
    if path.suffix == ".json":
        try:
            value = json_text.loads(data)
        except ValueError:
            return set()
        keys = list(value) if isinstance(value, dict) else []
    else:
        keys = [key.decode("utf-8", "replace") for key in _KEY.findall(data)]
    return {near for key in keys if (near := nearest(key, ("about", "turns")))}


class ScenarioFile(pytest.Module):
    """One scenario file: a test on the user's agent, or one on each loop that the file names.

    The tests are functions of a module that is made up, so that fixtures, marks and parameters
    work as in any file of tests.
    """

    def _getobj(self) -> ModuleType:
        """The module; pytest asks for it when it collects. CollectError says what is wrong."""
        source = shown_path(self.path, self.config)
        module = ModuleType(source)
        module.__file__ = str(self.path)
        module.pytestmark = [pytest.mark.harness]  # type: ignore[attr-defined]
        try:
            scenario = load_text(self.path.read_bytes(), source)
            for name, loop in self._subjects(scenario).items():
                setattr(module, name, self._test(name, scenario, loop, source))
        except NotAScenario as error:
            if self.session.isinitpath(self.path) or meant(self.path):
                raise self._refused(error, source) from None
            return module  # a file of others that stands among scenarios
        except (HarnessError, OSError) as error:
            raise self._refused(error, source) from None
        return module

    def _refused(self, error: Exception, source: str) -> Exception:
        note(self, NotRun("run", str(error), source=source))
        return self.CollectError(str(error))

    def _subjects(self, scenario: Scenario) -> dict[str, str | None]:
        """The names of the file's tests, and the loop that each runs on."""
        defined = self.session._fixturemanager.getfixturedefs("harness_build", self) or ()
        if len(defined) > 1 or self.config.getini("harness_agent"):
            return {AGENT: None}
        if not scenario.loops:
            raise UsageError(
                f"{scenario.source} names no loops to run it on; add `loops: [turn]` to it, "
                "or say what agent to run it on: set harness_agent in pytest's settings, "
                "or define the fixture harness_build beside or above this file"
            )
        return {loop: loop for loop in scenario.loops}

    def _test(
        self, name: str, scenario: Scenario, loop: str | None, source: str
    ) -> Callable[..., None]:
        def test(harness_run: HarnessRun, request: pytest.FixtureRequest) -> None:
            result = harness_run(scenario, loop)
            if request.config.getini("harness_pin"):
                request.getfixturevalue("harness_snapshot")(result)

        test.__name__ = test.__qualname__ = name
        test.__module__ = source
        test.__doc__ = scenario.about
        test.__test__ = True  # type: ignore[attr-defined] # whatever python_functions says
        if varied := self._variants(loop):
            test.pytestmark = [  # type: ignore[attr-defined]
                pytest.mark.parametrize(VARIED, varied, ids=str, indirect=True)
            ]
        test.place_as = _placed(test.__code__, self.path)  # type: ignore[attr-defined]
        return test

    def _variants(self, loop: str | None) -> list[Variant]:
        """The policies and levels that settings name; policies are those of the test's own loop."""
        levels = self.config.getini("harness_levels")
        policies = self.config.getini("harness_policies") if loop else []
        found = variants((loop,) if loop else (), policies, levels)
        return [replace(each, loop=None) for each in found] if policies or levels else []


def _placed(code: CodeType, path: Path) -> FunctionType:
    """What pytest takes for a test's place where it shows or records one; it is never called."""
    return FunctionType(code.replace(co_filename=str(path), co_firstlineno=1, co_freevars=()), {})
