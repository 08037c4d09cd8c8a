"""The same scenario with streams that reach the agent in other ways, where they come over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from harness.core.events import FaultInjected, Received
from harness.core.trace import Trace
from harness.fakes.script import Fault, Reply
from harness.fakes.wire_faults import (
    Comments,
    CutAt,
    EmptyChoices,
    OddIndex,
    RepeatedIds,
    Split,
)
from harness.invariants.relations import Variant
from harness.runner.drive import DEFAULT_TURN
from harness.runner.scenario import Scenario, Turn

CUTS_MOST = 64
"""After how many of a stream's bytes it is cut, at most, beside its last ones, which are all tried:
more are thinned out evenly.
"""
LAST_BYTES = 64
_LONGEST = 1 << 24
"""The bytes of a stream, at most, in which it is cut."""

Played = Callable[[Scenario], Trace]


def split(scenario: Scenario, play: Played) -> Iterator[list[Variant]]:
    """In frames, in single bytes, and in pieces of seven."""
    ways = {"in single bytes": Split(1), "in pieces of 7 bytes": Split(7)}
    yield from _otherwise(scenario, play, ways)


def noisy(scenario: Scenario, play: Played) -> Iterator[list[Variant]]:
    """With comments, and with frames that say nothing; one vendor's own library takes no comments,
    so where its protocol is spoken there are none.
    """
    plain = play(scenario)
    ways: dict[str, Fault] = {"with empty frames": EmptyChoices()}
    if "gemini" not in _protocols(plain):
        ways["with comments"] = Comments()
    yield from _otherwise(scenario, play, ways, plain)


def odd(scenario: Scenario, play: Played) -> Iterator[list[Variant]]:
    """With fragments of calls as some compatible servers write them."""
    ways: dict[str, Fault] = {
        "with ids repeated": RepeatedIds(),
        "with gaps between indexes": OddIndex(),
    }
    yield from _otherwise(scenario, play, ways)


def broken(scenario: Scenario, play: Played) -> Iterator[list[Variant]]:
    """Each turn's first reply ended after so many bytes."""
    if not _protocols(play(scenario)):
        return
    for at, turn in enumerate(scenario.turns):
        if not turn.replies or turn.replies[0].fault is not None or turn.cancel is not None:
            continue
        runs = [Variant("with a whole stream", play(_cut(scenario, at, _LONGEST)), at + 1)]
        for byte in _bytes(scenario, at, play):
            case = _cut(scenario, at, byte)
            runs.append(Variant(f"cut after {byte} bytes", play(case), at + 1))
        yield runs


def _otherwise(
    scenario: Scenario, play: Played, ways: Mapping[str, Fault], plain: Trace | None = None
) -> Iterator[list[Variant]]:
    """Plain, then in each of the ways; nothing where no request goes over HTTP."""
    plain = play(scenario) if plain is None else plain
    if _protocols(plain):
        runs = [Variant("in frames", plain)]
        runs += [Variant(how, play(_with(scenario, way))) for how, way in ways.items()]
        yield runs


def _protocols(trace: Trace) -> set[str]:
    """The protocols in which requests came over HTTP, and asked for a stream."""
    events = [entry.event for entry in trace]
    return {event.protocol for event in events if isinstance(event, Received) and event.streamed}


def _with(scenario: Scenario, fault: Fault) -> Scenario:
    """The scenario with a fault in each reply that has none."""

    def changed(replies: Sequence[Reply]) -> tuple[Reply, ...]:
        return tuple(
            [
                replace(reply, fault=fault, fault_times=None) if reply.fault is None else reply
                for reply in replies
            ]
        )

    turns = [replace(turn, replies=changed(turn.replies)) for turn in scenario.turns]
    also = [replace(entry, replies=changed(entry.replies)) for entry in scenario.also]
    return replace(scenario, turns=tuple(turns), also=tuple(also))


def _cut(scenario: Scenario, at: int, byte: int) -> Scenario:
    """The scenario with the first reply of a turn cut once, and one more turn to show what is
    left.
    """
    turn: Turn = scenario.turns[at]
    first = replace(turn.replies[0], fault=CutAt(byte), fault_times=1)
    cut = replace(turn, replies=(first, *turn.replies[1:]))
    return replace(scenario, turns=(*scenario.turns[:at], cut, DEFAULT_TURN))


def _bytes(scenario: Scenario, at: int, play: Played) -> Iterator[int]:
    """After how many bytes to cut."""
    size = _size(lambda byte: _is_cut(play(_cut(scenario, at, byte))))
    last = max(size - LAST_BYTES, 0)
    thin = -(-last // CUTS_MOST) or 1
    yield from range(0, last, thin)
    yield from range(last, size)


def _is_cut(trace: Trace) -> bool:
    return any(
        isinstance(entry.event, FaultInjected) and entry.event.fault == "cut_at" for entry in trace
    )


def _size(is_cut: Callable[[int], bool]) -> int:
    """How many bytes a stream has: the first number at which a cut does not happen."""
    above = 1
    while above < _LONGEST and is_cut(above):
        above *= 2
    below = above // 2
    while below < above:
        middle = (below + above) // 2
        if is_cut(middle):
            below = middle + 1
        else:
            above = middle
    return below
