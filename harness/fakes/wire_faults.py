"""What can go wrong with a reply on its way over HTTP: data, as a scenario writes it.

Where no HTTP is spoken, each comes to the nearest thing that can happen there
(`harness.fakes.neutral`). In all of them `after` is how many parts of the reply come before it.
Of a reply that is not streamed, which has no parts, its whole body stands in the place of the part
that is spoiled; where the connection breaks, half of the body comes.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, field

from harness.core.durations import SECOND

# --- before the reply begins


class Http(Struct, frozen=True, tag="http"):
    """The request is answered with a status that says that it failed.

    `kind` and `code` are the provider's own words for it, None the usual ones of the status.
    `retry_after`, in nanoseconds, tells when to ask again, spelled as `retry_as` says;
    `should_retry` whether to. With `html` the body is a page, as one from a proxy, and no JSON.
    """

    status: int = 429
    message: str = "try again later"
    kind: str | None = None
    code: str | None = None
    retry_after: int | None = None
    retry_as: Literal["seconds", "milliseconds", "date"] = "seconds"
    should_retry: bool | None = None
    headers: dict[str, str] = field(default_factory=dict)
    html: bool = False


class JsonError(Struct, frozen=True, tag="json_error"):
    """The request is answered with status 200, and with an error as its body."""

    message: str = "the model is overloaded"
    kind: str | None = None
    code: str | None = None


class Refused(Struct, frozen=True, tag="refused"):
    """No connection is made."""


class Dropped(Struct, frozen=True, tag="dropped"):
    """The connection is closed without an answer."""


# --- while it comes


class Incomplete(Struct, frozen=True, tag="incomplete"):
    """The connection is closed before the body has ended, so that its terminator is missing."""

    after: int = 0


class Reset(Struct, frozen=True, tag="reset"):
    """The connection is reset."""

    after: int = 0


class CutLine(Struct, frozen=True, tag="cut_line"):
    """The body ends cleanly, but in the middle of a line."""

    after: int = 0


class CutAt(Struct, frozen=True, tag="cut_at"):
    """The body ends after so many bytes, whatever stands there.

    `how` is as the faults of that name have it, or a clean end. Where no HTTP is spoken it happens
    before the first part.
    """

    byte: int = 0
    how: Literal["end", "incomplete", "reset"] = "end"


class ErrorFrame(Struct, frozen=True, tag="error_frame"):
    """The stream tells of an error; nothing comes after it.

    `status` is what the words of it are taken from where `kind` and `code` do not say them. With
    `flat`, they stand beside the frame's type, as in one vendor's documentation.
    """

    after: int = 0
    message: str = "the model is overloaded"
    kind: str | None = None
    code: str | None = None
    status: int = 503
    flat: bool = False


class BadJson(Struct, frozen=True, tag="bad_json"):
    """A frame holds no JSON; nothing comes after it."""

    after: int = 0


class BadUtf8(Struct, frozen=True, tag="bad_utf8"):
    """A frame holds a byte that is no UTF-8; nothing comes after it."""

    after: int = 0


class Stall(Struct, frozen=True, tag="stall"):
    """Nothing comes for a while, in nanoseconds, and then the rest does."""

    after: int = 0
    takes: int = 60 * SECOND


# --- what does no harm to a client that reads with care


class Comments(Struct, frozen=True, tag="comments"):
    """A comment stands before each frame, as those that keep a connection alive."""


class Split(Struct, frozen=True, tag="split"):
    """The body comes in pieces of so many bytes, whatever stands in them."""

    bytes: int = 1


class EmptyChoices(Struct, frozen=True, tag="empty_choices"):
    """A frame without any choices, or candidates, comes before the first one."""


class RepeatedIds(Struct, frozen=True, tag="repeated_ids"):
    """Each fragment of a call repeats the call's id and name; in OpenAI's Chat Completions only."""


class NoIndex(Struct, frozen=True, tag="no_index"):
    """Fragments of calls have no index; in OpenAI's Chat Completions only."""


class OddIndex(Struct, frozen=True, tag="odd_index"):
    """The indexes of calls have gaps: 1, 3, 5; in OpenAI's Chat Completions only."""


Harmless: TypeAlias = Comments | Split | EmptyChoices | RepeatedIds | NoIndex | OddIndex
WireFault: TypeAlias = (
    Http
    | JsonError
    | Refused
    | Dropped
    | Incomplete
    | Reset
    | CutLine
    | CutAt
    | ErrorFrame
    | BadJson
    | BadUtf8
    | Stall
    | Harmless
)

SEARCHED: tuple[WireFault, ...] = (
    Http(429, retry_after=SECOND),
    Http(500, "internal error"),
    Http(503, "unavailable", html=True),
    Http(529, "overloaded", retry_after=SECOND // 2, retry_as="milliseconds"),
    Http(400, "not now", should_retry=True),
    JsonError(),
    Refused(),
    Dropped(),
    Incomplete(1),
    Reset(1),
    CutLine(1),
    ErrorFrame(1),
    BadJson(1),
    BadUtf8(1),
    Stall(1),
    Split(1),
)
"""What a search may make happen to a reply by itself; `Choices` count them from 1."""
