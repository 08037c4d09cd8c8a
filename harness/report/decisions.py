"""What was decided in a run other than the ordinary case, in words."""

from __future__ import annotations

from collections.abc import Iterator

from harness.exploration.probe import ORDERING, Run

_VALUES = {
    "latency": ("", "zero", "as the slowest beside it", "in the reverse order", "ten times"),
    "chunking": ("", "in one piece", "by the character", "in halves"),
}
"""What the values of a source mean (harness/fakes/latency.py, harness/fakes/parts.py)."""


def decision_text(source: str, label: str, value: int, bound: int) -> str:
    """What was decided, with the value and the number of values there were.

    >>> decision_text("latency", "slow call_1_1_1", 1, 5)
    'latency of slow call_1_1_1: zero (1 of 5)'
    >>> decision_text("tie", "3", 2, 4)
    'tie 3: of 4 that may go next, number 3 does'
    """
    if source in ORDERING:
        return f"{source} {label}: of {bound} that may go next, number {value + 1} does"
    words = _VALUES.get(source, ())
    said = f"{words[value]} ({value} of {bound})" if value < len(words) else f"{value} of {bound}"
    return f"{source} of {label}: {said}"


def decided(run: Run) -> Iterator[str]:
    """What was decided in a run, a line each: its cancels, then its choices."""
    yield from shot_sentences(run)
    for asked in run.asked:
        if asked.value:
            yield decision_text(asked.source, asked.label, asked.value, asked.bound)


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
