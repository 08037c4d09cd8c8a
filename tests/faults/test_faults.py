"""Each scenario that shows a public report finds the fault of that report in a loop that has it."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from msgspec.structs import replace

from harness.core.ports import Agent, Env
from harness.loops.fsm import policy as fsm_policy
from harness.loops.fsm.agent import KIND as FSM
from harness.loops.fsm.loop import Loop
from harness.loops.kind import LoopKind
from harness.loops.turn.agent import KIND as TURN
from harness.runner.agents import Subject, loop_config
from harness.runner.files.load import load
from harness.runner.result import Result
from harness.runner.run import run
from harness.runner.scenario import Scenario
from tests.bugs.planting_fsm import on_fsm
from tests.faults import does, fsm, sends
from tests.faults.seams import Sound

REPOSITORY = Path(__file__).parents[2]
EXPECTED = re.compile(r"turn \d+: (expected \w+)")

Build: TypeAlias = Callable[[Env, Scenario], Agent]
"""Makes the loop of a fault, set up as a scenario says."""

TURN_FAULTS: tuple[tuple[type[Sound], str, str], ...] = (
    (sends.LosesFailures, "B007 B008 B016 B017", "RESUME"),
    (sends.AnswersInTheUsersName, "B011", "RESUME"),
    (sends.AnswersInTheUsersName, "B098", "PAIR"),
    (sends.LeavesTheLastStepOpen, "B020 B079", "RESUME"),
    (sends.AnswersTheFirstRoundOnly, "B028", "PAIR"),
    (sends.KeepsOneResultAnId, "B030 B209 B212", "PAIR"),
    (sends.KeepsOneResultATool, "B213", "SLOT"),
    (sends.AnswersInOrderOfFinishing, "B094 B096", "ORDER"),
    (sends.FlushesOldResults, "B097", "expected messages"),
    (sends.SendsNoEmptyResults, "B218", "PAIR"),
    (sends.LosesTheRound, "B066", "EFFECT-KEPT"),
    (sends.KeepsHalfAnswers, "B023", "expected messages"),
    (sends.ForgetsItsThoughts, "B277 B279", "ROUNDTRIP"),
    (sends.AddsLateResults, "B009 B019 B171", "PAIR, RESUME"),
    (sends.CutsAnywhere, "B031 B034 B040 B042 trim/in_every_turn", "PAIR, SHAPE"),
    (sends.CutsUntilItFits, "B037 B041", "BOUND, TASK-KEPT"),
    (sends.CutsTheMiddle, "B039", "expected messages"),
    (sends.SummarizesItsTaskAway, "trim/live_question_many_rounds", "BOUND, TASK-KEPT"),
    (sends.ForgetsItsOrders, "B044 B049", "PINNED"),
    (sends.NeverCuts, "B058", "expected messages"),
    (sends.CountsLetters, "B061", "expected messages"),
    (sends.StubsLongQuestions, "B052", "mismatch"),
    (does.HoldsAFailedTurn, "B004", "OUTCOME-TRUTH"),
    (does.RunsToolsAgain, "B021", "EFFECT-ONCE"),
    (does.ShieldsItsTools, "B172 B191", "QUIESCE"),
    (does.WaitsForItsTools, "B178", "CANCEL, ONE-TERMINAL"),
    (does.GoesOnAfterAResult, "B071", "TERMINAL-TRUTH, mismatch"),
    (does.FailsAsAWhole, "B193 B194 B197", "ONE-TERMINAL"),
    (does.DiesOfACancelInside, "B173 B195 B196", "TERMINAL-TRUTH"),
    (does.TakesNothingForAnError, "B217", "RESULT-TOTAL"),
    (does.AnswersWithAnError, "B281", "unused reply"),
    (does.RunsAllAtOnce, "B203", "SERIAL"),
    (does.RunsAllAtOnce, "B204", "CAP"),
    (does.TakesWhatCame, "B080 B089", "TERMINAL-TRUTH"),
    (does.StopsAtTheEndSignal, "B086", "expected rows"),
    (does.MendsArguments, "B088", "BAD-ARGS"),
    (does.DropsBrokenCalls, "B091", "TERMINAL-TRUTH, unused reply"),
    (does.KeepsTheLastCall, "B207", "NO-SILENT-DROP"),
    (does.DiesOfUnknownTools, "B214 B216", "UNKNOWN-TOOL"),
    (does.NeverCloses, "B177", "QUIESCE"),
    (does.TakesBothEnds, "B211", "EFFECT-ONCE"),
    (does.AsksAgainAfterACut, "B055 B060 trim/system_prompt_fills_window", "expected requests"),
    (does.TakesOneStepMore, "B075 B077", "LIMIT"),
    (does.CallsALimitAnAnswer, "B282", "ONE-TERMINAL"),
    (does.LosesAFinishedSibling, "B025", "OUTCOME-TRUTH"),
    (does.FailsWhereItWorked, "B068", "TERMINAL-TRUTH"),
    (does.CallsACancelAnAnswer, "B072", "TERMINAL-TRUTH"),
    (does.TakesALateCancel, "B070", "ONE-TERMINAL"),
    (does.SwallowsCancels, "B174 B175", "TERMINAL-TRUTH"),
    (does.BreaksWhenLeft, "B190", "TERMINAL-TRUTH"),
    (does.SaysItsEndAtOnce, "B069", "LOG-HISTORY"),
    (does.EndsInSilence, "B073", "expected told"),
    (does.WritesNothingWhenCut, "B074", "expected rows"),
    (does.TellsAnEndAStep, "B081", "ONE-TERMINAL"),
    (does.TellsCallsWithTheirResults, "B093", "ORDER"),
    (does.TellsNoContent, "B100", "expected told"),
    (does.ForgetsUsageWhenCut, "B267", "expected usage"),
    (does.MakesUsageUp, "B268", "USAGE"),
    (does.CountsTwice, "B276", "USAGE"),
)
"""Each fault, the reports that tell of it or scenarios that show the same, and what must be found
of it at least: invariants, kinds of failures, keys of expectations.
"""

FSM_FAULTS: tuple[tuple[type[Loop], dict[str, Any], str, str], ...] = (
    (fsm.KeepsTheLastResult, {}, "B033", "PAIR"),
    (fsm.SumsItsTaskUp, {}, "B050", "COMPACT-HONEST"),
    (fsm.SaysItsSummary, {}, "B051", "SHAPE"),
    (
        fsm.SumsUpAgain,
        {"max_compactions": None, "compaction_waits": False},
        "B053",
        "expected told",
    ),
    (fsm.TakesAnySummary, {"compaction_must_shrink": False}, "B054", "expected messages"),
    (fsm.SumsUpSummaries, {}, "B059", "expected messages"),
    (fsm.EndsASubagentInSilence, {}, "B076", "expected messages"),
    (fsm.LeavesItsSubagents, {}, "B179 B180 B181", "mismatch"),
)
"""The same for the state-machine loop, with what of its policy goes another way."""


def turn_loop(fault: type[Sound]) -> Build:
    return lambda env, scenario: fault(env, {**TURN.settings, **loop_config(TURN, scenario.config)})


def fsm_loop(fault: type[Loop], **policy: Any) -> Build:
    return lambda env, scenario: on_fsm(fault, replace(fsm_policy.SAFE, **policy), scenario)(env)


FAULTS: list[tuple[str, Build, str, str]] = [
    *[(fault.__name__, turn_loop(fault), *rest) for fault, *rest in TURN_FAULTS],
    *[(fault.__name__, fsm_loop(fault, **policy), *rest) for fault, policy, *rest in FSM_FAULTS],
]
CASES = [
    (report, name, build, frozenset(finds.split(", ")))
    for name, build, reports, finds in FAULTS
    for report in reports.split()
]


def shown() -> dict[str, str]:
    """The scenario that shows a report, by report."""
    with (REPOSITORY / "tests/data/reports.csv").open(encoding="utf-8", newline="") as file:
        return {row["report"]: row["scenario"] for row in csv.DictReader(file) if row["scenario"]}


SHOWN = shown()


def kind_of(scenario_file: str) -> LoopKind:
    return FSM if scenario_file.startswith("scenarios/fsm/") else TURN


def play(scenario_file: str, name: str, build: Build) -> Result:
    scenario, kind = load(REPOSITORY / scenario_file), kind_of(scenario_file)
    budget = kind.budget(loop_config(kind, scenario.config))
    subject = Subject(name, lambda env: build(env, scenario), policy="safe", budget=budget)
    return run(scenario, subject)


def test_every_report_that_is_shown_has_its_fault() -> None:
    told = sorted(report for report, *_fault in CASES if "/" not in report)
    assert told == sorted(SHOWN)


@pytest.mark.parametrize("scenario", sorted(set(SHOWN.values())))
def test_it_passes_where_nothing_is_wrong(scenario: str) -> None:
    sound = turn_loop(Sound) if kind_of(scenario) is TURN else fsm_loop(Loop)
    result = play(scenario, "sound", sound)
    assert result.ok, str(result)


def findings(result: Result) -> set[str]:
    """The hard findings of a run: invariants, kinds of failures, ``expected <key>``."""
    found = {each.invariant for each in result.verdict.violations if each.severity == "hard"}
    for failure in result.failures:
        key = EXPECTED.match(failure.message)
        found.add(key[1] if key else failure.kind)
    return found


@pytest.mark.parametrize(
    ("report", "name", "build", "finds"), CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES]
)
def test_it_is_found_where_the_fault_is(
    report: str, name: str, build: Build, finds: frozenset[str]
) -> None:
    scenario = f"scenarios/{report}.yaml" if "/" in report else SHOWN[report]
    assert findings(play(scenario, name, build)) >= finds
