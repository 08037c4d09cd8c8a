"""Runs one scenario in several ways, and judges what must hold between the runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from harness.core.choices import Choices
from harness.core.events import (
    AnyEvent,
    Delta,
    FaultInjected,
    LogRow,
    LoopEvent,
    Mismatch,
    Received,
    ReplyEnded,
    RequestSent,
    RunStopped,
    StateEntered,
    ToolEffect,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    event_kind,
)
from harness.core.ports import Build
from harness.core.trace import Trace
from harness.core.verdict import Verdict, Violation
from harness.fakes.script import Reply
from harness.invariants.relations import RELATIONS, Determinism, Relation, Variant, Variants
from harness.runner.agents import Subject, at_level, scripted, subject_of
from harness.runner.drive import DEFAULT_TURN, Play
from harness.runner.levels import MODEL
from harness.runner.result import Failure, Result
from harness.runner.run import BETWEEN_RUNS, sort_out
from harness.runner.scenario import Cancel, Scenario, Turn
from harness.runner.streams import Played, broken, noisy, odd, split

CANCELS_MOST = 100
"""At how many moments of a turn a cancel is tried, at most; more are thinned out evenly."""

_WHOLE, _CHARACTERS = 1, 2
"""Ways to cut a reply, among those of harness/fakes/parts.py."""

_MOMENTS = (
    TurnStarted,
    RequestSent,
    Delta,
    ReplyEnded,
    FaultInjected,
    ToolStarted,
    ToolEffect,
    ToolEnded,
    LogRow,
    LoopEvent,
    StateEntered,
)
"""The events after which a cancel is tried."""

_WHATEVER_THE_PIECES = frozenset(
    {
        "turn_started",
        "request_sent",
        "reply_ended",
        "tool_started",
        "tool_effect",
        "tool_ended",
    }
)
"""Events that are the same however a reply is cut, so that a cancel after them strikes alike."""

_WHATEVER_THE_LEVEL = _WHATEVER_THE_PIECES - {"request_sent", "reply_ended"}
"""The same where a reply is on its way for a while."""

_TOLD_OF_ALIKE = _WHATEVER_THE_LEVEL | {None}
"""The same for a run that is played from a recording, and moments in time."""

_LEVELS = ("http", "server", "http::whole")
"""The levels that are held against the model itself."""


def relate(
    scenario: Scenario,
    agent: Build | Subject,
    relations: Sequence[type[Relation]] = RELATIONS,
) -> Verdict:
    """Judge `relations` over as many runs of `scenario` on `agent` as they need.

    What `scenario.allow` accepts is accepted here too. A relation is not judged where the scenario
    has nothing to vary: PARITY where a cancel's moment depends on how replies come, MONOTONIC where
    no turn ends; nor where DETERMINISM was found broken before it.
    """
    subject = subject_of(agent)
    verdict, _missed = _relate(scenario, subject, relations)
    return verdict


def with_relations(result: Result) -> Result:
    """The same result with the relations judged too."""
    found, missed = _relate(result.scenario, result.subject, RELATIONS)
    verdict = result.verdict
    left = [each for each in verdict.not_judged if each not in BETWEEN_RUNS]
    whole = Verdict(
        (*verdict.violations, *found.violations),
        (*left, *found.not_judged),
        (*verdict.accepted, *found.accepted),
    )
    return replace(result, verdict=whole, failures=(*result.failures, *missed), related=True)


def _relate(
    scenario: Scenario, subject: Subject, relations: Sequence[type[Relation]]
) -> tuple[Verdict, list[Failure]]:
    scripted(subject)
    runs: dict[Variants, list[list[Variant]]] = {}
    violations: list[Violation] = []
    not_judged: list[str] = []
    for relation in relations:
        kind = relation.variants
        if kind not in runs:
            # Where the same run differs twice, there is nothing to hold other runs against.
            fickle = any(violation.invariant == Determinism.id for violation in violations)
            runs[kind] = [] if fickle else list(_VARIANTS[kind](scenario, subject))
        if not runs[kind]:
            not_judged.append(relation.id)
        found = [relation.judge(group) for group in runs[kind]]
        violations += [violation for violation in found if violation is not None]
    ids = {relation.id for relation in relations}
    allow = tuple([each for each in scenario.allow if each.invariant in ids])
    broken, accepted, missed = sort_out(tuple(violations), allow, subject.policies)
    return Verdict(broken, tuple(not_judged), accepted), missed


def _again(scenario: Scenario, subject: Subject) -> Iterator[list[Variant]]:
    yield [Variant(how, _play(scenario, subject)) for how in ("first", "again")]


def _carried(scenario: Scenario, subject: Subject) -> Iterator[list[Variant]]:
    yield from _pieces(scenario, subject)
    yield from _levels(scenario, subject)


def _levels(scenario: Scenario, subject: Subject) -> Iterator[list[Variant]]:
    """With the model itself, and over HTTP; not where the script says that something goes wrong,
    since a protocol has its own ways to, nor where the level was chosen.
    """
    cancels = [turn.cancel for turn in scenario.turns if turn.cancel is not None]
    replies = [turn.replies for turn in scenario.turns] + [each.replies for each in scenario.also]
    faults = any(reply.fault is not None for line in replies for reply in line)
    moments = any(cancel.after not in _WHATEVER_THE_LEVEL for cancel in cancels)
    if faults or moments or subject.level != MODEL:
        return
    runs = [Variant("with the model itself", _play(scenario, subject))]
    for level in _LEVELS:
        how = f"at the level {level}"
        runs.append(Variant(how, _play(scenario, at_level(subject, level)), neutral=True))
    yield runs


def _replayed(scenario: Scenario, subject: Subject) -> Iterator[list[Variant]]:
    """Recorded over HTTP, and then played from that; not where a cancel waits for what a recording
    has no more when the client goes.
    """
    from harness.runner.cassettes.taped import taped

    if any(turn.cancel and turn.cancel.after not in _TOLD_OF_ALIKE for turn in scenario.turns):
        return
    there = subject if subject.level != MODEL else at_level(subject, "http")
    first, cassette = taped(scenario, there.build)
    if not cassette.interactions or _unlike(first):
        return
    again = Play(scenario, there.build, Choices(), cassette=cassette).play().trace
    yield [Variant("recorded", first), Variant("from the recording", again)]


def _unlike(trace: Trace) -> bool:
    """Whether a run from a recording may be another with good reason: this one was cut short, or
    other tasks went on while a reply was on its way that is not streamed, and which of them is
    first at one moment is nobody's promise.
    """
    going: dict[str, str] = {}
    whole = beside = False
    for entry in trace:
        beside = beside or any(task != entry.task for task in going.values())
        match entry.event:
            case Mismatch() | RunStopped():
                return True
            case Received(reply=reply, streamed=streamed):
                whole = whole or not streamed
                going[reply] = entry.task
            case ReplyEnded(reply=reply):
                going.pop(reply, None)
            case _:
                pass
    return whole and beside


def _pieces(scenario: Scenario, subject: Subject) -> Iterator[list[Variant]]:
    cancels = [turn.cancel for turn in scenario.turns if turn.cancel is not None]
    if any(cancel.after not in _WHATEVER_THE_PIECES for cancel in cancels):
        return
    at_once = _without_waits(scenario)
    yield [
        Variant(how, _play(at_once, subject, Choices(picker=_cut_as(way))))
        for how, way in (("in one piece", _WHOLE), ("in single characters", _CHARACTERS))
    ]


def _cut_as(way: int) -> Callable[[str, str, int], int]:
    """Cut deltas so; chunks of a stream over HTTP are RECHUNK's to vary."""
    return lambda source, label, _bound: (
        way if source == "chunking" and not label.startswith("wire ") else 0
    )


