"""One test for each loop, policy and level that the marker `harness` names.

@pytest.mark.harness(loops=["turn", "fsm"], policies="all", levels=["model", "http:anthropic"])
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from msgspec import Struct

from harness.core.errors import UsageError, unknown
from harness.core.located import shortened
from harness.loops import LOOPS
from harness.runner.agents import find_loop
from harness.runner.levels import LEVELS, MODEL, level_of
from harness.testing.asynchronous import timing
from harness.testing.marker import OF_ASYNC, VARIED_BY, asked_of
from harness.wire import CODECS

VARIED = "harness_variant"
"""The fixture that has the variant that a test is run for."""
ALL = "all"
_USERS = ("harness_run", "harness_sweep", "harness_explore")


class Variant(Struct, frozen=True):
    """What a test is run for; None is what would be there without it."""

    loop: str | None = None
    policy: str | None = None
    level: str | None = None

    def __str__(self) -> str:
        return "-".join([each for each in (self.loop, self.policy, self.level) if each])


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Run a test for each variant that its markers name; a wrong one fails the collection."""
    problem = ""
    try:
        asked = asked_of(metafunc.definition)
        _check_async(metafunc, asked)
        found = _asked(metafunc, asked)
    except UsageError as error:
        problem = str(error)
    if problem:  # not while it is handled: it would be shown as the cause
        pytest.fail(f"the marker harness: {problem}", pytrace=False)
    if found:
        metafunc.parametrize(VARIED, found, ids=str, indirect=True)


def variants(
    loops: Sequence[str] | str = (),
    policies: Sequence[str] | str = (),
    levels: Sequence[str] | str = (),
) -> list[Variant]:
    """Each combination that exists, in the order given; none where nothing is given.

    Policies are those of their loops: a loop is passed over where it has none that is named.
    UsageError for a name that nothing has.
    """
    named = _listed("loops", loops, [kind.name for kind in LOOPS])
    kinds = [find_loop(name) for name in named]
    known = dict.fromkeys([policy for kind in kinds or LOOPS for policy in kind.policies])
    chosen = _listed("policies", policies, known)
    for name in chosen:
        if name not in known:
            of = f" of the loops {', '.join(named)}" if named else ""
            raise UsageError(unknown(f"policy{of}", name, known))
    policies_of: list[str | None] = [*chosen] or [None]
    pairs: list[tuple[str | None, str | None]] = [
        (kind.name, policy)
        for kind in kinds
        for policy in policies_of
        if policy is None or policy in kind.policies
    ]
    if not kinds:
        pairs = [(None, policy) for policy in policies_of]
    at = [str(level_of(name)) for name in _listed("levels", levels, all_levels())]
    if not (kinds or chosen or at):
        return []
    levels_of: list[str | None] = [*at] or [None]
    return [Variant(loop, policy, level) for loop, policy in pairs for level in levels_of]


def all_levels() -> list[str]:
    """Every level there is, with each protocol."""
    spoken = [f"{name}:{codec.name}" for name in LEVELS[1:] for codec in CODECS]
    return [str(MODEL), *spoken]


def _asked(metafunc: pytest.Metafunc, asked: Mapping[str, Any]) -> list[Variant]:
    found = variants(**{name: asked.get(name, ()) for name in VARIED_BY})
    if found and VARIED not in metafunc.fixturenames:
        uses = f"{', '.join(_USERS[:-1])} or {_USERS[-1]}"
        raise UsageError(f"the test uses no fixture that {' or '.join(VARIED_BY)} are for: {uses}")
    return found


def _check_async(metafunc: pytest.Metafunc, asked: Mapping[str, Any]) -> None:
    if not asked.keys() & set(OF_ASYNC):
        return
    if not inspect.iscoroutinefunction(metafunc.function):
        raise UsageError("time and allow are for asynchronous tests; this one is none")
    timing(asked, metafunc.fixturenames)


def _listed(what: str, given: Any, known: Iterable[str]) -> list[str]:
    """Names that were given as a list, as one text, or as all there are; each once."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"{what} is {shortened(repr(given))}; expected names, or {ALL!r}")
    whole = [each for name in names for each in (known if name == ALL else [name])]
    return list(dict.fromkeys(whole))
