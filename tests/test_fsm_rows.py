"""What shows each row of the state-machine loop's specification, and each flag of its policy.

`data/fsm_rows.csv` maps each row to scenarios (with the turn where it matters), to tests and to
recorded vectors; `data/fsm_row_ids.txt` says which rows there must be. A row may say what its first
scenario is seen to do, in parts between semicolons, each under the safe policy unless it begins
with ``reference``:

- ``WAIT>TOOL``: a run goes through these states, one right after the other;
- ``cancel after loop_event saved``: the event right before the stop;
- ``in tool build``, ``in request main``: what was going on when the stop came.
"""

from __future__ import annotations

import ast
import csv
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.core import json_text
from harness.core.events import (
    CancelRequested,
    Event,
    ReplyEnded,
    RequestSent,
    StateEntered,
    ToolEnded,
    ToolStarted,
    TurnStarted,
    event_kind,
)
from harness.core.trace import Entry, Trace
from harness.loops.fsm.agent import KIND, FsmAgent
from harness.loops.fsm.loop import TABLE, TERMINAL
from harness.loops.fsm.policy import REFERENCE, SAFE, Policy
from harness.runner.agents import loop_config, loop_subject
from harness.runner.files.load import load
from harness.runner.run import run

TESTS = Path(__file__).parent
DATA = TESTS / "data"
with (DATA / "fsm_rows.csv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))
SEEN = [(row, part) for row in ROWS for part in row["takes"].split("; ") if part]

FLAGS = {
    "max_compactions": "compaction_not_enough",
    "compaction_waits": "compaction_that_leaves_too_much",
    "compaction_must_shrink": "compaction_that_is_no_shorter",
    "summary_must_say_something": "compaction_says_blanks",
    "request_after_cancel": "cancel_while_preparing",
    "title_after_cancel": "cancel_before_the_title",
    "falsy_async_is_empty": "background_tool_that_says_nothing",
    "results_per_call": "one_id_for_two_calls",
    "answer_cancelled_rounds": "cancel_between_deliveries",
    "limit_rounds": "round_limit",
    "cancel_before_budget": "cancel_beats_spent_rounds",
    "supervise_sees_cancel": "cancel_in_supervise",
    "waits_end_with_cancel": "cancel_in_background_wait",
    "save_every_end": "fails_after_tools",
    "refuse_bad_replies": "torn_stream",
    "refuse_bad_arguments": "arguments_that_are_no_object",
    "name_empty_results": "results_that_are_no_text",
    "keep_empty_ids": "call_with_an_empty_id",
    "keep_signed_thinking": "signed_thinking",
    "prefix_once": "error_that_says_so_itself",
}
"""Flags of the policy with the scenario that goes another way where only that flag is flipped."""

NO_SCENARIO = {
    "stale_writes": "test_policies.py::test_a_replaced_run_at_its_tools",
    "inherit_generation": "test_subagent.py::test_a_sub_agent_whose_thread_begins_after_a_new_run",
    "untold_is_done": "test_policies.py::test_a_hook_that_fails_after_a_tool",
    "portable_titles": "test_policies.py::test_a_title_that_a_file_system_refuses",
    "repair_history": "test_policies.py::test_good_messages_behind_an_old_open_round",
    "last_answer_counts": "test_policies.py::test_a_model_that_has_nothing_more_to_say",
    "nudges_end": "test_policies.py::test_nudges_of_a_model_whose_answers_fill_the_context",
    "cancel_stays": "test_policies.py::test_an_event_that_is_set_and_cleared_again",
    "resolve_plan_file": ("test_plan_mode.py::test_a_plan_below_a_link_is_the_plan_all_the_same"),
}
"""Flags that a second run, a hook, what a run returns or the file system would have to show."""


@cache
def functions_of(path: str) -> frozenset[str]:
    tree = ast.parse((TESTS.parent / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@cache
def vectors() -> frozenset[str]:
    with (TESTS / "vectors" / "fsm_vectors.jsonl").open(encoding="utf-8") as lines:
        return frozenset(json_text.loads(line)["scenario"]["name"] for line in lines)


@cache
def traced(path: str, policy: str) -> Trace:
    scenario = load(TESTS.parent / path)
    return run(scenario, loop_subject(KIND, scenario, policy)).trace


def scenarios_of(row: dict[str, str]) -> list[tuple[str, str]]:
    """The scenarios of a row, each with its turn or an empty text."""
    places = [place for place in row["shown_by"].split() if place.startswith("scenarios/")]
    return [(path, turn) for path, _, turn in (place.partition(":") for place in places)]


def is_there(place: str) -> bool:
    """Whether what a row names exists; a scenario must be for the state-machine loop."""
    if place.startswith("vector:"):
        return place.removeprefix("vector:") in vectors()
    path, _, name = place.partition("::") if "::" in place else place.partition(":")
    if not path.startswith("scenarios/"):
        return name in functions_of(path)
    scenario = load(TESTS.parent / path)
    return "fsm" in scenario.loops and int(name or 1) <= len(scenario.turns)


# --- what a trace shows


def histories(trace: Trace) -> Iterator[list[str]]:
    """The states of each run of the loop: a sub-agent may run within another run's state."""
    open_runs: dict[str, list[list[str]]] = {}
    for entry in trace:
        if isinstance(entry.event, StateEntered):
            state, runs = entry.event.state, open_runs.setdefault(entry.task, [])
            if not runs or (state == "WAIT" and runs[-1][-1] == "TOOL"):
                runs.append([])
            runs[-1].append(state)
            if state in TERMINAL:
                yield runs.pop()


def goes(trace: Trace, states: Sequence[str]) -> bool:
    return any(
        history[at : at + len(states)] == list(states)
        for history in histories(trace)
        for at in range(len(history))
    )


def moments(trace: Trace) -> Iterator[set[str]]:
    """For each stop what went on as it came, in the words of a row."""
    going_on: dict[str, str] = {}
    before: Event | None = None
    for entry in trace:
        match entry.event:
            case RequestSent(reply=reply, conversation=conversation):
                going_on[reply] = f"in request {conversation}"
            case ToolStarted(call_id=call_id, name=name):
                going_on[call_id] = f"in tool {name}"
            case ReplyEnded(reply=ended) | ToolEnded(call_id=ended):
                going_on.pop(ended, None)
            case CancelRequested():
                assert before is not None
                last = f"cancel after {event_kind(type(before))} {before.subject or ''}".strip()
                yield {*going_on.values(), last}
            case _:
                pass
        before = entry.event


# --- the rows


def test_there_is_each_row_and_what_shows_it() -> None:
    listed = (DATA / "fsm_row_ids.txt").read_text(encoding="utf-8").splitlines()
    assert [row["row"] for row in ROWS] == listed
    assert len(set(listed)) == len(listed)
    for row in ROWS:
        assert row["says"], row
        assert scenarios_of(row) or row["reason"], row
        missing = [place for place in row["shown_by"].split() if not is_there(place)]
        assert row["shown_by"], row
        assert not missing, (row["row"], missing)


def test_each_scenario_of_the_loops_folder_shows_a_row_or_a_flag() -> None:
    shown = {path for row in ROWS for path, _ in scenarios_of(row)}
    shown |= {f"scenarios/fsm/{name}.yaml" for name in FLAGS.values()}
    folder = TESTS.parent / "scenarios" / "fsm"
    assert {f"scenarios/fsm/{path.name}" for path in folder.iterdir()} <= shown


def test_each_transition_of_the_table_has_a_row_that_takes_it() -> None:
    taken = {
        pair
        for _, part in SEEN
        if ">" in part
        for pair in pairwise(part.removeprefix("reference ").split(">"))
    }
    assert {(row.source, row.target) for row in TABLE} <= taken


@pytest.mark.parametrize(("row", "part"), SEEN, ids=[f"{row['row']}: {part}" for row, part in SEEN])
def test_its_scenario_does_what_the_row_says(row: dict[str, str], part: str) -> None:
    policy = "reference" if part.startswith("reference ") else "safe"
    part = part.removeprefix("reference ")
    path, turn = scenarios_of(row)[0]
    trace = traced(path, policy)
    if turn:
        trace = Trace(of_turn(trace, int(turn)))
    if ">" in part:
        assert goes(trace, part.split(">"))
    else:
        assert any(part in moment for moment in moments(trace)), list(moments(trace))


def of_turn(trace: Trace, turn: int) -> list[Entry]:
    starts = [at for at, entry in enumerate(trace) if isinstance(entry.event, TurnStarted)]
    return list(trace)[starts[turn - 1] : [*starts, len(trace)][turn]]


@pytest.mark.parametrize(
    ("states", "ran"),
    [
        (["WAIT", "TOOL", "TRET", "WAIT", "SUPERVISE", "DONE"], 1),
        (["WAIT", "TOOL", "WAIT", "ERRS", "TRET", "WAIT", "ERRS"], 2),
    ],
)
def test_a_run_within_a_run_is_a_history_of_its_own(states: list[str], ran: int) -> None:
    trace = Trace([Entry(0, "1", StateEntered(state)) for state in states])
    assert len(list(histories(trace))) == ran
    assert not goes(trace, ["TOOL", "WAIT"])
    assert not goes(trace, ["ERRS", "TRET"])
    assert goes(trace, ["TOOL", "TRET", "WAIT"])


# --- the flags


def test_each_flag_of_the_policy_is_shown() -> None:
    flags = [name for name in Policy.__struct_fields__ if name != "name"]
    assert sorted([*FLAGS, *NO_SCENARIO]) == sorted(flags)
    for place in NO_SCENARIO.values():
        assert is_there(f"tests/loops/fsm/{place}"), place


def played(name: str, policy: Policy) -> Trace:
    scenario = load(TESTS.parent / "scenarios" / "fsm" / f"{name}.yaml")
    config = {**KIND.settings, **loop_config(KIND, scenario.config)}
    return run(scenario, lambda env: FsmAgent(env, config, policy)).trace


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_alone_changes_what_happens(flag: str) -> None:
    flipped = replace(SAFE, **{flag: getattr(REFERENCE, flag)})
    assert played(FLAGS[flag], flipped) != played(FLAGS[flag], SAFE)
