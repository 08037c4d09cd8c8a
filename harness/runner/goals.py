"""What a search is to reach in some run: a kind of event, or a place that code under test names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.core.errors import UsageError, unknown
from harness.core.events import INSIDE, OUTSIDE, AnyEvent, event_kind
from harness.core.trace import Trace

REACHED = "reached"
"""Before the name of a place: the goal ``reached cache full`` is `sometimes("cache full")`."""

_EVENTS = {event_kind(each): each for each in (*OUTSIDE, *INSIDE)}


class Goals:
    """The goals of a search, each spelled as a scenario's ``cancel: {after: …}`` spells an event:
    its kind, and with a space between its subject, such as ``tool_ended slow``.

    UsageError for a kind that there is not.
    """

    def __init__(self, goals: Sequence[str] = ()) -> None:
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
                raise UsageError(
                    f"{unknown('event', kind, (*_EVENTS, f'{REACHED} <name>'))}; a goal is an "
                    "event that some run must have, and its subject where that matters, such as "
                    f"'tool_ended slow', or '{REACHED} <name>' for what calls sometimes(<name>)"
                )
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
