"""One run seen from one side at a time, as text to compare: what snapshots pin.

A view is text made from a trace alone. It has lines only where the trace has something to show: an
agent that reports nothing of its inside has terminals and requests, but no log. What may differ
between runs that mean the same is normalised by these rules:

- Ids of calls and turns are renamed by order of first use, ``call#1``, ``turn#1``, wherever they
  stand as a whole word, in texts too. An id stays as it is where it has fewer than four characters,
  no letter or no digit: somebody chose it, and it could be a word of any text.
- Times and task paths are left out. The view of the whole trace has them; both are virtual, and
  times count from the start of the run.
- A line of code where a task waits is cut to file and function: ``agent.py in call``.
- Digests are left out: they say nothing that the messages do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from harness.core.events import (
    AnyEvent,
    LogRow,
    LoopEvent,
    ReplyEnded,
    RequestSent,
    RunStopped,
    StateEntered,
    TurnEnded,
    TurnStarted,
)
from harness.core.messages import Message
from harness.core.rows import ToolCallRow, ToolResultRow, TurnEndRow, TurnStartRow
from harness.core.trace import Trace
from harness.report import text
from harness.report.cuts import compactions, indented, salvages, trims
from harness.report.synthesis import synthesis
from harness.report.values import head_texts, outcome_text, quote, word

_ID = re.compile(r"(?=.*[^\W\d])(?=.*\d).{4,}", re.DOTALL)
_PLACE = re.compile(r"(?<![^\s\"])(?:[^\s\"/\\]*+[/\\])*+([^\s\"/\\]+\.py):\d+ in ")


class View(Struct, frozen=True):
    """One side of a run: its name, what it shows, how its lines come out of a trace."""

    name: str
    about: str
    lines: Callable[[Trace], Iterator[str]]

    def applies(self, trace: Trace) -> bool:
        """Whether the trace has anything to show on this side."""
        return next(self.lines(trace), None) is not None

    def text(self, trace: Trace) -> str:
        """The text to compare; empty where the view does not apply."""
        shown = "".join([f"{line}\n" for line in self.lines(trace)])
        return _renamed(_PLACE.sub(r"\1 in ", shown), trace)


def _log(trace: Trace) -> Iterator[str]:
    heading = ""
    for event in _events(trace):
        match event:
            case TurnStarted():
                heading = text.facts(event)
                continue
            case LogRow():
                name = "row"
            case LoopEvent():
                name = "told"
            case StateEntered():
                name = "state"
            case _:
                continue
        if heading:
            yield heading
            heading = ""
        yield f"  {name:<5} {text.facts(event)}"


def _notifications(trace: Trace) -> Iterator[str]:
    heading = ""
    for event in _events(trace):
        match event:
            case TurnStarted():
                heading = text.facts(event)
            case LoopEvent():
                if heading:
                    yield heading
                    heading = ""
                yield f"  {text.facts(event)}"
            case _:
                pass


def _states(trace: Trace) -> Iterator[str]:
    turn, entered = 0, dict[str, list[str]]()
    for entry in trace:
        match entry.event:
            case TurnStarted():
                yield from _histories(turn, entered)
                turn, entered = entry.event.turn, {}
            case StateEntered(state=state):
                entered.setdefault(entry.task, []).append(word(state))
            case _:
                pass
    yield from _histories(turn, entered)


def _histories(turn: int, entered: dict[str, list[str]]) -> Iterator[str]:
    """A line for the task that entered the first state, and one for each that ran beside it."""
    who = f"turn {turn}"
    for states in entered.values():
        yield f"{who}: {' '.join(states)}"
        who = f"beside turn {turn}"


def _terminals(trace: Trace) -> Iterator[str]:
    turn, rows, states = "", "", dict[str, str]()
    for entry in trace:
        state = next(iter(states.values()), "")
        match entry.event:
            case TurnStarted(turn=number):
                turn, rows, states = f"turn {number}", "", {}
            case LogRow(row=TurnEndRow(outcome=outcome)):
                rows += f"; row {outcome_text(outcome)}"
            case StateEntered():
                states[entry.task] = f"; state {word(entry.event.state)}"
            case TurnEnded(outcome=outcome):
                yield f"{turn}: {outcome_text(outcome)}{state}{rows}"
                turn, rows, states = f"after {turn}", "", {}
            case RunStopped():
                yield f"{turn}: stopped, {text.facts(entry.event)}{state}{rows}"
            case _:
                pass


def _requests(trace: Trace) -> Iterator[str]:
    sizes: dict[str, int] = {}
    for event in _events(trace):
        match event:
            case RequestSent(conversation=name, reply=reply, kept=kept, added=added, head=head):
                yield f"request {word(reply)} of {word(name)}"
                if head is not None:
                    for part in head_texts(head):
                        yield f"  {part}"
                before = sizes.get(name, 0)
                if before:
                    yield f"  {kept} of {before} messages as before"
                yield from indented(added)
                sizes[name] = kept + len(added)
            case ReplyEnded(reply=reply, end="refused", error=error):
                yield f"  refused: {quote(error)}"
            case _:
                pass


def _whole(trace: Trace) -> Iterator[str]:
    yield from text.lines(trace)


def _events(trace: Trace) -> Iterator[AnyEvent]:
    for entry in trace:
        yield entry.event


VIEWS: tuple[View, ...] = (
    View("log", "the rows written and the events told, in order", _log),
    View("notifications", "what the loop told, in order", _notifications),
    View("states", "the states that each turn went through", _states),
    View("terminals", "how each turn ended: in the run, in the last state, in the log", _terminals),
    View("trims", "what each cut took away, and how the next request begins", trims),
    View("compactions", "each try to sum up, and how the next request begins", compactions),
    View("salvage", "what was left out of a round cut off, and how the next turn asks", salvages),
    View("synthesis", "which calls were answered in the tool's place, and with what", synthesis),
    View("requests", "what each request says, and what is new in it", _requests),
    View("trace", "everything, with times and task paths", _whole),
)
"""All views, from the narrowest question to the whole."""


def _renamed(shown: str, trace: Trace) -> str:
    """The text with ids of calls and turns renamed by order of first use."""
    names: dict[str, str] = {}
    counts = {"call": 0, "turn": 0}
    for kind, found in _ids(trace):
        spelled = quote(found)[1:-1]
        if spelled not in names and _ID.fullmatch(found):
            counts[kind] += 1
            names[spelled] = f"{kind}#{counts[kind]}"
    if not names:
        return shown
    longest_first = sorted(names, key=len, reverse=True)
    every = "|".join(map(re.escape, longest_first))
    return re.sub(rf"(?<![\w-])(?:{every})(?![\w-])", lambda match: names[match[0]], shown)


def _ids(trace: Trace) -> Iterator[tuple[str, str]]:
    """The ids of calls and turns, with what they are of, in the order in which they appear."""
    for event in _events(trace):
        match event:
            case ReplyEnded(message=Message() as message):
                yield from _ids_in(message)
            case RequestSent(added=added):
                for message in added:
                    yield from _ids_in(message)
            case LogRow(row=TurnStartRow(turn_id) | TurnEndRow(turn_id)):
                yield "turn", turn_id
            case LogRow(row=ToolCallRow(call_id) | ToolResultRow(call_id)):
                yield "call", call_id
            case _:
                pass


def _ids_in(message: Message) -> Iterator[tuple[str, str]]:
    for call in message.calls:
        yield "call", call.id
    if message.tool_call_id is not None:
        yield "call", message.tool_call_id
