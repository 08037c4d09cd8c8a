"""What is made of a recorded interaction before it is played: other times, other pieces, a fault.

All are pure functions from interactions to interactions, so that what plays one needs to know of
none of them. A fault counts the frames of a recorded stream; of a body that came by its length it
spoils the whole, as faults do in scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias, get_args

from msgspec.structs import replace

from harness.core.errors import UsageError
from harness.core.messages import Message
from harness.fakes.line import fault_name
from harness.fakes.script import (
    DoneTwice,
    Fault,
    GenerateFails,
    Hang,
    LateThinking,
    StreamFails,
    Torn,
)
from harness.fakes.wire_faults import (
    BadJson,
    BadUtf8,
    Comments,
    CutAt,
    CutLine,
    Dropped,
    EmptyChoices,
    ErrorFrame,
    Http,
    Incomplete,
    JsonError,
    NoIndex,
    OddIndex,
    Refused,
    RepeatedIds,
    Reset,
    Split,
    Stall,
)
from harness.transport.cassettes.form import Chunk, Ended, Interaction
from harness.transport.faults import (
    BARE,
    altering,
    broken_by,
    ends_cleanly,
    failure_of,
    flattened,
    framing_for,
    response_of,
    spoiled,
    spoiled_body,
)
from harness.transport.framing import PLAIN, dressed
from harness.wire import CODECS
from harness.wire.codec import Answer, Codec, Failure, Unreadable
from harness.wire.http import Headers, Response, first, should_retry

_Instead: TypeAlias = Refused | Dropped | GenerateFails | Http | JsonError
"""Happens in the place of the answer."""
_Alters: TypeAlias = Comments | EmptyChoices | RepeatedIds | NoIndex | OddIndex
"""Changes frames, and does no harm."""
_Breaks: TypeAlias = (
    StreamFails | Torn | Incomplete | Reset | CutLine | ErrorFrame | BadJson | BadUtf8
)
"""Happens after so many frames; what comes behind them is lost."""
_BREAKS: Final = get_args(_Breaks)
_NEVER: Final = (DoneTwice, LateThinking)
_CHAT_ALONE: Final = (RepeatedIds, NoIndex, OddIndex)

_EMPTY_LINE = re.compile(rb"\n\r?\n|\r\n?\r\n?")


def scaled(given: Interaction, factor: float) -> Interaction:
    """The interaction with all times since its request multiplied."""
    if factor == 1:
        return given
    return replace(
        given,
        head_at=round(given.head_at * factor),
        ended_at=round(given.ended_at * factor),
        chunks=tuple([Chunk(round(each.at * factor), each.data) for each in given.chunks]),
    )


def resized(given: Interaction, size: int) -> Interaction:
    """The interaction with its body in chunks of `size` bytes, the last one of what is left."""
    return replace(given, chunks=_cut(given, range(size, len(given.body), size)))


def frames(given: Interaction) -> tuple[Chunk, ...]:
    """The frames of a recorded stream; what no empty line closes is the last of them."""
    return _cut(given, [found.end() for found in _EMPTY_LINE.finditer(given.body)])


def is_stream(headers: Headers) -> bool:
    """Whether a body with these headers is a stream of events."""
    return (first(headers, "content-type") or "").startswith("text/event-stream")


def laid_over(given: Interaction, fault: Fault, now: float = 0) -> Interaction:
    """The interaction with a fault; `now` is a second since 1970, for what tells of dates.

    UsageError where the fault makes no sense on what was recorded.
    """
    if isinstance(fault, _NEVER):
        raise _senseless(given, fault, "what was recorded ends only once")
    if isinstance(fault, get_args(_Instead)):
        return _instead(given, fault, now)
    if isinstance(fault, Hang) and fault.after is None:
        return _lost(given, "timeout")
    if given.status is None:
        raise _senseless(given, fault, "there was no answer that it could happen to")
    match fault:
        case Split(bytes=size):
            return resized(given, size)
        case CutAt(byte=byte) if byte >= len(given.body):
            return given
        case _ if is_stream(given.headers):
            return _in_stream(given, fault)
        case _:
            return _in_whole(given, fault)


def _cut(given: Interaction, ends: Iterable[int]) -> tuple[Chunk, ...]:
    """The body in pieces that end behind so many bytes, each there when its last byte came."""
    body = given.body
    arrivals = iter(given.chunks)
    pieces: list[Chunk] = []
    start = came = at = 0
    for end in (*ends, len(body)):
        while came < end:
            chunk = next(arrivals)
            came, at = came + len(chunk.data), chunk.at
        if end > start:
            pieces.append(Chunk(at, body[start:end]))
        start = end
    return tuple(pieces)


def _senseless(given: Interaction, fault: Fault, why: str) -> UsageError:
    asked = f"{given.request.method} {given.request.path}"
    return UsageError(
        f"the fault {fault_name(fault)} cannot happen to the recorded {asked}: {why}; "
        "choose another fault, or another interaction"
    )


# --- in the place of the answer


def _instead(given: Interaction, fault: _Instead, now: float) -> Interaction:
    match fault:
        case Refused():
            return _lost(given, "refused")
        case Dropped():
            return _lost(given, "dropped")
        case GenerateFails(message=message):
            failure = Failure(500, message, headers=should_retry(flag=False))
            return _answered(given, _codec(given, fault).failure(failure))
        case _:
            return _answered(given, response_of(_codec(given, fault), fault, now))


def _lost(given: Interaction, ended: Ended) -> Interaction:
    at = given.head_at
    return replace(given, status=None, reason="", headers=(), chunks=(), ended=ended, ended_at=at)


def _answered(given: Interaction, response: Response) -> Interaction:
    """The interaction with an answer that is there when the recorded one began."""
    return replace(
        given,
        status=response.status,
        reason="",
        headers=response.headers,
        chunks=(Chunk(given.head_at, response.body),),
        ended="complete",
        ended_at=given.head_at,
    )


def _codec(given: Interaction, fault: Fault) -> Codec:
    for codec in CODECS:
        if codec.name == given.protocol:
            return codec
    raise _senseless(given, fault, "it is of no protocol that is known")


# --- while it comes


def _in_stream(given: Interaction, fault: Fault) -> Interaction:
    found = frames(given)
    match fault:
        case CutAt(byte=byte):
            kept = tuple(_first(given.chunks, byte))
            return _over(given, kept, _break(fault), kept[-1].at if kept else given.head_at)
        case Hang(after=after):
            return _over(given, found[:after], "timeout", given.ended_at)
        case Stall(after=after, takes=takes):
            late = [Chunk(each.at + takes, each.data) for each in found[after:]]
            return _over(given, (*found[:after], *late), given.ended, given.ended_at + takes)
        case Comments() | EmptyChoices() | RepeatedIds() | NoIndex() | OddIndex():
            return _over(given, _altered(given, fault), given.ended, given.ended_at)
        case _:
            assert isinstance(fault, _BREAKS), "nothing else happens to a stream"
            return _cut_off(given, fault, found[: fault.after], found[fault.after :])


def _first(chunks: Iterable[Chunk], size: int) -> Iterator[Chunk]:
    """The chunks as far as they have so many bytes."""
    for chunk in chunks:
        if size <= 0:
            return
        yield Chunk(chunk.at, chunk.data[:size])
        size -= len(chunk.data)


def _cut_off(
    given: Interaction, fault: _Breaks, kept: tuple[Chunk, ...], lost: tuple[Chunk, ...]
) -> Interaction:
    """The stream up to a frame, and what comes in its place."""
    at = lost[0].at if lost else given.ended_at
    told: list[bytes] = []
    match fault:
        case ErrorFrame() | StreamFails(reported=True):
            told = _told(given, fault)[-1 if kept else 0 :]  # what begins a stream came already
        case BadJson() | BadUtf8() | CutLine():
            told = [spoiled(fault, lost[0].data if lost else BARE)]
        case _:
            pass
    ended = "complete" if told else _break(fault)
    return _over(given, (*kept, *[Chunk(at, data) for data in told]), ended, at)


def _told(given: Interaction, fault: ErrorFrame | StreamFails) -> list[bytes]:
    """The frames that tell of a failure, where none has come before them."""
    codec = _codec(given, fault)
    try:
        asked = codec.read(given.request)
    except Unreadable as error:
        raise _senseless(given, fault, f"the request cannot be read ({error})") from None
    encoder = codec.encoder(asked, Answer(Message("assistant", ()), model=asked.request.model))
    told = [*encoder.failure(failure_of(fault, fault.message))]
    flat = isinstance(fault, ErrorFrame) and fault.flat
    return [flattened(frame) for frame in told] if flat else told


def _altered(given: Interaction, fault: _Alters) -> tuple[Chunk, ...]:
    if isinstance(fault, _CHAT_ALONE) and given.protocol != "openai_chat":
        raise _senseless(given, fault, f"{given.protocol or 'its protocol'} has no such fragments")
    framing, alter = framing_for(fault, PLAIN), altering(fault)
    try:
        return tuple(
            [
                Chunk(frame.at, dressed(data, framing))
                for frame in frames(given)
                for data in ([frame.data] if alter is None else alter(frame.data))
            ]
        )
    except (ValueError, LookupError) as error:
        why = f"its frames are not as the protocol has them ({error!r})"
        raise _senseless(given, fault, why) from None


def _in_whole(given: Interaction, fault: Fault) -> Interaction:
    """What happens to a body that comes by its length."""
    match fault:
        case Hang():
            return _lost(given, "timeout")
        case Torn():
            return _lost(given, "dropped")
        case Stall(takes=takes):
            late = [Chunk(each.at + takes, each.data) for each in given.chunks]
            stalled = _over(given, late, given.ended, given.ended_at + takes)
            return replace(stalled, head_at=given.head_at + takes)
        case ErrorFrame() | StreamFails(reported=True):
            failure = failure_of(fault, fault.message)
            return _answered(given, _codec(given, fault).failure(failure))
        case Comments() | EmptyChoices() | RepeatedIds() | NoIndex() | OddIndex():
            raise _senseless(given, fault, "its answer is no stream")
        case _:
            spoilt = Chunk(given.ended_at, spoiled_body(fault, given.body))
            ended = "complete" if ends_cleanly(fault) else _break(fault)
            return _over(given, [spoilt], ended, given.ended_at)


def _break(fault: Fault) -> Ended:
    """How a body ends that a fault cuts off."""
    clean = isinstance(fault, Torn) or ends_cleanly(fault)
    return "complete" if clean else broken_by(fault, "").how


def _over(given: Interaction, chunks: Iterable[Chunk], ended: Ended, at: int) -> Interaction:
    """The interaction with another body; a length that is told is that of a body that is whole."""
    kept = tuple([chunk for chunk in chunks if chunk.data])
    headers = given.headers
    if ended == "complete":
        size = str(sum([len(chunk.data) for chunk in kept]))
        headers = tuple(
            [(name, size if name == "content-length" else had) for name, had in headers]
        )
    return replace(given, chunks=kept, headers=headers, ended=ended, ended_at=at)
