"""Servers of scripts in tests: they end with the test, which fails where a client did wrong."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Self

import pytest

from harness.fakes.script import Reply
from harness.runner.scenario import Scenario
from harness.runner.served import Served, serve


class HarnessServer:
    """Makes the servers of one test; `used` says whether it has made any."""

    def __init__(self) -> None:
        self.used = False
        self._open = ExitStack()
        self._checked: list[Served] = []

    def __call__(
        self,
        script: Scenario | Sequence[Reply] | str | os.PathLike[str],
        *,
        check: bool = True,
        **options: Any,
    ) -> Served:
        """Serve a script, with the options of `harness.serve`."""
        self.used = True
        served = self._open.enter_context(serve(script, **options))
        if check:
            self._checked.append(served)
        return served

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._open.close()
        found = [str(each) for served in self._checked for each in served.findings()]
        if found:
            pytest.fail("\n".join(["the client did wrong:", *found]), pytrace=False)
