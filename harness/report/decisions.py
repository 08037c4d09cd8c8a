"""What was decided in a run other than the ordinary case, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.exploration.probe import ORDERING, Asked, Run, Site
from harness.fakes.wire_faults import SEARCHED, Http, WireFault


def _word(fault: WireFault) -> str:
    """A fault as a scenario names it, with its status where it has one."""
    return f"http {fault.status}" if isinstance(fault, Http) else str(fault.__struct_config__.tag)


_VALUES = {
    "latency": ("", "zero", "as the slowest beside it", "in the reverse order", "ten times"),
    "chunking": ("", "in one piece", "by the character", "in halves"),
    "job": ("", "takes no time", "takes ten seconds"),
    "fault": ("", *map(_word, SEARCHED)),
}
"""What the values of a source mean (harness/fakes/latency.py, harness/fakes/parts.py,
harness/sim/jobs.py, harness/fakes/wire_faults.py)."""

_AHEAD_MAX = 3
"""How many tasks are named that another goes before."""
_LATER_MAX = 100
"""How many steps later they are looked for."""


def decision_text(source: str, label: str, value: int, bound: int, goes: str = "") -> str:
    """What was decided, with the value and the number of values there were. For an order, `goes`
    says what came of it, and for a switch where.

    >>> decision_text("latency", "slow call_1_1_1", 1, 5)
    'latency of slow call_1_1_1: zero (1 of 5)'
    >>> decision_text("fault", "1.1", 1, 17), decision_text("fault", "1.1", 6, 17)
    ('fault of 1.1: http 429 (1 of 17)', 'fault of 1.1: json_error (6 of 17)')
    >>> decision_text("tie", "3", 2, 4)
    'tie 3: of 4 that may go next, number 3 does'
    >>> decision_text("tie", "3", 2, 4, "task 1.2 goes on before 1.1")
    'tie 3: task 1.2 goes on before 1.1 (number 3 of 4 that may go next)'
    >>> decision_text("switch", "1.2#3", 1, 2, "at agent.py:7 in run")
    'thread 1.2 lets others go first at agent.py:7 in run (where it could: number 3)'
    >>> decision_text("user", "which replica#2", 1, 3)
    "choose('which replica'), number 2: 1 of 0 to 2"
    """
    if source in ORDERING:
        if goes:
            return f"{source} {label}: {goes} (number {value + 1} of {bound} that may go next)"
        return f"{source} {label}: of {bound} that may go next, number {value + 1} does"
    if source == "switch":
        path, _, number = label.rpartition("#")
        at = f" {goes}" if goes else ""
        return f"thread {path} lets others go first{at} (where it could: number {number})"
    if source == "user":
        name, _, number = label.rpartition("#")
        return f"choose({name!r}), number {number}: {value} of 0 to {bound - 1}"
    words = _VALUES.get(source, ())
    said = words[value] if value < len(words) else ""
    if source == "entropy":
        said = "another sequence of numbers"
    return f"{source} of {label}: " + (
        f"{said} ({value} of {bound})" if said else f"{value} of {bound}"
    )


def decision_texts(run: Run) -> dict[tuple[str, str], str]:
    """What was decided in a run other than the ordinary case, by source and label, as asked for."""
    going = {site.last: site for site in run.sites if site.last is not None}
    return {
        (each.source, each.label): decision_text(
            each.source, each.label, each.value, each.bound, _goes(going, each) or _at(run, each)
        )
        for each in run.asked
        if each.value
    }


def _goes(going: Mapping[int, Site], asked: Asked) -> str:
    """Which task goes on after an order was decided, and before which others that had waited; ""
    where that is not known. `going` has where each step's task had waited.
    """
    now = asked.step
    then = going.get(now + 1)
    if asked.source not in ORDERING or not now or then is None:
        return ""
    ahead: dict[str, None] = {}
    for step in range(now + 2, now + 2 + _LATER_MAX):
        later = going.get(step)
        if later is not None and later.first <= now and later.path != then.path:
            ahead[later.path] = None
        if len(ahead) == min(asked.value, _AHEAD_MAX):
            break
    begins = "goes on" if then.k else "begins"
    return f"task {then.path} {begins}" + (f" before {' and '.join(ahead)}" if ahead else "")


def _at(run: Run, asked: Asked) -> str:
    """Where a thread lets others go first; "" where that is not known."""
    if asked.source != "switch":
        return ""
    path = asked.label.rpartition("#")[0]
    here = [s.where for s in run.sites if s.path == path and s.first == asked.step + 1]
    return f"at {here[0]}" if here and here[0] else ""


def decided(run: Run) -> Iterator[str]:
    """What was decided in a run, a line each: its cancels, then its choices."""
    yield from shot_sentences(run)
    yield from decision_texts(run).values()


def shot_sentences(run: Run) -> Iterator[str]:
    """What each cancel of a run did, where, and what came of it, a sentence each."""
    sites = {(site.path, site.k): site for site in run.sites}
    for landing in run.landings:
        shot = landing.shot
        site = sites.get((shot.path, shot.k))
        told = {
            "agent": "the agent's own stop is called",
            "turn": "the turn's task is cancelled",
            "task": "this task is cancelled",
        }[shot.whom]
        when = {
            "start": f"before task {shot.path} begins",
            "early": f"right after task {shot.path} suspends",
            "late": f"when task {shot.path} has what it waits for and is about to go on",
            "mid": f"after step {shot.step} of the run, while task {shot.path} waits",
        }[shot.mode]
        where = f" at {site.where}" if site is not None and site.where else ""
        yield f"{shot}: {when}{where}, {told}; it came to: {landing.came_to}"
