"""Each scenario that shows a public report finds the fault of that report in a loop that has it."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from harness.core.ports import Agent, Env
from harness.loops.turn.agent import KIND
from harness.runner.agents import Subject, loop_config
from harness.runner.files.load import load
from harness.runner.result import Result
from harness.runner.run import run
from tests.faults import does, sends
from tests.faults.seams import Sound

REPOSITORY = Path(__file__).parents[2]
EXPECTED = re.compile(r"turn \d+: (expected \w+)")

FAULTS: tuple[tuple[type[Sound], str, str], ...] = (
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
    (sends.ForgetsItsThoughts, "B277 B279", "SHAPE"),
    (sends.AddsLateResults, "B009 B019 B171", "PAIR, RESUME"),
    (sends.CutsAnywhere, "B031 B033 B034 B040 B042", "PAIR, SHAPE"),
    (sends.CutsUntilItFits, "B037 B041", "BOUND, TASK-KEPT"),
    (sends.CutsTheMiddle, "B039", "expected messages"),
    (sends.SummarizesItsTaskAway, "B050", "BOUND, TASK-KEPT"),
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
    (does.AsksAgainAfterACut, "B053 B055 B060", "expected requests"),
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
"""Each fault, the reports that tell of it, and what must be found of it at least: invariants, kinds
of failures, keys of expectations.
"""

CASES = [
    (report, fault, frozenset(finds.split(", ")))
    for fault, reports, finds in FAULTS
    for report in reports.split()
]


def shown() -> dict[str, str]:
    """The scenario that shows a report, by report."""
    with (REPOSITORY / "tests/data/reports.csv").open(encoding="utf-8", newline="") as file:
        return {row["report"]: row["scenario"] for row in csv.DictReader(file) if row["scenario"]}


SHOWN = shown()


def play(scenario_file: str, fault: type[Sound]) -> Result:
    scenario = load(REPOSITORY / scenario_file)
    config = loop_config(KIND, scenario.config)

    def build(env: Env) -> Agent:
        return fault(env, {**KIND.settings, **config})

    return run(scenario, Subject(fault.__name__, build, policy="safe", budget=KIND.budget(config)))


def test_every_report_that_is_shown_has_its_fault() -> None:
    assert sorted(report for report, *_fault in CASES) == sorted(SHOWN)


@pytest.mark.parametrize("scenario", sorted(set(SHOWN.values())))
def test_it_passes_where_nothing_is_wrong(scenario: str) -> None:
    result = play(scenario, Sound)
    assert result.ok, str(result)


def findings(result: Result) -> set[str]:
    """The hard findings of a run: invariants, kinds of failures, ``expected <key>``."""
    found = {each.invariant for each in result.verdict.violations if each.severity == "hard"}
    for failure in result.failures:
        key = EXPECTED.match(failure.message)
        found.add(key[1] if key else failure.kind)
    return found


@pytest.mark.parametrize(
    ("report", "fault", "finds"), CASES, ids=[f"{case[0]}-{case[1].__name__}" for case in CASES]
)
def test_it_is_found_where_the_fault_is(
    report: str, fault: type[Sound], finds: frozenset[str]
) -> None:
    assert findings(play(SHOWN[report], fault)) >= finds
