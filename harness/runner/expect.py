"""Holds a run against what its scenario expects, turn by turn."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from harness.core.events import (
    INSIDE,
    AnyEvent,
    LogRow,
    LoopEvent,
    Mismatch,
    ReplyEnded,
    RequestSent,
    ResultSynthesized,
    ToolEnded,
    ToolStarted,
    Trimmed,
    TurnEnded,
    TurnStarted,
    UsageCounted,
)
from harness.core.messages import Message, Usage
from harness.core.outcome import Error, Outcome, outcome_name
from harness.core.trace import Trace
from harness.invariants.conversation import Conversation
from harness.report.values import message_text, quote, usage_text, word
from harness.runner.result import Failure
from harness.runner.scenario import Expect, Scenario


class TurnFacts(Struct):
    """What a turn's events say, in the words of an `expect` block."""

    outcome: Outcome | None = None
    synthesized: list[str] = []
    tools: list[str] = []
    rows: list[str] = []
    say: str | None = None
    requests: int = 0
    trimmed: bool = False
    system: str = ""
    messages: tuple[Message, ...] = ()
    """The last request's, where the turn has ended."""
    told: list[LoopEvent] = []
    usage: Usage = Usage()
    ended: int | None = None
    """The index of the turn's last entry."""


def mismatches(trace: Trace) -> Iterator[Failure]:
    """What the agent asked for and the scenario does not have."""
    turn = None
    for index, entry in enumerate(trace.entries):
        if isinstance(entry.event, TurnStarted):
            turn = entry.event.turn
        elif isinstance(entry.event, Mismatch):
            error, message = entry.event.error, entry.event.message
            yield Failure("mismatch", f"{error}: {message}", turn, 0, index)


def check(
    scenario: Scenario, trace: Trace, policies: Sequence[str], hidden: Sequence[str] = ()
) -> tuple[list[Failure], list[str]]:
    """Failed expectations, and those that this agent's trace cannot show, `hidden` ones too.

    Where a turn expects something else under one of `policies`, that of the first one counts.
    """
    if not any(turn.expect for turn in scenario.turns):
        return [], []
    inside = any(isinstance(entry.event, INSIDE) for entry in trace.entries)
    unseen = (*hidden, *(() if inside else _INSIDE_KEYS))
    if not any(isinstance(entry.event, LogRow) for entry in trace.entries):
        unseen = (*unseen, "rows")
    facts = _facts(trace, inside=inside)
    failures: list[Failure] = []
    not_judged: list[str] = []
    for number, turn in enumerate(scenario.turns, 1):
        if turn.expect is None:
            continue
        others = [turn.expect.under[name] for name in policies if name in turn.expect.under]
        expect = others[0] if others else turn.expect
        found = facts.get(number, TurnFacts())
        for key, expected, seen in _compare(expect, found):
            if key in unseen:
                not_judged.append(f"expect {key} of turn {number}")
            elif seen is not _AGREES:
                failures.append(
                    Failure(
                        "expectation",
                        f"turn {number}: expected {key} {_spell(expected)}, found {_spell(seen)}",
                        number,
                        expect.line,
                        found.ended,
                    )
                )
    return failures, not_judged


_INSIDE_KEYS = ("trimmed", "told", "usage")
"""What only an agent that reports its inside can show; rows, one that reports any."""


def _facts(trace: Trace, *, inside: bool) -> dict[int, TurnFacts]:
    turns: dict[int, TurnFacts] = {}
    now = TurnFacts()
    owner: dict[str, TurnFacts] = {}
    unended: dict[str, str] = {}
    asked = Conversation()
    system = ""
    for index, entry in enumerate(trace.entries):
        match entry.event:
            case TurnStarted(turn=turn):
                now = turns[turn] = TurnFacts(usage=now.usage)
            case TurnEnded(outcome=outcome):
                now.outcome, now.ended = outcome, index
                if now.requests:
                    now.system, now.messages = system, tuple(asked.messages)
            case ToolStarted(name=name):
                now.tools.append(name)
            case ReplyEnded(end="complete", message=message) if message is not None:
                now.say = message.text
                for call in message.calls:
                    unended[call.id], owner[call.id] = call.name, now
            case ToolEnded(call_id=call_id, end="returned" | "error" | "raised"):
                unended.pop(call_id, None)
            case RequestSent() as request:
                if request.conversation == "main":
                    now.requests += 1
                    asked.take(request)
                    if request.head is not None:
                        system = request.head.system
                if not inside:
                    _answered_in_the_tools_place(request, unended, owner)
            case event:
                _reported(now, event)
    return turns


