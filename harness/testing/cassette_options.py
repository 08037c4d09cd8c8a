"""What a test that is marked with cassette asks for: its options, checked whatever is done."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from re import Pattern
from typing import Any, Final, NoReturn

import pytest
from msgspec import Struct

from harness.core.errors import UsageError, unknown
from harness.testing.cassette_names import ENDINGS, cassette_path
from harness.transport.cassettes.keeping import MODES, Mode
from harness.transport.cassettes.playing import check
from harness.transport.rules import NO_RULES, Rules, joined

FIXTURE: Final = "harness_cassette"
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


class Asked(Struct, frozen=True, kw_only=True):
    """What a test asks for: its cassette, whether by a name, what is done with it, whether that is
    so whatever the command line says, and how.
    """

    path: Path
    named: bool
    mode: Mode
    always: bool
    rules: Rules
    options: Mapping[str, Any]


def asked_by(item: pytest.Item, defaults: Mapping[str, Any]) -> Asked:
    """What the project and the markers say; the nearest marker goes before the others, and rules
    add up.
    """
    marks = list(item.iter_markers("cassette"))[::-1]
    if not marks:
        fail(f"the fixture {FIXTURE} is for tests that are marked with @pytest.mark.cassette")
    name: str | None = None
    options: dict[str, Any] = {}
    rules = NO_RULES
    for given in [defaults, *[mark.kwargs for mark in marks]]:
        _check(given)
        options |= given
        rules = joined(rules, _rules(given))
    for mark in marks:
        name = _name(mark.args) if mark.args else name
    for option in ("rules", "ignore"):
        options.pop(option, None)
    marked = options.pop("mode", None)
    return Asked(
        path=cassette_path(item, name),
        named=name is not None,
        mode=_mode(item.config, marked),
        always=marked == "replay",
        rules=rules,
        options=options,
    )


def _check(given: Mapping[str, Any]) -> None:
    """Fail where an option makes no sense, also where what is done now does not need it: else a
    mode that is spelled wrong would let a cassette be recorded over that is only to be replayed.
    """
    for option in given:
        if option not in _OPTIONS:
            fail(unknown("option of a cassette", option, _OPTIONS))
    mode, hosts = given.get("mode"), given.get("ignore_hosts", ())
    if mode is not None and mode not in MODES:
        fail(unknown("mode of a cassette", str(mode), MODES))
    if (
        isinstance(hosts, str)
        or not isinstance(hosts, Collection)
        or not all(isinstance(each, str | Pattern) for each in hosts)
    ):
        fail(f"ignore_hosts={hosts!r}: expected a list of hosts, or of patterns of their names")
    for option, kind in (("source", str), ("allow_unused", bool)):
        if not isinstance(given.get(option, kind()), kind):
            fail(f"{option}={given[option]!r}: expected a {kind.__name__}")
    try:
        check(given.get("timing", "zero"), given.get("split"), given.get("faults", {}))
    except UsageError as error:
        problem = str(error)
    else:
        return
    fail(problem)


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
        fail(
            f"@pytest.mark.cassette({shown}): expected one name, such as 'greeting', or one path "
            f"that ends with {' or '.join(ENDINGS)}"
        )
    return str(name)


def _rules(given: Mapping[str, Any]) -> Rules:
    """The rules among options; `ignore` is short for rules that ignore these places."""
    rules, ignore = given.get("rules", NO_RULES), given.get("ignore", ())
    if not isinstance(rules, Rules):
        fail(f"rules={rules!r}: expected a value of harness.Rules")
    ignore = (ignore,) if isinstance(ignore, str) else ignore
    if not isinstance(ignore, tuple | list) or not all(isinstance(each, str) for each in ignore):
        fail(f"ignore={ignore!r}: expected places in bodies, such as 'metadata.run_id'")
    return joined(rules, Rules(ignore=tuple(ignore)))


def fail(message: str) -> NoReturn:
    """Fail a test with nothing but a message."""
    pytest.fail(message, pytrace=False)
