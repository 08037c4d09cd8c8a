"""What a cassette holds: the interactions of one session with a provider, as values."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from harness.core.durations import SECOND
from harness.transport.rules import NO_RULES, Rules
from harness.wire.http import Headers, Request

Ended: TypeAlias = Literal[
    "complete", "torn", "reset", "timeout", "cancelled", "refused", "dropped"
]
"""How an interaction ended: the answer was there whole; the connection was closed before the body
had ended; it was reset; the client waited no longer than its time limit; the client wanted no more;
no connection was made; it was closed before there was an answer.
"""


class Chunk(Struct, frozen=True):
    """What came at once of a body: when, in nanoseconds since the request went out, and its bytes,
    with content codings undone.
    """

    at: int
    data: bytes


class Interaction(Struct, frozen=True, kw_only=True):
    """A request and what came of it.

    `status` is None where no answer began; then there are no headers and no chunks. `begun` and
    `ended_at` are nanoseconds, the first since the session began, the second since the request went
    out; `head_at` is when the head of the answer was there. `protocol` is the name of a codec, ""
    where the request is none of a provider. `line` is where it stands in its file, 0 for nowhere.
    """

    request: Request
    protocol: str = ""
    begun: int = 0
    status: int | None = None
    reason: str = ""
    headers: Headers = ()
    chunks: tuple[Chunk, ...] = ()
    head_at: int = 0
    ended: Ended = "complete"
    ended_at: int = 0
    line: int = 0

    @property
    def body(self) -> bytes:
        """All of the answer's body that came."""
        return b"".join([chunk.data for chunk in self.chunks])

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.ended_at / SECOND


class Cassette(Struct, frozen=True, kw_only=True):
    """The interactions of one session, in the order in which their requests went out.

    `source` says in a few words whom the client spoke to, such as ``a fake provider``. `path` is
    the file that it was read from.
    """

    interactions: tuple[Interaction, ...] = ()
    source: str = ""
    rules: Rules = NO_RULES
    path: str = ""
