"""What must hold between several runs of one scenario; no single run can show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from harness.core import json_text
from harness.core.events import (
    RequestSent,
    Trimmed,
    TurnEnded,
    TurnStarted,
    event_kind,
)
from harness.core.json_text import Json
from harness.core.messages import Message
from harness.core.monotonic import MONOTONIC, losses
from harness.core.neutral import neutral_request
from harness.core.outcome import Completed, Error, Outcome, outcome_name
from harness.core.replayed import by_task
from harness.core.trace import Trace
from harness.core.verdict import Severity, Violation
from harness.invariants.conversation import Conversation, Voices, said

Variants: TypeAlias = Literal[
    "again", "carried", "replayed", "cancels", "split", "noisy", "odd", "broken"
]
"""Which runs a relation compares: the same run twice; replies that are carried to the agent in
different ways; a run, and the same from a recording of it; one turn cancelled at later and later
moments, each followed by another turn. Where requests go over HTTP also: streams split in other
places; with noise between their frames; with calls in other fragments; ended after so many bytes.
"""


class Variant(Struct, frozen=True):
    """One of the runs that are compared: `how` it differs from the others, and the turn in which it
    does, where that is one. `neutral` says that it is of another level, so that only what all
    levels and protocols have is compared.
    """

    how: str
    trace: Trace
    turn: int | None = None
    neutral: bool = False


class Relation:
    """One rule over runs; a subclass's docstring is the rule, in one sentence."""

    id: ClassVar[str]
    severity: ClassVar[Severity] = "hard"
    variants: ClassVar[Variants]

    @classmethod
    def judge(cls, runs: Sequence[Variant]) -> Violation | None:
        """The first breach among `runs`, which are in their order."""
        raise NotImplementedError

    @classmethod
    def breach(cls, message: str, entry: int | None = None, turn: int | None = None) -> Violation:
        """A breach of this relation; `entry` is of the first run."""
        return Violation(cls.id, message, entry, turn, cls.severity)


class Determinism(Relation):
    """The same scenario gives the same trace again, byte for byte."""

    id = "DETERMINISM"
    variants = "again"

    @classmethod
    def judge(cls, runs: Sequence[Variant]) -> Violation | None:
        """Find where the second run parts from the first."""
        first, second = runs[0].trace, runs[1].trace
        if first.digest == second.digest:
            return None
        at = _parting(first.lines(), second.lines())
        was, now = _words(first, at), _words(second, at)
        start = max(0, _parting(was, now) - 40)
        kind = event_kind(type((first if was else second).entries[at].event))
        return cls.breach(
            f"the second time entry {at}, {kind}, has {_cut(now, start)}, "
            f"where the first time has {_cut(was, start)}",
            at if was else None,
            _turn_at(first, at),
        )


class Parity(Relation):
    """A reply that comes in single characters, or over HTTP, as a stream or not, has the same
    outcome and the same requests after it as one that comes from the model whole.
    """

    id = "PARITY"
    variants: ClassVar[Variants] = "carried"

    @classmethod
    def judge(cls, runs: Sequence[Variant]) -> Violation | None:
        """Hold outcomes and requests of each run against those of the first."""
        first, *others = runs
        for other in others:
            found = cls._outcomes(first, other) or cls._requests(first, other)
            if found is not None:
                return found
        return None

    @classmethod
    def _outcomes(cls, first: Variant, other: Variant) -> Violation | None:
        pairs = zip(_outcomes(first.trace), _outcomes(other.trace), strict=False)
        for turn, (was, now) in enumerate(pairs, 1):
            same = outcome_name(was) == outcome_name(now) if other.neutral else was == now
            if not same:
                return cls.breach(
                    f"{other.how} turn {turn} ended as {_named(now)}, {first.how} as {_named(was)}",
                    turn=turn,
                )
        return None

    @classmethod
    def _requests(cls, first: Variant, other: Variant) -> Violation | None:
        sent, others = [_requests(run.trace, neutral=other.neutral) for run in (first, other)]
        for name in sent | others:
            was, now = sent.get(name, []), others.get(name, [])
            for (place, request), (_place, counterpart) in zip(was, now, strict=False):
                if request != counterpart:
                    where = _differs(request, counterpart)
                    return cls.breach(
                        f"request {place} is not the same {other.how} as {first.how}: {where}"
                    )
            if len(was) != len(now):
                return cls.breach(
                    f"{other.how} there are {len(now)} requests of {name}, {first.how} {len(was)}"
                )
        return None


