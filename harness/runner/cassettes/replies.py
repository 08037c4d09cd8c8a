"""Recorded replies as a script has them: what was said, when, and what went wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from email.utils import parsedate_to_datetime
from itertools import pairwise
from statistics import median
from typing import Literal

from msgspec.structs import replace

from harness.core.durations import NS_PER_UNIT, SECOND
from harness.core.messages import Block, Message, Text, Thinking, Usage
from harness.fakes.parts import CHUNK
from harness.fakes.script import Fault, Hang, Reply, ScriptedCall, Torn
from harness.fakes.wire_faults import (
    BadJson,
    BadUtf8,
    CutLine,
    Dropped,
    ErrorFrame,
    Http,
    Incomplete,
    JsonError,
    Refused,
    Reset,
    Stall,
)
from harness.runner.cassettes.heard import Heard, Piece, cancelled
from harness.runner.cassettes.session import Step
from harness.wire import sse
from harness.wire.codec import Codec, Failure, ProviderError
from harness.wire.http import Headers, first

Note = Callable[[str], None]
"""Takes what cannot be carried over."""

MS = NS_PER_UNIT["ms"]
_STALLS, _SLOWER = SECOND, 10
"""A gap is a stall from this span on, and where it is so many times as long as the others."""
_PAGE_SHOWN = 200
_TAGS = re.compile(r"<(style|script)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)


def reply_of(step: Step, doubled: Collection[str], note: Note) -> Reply:
    """The reply of a step; `doubled` are the ids of calls that the session has more than once."""
    last = step.last
    if last is None:
        return _said(step.message, doubled, note, "the history of the first request")
    failed = [each for each in step.attempts if each.answer is None and not cancelled(each)]
    reply = _said(last.message, doubled, note, last.place)
    if last.answer is not None:
        answer = last.answer
        reply = replace(
            reply, usage=answer.usage if answer.usage != Usage() else None, refusal=answer.refusal
        )
        if reply.stopped != answer.stopped:
            reply = replace(reply, stop=answer.stopped)
    else:
        longest = max(step.attempts, key=lambda each: len(each.message.text))
        reply = _said(longest.message, doubled, note, longest.place)
    reply = _timed(reply, last)
    if not failed:
        return replace(reply, fault=None if cancelled(last) else _stall(last.pieces))
    faults = [fault_of(each, note) for each in failed]
    names = [type(fault).__name__ for fault in faults]
    if len(set(names)) > 1:
        note(
            f"{failed[0].place}: the reply failed in several ways ({', '.join(names)}); "
            f"a script's reply fails in one: the first, {counted_times(len(faults))}"
        )
    always = failed[-1] is last
    return replace(reply, fault=faults[0], fault_times=None if always else len(faults))


def counted_times(count: int) -> str:
    """How often, in words.

    >>> counted_times(1), counted_times(3)
    ('once', '3 times')
    """
    return "once" if count == 1 else f"{count} times"


def rounded(span: int) -> int:
    """A recorded span without digits that mean nothing: whole milliseconds.

    >>> rounded(1_234_567), rounded(400_000)
    (1000000, 0)
    """
    return round(span / MS) * MS


def _said(message: Message, doubled: Collection[str], note: Note, place: str) -> Reply:
    """What a message says, as a script says it: reasoning, text, calls."""
    thoughts = [block for block in message.content if isinstance(block, Thinking)]
    texts = [block for block in message.content if isinstance(block, Text)]
    worded = [block for block in message.content if block not in thoughts or _text_of(block)]
    kinds = [_ORDER[type(block).__name__] for block in worded]
    if kinds != sorted(kinds) or max(kinds.count(0), kinds.count(1)) > 1:
        note(
            f"{place}: the reply has {kinds.count(0)} blocks of reasoning and {len(texts)} of text "
            "among its calls; a script's reply has reasoning, text, and calls, each joined"
        )
    signatures = [block.signature for block in thoughts if block.signature is not None]
    return Reply(
        say=message.text,
        think="".join([block.text for block in thoughts]),
        signature=signatures[0] if signatures else None,
        calls=tuple(
            [
                ScriptedCall(
                    call.name, call.args, call.raw, call.id if call.id in doubled else None
                )
                for call in message.calls
            ]
        ),
    )


def _text_of(block: Block) -> str:
    return block.text if isinstance(block, Text | Thinking) else ""


_ORDER = {"Thinking": 0, "Text": 1, "ToolCall": 2, "Image": 3}


def _timed(reply: Reply, heard: Heard) -> Reply:
    """The reply, in deltas of the recorded length that come at the recorded times."""
    given, pieces = heard.interaction, heard.pieces
    if not pieces:
        came = given.chunks[-1].at if given.chunks else given.head_at or given.ended_at
        return replace(reply, takes=rounded(came))
    each = (pieces[-1].at - pieces[0].at) // max(len(pieces) - 1, 1)
    if isinstance(stall := _stall(pieces), Stall):
        each = (pieces[-1].at - pieces[0].at - stall.takes) // max(len(pieces) - 2, 1)
    size = max([len(piece.text) for piece in pieces])
    chunk = None if size == CHUNK else size
    return replace(reply, takes=rounded(pieces[0].at), each=rounded(each), chunk=chunk)


def _stall(pieces: Sequence[Piece]) -> Stall | None:
    """The gap in which a stream stood still, if there is one."""
    gaps = [now.at - before.at for before, now in pairwise(pieces)]
    if len(gaps) < 2:
        return None
    longest = max(gaps)
    at = gaps.index(longest)
    usual = median(gaps[:at] + gaps[at + 1 :])
    if longest < _STALLS or longest < _SLOWER * usual:
        return None
    return Stall(at + 1, rounded(longest))


def fault_of(heard: Heard, note: Note) -> Fault:
    """What went wrong with a reply."""
    given = heard.interaction
    if given.status is None:
        return _unanswered(heard, note)
    if not 200 <= given.status < 300:
        return _refused(heard, note)
    after = len(heard.pieces)
    if heard.failure is not None:
        kind, code = _words(heard.codec, heard.failure)
        message = heard.failure.message
        if not heard.streamed:
            return JsonError(message, kind, code)
        return ErrorFrame(after, message, kind, code, _status(heard.failure))
    match given.ended:
        case "torn" | "dropped" | "refused":
            return Incomplete(after)
        case "reset":
            return Reset(after)
        case "timeout" | "cancelled":
            return Hang(after)
        case _:
            return _spoiled(heard, after)


def _unanswered(heard: Heard, note: Note) -> Fault:
    match heard.interaction.ended:
        case "refused":
            return Refused()
        case "timeout" | "cancelled":
            return Hang()
        case "dropped":
            return Dropped()
        case ended:
            note(f"{heard.place}: it ended as {ended} before an answer; scripted as `dropped`")
            return Dropped()


def _spoiled(heard: Heard, after: int) -> Fault:
    """A body that came to its end, and is no whole reply all the same."""
    body = heard.interaction.body
    try:
        body.decode()
    except UnicodeDecodeError:
        return BadUtf8(after)
    if heard.garbled:
        return BadJson(after)
    reader = sse.Reader()
    reader.feed(body)
    return CutLine(after) if reader.open else Torn(after)


def _refused(heard: Heard, note: Note) -> Http:
    """A status that says that the request failed, with all that the client was told."""
    given = heard.interaction
    status = given.status or 0
    if not 400 <= status <= 599:
        note(f"{heard.place}: the status {status} cannot be scripted; it is 500 in its place")
        status = 500
    after, spelled, headers = _retry_after(given.headers)
    should = first(given.headers, "x-should-retry")
    should_retry = {"true": True, "false": False}.get(should or "")
    kind_of_body = first(given.headers, "content-type") or ""
    if kind_of_body.startswith("text/html"):
        page = " ".join(_TAGS.sub(" ", given.body.decode(errors="replace")).split())
        note(f"{heard.place}: its body was a page, and is another page of the same words")
        message = page.removeprefix(f"{status} ")[:_PAGE_SHOWN] or given.reason
        return Http(status, message, None, None, after, spelled, should_retry, headers, html=True)
    failure = heard.failure or Failure(status, given.reason or f"status {given.status}")
    kind, code = _words(heard.codec, failure)
    return Http(status, failure.message, kind, code, after, spelled, should_retry, headers)


_Spelled = Literal["seconds", "milliseconds", "date"]


def _retry_after(headers: Headers) -> tuple[int | None, _Spelled, dict[str, str]]:
    """When the client may ask again: the span, its spelling; or the header itself where a date is
    no span, since nobody said what time it was.
    """
    if (told := first(headers, "retry-after-ms")) is not None:
        with_unit = _number(told)
        if with_unit is not None:
            return round(with_unit * MS), "milliseconds", {}
    told = first(headers, "retry-after")
    if told is None:
        return None, "seconds", {}
    seconds = _number(told)
    if seconds is not None:
        return round(seconds * SECOND), "seconds", {}
    try:
        until = parsedate_to_datetime(told)
        now = parsedate_to_datetime(first(headers, "date") or "")
        span = round((until - now).total_seconds()) * SECOND
    except (TypeError, ValueError):
        span = -1
    return (None, "seconds", {"retry-after": told}) if span < 0 else (span, "date", {})


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text) else None


def _status(failure: Failure) -> int:
    return failure.status if 400 <= failure.status <= 599 else 500


def _words(codec: Codec, failure: Failure) -> tuple[str | None, str | None]:
    """The provider's own words for a failure, where they are not the usual ones of the status."""
    usual = failure
    bare = Failure(_status(failure), failure.message)
    try:
        codec.read_answer(codec.failure(bare))
    except ProviderError as error:
        usual = error.failure
    kind = None if usual.kind == failure.kind else failure.kind
    code = None if usual.code == failure.code else failure.code
    return kind, code
