"""What the shipped scenarios show: which public reports, which rules of the turn loop, how much.

`data/reports.csv` maps reports of faults in other people's loops to the scenario that shows the
situation, or to the reason why no reference loop can; `data/rules.csv` maps the rules of the turn
loop to the scenario or the test that shows them. The lists of ids say what must be there.
"""

from __future__ import annotations

import ast
import csv
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.core.events import (
    CancelRequested,
    ReplyEnded,
    ResultSynthesized,
    Trimmed,
    TurnStarted,
)
from harness.core.messages import ToolCall
from harness.core.outcome import OUTCOME_NAMES, outcome_name
from harness.core.ports import Env
from harness.loops.turn.agent import KIND, TurnAgent
from harness.loops.turn.config import default_config
from harness.loops.turn.policy import REFERENCE, SAFE, Policy
from harness.runner.agents import Subject, loop_config, loop_subject
from harness.runner.files.load import find, load
from harness.runner.result import Result
from harness.runner.run import run
from harness.runner.scenario import Scenario

TESTS = Path(__file__).parent
REPOSITORY = TESTS.parent
DATA = TESTS / "data"
NAMED = re.compile(r"(?<![\w/])(?:tests/[\w/]+\.py::\w+|[a-z]+/[a-z]\w+)(?![\w/])")
"""A test, or a scenario without its folder and ending, in a reason."""


def table(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def listed(name: str) -> list[str]:
    return (DATA / name).read_text(encoding="utf-8").splitlines()


REPORTS = table("reports.csv")
RULES = table("rules.csv")
SHIPPED = {path.relative_to(REPOSITORY).as_posix() for path in find([REPOSITORY / "scenarios"])}


@cache
def functions_of(file: str) -> frozenset[str]:
    tree = ast.parse((REPOSITORY / file).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))


def exists(shown_by: str) -> bool:
    file, _, name = shown_by.partition("::")
    return name in functions_of(file) if name else shown_by in SHIPPED


# --- the tables are complete, and what they name is there


def test_every_report_is_shown_or_has_its_reason() -> None:
    assert [f"{row['report']} {row['kind']}" for row in REPORTS] == listed("report_ids.txt")
    for row in REPORTS:
        assert row["scenario"] or row["reason"], row
        assert row["scenario"] == "" or exists(row["scenario"]), row
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", row["source"]), row


def test_every_rule_is_shown() -> None:
    assert [row["rule"] for row in RULES] == listed("rule_ids.txt")
    for row in RULES:
        assert row["says"], row
        assert exists(row["shown_by"]), row


def test_what_a_reason_names_is_there() -> None:
    named = [name for row in REPORTS for name in NAMED.findall(row["reason"])]
    assert len(named) >= 15
    for name in named:
        assert exists(name if "::" in name else f"scenarios/{name}.yaml"), name


def test_a_reason_is_short() -> None:
    assert max(len(row["reason"]) for row in REPORTS) < 200


# --- what the policies come to


@cache
def played(policy: str = SAFE.name) -> tuple[Result, ...]:
    scenarios = [load(REPOSITORY / name) for name in sorted(SHIPPED)]
    return tuple(
        [run(each, loop_subject(KIND, each, policy)) for each in scenarios if "turn" in each.loops]
    )


@pytest.mark.parametrize("policy", KIND.policies)
def test_every_scenario_is_as_it_says(policy: str) -> None:
    failed = [str(result) for result in played(policy) if not result.ok]
    assert failed == []


def test_the_safe_policy_breaks_nothing_and_the_recorded_one_what_is_listed() -> None:
    for result in played(SAFE.name):
        assert result.verdict.violations == result.verdict.accepted == (), str(result)
    for result in played(REFERENCE.name):
        assert result.verdict.violations == (), str(result)
        policies = [allow.policy or "" for allow in result.scenario.allow]
        assert all(policy.endswith(REFERENCE.name) for policy in policies)  # any loop's


# --- how much the scenarios show


def test_enough_of_them_cut_their_history() -> None:
    cut = [r.scenario.name for r in played() if any(isinstance(e.event, Trimmed) for e in r.trace)]
    assert len(cut) >= 8, cut


def test_enough_of_them_end_in_each_way() -> None:
    ways: Counter[str] = Counter()
    for result in played():
        ways.update(
            {outcome_name(outcome) for outcome in result.outcomes[: len(result.scenario.turns)]}
        )
    assert all(ways[name] >= 4 for name in OUTCOME_NAMES), ways


def cut_batches(result: Result) -> Iterator[tuple[int, tuple[bool, ...]]]:
    """Of each cancelled turn's calls, by batches: whether each was answered in its tool's place.

    Batches of which every call was are left out, but for those of one.
    """
    settings = {**KIND.settings, **loop_config(KIND, result.scenario.config)}
    limit = settings["max_parallel_tool_calls"]
    calls: list[ToolCall] = []
    cancelled = False
    made_up: set[str] = set()
    for entry in (*result.trace, None):
        match entry.event if entry is not None else None:
            case ReplyEnded(message=message) if message is not None and message.calls:
                calls, made_up = message.calls, set()
            case CancelRequested():
                cancelled = True
            case ResultSynthesized(call_id=call_id) if cancelled:
                made_up.add(call_id)
            case TurnStarted() | None:
                for start in range(0, len(calls) if cancelled else 0, limit):
                    batch = tuple([call.id in made_up for call in calls[start : start + limit]])
                    if any(batch) and (len(batch) == 1 or not all(batch)):
                        yield len(batch), batch
                calls, cancelled = [], False
            case _:
                pass


def place(batch: tuple[bool, ...]) -> set[str]:
    """Where in the batch a call was answered in its tool's place."""
    middle = {"middle"} if any(batch[1:-1]) else set()
    return middle | ({"first"} if batch[0] else set()) | ({"last"} if batch[-1] else set())


def test_results_are_made_up_at_every_place_of_a_batch() -> None:
    shown: set[tuple[int, str]] = set()
    scenarios: set[str] = set()
    for result in played():
        for size, batch in cut_batches(result):
            shown |= {(size, where) for where in place(batch)}
            scenarios.add(result.scenario.name)
    assert len(scenarios) >= 8, scenarios
    assert shown >= {
        *[(1, "first"), (2, "first"), (2, "last")],
        *[(4, "first"), (4, "middle"), (4, "last")],
    }


# --- each difference between the policies has a scenario that fails where the safe one is given up

FLAGS = [name for name in Policy.__struct_fields__ if name not in ("name", "known")]
SHOWN_BY = {row["rule"].removeprefix("17 "): row["shown_by"] for row in RULES}


def under(scenario: Scenario, policy: Policy) -> Result:
    """Run on a turn loop of that policy, held to what is expected of the safe one."""
    settings = loop_config(KIND, scenario.config)
    assert "cancel_grace" not in settings

    def build(env: Env) -> TurnAgent:
        return TurnAgent(env, default_config(**settings), policy)

    return run(scenario, Subject(policy.name, build, policy=SAFE.name))


@pytest.mark.parametrize("flag", FLAGS)
def test_each_difference_between_the_policies_shows(flag: str) -> None:
    scenario = load(REPOSITORY / SHOWN_BY[flag])
    assert any(turn.expect and turn.expect.under for turn in scenario.turns) or scenario.allow
    safe = under(scenario, SAFE)
    assert safe.ok
    assert safe.verdict.violations == ()
    given_up = under(scenario, replace(SAFE, **{flag: getattr(REFERENCE, flag)}))
    assert given_up.failures or given_up.verdict.violations
