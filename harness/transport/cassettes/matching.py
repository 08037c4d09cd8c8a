"""Which recorded interaction answers a request: the oldest that asked for the same and has not been
played.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Collection, Sequence
from functools import cached_property, lru_cache, partial
from itertools import islice
from typing import Any, TypeAlias
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from harness.transport import redact_bodies
from harness.transport.cassettes.bodies import as_bytes
from harness.transport.cassettes.differing import SHOWN, between, told
from harness.transport.cassettes.form import Interaction
from harness.transport.cassettes.missing import IN_TESTS, Asked, Recorded, message, missed
from harness.transport.homes import HOMES
from harness.transport.rules import NO_RULES, REDACTED, Rules
from harness.wire import canonical as wire
from harness.wire.canonical import Canonical
from harness.wire.http import Request, headers


def canonical(request: Request, rules: Rules = NO_RULES) -> Canonical:
    """A request in the form in which requests are compared, without secrets. UsageError where a
    path or an expression of the rules is none.
    """
    return wire.canonical(redact_bodies.request(request, rules), reading_of(rules))


@lru_cache(maxsize=64)
def reading_of(rules: Rules, *, unsealed: bool = False) -> wire.Reading:
    """How requests are read by these rules; with `unsealed`, what only the provider can read says
    nothing.
    """
    return wire.Reading(rules.ignore, rules.volatile, REDACTED, unsealed, _HOMES)


_HOMES = frozenset([urlsplit(home.base).hostname or "" for home in HOMES])

_Index: TypeAlias = dict[bytes, deque[int]]
"""The places of interactions by the digests of their requests, the oldest first."""


class Library:
    """Recorded interactions, from which requests take theirs; for many threads at once.

    `name` is what the cassette is called in messages, such as its path. With `allow_repeats`, the
    last of several equal ones answers again and again. Secrets are looked for only where a request
    is not found as it is: what was recorded has none, unless others recorded it. `skipped` are the
    places of those that answer nothing, and `ways` tell how to record another one.
    """

    def __init__(
        self,
        interactions: Sequence[Interaction],
        rules: Rules = NO_RULES,
        name: str = "the cassette",
        *,
        allow_repeats: bool = False,
        skipped: Collection[int] = (),
        ways: str = IN_TESTS,
    ) -> None:
        self.interactions = tuple(interactions)
        self.skipped = skipped
        self._ways = ways
        self._rules = rules
        self._name = name
        self._repeats = allow_repeats
        self._lock = threading.Lock()
        self._places = {id(each): n for n, each in enumerate(self.interactions)}
        rough = [self._rough(n).digest for n in range(len(self.interactions))]
        self._as_recorded = _index(rough, skipped)
        self._played: set[int] = set()
        self._asked = 0
        self._missed: Counter[bytes] = Counter()

    def take(self, request: Request) -> Interaction:
        """The oldest interaction that asked for the same and has not been played; CassetteMiss
        where there is none.
        """
        with self._lock:
            self._asked += 1
            number = self._asked
        form = wire.canonical(request, reading_of(self._rules))
        found = self._play(self._as_recorded, form)
        if found is None:
            request = redact_bodies.request(request, self._rules)
            form = wire.canonical(request, reading_of(self._rules))
            found = self._play(self._as_recorded, form) or self._play(self._without_secrets, form)
        if found is not None:
            return found
        equal = [n for n, digest in enumerate(self._digests) if digest == form.digest]
        with self._lock:
            self._missed[form.digest] += 1
            asked = Asked(request, form, number, len(equal) + self._missed[form.digest])
            played = frozenset(self._played)
        recorded = Recorded(
            self.interactions, self._rough, self._shown, played, self._name, self._ways
        )
        raise missed(partial(message, recorded, asked, equal))

    def index_of(self, interaction: Interaction) -> int:
        """The place of one of these interactions, from 0."""
        return self._places[id(interaction)]

    def played(self) -> int:
        """How many interactions have been played."""
        with self._lock:
            return len(self._played)

    def unused(self) -> list[Interaction]:
        """The interactions that have not been played, in their order."""
        with self._lock:
            return [each for n, each in enumerate(self.interactions) if n not in self._played]

    def _play(self, index: _Index, form: Canonical) -> Interaction | None:
        with self._lock:
            waiting = index.get(form.digest)
            if waiting is None:
                return None
            while len(waiting) > 1 and waiting[0] in self._played:
                waiting.popleft()
            if waiting[0] in self._played and not self._repeats:
                return None
            self._played.add(waiting[0])
            return self.interactions[waiting[0]]

    @cached_property
    def _digests(self) -> list[bytes]:
        """Of all requests without secrets."""
        return [self._form(n).digest for n in range(len(self.interactions))]

    @cached_property
    def _without_secrets(self) -> _Index:
        return _index(self._digests, self.skipped)

    def _form(self, at: int) -> Canonical:
        return canonical(self.interactions[at].request, self._rules)

    def _shown(self, at: int) -> Canonical:
        """Without secrets; as it is where that is the same, since to look for them is slow."""
        rough = self._rough(at)
        return rough if rough.digest == self._digests[at] else self._form(at)

    def _rough(self, at: int) -> Canonical:
        return wire.canonical(self.interactions[at].request, reading_of(self._rules))


def _index(digests: Sequence[bytes], skipped: Collection[int]) -> _Index:
    found: _Index = {}
    for n, digest in enumerate(digests):
        if n not in skipped:
            found.setdefault(digest, deque()).append(n)
    return found


class _Forms:
    """The forms of one request, each made when it is asked for."""

    def __init__(self, request: Request, rules: Rules) -> None:
        self.request = request
        self._rules = rules

    @cached_property
    def rough(self) -> Canonical:
        """As it is."""
        return wire.canonical(self.request, reading_of(self._rules))

    @cached_property
    def form(self) -> Canonical:
        """Without secrets."""
        return canonical(self.request, self._rules)


class Matcher:
    """Compares two requests of vcrpy, for `VCR.register_matcher`; the form of each is kept as long
    as the request itself.
    """

    __name__ = "harness"  # vcrpy says by it what did not match

    def __init__(self, rules: Rules = NO_RULES) -> None:
        self._rules = rules
        self._known: WeakKeyDictionary[Any, _Forms] = WeakKeyDictionary()

    def __call__(self, came: Any, recorded: Any) -> None:
        """AssertionError, with what differs, where they do not ask for the same."""
        found, old = self._forms(came), self._forms(recorded)
        if found.rough.digest == old.rough.digest or found.form.digest == old.form.digest:
            return
        first = list(islice(between(old.form, found.form), SHOWN))
        raise AssertionError(f"the requests differ in\n{told(first)}")

    def _forms(self, given: Any) -> _Forms:
        request = request_of(given)
        known = self._known.get(given)
        if known is None or known.request != request:  # filters of users change requests in place
            known = self._known[given] = _Forms(request, self._rules)
        return known


vcr_matcher = Matcher()
"""The one without rules."""


def request_of(given: Any) -> Request:
    """A request of vcrpy as a value."""
    return Request(given.method, given.uri, headers(given.headers), as_bytes(given.body))
