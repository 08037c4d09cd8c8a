"""Parts of a test that fail or pass by themselves: the sub-tests of pytest, where it has them.

pytest has the fixture `subtests` from version 9 on, and by pytest-subtests before that. Without it,
what fails in a part fails the test, when all parts are done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import pytest


class SubResults:
    """The parts of one test."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self.within: tuple[str, ...] = ()
        """The names of the parts that go on now, each within the one before."""
        self._failed: list[str] = []

    @cached_property
    def _subtests(self) -> Any:
        """What pytest has for it; None where there are none."""
        if not self._request.config.pluginmanager.hasplugin("subtests"):
            return None
        return self._request.getfixturevalue("subtests")

    @property
    def shown(self) -> bool:
        """Whether pytest shows each part by itself."""
        return self._subtests is not None

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """A part with a name: what fails in it does not end the test."""
        outer = self.within
        self.within = (*outer, name)
        whole = ": ".join(self.within)
        try:
            if self.shown:
                with self._subtests.test(whole):
                    yield
            else:
                try:
                    yield
                except pytest.skip.Exception:
                    pass
                except pytest.fail.Exception as error:
                    self._failed.append(f"{whole}: {error}")
        finally:
            self.within = outer

    def fail(self, name: str, text: str) -> None:
        """Have a part fail."""
        with self.part(name):
            pytest.fail(text, pytrace=False)

    def check(self) -> None:
        """Fail where a part has failed and pytest does not know it yet."""
        failed, self._failed = self._failed, []
        if failed:
            pytest.fail("\n\n".join(failed), pytrace=False)
