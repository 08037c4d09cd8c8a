"""What answers the clients of a test from scripts: it ends with the test, and fails it where a
client did wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Generic, Protocol, Self, TypeVar

import pytest

from harness.core.errors import HarnessError
from harness.fakes.script import Reply
from harness.runner.scenario import Scenario
from harness.testing.paths import found


class Judging(Protocol):
    """What answers, and knows what its clients did wrong."""

    def findings(self) -> Sequence[object]:
        """What was wrong, in a sentence each."""


T = TypeVar("T", bound=Judging)


class Answering(Generic[T]):
    """A base for the values of fixtures; `used` says whether there is any script yet."""

    opens: Callable[..., AbstractContextManager[T]]
    """Has a script answer while a block runs."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.used = False
        self._open = ExitStack()
        self._checked: list[T] = []

    def __call__(
        self,
        script: Scenario | Sequence[Reply] | str | os.PathLike[str],
        *,
        check: bool = True,
        **options: Any,
    ) -> T:
        """Answer from a script, with the options of `harness.serve`.

        A path is looked for from pytest's root too. With `check` the test fails where a client did
        wrong.
        """
        self.used = True
        problem: HarnessError | None = None
        try:
            answers = self._open.enter_context(type(self).opens(self._read(script), **options))
        except HarnessError as error:
            problem = error
        if problem is not None:  # not while it is handled: it would be shown as the cause
            pytest.fail(str(problem), pytrace=False)
        if check:
            self._checked.append(answers)
        return answers

    def _read(
        self, script: Scenario | Sequence[Reply] | str | os.PathLike[str]
    ) -> Scenario | Sequence[Reply] | str | os.PathLike[str]:
        if isinstance(script, str) and "\n" in script:
            return script
        if isinstance(script, str | os.PathLike):
            return found(script, self._config, "the path of a script, or a text of several lines")
        return script

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._open.close()
        wrong = [str(each) for answers in self._checked for each in answers.findings()]
        if wrong:
            pytest.fail("\n".join(["the client did wrong:", *wrong]), pytrace=False)
