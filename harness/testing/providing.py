"""Providers in the process of a test: they end with it, and it fails where a client did wrong."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Self

import pytest

from harness.core.errors import HarnessError
from harness.fakes.script import Reply
from harness.runner.provided import Provided, provide
from harness.runner.scenario import Scenario


class HarnessProvider:
    """Gives a test its provider; `used` says whether it has one."""

    def __init__(self) -> None:
        self.used = False
        self._open = ExitStack()
        self._checked: list[Provided] = []

    def __call__(
        self,
        script: Scenario | Sequence[Reply] | str | os.PathLike[str],
        *,
        check: bool = True,
        **options: Any,
    ) -> Provided:
        """Answer from a script, with the options of `harness.serve` but for its port."""
        self.used = True
        problem: HarnessError | None = None
        try:
            provided = self._open.enter_context(provide(script, **options))
        except HarnessError as error:
            problem = error
        if problem is not None:  # not while it is handled: it would be shown as the cause
            pytest.fail(str(problem), pytrace=False)
        if check:
            self._checked.append(provided)
        return provided

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._open.close()
        found = [str(each) for provided in self._checked for each in provided.findings()]
        if found:
            pytest.fail("\n".join(["the client did wrong:", *found]), pytrace=False)
