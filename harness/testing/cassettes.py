"""Tests whose requests are recorded once and replayed ever after: what their marker asks for.

The cassette is open while the test runs and while its own fixtures are made and unmade, not for
those that it shares with other tests.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, Final

import pytest

from harness.core.errors import CassetteMiss, HarnessError, UsageError, hint, nearest
from harness.sim.where import raised_in
from harness.testing.cassette_options import FIXTURE, Asked, asked_by, fail
from harness.testing.cassette_plugin import MODE
from harness.testing.running import rerun_line, shown_path
from harness.transport.cassettes.absent import absent
from harness.transport.cassettes.keeping import Mode
from harness.transport.cassettes.use import Session, cassette
from harness.transport.guard import no_network

_ENDED: Final = pytest.StashKey[BaseException | None]()
"""What a test ended with; None where it passed."""
_TOLD: Final = pytest.StashKey[str]()
"""What the summary is to say of a test."""
_TAKEN: Final = pytest.StashKey[dict[str, str]]()
"""Whose each cassette is, by its path without regard for capitals."""


class _NotRun(Exception):
    """A test was not run: a fixture failed before it."""


class Watching:
    """The hooks that only marked tests need: how they end, and what is told of them."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Remember how a test ended, for its cassette."""
        try:
            yield
        except BaseException as error:
            item.stash[_ENDED] = error
            if isinstance(error, CassetteMiss) and not item.config.getoption("fulltrace"):
                _end_at_the_users(error)
            raise
        item.stash[_ENDED] = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Give the last report of a test what the summary is to say; workers send it on."""
        report = yield
        if call.when == "teardown" and item.stash.get(_TOLD, ""):
            vars(report)["harness_cassette"] = item.stash[_TOLD]
        return report


def _end_at_the_users(miss: CassetteMiss) -> None:
    """Leave the way of a request through an SDK and its HTTP library out of what is shown."""
    entry = raised_in(miss)
    if entry is not None:
        entry.tb_next = None


def ask_for_cassette(item: pytest.Item) -> None:
    """Have a marked test get its cassette before its own fixtures are made, and after those that it
    shares with others.
    """
    plugins = item.config.pluginmanager
    if not plugins.hasplugin("harness_cassettes"):
        plugins.register(Watching(), "harness_cassettes")
    item.stash[_ENDED] = _NotRun()  # also where it is run again
    item.stash[_TOLD] = ""
    names: list[str] | None = getattr(item, "fixturenames", None)
    if names is None:
        fail(f"@pytest.mark.cassette is for test functions, and {item.nodeid} is none")
    if item.get_closest_marker("vcr") is not None:
        fail("the test is marked with both cassette and vcr; one of them is enough")
    others = [name for name in names if name != FIXTURE]
    first = next((at for at, name in enumerate(others) if _is_own(item, name)), len(others))
    item.fixturenames = [*others[:first], FIXTURE, *others[first:]]  # type: ignore[attr-defined]


def _is_own(item: pytest.Item, name: str) -> bool:
    """Whether a fixture is made for this test alone."""
    found = item.session._fixturemanager.getfixturedefs(name, item)
    return found is not None and found[-1].scope == "function"


@contextmanager
def cassette_of(item: pytest.Item, defaults: Mapping[str, Any]) -> Iterator[Session]:
    """The cassette of a test while it is open; the value of the fixture `harness_cassette`.

    The test fails where it makes a request and the cassette is not there to be replayed, where not
    all of it was used, and where it passes without a request.
    """
    asked = asked_by(item, defaults)
    _check(item, asked)
    item.stash[MODE] = asked.mode
    ended: BaseException | None = None
    problem: HarnessError | None = None
    try:
        with _network(item, asked.mode) as refused, _used(item, asked) as session:
            yield session
            ended = item.stash[_ENDED]
            if ended is not None:
                refused.clear()  # the test tells of it
                raise ended
            if not session.interactions and not session.missed:
                raise UsageError(
                    "the test is marked with cassette and makes no request; take the marker away"
                )
    except HarnessError as error:
        problem = error
    except BaseException as error:
        if error is not ended:
            raise
    if problem is not None and problem is not ended:
        pytest.fail(str(problem), pytrace=False)


@contextmanager
def _used(item: pytest.Item, asked: Asked) -> Iterator[Session]:
    """The cassette in use; what was recorded is noted for the summary, however that ends.

    Where there is none to play, nothing is said of it before a request is made.
    """
    opened: AbstractContextManager[Session]
    if asked.mode in ("replay", "drift") and not asked.path.exists():
        hosts = asked.options.get("ignore_hosts", ())
        opened = absent(str(asked.path), partial(_not_there, item, asked), hosts)
    else:
        opened = cassette(asked.path, asked.mode, rules=asked.rules, **asked.options)
    used: Session | None = None
    try:
        with opened as used:
            yield used
    finally:
        if used is not None and used.recorded:
            item.stash[_TOLD] = _told(item, used)


def _not_there(item: pytest.Item, asked: Asked) -> str:
    """What is said of a request where there is no cassette."""
    path = asked.path
    near = nearest(path.name, [each.name for each in path.parent.glob("*.yaml")])
    first = "take mode='replay' off the test and run, " if asked.always else ""
    return (
        f"there is no cassette {shown_path(path, item.config)}{hint(near)}; to record it, {first}"
        f"where the provider can be reached:\n{rerun_line(item)} --cassette-mode missing"
    )


def _told(item: pytest.Item, session: Session) -> str:
    """What was recorded, and what has changed, with paths as a user names them."""
    said = session.said.replace(f"{item.config.invocation_params.dir.as_posix()}/", "")
    if session.drift is None:
        return said
    changes = session.drift.text or "nothing has changed"
    return "\n  ".join([said, *changes.splitlines()])


def _network(item: pytest.Item, mode: Mode) -> AbstractContextManager[list[str]]:
    """Refuses to reach other machines where nothing is to be recorded."""
    if mode != "replay" or item.config.getini("harness_network"):
        return nullcontext([])
    return no_network()


def _check(item: pytest.Item, asked: Asked) -> None:
    """Fail where the cassette is that of another test, unless it is named and only played, or both
    may leave some of it unused.
    """
    if asked.named and asked.mode == "replay":
        return
    taken = item.config.stash.setdefault(_TAKEN, {})
    owner = taken.setdefault(str(asked.path).casefold(), item.nodeid)
    adds = asked.named and asked.mode == "missing"
    if owner == item.nodeid or (adds and asked.options.get("allow_unused")):
        return
    shown = shown_path(asked.path, item.config)
    said = f"{shown} is the cassette of {owner}; give each test one of its own"
    fail(f"{said}, or mark both with allow_unused=True" if adds else said)
