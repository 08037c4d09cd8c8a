"""Whether two runs are the same, and where they part."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from harness.core.choices import Tape
from harness.core.errors import NotDeterministic
from harness.exploration.attempts import Attempt, tape_of
from harness.exploration.probe import Finding, Landing, Probe, Run, Shot, Site

_SHOWN = 240
_BEFORE = 80
"""How much of a long item is shown where two runs part, and how much of that stands before the
place.
"""


def steady(probe: Probe, tape: Tape = ()) -> Run:
    """Run twice and give the first run; NotDeterministic where the two part.

    The first run of a process counts for nothing where it parts: what is set up once, as when a
    client first looks at its platform, only that one does.
    """
    first = probe.run(tape)
    if parting(first, probe.run(tape_of(first))) is None:
        return first
    settled = probe.run(tape)
    confirm(probe, settled)
    return settled


def settle(probe: Probe) -> None:
    """Make a run that counts for nothing, in a process that has made none: see `steady`."""
    probe.run()


def confirm(probe: Probe, run: Run, shots: tuple[Shot, ...] = ()) -> None:
    """Run again from the tape of `run`, which had these cancels; NotDeterministic where that is not
    the same run.
    """
    where = parting(run, probe.run(tape_of(run), shots))
    if where is not None:
        raise _not_the_same(probe, shots, where)


def again(probe: Probe, attempt: Attempt, digest: str) -> Run:
    """Make the run of `attempt` again, which had `digest`; NotDeterministic where it is not the
    same run.
    """
    run = attempt.run(probe)
    if run.digest != digest:
        where = f"their digests are {digest[:12]}, then {run.digest[:12]}"
        raise _not_the_same(probe, attempt.shots, where)
    return run


def _not_the_same(probe: Probe, shots: tuple[Shot, ...], where: str) -> NotDeterministic:
    cancels = f", cancelled at {', '.join(map(str, shots))}" if shots else ""
    return NotDeterministic(
        f"{probe.name}: two runs with the same choices{cancels} went different ways; {where}\n"
        "something decides that is not part of the run: the real time (as of datetime.now(), see "
        "docs/reference/boundary.md), random numbers, ids, the order of a set, or what an earlier "
        "run left behind in a module: a list of messages, a semaphore, a pool, a generator"
    )


def parting(first: Run, second: Run) -> str | None:
    """Where two runs part, None where they are the same."""
    pairs: list[tuple[str, Sequence[object], Sequence[object]]] = [
        ("line", first.lines, second.lines),
        ("choice", _choices(first), _choices(second)),
        ("site", first.sites, second.sites),
        ("landing", first.landings, second.landings),
        ("finding", first.findings, second.findings),
        ("tolerated finding", first.tolerated, second.tolerated),
    ]
    for what, ours, theirs in pairs:
        at = agreed(ours, theirs)
        if at < max(len(ours), len(theirs)):
            one, other = str(_item(ours, at)), str(_item(theirs, at))
            start = max(0, agreed(one, other) - _BEFORE)
            return (
                f"{what} {at + 1} is the first that differs\n"
                f"  first:  {_around(one, start)}\n"
                f"  second: {_around(other, start)}"
            )
    if replace(first, asked=()) != replace(second, asked=()):
        return f"they differ in what they came to: {_end(first)}, then {_end(second)}"
    return None


def agreed(first: Sequence[object], second: Sequence[object]) -> int:
    """How many items two sequences have in common at their beginning."""
    both = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        both += 1
    return both


def _choices(run: Run) -> list[tuple[str, str, int, int]]:
    """What a run was asked and how it was decided, whatever the order: a tape has none."""
    return sorted([(each.source, each.label, each.value, each.bound) for each in run.asked])


def _around(text: str, start: int) -> str:
    """A text whole, or the part of a long one that begins at `start`."""
    if len(text) <= _SHOWN:
        return text
    end = start + _SHOWN
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _item(items: Sequence[object], at: int) -> object:
    """An item as it is told."""
    match items[at] if at < len(items) else "(nothing more)":
        case Site(path=path, k=k, role=role, where=where, first=first, last=last):
            place = f" at {where}" if where else ""
            return (
                f"task {path} ({role}) waits #{k}{place}, from step {first} to {last or 'the end'}"
            )
        case Landing(shot=shot, came_to=came_to):
            return f"the cancel {shot} came to: {came_to}"
        case Finding(message=message):
            return message
        case (source, label, value, bound):
            return f"{source} {label} is {value} of {bound}"
        case item:
            return item


def _end(run: Run) -> str:
    why = "" if run.unresolved is None else f", unresolved: {run.unresolved}"
    goals = f", reached {', '.join(sorted(run.reached))}" if run.reached else ""
    return f"{run.steps} steps, digest {run.digest[:12]}{goals}{why}"