class Replay(Relation):
    """A run that is played again from a recording of its own requests and replies is the same run:
    the same requests, pieces, tools and outcomes, in the same order in each task, at the same
    times.
    """

    id = "REPLAY"
    variants = "replayed"

    @classmethod
    def judge(cls, runs: Sequence[Variant]) -> Violation | None:
        """Find where the run from the recording parts from the one that was recorded."""
        first, second = [by_task(run.trace) for run in runs]
        found = [
            (live[at][0] if at < len(live) else len(runs[0].trace), live, played, at)
            for task in first | second
            for live, played in [(first.get(task, []), second.get(task, []))]
            for at in [_parting([told for _n, told in live], [told for _n, told in played])]
            if at < max(len(live), len(played))
        ]
        if not found:
            return None
        entry, live, played, at = min(found, key=lambda each: each[0])
        was, now = [lines[at][1] if at < len(lines) else "" for lines in (live, played)]
        start = max(0, _parting(was, now) - 40)
        return cls.breach(
            f"played from the recording it has {_cut(now, start)}, where what was recorded has "
            f"{_cut(was, start)}",
            entry if was else None,
            _turn_at(runs[0].trace, entry),
        )


class Rechunk(Parity):
    """A stream that is split in other places, down to single bytes, comes to the same outcome and
    the same requests after it.
    """

    id = "RECHUNK"
    variants = "split"


class Noise(Parity):
    """Comments between frames, and frames that hold no choice, change nothing."""

    id = "NOISE"
    variants = "noisy"


class Assemble(Parity):
    """Each call is put together from its own fragments: what a fragment says again of the call is
    no more of it, and its index tells only which call it is.
    """

    id = "ASSEMBLE"
    variants = "odd"


class TotalParser(Relation):
    """A stream that ends after any of its bytes is kept whole or not at all: a turn that ends as
    completed has the reply as it was meant, whether it came or was asked for again.
    """

    id = "TOTAL-PARSER"
    variants = "broken"

    @classmethod
    def judge(cls, runs: Sequence[Variant]) -> Violation | None:
        """Hold what each turn with a broken stream leaves against the turn with a whole one."""
        whole, *others = runs
        for run in others:
            assert run.turn is not None, "each of these runs differs in a turn"
            ended = _outcomes(run.trace)
            if len(ended) < run.turn:
                return cls.breach(f"{run.how} turn {run.turn} never ended", turn=run.turn)
            if not isinstance(ended[run.turn - 1], Completed):
                continue
            was, now = [_begun(each.trace, run.turn + 1) for each in (whole, run)]
            if was != now:
                return cls.breach(
                    f"{run.how} turn {run.turn} ended as completed, and the next request is not "
                    "the one after the whole reply",
                    turn=run.turn,
                )
        return None


class Monotonic(Relation):
    """A turn that is cancelled later leaves no less in the next request: the calls and the users'
    words that an earlier cancel leaves are still there.

    A history that was cut to size is not compared.
    """

    id = MONOTONIC
    variants = "cancels"

    @classmethod
    def judge(cls, runs: Sequence[Variant]) -> Violation | None:
        """Hold what each cancel leaves against all that came before it."""
        for loss in losses([(run.how, _left(run)) for run in runs]):
            return cls.breach(loss.sentence, turn=runs[0].turn)
        return None


RELATIONS: tuple[type[Relation], ...] = (
    Determinism,
    Parity,
    Replay,
    Rechunk,
    Noise,
    Assemble,
    TotalParser,
    Monotonic,
)
"""All relations, as reports list them."""


def _parting(one: Sequence[object], other: Sequence[object]) -> int:
    """Where two sequences part."""
    both = min(len(one), len(other))
    return next((at for at in range(both) if one[at] != other[at]), both)


