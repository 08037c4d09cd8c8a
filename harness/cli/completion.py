"""What a shell offers to complete a word with, where TAB is pressed.

Each function takes the word as far as it is typed, and gives the whole words that it may become.
Where it gives none, shells offer files.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, MutableMapping
from pathlib import Path

_WORDS, _CURRENT = "COMP_WORDS", "COMP_CWORD"
"""What bash says: the words of the line, one a line, and the number of the one at the cursor."""
_BEFORE = "_HARNESS_BEFORE"
"""What `join_words` says: what stands before the last colon of the word at the cursor."""

_DEPTH = 10
"""How many folders that are all there is are gone down into: a link may lead back up."""


def scenarios(incomplete: str) -> list[str]:
    """Files that may be scenarios, and folders; of a folder that is all there is, what is in it,
    so that no shell takes it for the whole word. Bash quotes only what it has found itself: names
    that need it are left to it.
    """
    from harness.runner.files.load import ENDINGS

    found = _inside(incomplete, ENDINGS)
    for _ in range(_DEPTH):
        if len(found) != 1 or not found[0].endswith("/"):
            break
        inside = _inside(found[0], ENDINGS)
        if not inside:
            break
        found = inside
    unquoted = _WORDS in os.environ and any(shlex.quote(each) != each for each in found)
    return [] if unquoted or found == [incomplete] else found


def _inside(start: str, endings: tuple[str, ...]) -> list[str]:
    """What begins as `start` does, folders with a slash at their ends."""
    folder, slash, name = start.rpartition("/")
    hidden = name.startswith(".")
    try:
        entries = sorted(Path(f"{folder}{slash}").expanduser().iterdir())
    except (OSError, RuntimeError, ValueError):  # also a tilde of nobody, or what no path can hold
        return []
    return [
        f"{folder}{slash}{entry.name}{'/' if entry.is_dir() else ''}"
        for entry in entries
        if entry.name.startswith(name)
        and (hidden or not entry.name.startswith("."))
        and entry.name.isprintable()  # else shells take it for several, or it cannot be said
        and (entry.is_dir() or entry.name.endswith(endings))
    ]


def loops(incomplete: str) -> list[str]:
    """The names of the reference loops."""
    from harness.loops import LOOPS

    return _matching(incomplete, [each.name for each in LOOPS])


def policies(incomplete: str) -> list[str]:
    """The policies of the reference loops."""
    from harness.loops import LOOPS

    return _matching(incomplete, [policy for each in LOOPS for policy in each.policies])


def levels(incomplete: str) -> list[str]:
    """The levels at which an agent meets its model."""
    from harness.wire import CODECS

    before = os.environ.get(_BEFORE, "")
    over = [f"{level}:{codec.name}" for level in ("http", "server") for codec in CODECS]
    found = _matching(f"{before}{incomplete}", ["model", *over])
    return [each.removeprefix(before) for each in found]


def providers(incomplete: str) -> list[str]:
    """The protocols of the providers."""
    from harness.wire import CODECS

    return _matching(incomplete, [codec.name for codec in CODECS])


def orders(incomplete: str) -> list[str]:
    """Which orders a search may vary."""
    from harness.sim.orders import ORDERS

    return _matching(incomplete, ORDERS)


def strategies(incomplete: str) -> list[str]:
    """How a search may choose."""
    from harness.exploration.search import STRATEGIES

    return _matching(incomplete, [name.removesuffix("<depth>") for name in STRATEGIES])


def cancel_modes(incomplete: str) -> list[str]:
    """The modes of cancels, one after the other with commas between."""
    from harness.exploration.sweep import MODES

    return _listed(incomplete, ["all", *MODES])


def task_roles(incomplete: str) -> list[str]:
    """The roles of tasks, one after the other with commas between."""
    from harness.exploration.probe import ROLES

    return _listed(incomplete, ROLES)


def addressees(incomplete: str) -> list[str]:
    """Who may be told of a cancel, one after the other with commas between."""
    from typing import get_args

    from harness.exploration.probe import Whom

    return _listed(incomplete, get_args(Whom))


def _matching(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


def _listed(incomplete: str, names: Iterable[str]) -> list[str]:
    """Names for the last place of a list with commas, but those that stand in it already."""
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    return [f"{before}{comma}{each}" for each in _matching(last, names) if each not in given]


def join_words(environ: MutableMapping[str, str]) -> None:
    """Put together again what bash takes apart at colons, as it does by default: the level
    ``http:anthropic``, for one, comes as three words. Of the word at the cursor what stands before
    its last colon is kept apart, since bash replaces only what follows.
    """
    if _WORDS not in environ or _CURRENT not in environ:
        return
    given = environ[_WORDS].split("\n")
    current = int(environ[_CURRENT])
    words: list[str] = []
    for word in given[: current + 1]:
        if words and (word == ":" or words[-1].endswith(":")):
            words[-1] += word
        else:
            words.append(word)
    before, colon, words[-1] = words[-1].rpartition(":")
    environ[_BEFORE] = before + colon
    environ[_WORDS] = "\n".join(words)
    environ[_CURRENT] = str(len(words) - 1)
