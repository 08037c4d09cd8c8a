"""How it is tested that an altered loop fails in the view that is there for what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PIN = """\
from {case} import CASE

def test_pin(harness_run, harness_snapshot):
    harness_snapshot(harness_run(CASE, check=False))
"""
CONFTEST = """
import pytest
from {module} import {build}

@pytest.fixture
def harness_build():
    return {build}
"""


class Noticing:
    """Pins `CASE` of the test module `case` as the sound loop of `loops` plays it; tries others."""

    def __init__(self, pytester: pytest.Pytester, case: str, loops: ModuleType) -> None:
        self._pytester = pytester
        self._loops = loops
        pytester.makepyfile(test_one=PIN.format(case=case))
        self._play(loops.Sound)
        pytester.runpytest("--snapshot-update").assert_outcomes(passed=1)
        pytester.runpytest().assert_outcomes(passed=1)

    @property
    def pinned(self) -> set[str]:
        """The views that are pinned."""
        stems = {path.stem for path in Path("__snapshots__/test_one").iterdir()}
        return {stem.removeprefix("test_pin[").removesuffix("]") for stem in stems}

    def fails(self, build: Callable[..., Any], own: str, every: Sequence[str]) -> None:
        """An altered loop fails in these views, one of which is its own."""
        self._play(build)
        result = self._pytester.runpytest()
        result.assert_outcomes(failed=1)
        assert own in every
        result.stdout.fnmatch_lines([f"not as pinned: {', '.join(every)}", f"--- {own}: *", "@@ *"])

    def _play(self, build: Callable[..., Any]) -> None:
        module = self._loops.__name__
        self._pytester.makeconftest(CONFTEST.format(module=module, build=build.__name__))
