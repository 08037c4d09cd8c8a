"""Each scenario that shows a public report fails where the loop has the fault of that report."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from harness.core.ports import Agent, Env
from harness.loops.turn.agent import KIND
from harness.runner.agents import Subject, loop_config
from harness.runner.load import load
from harness.runner.result import Result
from harness.runner.run import run
from tests.faults import does, sends
from tests.faults.seams import Sound

REPOSITORY = Path(__file__).parents[2]

FAULTS: dict[type[Sound], str] = {
    sends.LosesFailures: "B007 B008 B016 B017",
    sends.AnswersInTheUsersName: "B011 B098",
    sends.LeavesTheLastStepOpen: "B020 B079",
    sends.AnswersTheFirstRoundOnly: "B028",
    sends.KeepsOneResultAnId: "B030 B209 B212",
    sends.KeepsOneResultATool: "B213",
    sends.AnswersInOrderOfFinishing: "B094 B096",
    sends.FlushesOldResults: "B097",
    sends.SendsNoEmptyResults: "B218",
    sends.LosesTheRound: "B066",
    sends.KeepsHalfAnswers: "B023",
    sends.ForgetsItsThoughts: "B277 B279",
    sends.AddsLateResults: "B009 B019 B171",
    sends.CutsAnywhere: "B031 B033 B034 B040 B042",
    sends.CutsUntilItFits: "B037 B041",
    sends.CutsTheMiddle: "B039",
    sends.SummarizesItsTaskAway: "B050",
    sends.ForgetsItsOrders: "B044 B049",
    sends.NeverCuts: "B058",
    sends.CountsLetters: "B061",
    sends.StubsLongQuestions: "B052",
    does.HoldsAFailedTurn: "B004",
    does.RunsToolsAgain: "B021",
    does.ShieldsItsTools: "B172 B191",
    does.WaitsForItsTools: "B178",
    does.GoesOnAfterAResult: "B071",
    does.FailsAsAWhole: "B193 B194 B197",
    does.DiesOfACancelInside: "B173 B195 B196",
    does.TakesNothingForAnError: "B217",
    does.AnswersWithAnError: "B281",
    does.RunsAllAtOnce: "B203 B204",
    does.TakesWhatCame: "B080 B089",
    does.StopsAtTheEndSignal: "B086",
    does.MendsArguments: "B088",
    does.DropsBrokenCalls: "B091",
    does.KeepsTheLastCall: "B207",
    does.DiesOfUnknownTools: "B214 B216",
    does.NeverCloses: "B177",
    does.TakesBothEnds: "B211",
    does.AsksAgainAfterACut: "B053 B055 B060",
    does.TakesOneStepMore: "B075 B077",
    does.CallsALimitAnAnswer: "B282",
    does.LosesAFinishedSibling: "B025",
    does.FailsWhereItWorked: "B068",
    does.CallsACancelAnAnswer: "B072",
    does.TakesALateCancel: "B070",
    does.SwallowsCancels: "B174 B175",
    does.BreaksWhenLeft: "B190",
    does.SaysItsEndAtOnce: "B069",
    does.EndsInSilence: "B073",
    does.WritesNothingWhenCut: "B074",
    does.TellsAnEndAStep: "B081",
    does.TellsCallsWithTheirResults: "B093",
    does.TellsNoContent: "B100",
    does.ForgetsUsageWhenCut: "B267",
    does.MakesUsageUp: "B268",
    does.CountsTwice: "B276",
}
"""Each fault, and the reports that tell of it."""

CASES = [(report, fault) for fault, reports in FAULTS.items() for report in reports.split()]


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
    assert sorted(report for report, _fault in CASES) == sorted(SHOWN)


@pytest.mark.parametrize("scenario", sorted(set(SHOWN.values())))
def test_it_passes_where_nothing_is_wrong(scenario: str) -> None:
    result = play(scenario, Sound)
    assert result.ok, str(result)


@pytest.mark.parametrize(
    ("report", "fault"), CASES, ids=lambda case: getattr(case, "__name__", case)
)
def test_it_fails_where_the_fault_is(report: str, fault: type[Sound]) -> None:
    assert not play(SHOWN[report], fault).ok
