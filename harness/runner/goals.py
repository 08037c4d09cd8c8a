"""What a search is to reach in some run: a kind of event, or a place that code under test names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from harness.core.errors import UsageError, hint, nearest, unknown
from harness.core.events import INSIDE, OUTSIDE, AnyEvent, event_kind
from harness.core.trace import Trace

REACHED = "reached"
"""Before the name of a place: the goal ``reached cache full`` is `sometimes("cache full")`."""

_EVENTS = {event_kind(each): each for each in (*OUTSIDE, *INSIDE)}
_OF_TOOLS = ("tool_started", "tool_effect", "tool_ended")
"""The events whose subject is a tool."""


class Goals:
    """The goals of a search, each spelled as a scenario's ``cancel: {after: …}`` spells an event:
    its kind, and with a space between its subject, such as ``tool_ended slow``.

    UsageError for a kind that there is not, and for a tool that is none of `tools` (None: any may
    be called).
    """

    def __init__(self, goals: Sequence[str] = (), tools: Collection[str] | None = None) -> None:
        self._events: dict[type[AnyEvent], list[tuple[str, str]]] = {}
        """By the kind of event: a subject ("" is any), and the goal that it reaches."""
        self._names: dict[str, str] = {}
        """By the name of a place, the goal as it was given."""
        for goal in goals:
            kind, _, subject = goal.strip().partition(" ")
            subject = subject.strip()
            if kind == REACHED and subject:
                self._names[subject] = goal
                continue
            event = _EVENTS.get(kind)
            if event is None:
                raise UsageError(_no_goal(goal, kind))
            if subject and tools is not None and kind in _OF_TOOLS and subject not in tools:
                raise UsageError(f"goal {goal!r}: {unknown('tool', subject, tools)}")
            self._events.setdefault(event, []).append((subject, goal))

    def reached(self, trace: Trace, named: Iterable[str]) -> frozenset[str]:
        """The goals that a run came to, which called `sometimes` with the names `named`."""
        found = self.places(named)
        if self._events:
            for entry in trace.entries:
                for subject, goal in self._events.get(type(entry.event), ()):
                    if subject in ("", entry.event.subject):
                        found.add(goal)
        return frozenset(found)

    def places(self, named: Iterable[str]) -> set[str]:
        """The goals that a run reached which called `sometimes` with the names `named`."""
        return {self._names.get(name, f"{REACHED} {name}") for name in named}


def _no_goal(goal: str, kind: str) -> str:
    """Say that a goal is none, what one is, and which was probably meant."""
    guess = hint(nearest(kind, (*_EVENTS, REACHED)))
    return (
        f"{goal!r} is no goal{guess}; a goal is an event that some run must have, and its subject "
        f"where that matters, such as 'tool_ended slow', or '{REACHED} <name>' for what calls "
        f"sometimes(<name>); events are {', '.join(_EVENTS)}"
    )