def _without_waits(scenario: Scenario) -> Scenario:
    """The scenario without a wait between pieces, so that more of them take no more time."""
    return replace(
        scenario,
        turns=tuple([replace(turn, replies=_at_once(turn.replies)) for turn in scenario.turns]),
        also=tuple([replace(entry, replies=_at_once(entry.replies)) for entry in scenario.also]),
    )


def _at_once(replies: Sequence[Reply]) -> tuple[Reply, ...]:
    return tuple([replace(reply, each=0) for reply in replies])


def _cancels(scenario: Scenario, subject: Subject) -> Iterator[list[Variant]]:
    """For each turn: cancelled at its first moment, at the second, and so on."""
    for number, turn in enumerate(scenario.turns, 1):
        before = scenario.turns[: number - 1]
        plain = _cut_short(scenario, before, turn, None)
        trace = _play(plain, subject)
        if any(isinstance(entry.event, RunStopped) for entry in trace):
            continue  # a turn that has no end has no latest moment
        moments = list(_moments(trace, number))
        thin = -(-len(moments) // CANCELS_MOST) or 1
        runs = []
        for cancel in moments[::thin]:
            trace = _play(_cut_short(scenario, before, turn, cancel), subject)
            runs.append(Variant(_how(cancel), trace, number))
        if len(runs) > 1:
            yield runs


def _cut_short(
    scenario: Scenario, before: Sequence[Turn], turn: Turn, cancel: Cancel | None
) -> Scenario:
    """The scenario up to `turn` with that cancel, and one more turn to show what is left."""
    return replace(scenario, turns=(*before, replace(turn, cancel=cancel), DEFAULT_TURN))


def _moments(trace: Trace, number: int) -> Iterator[Cancel]:
    """A cancel for each event of a turn; of pieces that follow each other, for the first only."""
    counts: dict[str, int] = {}
    playing = False
    last: AnyEvent | None = None
    for entry in trace:
        event = entry.event
        if isinstance(event, TurnStarted):
            playing = event.turn == number
        elif isinstance(event, TurnEnded | Mismatch) and playing:
            return  # what comes after a mismatch is not the scenario's
        if playing and isinstance(event, _MOMENTS):
            kind = event_kind(type(event))
            counts[kind] = counts.get(kind, 0) + 1
            if not (isinstance(event, Delta) and isinstance(last, Delta)):
                yield Cancel(after=kind, nth=counts[kind])
            last = event


def _how(cancel: Cancel) -> str:
    nth = f" number {cancel.nth}" if cancel.nth > 1 else ""
    return f"after {cancel.after}{nth}"


def _play(scenario: Scenario, subject: Subject, choices: Choices | None = None) -> Trace:
    return Play(scenario, subject.build, choices or Choices()).play().trace


def _over_http(
    ways: Callable[[Scenario, Played], Iterator[list[Variant]]],
) -> Callable[[Scenario, Subject], Iterator[list[Variant]]]:
    return lambda scenario, subject: ways(scenario, lambda case: _play(case, subject))


_VARIANTS: dict[Variants, Callable[[Scenario, Subject], Iterator[list[Variant]]]] = {
    "again": _again,
    "carried": _carried,
    "replayed": _replayed,
    "split": _over_http(split),
    "noisy": _over_http(noisy),
    "odd": _over_http(odd),
    "broken": _over_http(broken),
    "cancels": _cancels,
}
