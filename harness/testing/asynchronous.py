"""Runs asynchronous tests: in virtual time, or on a real loop where something real is used."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from harness.core.errors import HarnessError, OutOfSimulation, UsageError, unknown
from harness.runner.functions.allow import Allow
from harness.runner.functions.once import once

_TIMES = ("virtual", "real")
_REAL = ("harness_server", "harness_cassette")
"""The fixtures with which a test waits for what is outside of it."""
_MEND = "mark the test with @pytest.mark.harness(time='real') to have it run in real time"


def run_test(item: pytest.Function) -> None:
    """Run an asynchronous test; it fails by what it raises, and by what it leaves behind."""
    marker = item.get_closest_marker("harness")
    asked: dict[str, Any] = {} if marker is None else dict(marker.kwargs)
    names = inspect.signature(item.obj).parameters
    test = partial(item.obj, **{name: item.funcargs[name] for name in names})
    real = any(name in item.fixturenames for name in _REAL)
    time = asked.get("time", "real" if real else "virtual")
    problem: HarnessError | None = None
    try:
        if time not in _TIMES:
            raise UsageError(f"the marker harness: {unknown('time', time, _TIMES)}")
        allow = Allow(_listed(asked.get("allow", ())))
        if time == "virtual":
            _in_virtual_time(test, allow)
            return
        if allow.names:
            raise UsageError("the marker harness: allow is for tests in virtual time only")
    except HarnessError as error:
        problem = error
    if problem is not None:  # not while it is handled: it would be shown as the cause
        pytest.fail(str(problem), pytrace=False)
    asyncio.run(test())


def _in_virtual_time(test: partial[Any], allow: Allow) -> None:
    ran = once(test, allow)
    if ran.error is not None and not isinstance(ran.error, OutOfSimulation):
        raise ran.error
    if ran.stopped or ran.error is not None:
        pytest.fail(f"{ran.stopped or ran.error}\n{_MEND}", pytrace=False)
    if ran.findings:
        pytest.fail("\n".join([each.message for each in ran.findings]), pytrace=False)


def _listed(given: Sequence[str]) -> Sequence[str]:
    return (given,) if isinstance(given, str) else tuple(given)
