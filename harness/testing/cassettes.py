"""Tests whose requests are recorded once and replayed ever after: what their marker asks for.

The cassette is open while the test runs and while its own fixtures are made and unmade, not for
those that it shares with other tests.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
from msgspec import Struct

from harness.core.errors import CassetteMiss, HarnessError, UsageError, hint, nearest, unknown
from harness.sim.where import raised_in
from harness.testing.cassette_names import ENDINGS, cassette_path
from harness.testing.cassette_plugin import MODE
from harness.testing.running import rerun_line, shown_path
from harness.transport.cassettes.keeping import Mode
from harness.transport.cassettes.use import Session, cassette
from harness.transport.guard import no_network
from harness.transport.rules import NO_RULES, Rules

_FIXTURE: Final = "harness_cassette"
_OPTIONS: Final = (
    "allow_unused",
    "faults",
    "ignore",
    "ignore_hosts",
    "mode",
    "rules",
    "source",
    "split",
    "timing",
)
_ENDED: Final = pytest.StashKey[BaseException | None]()
"""What a test ended with; None where it passed."""
_TOLD: Final = pytest.StashKey[str]()
"""What the summary is to say of a test."""
_TAKEN: Final = pytest.StashKey[dict[str, str]]()
"""Whose each cassette is, by its path without regard for capitals."""


class _NotRun(Exception):
    """A test was not run: a fixture failed before it."""


class Asked(Struct, frozen=True, kw_only=True):
    """What a test asks for: its cassette, whether by a name, what is done with it, and how."""

    path: Path
    named: bool
    mode: Mode
    rules: Rules
    options: Mapping[str, Any]


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
        _fail(f"@pytest.mark.cassette is for test functions, and {item.nodeid} is none")
    if item.get_closest_marker("vcr") is not None:
        _fail("the test is marked with both cassette and vcr; one of them is enough")
    others = [name for name in names if name != _FIXTURE]
    first = next((at for at, name in enumerate(others) if _is_own(item, name)), len(others))
    item.fixturenames = [*others[:first], _FIXTURE, *others[first:]]  # type: ignore[attr-defined]


def _is_own(item: pytest.Item, name: str) -> bool:
    """Whether a fixture is made for this test alone."""
    found = item.session._fixturemanager.getfixturedefs(name, item)
    return found is not None and found[-1].scope == "function"


@contextmanager
def cassette_of(item: pytest.Item, defaults: Mapping[str, Any]) -> Iterator[Session]:
    """The cassette of a test while it is open; the value of the fixture `harness_cassette`.

    The test fails where the cassette is not there to be replayed, where not all of it was used, and
    where no request was made.
    """
    asked = _asked(item, defaults)
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
            if not session.interactions:
                raise UsageError("the test is marked with cassette and makes no request")
    except HarnessError as error:
        problem = error
    except BaseException as error:
        if error is not ended:
            raise
    if problem is not None and problem is not ended:
        pytest.fail(str(problem), pytrace=False)


@contextmanager
def _used(item: pytest.Item, asked: Asked) -> Iterator[Session]:
    """The cassette in use; what was recorded is noted for the summary, however that ends."""
    session: Session | None = None
    try:
        with cassette(asked.path, asked.mode, rules=asked.rules, **asked.options) as session:
            yield session
    finally:
        if session is not None and session.recorded:
            item.stash[_TOLD] = _told(item, session)


def _told(item: pytest.Item, session: Session) -> str:
    """What was recorded, and what has changed, with paths as a user names them."""
    said = session.said.replace(f"{item.config.invocation_params.dir}{os.sep}", "")
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
    """Fail where there is nothing to replay, or where the cassette is that of another test."""
    path, shown = asked.path, shown_path(asked.path, item.config)
    if asked.mode == "replay" and not path.exists():
        near = nearest(path.name, [each.name for each in path.parent.glob("*.yaml")])
        _fail(
            f"there is no cassette {shown}{hint(near)}; to record it, where the provider can be "
            f"reached:\n{rerun_line(item)} --cassette-mode missing"
        )
    taken = item.config.stash.setdefault(_TAKEN, {})
    owner = taken.setdefault(str(path).casefold(), item.nodeid)
    if owner != item.nodeid and (asked.mode in ("all", "drift") or not asked.named):
        _fail(f"{shown} is the cassette of {owner}; give each test one of its own")


def _asked(item: pytest.Item, defaults: Mapping[str, Any]) -> Asked:
    """What the project and the markers say; the nearest marker goes before the others, and rules
    add up.
    """
    marks = list(item.iter_markers("cassette"))[::-1]
    if not marks:
        _fail(f"the fixture {_FIXTURE} is for tests that are marked with @pytest.mark.cassette")
    name: str | None = None
    options: dict[str, Any] = {}
    rules = NO_RULES
    for given in [defaults, *[mark.kwargs for mark in marks]]:
        for option in given:
            if option not in _OPTIONS:
                _fail(unknown("option of a cassette", option, _OPTIONS))
        options |= given
        rules = _both(rules, _rules(given))
    for mark in marks:
        name = _name(mark.args) if mark.args else name
    for option in ("rules", "ignore"):
        options.pop(option, None)
    return Asked(
        path=cassette_path(item, name),
        named=name is not None,
        mode=_mode(item.config, options.pop("mode", None)),
        rules=rules,
        options=options,
    )


def _mode(config: pytest.Config, marked: Any) -> Mode:
    """What is done with a cassette: as the command line says, else its marker, else the setting.

    A marker that says replay holds whatever else is said: such a cassette is never recorded over.
    """
    if marked == "replay":
        return "replay"
    said = config.getoption("cassette_mode"), marked, config.getini("harness_cassette_mode")
    mode: Mode = next(filter(None, said), "replay")
    return mode


def _name(given: tuple[Any, ...]) -> str:
    name = given[0]
    plain = isinstance(name, str) and (name.endswith(ENDINGS) or not {"/", "\\"} & set(name))
    if not plain or len(given) > 1:
        shown = ", ".join([repr(each) for each in given])
        _fail(
            f"@pytest.mark.cassette({shown}): expected one name, such as 'greeting', or one path "
            f"that ends with {' or '.join(ENDINGS)}"
        )
    return str(name)


def _rules(given: Mapping[str, Any]) -> Rules:
    """The rules among options; `ignore` is short for rules that ignore these places."""
    rules, ignore = given.get("rules", NO_RULES), given.get("ignore", ())
    if not isinstance(rules, Rules):
        _fail(f"rules={rules!r}: expected a value of harness.Rules")
    ignore = (ignore,) if isinstance(ignore, str) else ignore
    if not isinstance(ignore, tuple | list) or not all(isinstance(each, str) for each in ignore):
        _fail(f"ignore={ignore!r}: expected places in bodies, such as 'metadata.run_id'")
    return _both(rules, Rules(ignore=tuple(ignore)))


def _both(one: Rules, other: Rules) -> Rules:
    names = Rules.__struct_fields__
    return Rules(**{name: (*getattr(one, name), *getattr(other, name)) for name in names})


def _fail(message: str) -> NoReturn:
    pytest.fail(message, pytrace=False)
