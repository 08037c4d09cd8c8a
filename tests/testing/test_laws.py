"""Laws of the turn loop that hold in every scenario: order, chunking, terminals, log and requests,
and a cancel after any event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.core.choices import Choices
from harness.core.events import (
    CancelRequested,
    LogRow,
    LoopEvent,
    RequestSent,
    TurnEnded,
    TurnStarted,
    event_kind,
)
from harness.core.messages import ModelRequest
from harness.core.outcome import CANCELLED, Completed
from harness.core.pairing import breaches
from harness.core.rows import Row, TurnEndRow, UserRow
from harness.core.trace import Trace
from harness.fakes.latency import LATENCIES
from harness.fakes.parts import CHUNKINGS
from harness.loops.turn.agent import KIND
from harness.loops.turn.derive import derive
from harness.loops.turn.tokens import text_tokens
from harness.loops.turn.trim import trim
from harness.runner.agents import loop_subject
from harness.runner.files.turn_format import EVENT_KINDS
from harness.runner.result import Result
from harness.runner.run import run
from harness.runner.scenario import Cancel, Scenario
from harness.testing.generated import check_generated, telling
from harness.testing.strategies import scenarios


def played(scenario: Scenario, choices: Choices | None = None) -> Result:
    return run(scenario, loop_subject(KIND, scenario), choices)


def always(source: str, value: int, *, but: str = "\0") -> Choices:
    """Choices that are `value` in one source, except for labels that begin with `but`."""

    def pick(asked: str, label: str, _bound: int) -> int:
        return value if asked == source and not label.startswith(but) else 0

    return Choices(picker=pick)


def rows(trace: Trace) -> list[Row]:
    return [entry.event.row for entry in trace if isinstance(entry.event, LogRow)]


# --- order and chunking


@given(scenarios(cancels=False), st.integers(1, LATENCIES - 1))
def test_in_which_order_tools_end_changes_no_request_and_no_row(
    scenario: Scenario, latency: int
) -> None:
    with telling(scenario):
        plain, other = played(scenario), played(scenario, always("latency", latency, but="model "))
        assert other.trace.requests() == plain.trace.requests()
        assert rows(other.trace) == rows(plain.trace)
        assert other.outcomes == plain.outcomes


@given(scenarios(cancels=False), st.integers(1, CHUNKINGS - 1))
def test_how_a_reply_is_cut_into_deltas_changes_nothing_but_the_deltas(
    scenario: Scenario, chunking: int
) -> None:
    with telling(scenario):
        plain, other = played(scenario), played(scenario, always("chunking", chunking))
        assert other.trace.neutral() == plain.trace.neutral()
        assert other.trace.requests() == plain.trace.requests()
        assert rows(other.trace) == rows(plain.trace)


@given(scenarios())
def test_the_same_scenario_gives_the_same_bytes(scenario: Scenario) -> None:
    with telling(scenario):
        assert played(scenario).trace.digest == played(scenario).trace.digest


# --- terminals


@given(scenarios())
def test_each_turn_comes_to_one_terminal_state_and_all_agree_on_it(scenario: Scenario) -> None:
    with telling(scenario):
        result = played(scenario)
        turns = list(by_turn(result.trace))
        assert len(turns) == len(result.outcomes)
        for events, outcome in zip(turns, result.outcomes, strict=True):
            assert [e.outcome for e in events if isinstance(e, TurnEnded)] == [outcome]
            written = [e.row for e in events if isinstance(e, LogRow)]
            told = [e.name for e in events if isinstance(e, LoopEvent)]
            if outcome == CANCELLED and not written:
                assert told == []  # its task was cancelled before it began
                continue
            ends = [row.outcome for row in written if isinstance(row, TurnEndRow)]
            assert ends == [outcome]
            assert isinstance(written[-1], TurnEndRow)
            assert told.count("turn_end") == 1
            assert told[-1] == "turn_end"


def by_turn(trace: Trace) -> Iterator[list[Any]]:
    """The events of each turn, from its start to its end."""
    events: list[Any] = []
    for entry in trace:
        if isinstance(entry.event, TurnStarted):
            events = []
        events.append(entry.event)
        if isinstance(entry.event, TurnEnded):
            yield events


# --- the log, and what is sent


@given(scenarios())
def test_a_request_is_what_the_log_says_cut_to_size_and_nothing_else(scenario: Scenario) -> None:
    with telling(scenario):
        trace = played(scenario).trace
        for written, request in requests_with_rows(trace):
            config = {**KIND.settings, **scenario.config}
            sent, _outcome = trim(
                derive(written),
                text_tokens(config["system_prompt"]),
                config["context_window_tokens"],
                config["context_trim_threshold"],
                config["context_keep_recent"],
            )
            assert request.messages == sent


def requests_with_rows(trace: Trace) -> Iterator[tuple[list[Row], ModelRequest]]:
    """Each request, and the rows that were written before it."""
    written: list[Row] = []
    requests = iter(trace.requests())
    for entry in trace:
        if isinstance(entry.event, LogRow):
            written.append(entry.event.row)
        elif isinstance(entry.event, RequestSent):
            yield list(written), next(requests)


@given(scenarios())
def test_a_log_that_ends_after_any_row_makes_a_history_that_can_go_on(scenario: Scenario) -> None:
    with telling(scenario):
        written = rows(played(scenario).trace)
        for end in range(len(written) + 1):
            history = derive(written[:end])
            assert breaches(history) == ()
            said = [row.text for row in written[:end] if isinstance(row, UserRow)]
            assert [m.text for m in history if m.role == "user"] == said


# --- a cancel after any event


@settings(max_examples=max(400, settings().max_examples))
@given(
    scenarios(cancels=False, max_turns=2),
    st.sampled_from(["now", "early", "late"]),
    st.sampled_from([None, "task"]),
    st.data(),
)
def test_a_cancel_after_any_event_breaks_nothing_and_the_next_turn_works(
    scenario: Scenario, mode: Any, by: Any, data: st.DataObject
) -> None:
    turns = list(scenario.turns)
    at = data.draw(st.integers(0, len(turns) - 1), label="turn")
    undisturbed = list(by_turn(played(scenario).trace))[at]
    kind, nth = data.draw(st.sampled_from(moments(undisturbed)), label="event")
    turns[at] = replace(turns[at], cancel=Cancel(kind, None, nth, by=by, mode=mode))
    cut = replace(scenario, turns=tuple(turns))
    with telling(cut):
        result = played(cut)
        assert result.verdict.violations == ()
        acted = any(isinstance(entry.event, CancelRequested) for entry in result.trace)
        missed = [] if acted or mode == "now" else ["cancel did not fire"]
        assert [failure.kind for failure in result.failures] in ([], missed)
        if len(result.outcomes) > len(turns):
            assert isinstance(result.outcomes[-1], Completed)


def counted(events: list[Any]) -> Counter[tuple[str, str | None]]:
    """How often each kind of event happened, by its name."""
    return Counter((event_kind(type(event)), event.subject) for event in events)


def moments(events: list[Any]) -> list[tuple[str, int]]:
    """The events of a turn after which a scenario can cut it: kind, and which one of that kind."""
    counts: Counter[str] = Counter()
    found = []
    for event in events:
        kind = event_kind(type(event))
        counts[kind] += 1
        if kind in EVENT_KINDS:
            found.append((kind, counts[kind]))
    return found


@given(scenarios())
def test_generated_scenarios_are_played_clean(scenario: Scenario) -> None:
    check_generated(scenario)