def _words(trace: Trace, at: int) -> str:
    """An entry as text, without a digest, which says only that something differs; "" for none."""
    if at >= len(trace.entries):
        return ""
    entry: dict[str, Json] = msgspec.to_builtins(trace.entries[at])
    entry["event"].pop("digest", None)
    return json_text.dumps(entry)


def _cut(text: str, start: int) -> str:
    if not text:
        return "no more entries"
    end = start + 80
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _turn_at(trace: Trace, at: int) -> int | None:
    turn = None
    for entry in trace.entries[: at + 1]:
        if isinstance(entry.event, TurnStarted):
            turn = entry.event.turn
    return turn


def _outcomes(trace: Trace) -> list[Outcome]:
    return [entry.event.outcome for entry in trace if isinstance(entry.event, TurnEnded)]


def _named(outcome: Outcome) -> str:
    why = f" ({outcome.kind}: {outcome.message})" if isinstance(outcome, Error) else ""
    return outcome_name(outcome) + why


class _Sent(NamedTuple):
    """A request, or what of it every protocol can say."""

    messages: Sequence[Any]
    beside: Any


def _requests(trace: Trace, *, neutral: bool) -> dict[str, list[tuple[str, _Sent]]]:
    """The requests of each conversation, with their places in the script."""
    events = [entry.event for entry in trace if isinstance(entry.event, RequestSent)]
    found: dict[str, list[tuple[str, _Sent]]] = {}
    renamed: dict[str, dict[str, str]] = {}
    for event, request in zip(events, trace.requests(), strict=True):
        if neutral:
            told = neutral_request(request, renamed.setdefault(event.conversation, {}))
            sent = _Sent(told["messages"], told["head"])
        else:
            sent = _Sent(request.messages, replace(request, messages=()))
        found.setdefault(event.conversation, []).append((event.reply, sent))
    return found


def _begun(trace: Trace, turn: int) -> Any:
    """The first request of a turn; None where there is none."""
    for places in _requests(trace, neutral=True).values():
        for place, request in places:
            if place.partition(".")[0] == str(turn):
                return request
    return None


def _differs(one: _Sent, other: _Sent) -> str:
    """Where two requests part."""
    for at, (message, counterpart) in enumerate(zip(one.messages, other.messages, strict=False)):
        if message != counterpart:
            role = message.role if isinstance(message, Message) else message["role"]
            return f"messages[{at}] of the {role}"
    if len(one.messages) != len(other.messages):
        return f"{len(other.messages)} messages, not {len(one.messages)}"
    return "what stands beside the messages"


def _left(run: Variant) -> tuple[str, ...] | None:
    assert run.turn is not None, "each of these runs differs in a turn"
    shown = still_shown(run.trace, run.turn)
    return None if shown is None else shown.items


class Shown(Struct, frozen=True):
    """The calls and the users' words in a request, each once, in their order; `entry` is the
    request's place in the trace.
    """

    items: tuple[str, ...]
    entry: int


def still_shown(trace: Trace, turn: int) -> Shown | None:
    """What is left after `turn`: the calls and the users' words in the first request of the turn
    after it. None where there is none, or where the history was cut to size.
    """
    # By type and not by `match`: a sweep asks this of each run.
    conversation, voices = Conversation(), Voices()
    opening: Message | None = None
    over = False
    for index, entry in enumerate(trace.entries):
        event = entry.event
        if type(event) is RequestSent:
            if event.conversation != "main":
                continue
            conversation.take(event)
            first = conversation.messages[conversation.systems :][:1]
            if opening is None and first:
                opening = first[0]
            if over:
                whole = first == [opening]
                return Shown(_items(conversation, voices), index) if whole else None
        elif type(event) is TurnStarted:
            voices.heard(event.text)
        elif type(event) is TurnEnded:
            if over:
                return None
            over = event.turn == turn
        elif type(event) is Trimmed:
            return None
    return None


def _items(conversation: Conversation, voices: Voices) -> tuple[str, ...]:
    items: list[str] = []
    voices.listen(conversation.messages)
    for message in conversation.messages:
        items += [f"the call {call.id}" for call in message.calls]
        if message.role == "user" and not voices.made_by_the_loop(message):
            items.append(f"{said(message)!r} of the user")
    return tuple(dict.fromkeys(items))
