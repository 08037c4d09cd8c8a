"""What is said of a request that no recorded interaction answers."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from msgspec import UNSET, Struct

from harness.core.errors import CassetteMiss
from harness.core.wording import counted
from harness.transport import redact
from harness.transport.cassettes.differing import HEAD, Difference, between, shortened, told
from harness.transport.cassettes.form import Interaction
from harness.transport.cassettes.likeness import likeness, profile
from harness.wire.canonical import Canonical, at_once
from harness.wire.http import Request

_ELEMENT = re.compile(r"\[\d+\]$")
"""How the path of an element ends."""
_COMPARED = 500
"""With how many interactions a request is compared to find the closest."""
_NAMED = 8
"""How many addresses, or interactions, are named."""
_LEFT_OUT = 3
"""How many places somebody is told to leave out."""
IN_TESTS: Final = (
    'pytest: --cassette-mode={mode}, harness record: --mode {mode}, cassette: mode="{mode}"'
)
"""How a mode is asked for where a client is recorded."""
IN_RUNS: Final = "harness record: --mode {mode}"
"""The same where a run of a scenario is."""


class Recorded(Struct, frozen=True):
    """What was recorded: the interactions, the form of each request by its place, as it is and
    without secrets, the places of those that were played, the cassette's name, and how a mode is
    asked for.
    """

    interactions: Sequence[Interaction]
    rough: Callable[[int], Canonical]
    form_of: Callable[[int], Canonical]
    played: frozenset[int]
    name: str
    ways: str


class Asked(Struct, frozen=True):
    """A request, its form, its number among all, and how often the same has been asked for."""

    request: Request
    form: Canonical
    number: int
    times: int


class _Missed(CassetteMiss):
    """A miss that is put into words when they are read: a recorder that goes on never does."""

    def __init__(self, say: Callable[[], str]) -> None:
        self._say = cache(say)
        super().__init__()

    def __str__(self) -> str:
        return self._say()

    def __reduce__(self) -> tuple[type[CassetteMiss], tuple[str]]:
        return CassetteMiss, (str(self),)


def missed(say: Callable[[], str]) -> CassetteMiss:
    """A miss, with its message when it is asked for.

    Anthropic's library takes what is not an error of its own for a broken connection, and asks
    again; where it is loaded, a miss is one of its own as well.
    """
    return _kind(getattr(sys.modules.get("anthropic"), "AnthropicError", None))(say)


@cache
def _kind(also: type[Exception] | None) -> type[_Missed]:
    """The class of a miss, by the name that users know, which is a kind of another error too."""
    bases = (_Missed,) if also is None else (_Missed, also)
    return type(CassetteMiss.__name__, bases, {"__module__": CassetteMiss.__module__})


def message(recorded: Recorded, asked: Asked, equal: Sequence[int]) -> str:
    """What is said of a miss; `equal` are the places of those that asked for the same."""
    form = asked.form
    head = f"request {asked.number} ({_address(asked.request, form)})"
    on_top = f"record it {in_mode('missing', recorded.ways)}"
    anew = f"record all anew {in_mode('all', recorded.ways)}"
    if equal:
        where = ", ".join([_named(recorded, each) for each in equal[:_NAMED]])
        return (
            f"{head} is one too many: asked {counted(asked.times, 'time')}, recorded "
            f"{counted(len(equal), 'time')} in {recorded.name}\n  recorded: {where}\n  if a client "
            f"asks again where it did not before, see why; if it is to: {on_top}"
        )
    closest = _closest(recorded, form)
    if closest is None:
        return (
            f"{head} is none of those recorded in {recorded.name}\n"
            f"  nothing was recorded for that address; {_addresses(recorded)}\n"
            f"  if it is to ask for it: {on_top}"
        )
    other = recorded.form_of(closest)
    found = list(between(other, form))
    played, step = "not played yet", f"if the change is wanted: {anew}"
    if closest in recorded.played:
        played = "played already"
        step = f"if it came on top: {on_top}\n  if one that was recorded has changed: {anew}"
    said = f"  closest: {_named(recorded, closest)}, {played}; it differs in\n{told(found, '    ')}"
    streams = at_once(other).digest == at_once(form).digest
    more = "\n    which is only whether the answer is streamed" if streams else _ignoring(found)
    return f"{head} is none of those recorded in {recorded.name}\n{said}{more}\n  {step}"


def in_mode(mode: str, ways: str = IN_TESTS) -> str:
    """In which mode to record, and how that is said.

    >>> in_mode("all", IN_RUNS)
    'in the mode all (harness record: --mode all)'
    """
    return f"in the mode {mode} ({ways.format(mode=mode)})"


def _ignoring(found: Sequence[Difference]) -> str:
    """How to leave out a place of the body that changes by itself."""
    places = tuple([each.path for each in found])
    if len(places) > _LEFT_OUT or any(not place or place.startswith(HEAD) for place in places):
        return ""
    if any(isinstance(each.recorded, list) and isinstance(each.found, list) for each in found):
        return "\n  if the order changes on every run, sort them before they are sent"
    if any(_ELEMENT.search(each.path) and UNSET in (each.recorded, each.found) for each in found):
        return ""  # left out would be whatever stands in that place
    said = f"\n  if it changes on every run, leave it out: Rules(ignore={places!r})"
    if all(isinstance(text, str) for each in found for text in (each.recorded, each.found)):
        said += ", or what changes in it: Rules(volatile=('a regular expression',))"
    return said


def _closest(recorded: Recorded, form: Canonical) -> int | None:
    """The place of the interaction whose request is most like this one; None where none asked the
    same provider, or the same address.
    """
    wanted = profile(form.body)
    best: tuple[bool, float, bool, int] | None = None
    places = sorted(range(len(recorded.interactions)), key=recorded.played.__contains__)
    for n in places[:_COMPARED]:
        other = recorded.rough(n)
        same = (other.method, other.path) == (form.method, form.path)
        if same or (form.protocol and other.protocol == form.protocol):
            alike = likeness(wanted, profile(other.body))
            rank = same, alike, n not in recorded.played, -n
            best = rank if best is None else max(best, rank)
    return None if best is None else -best[-1]


def _named(recorded: Recorded, place: int) -> str:
    line = recorded.interactions[place].line
    return f"interaction {place + 1}" + (f" (line {line})" if line else "")


def _addresses(recorded: Recorded) -> str:
    """What was recorded, by address."""
    requests = [each.request for each in recorded.interactions]
    if not requests:
        return "the cassette is empty"
    found = Counter([_place(each) for each in requests]).most_common()
    told = ", ".join([f"{place} ({counted(times, 'time')})" for place, times in found[:_NAMED]])
    return f"recorded are {told}" + (" and others" if len(found) > _NAMED else "")


def _address(request: Request, form: Canonical) -> str:
    return ", ".join(filter(None, [_place(request), form.protocol]))


def _place(request: Request) -> str:
    return f"{shortened(request.method, 20)} {shortened(redact.path(request), 120)}"
