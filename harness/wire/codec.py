"""What a provider's protocol is to the rest: bytes on one side, the neutral form on the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from harness.core.json_text import Json
from harness.core.messages import Message, ModelRequest, Usage
from harness.core.reply import ReplyPart
from harness.wire.http import Headers, Request, Response

Stopped: TypeAlias = Literal["end", "calls", "length", "filtered", "refused", "paused"]
"""Why a model stopped: it has said all, it wants its calls run, it came to a limit, a filter cut it
off, it will not answer, or it is to be asked again as it is.
"""

Cut: TypeAlias = Callable[[str], Sequence[str]]
"""How a text is cut into pieces that make it whole again."""


def whole(text: str) -> Sequence[str]:
    """Cut a text into the one piece that it is; none for the empty text."""
    return [text] if text else []


class Asked(Struct, frozen=True):
    """What a client asks for.

    `options` are what else stands at the top of its body and matters to how it is answered, by the
    provider's own names.
    """

    request: ModelRequest
    stream: bool = False
    options: Mapping[str, Json] = {}


class Answer(Struct, frozen=True):
    """A whole reply: what a decoder has read, and an encoder writes.

    `id` is what the provider calls it, `created` the second since 1970 in which it was made.
    `refusal` is what it says where it will not answer.
    """

    message: Message
    usage: Usage | None = None
    stopped: Stopped = "end"
    refusal: str | None = None
    id: str = ""
    model: str = ""
    created: int = 0


class Failure(Struct, frozen=True):
    """An error that a provider tells of: with an HTTP status, or in the middle of a stream.

    `kind` and `code` are the provider's own words; None stands for the usual ones of the status.
    `headers` come with the status, beside those of the content: `harness.wire.http` writes the
    ones that tell a client whether and when to ask again.
    """

    status: int
    message: str
    kind: str | None = None
    code: str | None = None
    param: str | None = None
    headers: Headers = ()


class Limit(Struct, frozen=True):
    """How much a client may still ask for.

    `what` is counted, such as ``requests`` or ``tokens``; of it `limit` are allowed and `remaining`
    left, until all are again in `reset` seconds.
    """

    what: str
    limit: int
    remaining: int
    reset: float = 0


class Noise(Struct, frozen=True):
    """What live services send besides: clients must not choke on it.

    `obfuscation` pads frames, `pings` keep a stream alive, `unknown` adds fields and frames that no
    client knows.
    """

    obfuscation: bool = False
    pings: bool = False
    unknown: bool = False


QUIET = Noise()


class Unreadable(Exception):
    """A request that the protocol does not allow, with what the provider answers."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message)


class Garbled(Exception):
    """A reply that is none: what was found, and what was expected."""


class Truncated(Garbled):
    """A stream ended before the reply did.

    `told` is the reply where the model has told why it stopped, and only what stands behind that
    is missing.
    """

    def __init__(self, message: str, told: Answer | None = None) -> None:
        super().__init__(message)
        self.told = told


class ProviderError(Exception):
    """The provider told of a failure."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message)


class Encoder(Protocol):
    """Writes one reply as a stream. The parts of the reply are given as they come."""

    def part(self, part: ReplyPart) -> Iterator[bytes]:
        """The frames of one part; the first comes after what begins the stream, and `ReplyDone`
        brings the rest, up to the frame that says why the model stopped.
        """
        ...

    def end(self) -> Iterator[bytes]:
        """The frames that come after that one, where the protocol has any."""
        ...

    def failure(self, failure: Failure) -> Iterator[bytes]:
        """The frames that tell of a failure in the middle."""
        ...


class Decoder(Protocol):
    """Reads one streamed reply, from bytes that are cut anywhere.

    Garbled where they are no such reply, ProviderError where they tell of a failure.
    """

    def feed(self, data: bytes) -> list[ReplyPart]:
        """The parts of the reply that end in these bytes."""
        ...

    def end(self) -> Answer:
        """The stream is over: the whole reply. Truncated where its end is missing."""
        ...


class Codec(Protocol):
    """One provider's protocol."""

    @property
    def name(self) -> str:
        """What it is called, such as ``openai_chat``."""
        ...

    @property
    def prefix(self) -> str:
        """How the ids of its replies begin."""
        ...

    @property
    def secrets(self) -> Secrets:
        """Where its requests carry what nobody must see."""
        ...

    def is_for(self, request: Request) -> bool:
        """Whether a request is one of this protocol, by its method and path."""
        ...

    def read(self, request: Request) -> Asked:
        """What a request asks for; Unreadable where the provider would refuse it for its form."""
        ...

    def write(self, asked: Asked, *, base: str = "", key: str = "") -> Request:
        """The request that asks for it."""
        ...

    def answer(self, asked: Asked, answer: Answer, noise: Noise = QUIET) -> Response:
        """A whole reply."""
        ...

    def encoder(
        self, asked: Asked, answer: Answer, *, cut: Cut = whole, noise: Noise = QUIET
    ) -> Encoder:
        """What writes the reply as a stream; `cut` cuts the arguments of its calls."""
        ...

    def stream_type(self) -> str:
        """The content type of a streamed reply."""
        ...

    def headers(self, request_id: str, limits: Sequence[Limit] = (), *, now: float = 0) -> Headers:
        """What every response tells besides: the request's id, and limits, at the second `now`
        since 1970.
        """
        ...

    def failure(self, failure: Failure) -> Response:
        """A failure as a whole response."""
        ...

    def read_answer(self, response: Response) -> Answer:
        """Read a whole reply.

        ProviderError where it tells of a failure, Garbled where it is none.
        """
        ...

    def decoder(self) -> Decoder:
        """What reads a streamed reply."""
        ...


class Secrets(Struct, frozen=True):
    """Names, in lower case, of headers, parameters of the query and keys of bodies."""

    headers: frozenset[str] = frozenset()
    query: frozenset[str] = frozenset()
    body: frozenset[str] = frozenset()
