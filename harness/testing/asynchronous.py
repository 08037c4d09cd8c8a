"""Runs asynchronous tests: in virtual time, or on a real loop where something real is used."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import pytest

from harness.core.errors import HarnessError, OutOfSimulation, UsageError, unknown
from harness.runner.functions.allow import Allow
from harness.runner.functions.once import once
from harness.testing.marker import asked_of

_TIMES = ("virtual", "real")
_REAL = ("harness_server", "harness_cassette")
"""The fixtures with which a test waits for what is outside of it."""
_MEND = "mark the test with @pytest.mark.harness(time='real') to have it run in real time"


def run_test(item: pytest.Function) -> None:
    """Run an asynchronous test; it fails by what it raises, and by what it leaves behind."""
    names = item._fixtureinfo.argnames  # and not what is given by defaults or by decorators
    test = partial(item.obj, **{name: item.funcargs[name] for name in names})
    test.__signature__ = inspect.Signature()  # type: ignore[attr-defined] # nothing is left to give
    time, allow = timing(asked_of(item), item.fixturenames)
    if time == "real":
        asyncio.run(test())
    else:
        _in_virtual_time(test, allow)


def timing(asked: Mapping[str, Any], fixtures: Collection[str]) -> tuple[str, Allow]:
    """In which time a test runs that its markers and its fixtures say this of, and what it may
    leave behind. UsageError for what cannot be.
    """
    time = asked.get("time", "real" if any(name in fixtures for name in _REAL) else "virtual")
    if time not in _TIMES:
        raise UsageError(unknown("time", str(time), _TIMES))
    allow = Allow(asked.get("allow", ()))
    if allow.names and time == "real":
        raise UsageError("allow is for tests in virtual time only")
    return time, allow


def _in_virtual_time(test: partial[Any], allow: Allow) -> None:
    problem: HarnessError | None = None
    try:
        ran = once(test, allow)
    except HarnessError as error:
        problem = error
    if problem is not None:  # not while it is handled: it would be shown as the cause
        pytest.fail(str(problem), pytrace=False)
    if ran.error is not None and not isinstance(ran.error, OutOfSimulation):
        raise ran.error
    if ran.stopped or ran.error is not None:
        pytest.fail(f"{ran.stopped or ran.error}\n{_MEND}", pytrace=False)
    if ran.findings:
        pytest.fail("\n".join([each.message for each in ran.findings]), pytrace=False)
