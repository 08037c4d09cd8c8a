"""Holds a run against what its scenario expects, turn by turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from harness.core.events import (
    INSIDE,
    LogRow,
    Mismatch,
    ReplyEnded,
    RequestSent,
    ResultSynthesized,
    ToolEnded,
    ToolStarted,
    Trimmed,
    TurnEnded,
    TurnStarted,
)
from harness.core.outcome import Error, Outcome, outcome_name
from harness.core.trace import Trace
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


def check(scenario: Scenario, trace: Trace, policy: str | None) -> tuple[list[Failure], list[str]]:
    """Failed expectations, and those that this agent's trace cannot show.

    Where a turn expects something else under `policy`, that counts.
    """
    if not any(turn.expect for turn in scenario.turns):
        return [], []
    inside = any(isinstance(entry.event, INSIDE) for entry in trace.entries)
    facts = _facts(trace, inside=inside)
    failures: list[Failure] = []
    not_judged: list[str] = []
    for number, turn in enumerate(scenario.turns, 1):
        if turn.expect is None:
            continue
        expect = turn.expect.under.get(policy or "", turn.expect)
        found = facts.get(number, TurnFacts())
        for key, expected, seen in _compare(expect, found):
            if key in ("rows", "trimmed") and not inside:
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


def _facts(trace: Trace, *, inside: bool) -> dict[int, TurnFacts]:
    turns: dict[int, TurnFacts] = {}
    now = TurnFacts()
    owner: dict[str, TurnFacts] = {}
    unended: dict[str, str] = {}
    for index, entry in enumerate(trace.entries):
        match entry.event:
            case TurnStarted(turn=turn):
                now = turns[turn] = TurnFacts()
            case TurnEnded(outcome=outcome):
                now.outcome, now.ended = outcome, index
            case ResultSynthesized(name=name):
                now.synthesized.append(name)
            case ToolStarted(name=name):
                now.tools.append(name)
            case LogRow() as row:
                now.rows.append(str(row.subject))
            case Trimmed():
                now.trimmed = True
            case ReplyEnded(end="complete", message=message) if message is not None:
                now.say = message.text
                for call in message.calls:
                    unended[call.id], owner[call.id] = call.name, now
            case ToolEnded(call_id=call_id, end="returned" | "error" | "raised"):
                unended.pop(call_id, None)
            case RequestSent() as request:
                if request.conversation == "main":
                    now.requests += 1
                if not inside:
                    _answered_in_the_tools_place(request, unended, owner)
            case _:
                pass
    return turns


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
            whole = expect.only or not wanted
            fits = list(wanted) == actual if whole else _in_order(wanted, actual)
            yield key, list(wanted), _AGREES if fits else actual
    if expect.say is not None:
        yield "say", expect.say, _AGREES if found.say == expect.say else found.say
    if expect.requests is not None:
        fits = found.requests == expect.requests
        yield "requests", expect.requests, _AGREES if fits else found.requests
    trimmed = _or(expect.trimmed, False if expect.only else None)
    if trimmed is not None:
        yield "trimmed", trimmed, _AGREES if found.trimmed == trimmed else found.trimmed
    if expect.error is not None:
        message = found.outcome.message if isinstance(found.outcome, Error) else None
        fits = message is not None and expect.error in message
        yield "error", expect.error, _AGREES if fits else message


def _or(given: Any, otherwise: Any) -> Any:
    return otherwise if given is None else given


def _with_reason(found: TurnFacts, seen: str) -> str:
    if isinstance(found.outcome, Error):
        return f"{seen} ({found.outcome.kind}: {found.outcome.message})"
    return seen


def _in_order(wanted: Sequence[str], actual: Sequence[str]) -> bool:
    rest = iter(actual)
    return all(item in rest for item in wanted)


def _spell(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case True:
            return "yes"
        case False:
            return "no"
        case list():
            return f"[{', '.join(value)}]"
        case str():
            return repr(value) if " " in value or not value else value
        case _:
            return str(value)
