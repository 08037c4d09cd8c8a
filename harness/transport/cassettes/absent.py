"""What stands in for a cassette that is not there: a test may do without, until it asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from re import Pattern
from typing import NoReturn

from harness.transport.cassettes.matching import Library
from harness.transport.cassettes.missing import missed
from harness.transport.cassettes.session import Session
from harness.transport.rules import NO_RULES
from harness.wire.http import Request


class _Absent(Session):
    """A session that has nothing for any request, and says why."""

    def __init__(
        self, path: str, say: Callable[[], str], ignore_hosts: Sequence[str | Pattern[str]]
    ) -> None:
        library = Library((), NO_RULES, path)
        super().__init__(library, None, lambda: 0, recording=False, ignore_hosts=ignore_hosts)
        self._say = say

    def find(self, request: Request) -> NoReturn:  # noqa: ARG002 - as of any session
        """CassetteMiss, whatever is asked for."""
        miss = missed(self._say)
        self.missed.append(miss)
        raise miss


@contextmanager
def absent(
    path: str, say: Callable[[], str], ignore_hosts: Sequence[str | Pattern[str]] = ()
) -> Iterator[Session]:
    """Let no request out while the block runs: each is a CassetteMiss that says `say`, raised again
    at a good end.
    """
    session = _Absent(path, say, ignore_hosts)
    with session.open(path, NO_RULES, "none"):
        yield session
    if session.missed:
        raise session.missed[0]
