"""What a client did wrong, as the provider saw it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from harness.core.durations import SECOND
from harness.core.events import Delta, FaultInjected, Mismatch, ReplyEnded, RequestSent
from harness.core.trace import Trace
from harness.core.wording import counted
from harness.transport import redact
from harness.transport.journal import Record
from harness.wire.http import Headers, first

FindingKind: TypeAlias = Literal[
    "refused", "no place", "malformed", "truncated", "retried", "left open", "unused"
]
"""A history that a provider refuses, a request that the script does not have, bytes that are no
request, a reply that broke off and was taken as whole, asking again too soon or too often, a stream
that was neither read to its end nor closed, a reply that nobody asked for.
"""

RETRIES = 5
"""How often a client may ask again, after one failure; vendors' own libraries do it twice."""


class Finding(Struct, frozen=True):
    """One thing that a client did wrong; `request` counts from 1, None where it is of none."""

    kind: FindingKind
    message: str
    request: int | None = None
    rule: str = ""

    def __str__(self) -> str:
        of = "" if self.request is None else f"request {self.request}: "
        return f"{of}{self.message}" + (f" ({self.rule})" if self.rule else "")


def find(records: Sequence[Record], trace: Trace, unused: Iterable[str]) -> tuple[Finding, ...]:
    """All that went wrong, in the order of the requests, then the replies that are `unused`."""
    found = [*_refused(records, trace), *_truncated(records, trace), *_retried(records, trace)]
    found += _left_open(records, trace)
    found.sort(key=lambda each: each.request or 0)
    found += [Finding("unused", f"{name} was never asked for") for name in unused]
    return tuple([replace(each, message=redact.text(each.message)) for each in found])


def _refused(records: Sequence[Record], trace: Trace) -> Iterator[Finding]:
    events = [entry.event for entry in trace]
    no_place = {redact.text(event.message) for event in events if isinstance(event, Mismatch)}
    scripted = {
        redact.text(event.error or "")
        for event in events
        if isinstance(event, ReplyEnded) and event.end == "failed"
    }
    for each in records:
        if each.ending == "malformed":
            yield Finding("malformed", each.error, each.number)
        elif each.error in no_place:
            yield Finding("no place", each.error, each.number)
        elif each.rule or _is_refusal(each, scripted):
            yield Finding("refused", f"refused: {each.error}", each.number, each.rule)


def _is_refusal(record: Record, scripted: Collection[str]) -> bool:
    """Whether a request was refused for its form, and not since the script says so."""
    return record.status in (400, 404) and not record.place and record.error not in scripted


def _truncated(records: Sequence[Record], trace: Trace) -> Iterator[Finding]:
    """Histories that show what a reply had said before it broke off, as if that were all of it."""
    numbers = {each.place: each.number for each in records}
    said: dict[str, str] = defaultdict(str)
    broken: dict[str, str] = {}
    for entry in trace:
        match entry.event:
            case Delta(reply=reply, kind="text", text=text):
                said[reply] += text
            case ReplyEnded(reply=reply, end="complete"):
                broken.pop(_place(reply), None)
            case ReplyEnded(reply=reply, end="torn" | "failed") if said[reply].strip():
                broken[_place(reply)] = said[reply].strip()
            case RequestSent(reply=reply, added=added):
                shown = [each.text.strip() for each in added if each.role == "assistant"]
                for place in [each for each, text in broken.items() if text in shown]:
                    message = (
                        f"takes reply {place}, which broke off, as whole: {broken.pop(place)!r}"
                    )
                    yield Finding("truncated", message, numbers.get(reply))


def _retried(records: Sequence[Record], trace: Trace) -> Iterator[Finding]:
    """Asking the same again after a failure: sooner than was told, or again and again.

    What came before the answer to the first is no retry of it: another client asks the same.
    """
    faults = [entry.event for entry in trace if isinstance(entry.event, FaultInjected)]
    scripted = {each.place: each.retry_after for each in faults}
    failed: dict[tuple[str, str, bytes], tuple[Record, int]] = {}
    for each in records:
        key = (each.method, each.request.url, each.request.body)
        before, times = failed.pop(key, (None, 0))
        if before is not None and each.at < (before.answered_at or before.at):
            failed[key] = before, times
            continue
        if before is not None:
            times += 1
            asked = scripted.get(before.place) or _retry_after(before.answered)
            passed = each.at - (before.at if before.answered_at is None else before.answered_at)
            if asked is not None and passed < asked:
                yield Finding(
                    "retried",
                    f"asks again after {passed / SECOND:.3g} s, though told to wait "
                    f"{asked / SECOND:g} s",
                    each.number,
                )
            if times == RETRIES + 1:
                message = f"asks the same again for the {times}th time; {RETRIES} are enough"
                yield Finding("retried", message, each.number)
        if each.method and (each.ending not in ("", "whole", "gone") or (each.status or 0) >= 400):
            failed[key] = each, times


def _left_open(records: Sequence[Record], trace: Trace) -> Iterator[Finding]:
    abandoned = {
        entry.event.reply
        for entry in trace
        if isinstance(entry.event, ReplyEnded) and entry.event.end == "abandoned"
    }
    for each in records:
        if each.ending in ("cut", "stalled") or (each.place and each.place in abandoned):
            how = f"was neither read to its end nor closed, after {counted(each.frames, 'chunk')}"
            yield Finding("left open", f"the answer {how}", each.number)


def _place(reply: str) -> str:
    """The place in the script of a reply, however often it was given."""
    return reply.partition("~")[0]


def _retry_after(headers: Headers) -> int | None:
    """How long a client was told to wait by headers of the script's own, in nanoseconds; a date
    there is not judged.
    """
    for name, unit in (("retry-after-ms", SECOND // 1000), ("retry-after", SECOND)):
        try:
            return int(float(first(headers, name) or "") * unit)
        except (ValueError, OverflowError):
            continue
    return None