def _reported(now: TurnFacts, event: AnyEvent) -> None:
    """Take in what the loop itself says."""
    match event:
        case ResultSynthesized(name=name):
            now.synthesized.append(name)
        case LogRow() as row:
            now.rows.append(str(row.subject))
        case LoopEvent() as told:
            now.told.append(told)
        case Trimmed():
            now.trimmed = True
        case UsageCounted(total=total):
            now.usage = total
        case _:
            pass


def _answered_in_the_tools_place(
    request: RequestSent, unended: dict[str, str], owner: dict[str, TurnFacts]
) -> None:
    """A result for a call whose tool never came back was made up by the agent."""
    for message in request.added:
        call_id = message.tool_call_id
        if message.role == "tool" and call_id in unended:
            owner[call_id].synthesized.append(unended.pop(call_id))


_AGREES: Any = object()


def _compare(expect: Expect, found: TurnFacts) -> Iterator[tuple[str, Any, Any]]:
    """Each expectation: its key, what was expected, and what was found or `_AGREES`."""
    outcome = _or(expect.outcome, "completed" if expect.only else None)
    if outcome is not None:
        seen = outcome_name(found.outcome) if found.outcome else "no terminal state"
        yield "outcome", outcome, _AGREES if seen == outcome else _with_reason(found, seen)
    nothing = () if expect.only else None
    for key, wanted, actual in (
        ("synthesized", _or(expect.synthesized, nothing), found.synthesized),
        ("tools", _or(expect.tools, nothing), found.tools),
        ("rows", expect.rows, found.rows),
    ):
        if wanted is not None:
            fits = _agrees(wanted, actual, whole=expect.only)
            yield key, list(wanted), _AGREES if fits else actual
    if expect.say is not None:
        yield "say", expect.say, _AGREES if found.say == expect.say else found.say
    if expect.requests is not None:
        fits = found.requests == expect.requests
        yield "requests", expect.requests, _AGREES if fits else found.requests
    trimmed = _or(expect.trimmed, False if expect.only else None)
    if trimmed is not None:
        yield "trimmed", trimmed, _AGREES if found.trimmed == trimmed else found.trimmed
    yield from _compare_shown(expect, found)
    if expect.usage is not None:
        fits = found.usage == expect.usage
        yield "usage", expect.usage, _AGREES if fits else found.usage
    if expect.error is not None:
        message = found.outcome.message if isinstance(found.outcome, Error) else None
        fits = message is not None and expect.error in message
        yield "error", expect.error, _AGREES if fits else message


def _compare_shown(expect: Expect, found: TurnFacts) -> Iterator[tuple[str, Any, Any]]:
    if expect.messages is not None:
        system = [f"system {quote(found.system)}"] if found.system else []
        shown = [*system, *(message_text(message)[1:-1] for message in found.messages)]
        fits = _agrees(expect.messages, shown, _shows, whole=expect.only)
        yield "messages", list(expect.messages), _AGREES if fits else shown
    if expect.told is not None:
        told = [f"{word(event.name)} {quote(event.payload)}" for event in found.told]
        fits = _agrees(expect.told, told, _shows, whole=expect.only)
        yield "told", list(expect.told), _AGREES if fits else told


def _shows(wanted: str, shown: str) -> bool:
    """Whether a line begins with the word that is wanted and holds what stands after it."""
    first, _, part = wanted.partition(" ")
    return shown.partition(" ")[0] == first and (part in shown or quote(part)[1:-1] in shown)


def _or(given: Any, otherwise: Any) -> Any:
    return otherwise if given is None else given


def _with_reason(found: TurnFacts, seen: str) -> str:
    if isinstance(found.outcome, Error):
        return f"{seen} ({found.outcome.kind}: {found.outcome.message})"
    return seen


def _agrees(
    wanted: Sequence[str],
    actual: Sequence[str],
    fits: Callable[[str, str], bool] = operator.eq,
    *,
    whole: bool,
) -> bool:
    """Whether the wanted items occur in order; none at all, or `whole`, means no others."""
    if whole or not wanted:
        return len(wanted) == len(actual) and all(map(fits, wanted, actual))
    rest = iter(actual)
    return all(any(fits(item, found) for found in rest) for item in wanted)


def _spell(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case True:
            return "true"
        case False:
            return "false"
        case list():
            return f"[{', '.join(value)}]"
        case Usage():
            return usage_text(value).removeprefix("usage ")
        case str():
            return repr(value) if " " in value or not value else value
        case _:
            return str(value)
