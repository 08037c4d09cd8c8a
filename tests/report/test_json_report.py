"""Results as JSON: the schema that is written down, what each kind says, the totals."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from msgspec.structs import replace

from harness.core.verdict import Accepted, Verdict, Violation
from harness.exploration.probe import Finding, Run
from harness.report.json_report import (
    VERSION,
    Item,
    Totals,
    json_report,
    result_of,
    schema,
    totals_lines,
    totals_of,
)
from harness.report.not_run import NotRun
from harness.report.replay import FunctionReplay
from tests.report import test_search as searches
from tests.report import test_sweep as sweeps
from tests.report import test_terminal as runs

WRITTEN = Path(__file__).parents[2] / "docs/reference/json-report.schema.json"
LOST = NotRun("search", "no agent\nat all", "cancel/slow", "cancel/slow.yaml", "a:build")
FUNCTION = FunctionReplay(
    Run("d1", findings=(Finding("leaked task", "leaked task: 1.1"),)),
    "pages.both",
    "asyncio",
    "replay('h1', pages.both)",
)
ITEMS: list[Item] = [
    runs.GOOD,
    runs.BAD,
    sweeps.GOOD,
    sweeps.BAD,
    sweeps.REPLAY,
    searches.GOOD,
    searches.BAD,
    FUNCTION,
    LOST,
]


def read(*items: Item) -> dict:
    return json.loads(json_report([result_of(item) for item in items]))


def test_the_schema_is_the_one_that_is_written_down() -> None:
    assert json.loads(WRITTEN.read_text(encoding="utf-8")) == schema()


def test_a_file_has_the_form_that_its_schema_says() -> None:
    assert jsonschema.validators.validator_for(schema()) is jsonschema.Draft202012Validator
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(read(*ITEMS), schema())
    for version in ("1", VERSION + 1):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**read(), "version": version}, schema())


def test_what_no_file_can_hold_is_escaped() -> None:
    found = replace(runs.BAD, scenario="a\ud800b")
    json_report([result_of(found)]).encode("utf-8")
    assert read(found)["results"][0]["scenario"] == "a\ud800b"


def test_a_run_says_what_is_wrong_and_what_is_open() -> None:
    verdict = Verdict(
        (Violation("RESUME", "lost", 3, 2), Violation("CAP", "many", severity="soft")),
        ("ORDER",),
        (Accepted(Violation("QUIESCE", "alive"), "it is known"),),
    )
    (found,) = read(replace(runs.GOOD, verdict=verdict))["results"]
    assert found["kind"] == "run"
    assert found["status"] == "FAIL"
    assert [(each["key"], each["turn"]) for each in found["findings"]] == [("RESUME", 2)]
    assert [each["key"] for each in found["soft"]] == ["CAP"]
    assert [each["message"] for each in found["accepted"]] == ["alive (it is known)"]
    assert found["not_judged"] == ["ORDER"]


def test_what_could_not_be_run_says_why_and_counts_nowhere_else() -> None:
    over = replace(LOST, passed_over=True)
    found = read(LOST, NotRun("run", "b"), over)
    assert found["results"][0] == {
        "kind": "not_run", "meant": "search", "scenario": "cancel/slow",
        "source": "cancel/slow.yaml", "on": "a:build", "status": "ERROR",
        "message": "no agent\nat all", "findings": [], "test": "",
    }  # fmt: skip
    assert [each["status"] for each in found["results"]] == ["ERROR", "ERROR", "SKIPPED"]
    totals = totals_of([result_of(each) for each in (LOST, LOST, over)])
    assert totals == Totals(errors=2, skipped=1)
    assert totals_lines(totals) == ["could not be run: 2", "passed over, with nothing to try: 1"]


def test_each_finding_of_a_sweep_has_the_token_of_the_run_that_is_shown() -> None:
    (found,) = read(sweeps.BAD)["results"]
    assert [
        (each["key"], each["count"], each["cancels"], each["token"]) for each in found["findings"]
    ] == [
        (sweeps.LEAK.key, 1, [str(sweeps.EARLY)], sweeps.FAILED.token),
        (sweeps.LOST.key, 2, [str(sweeps.EARLY)], sweeps.FAILED.token),
    ]
    assert (found["points"], found["missed"], found["unresolved"]) == (6, 1, 1)
    assert found["modes"][0] == {
        "mode": "start", "points": 1, "clean": 1, "tolerated": 0, "failed": 0, "unresolved": 0,
        "missed": 0, "absent": 1,
    }  # fmt: skip
    (bare,) = read(replace(sweeps.BAD, failed=()))["results"]
    assert {each["token"] for each in bare["findings"]} == {""}


def test_each_finding_of_a_search_has_the_token_of_the_run_that_is_shown() -> None:
    (found,) = read(searches.BAD)["results"]
    assert [(each["count"], each["token"]) for each in found["findings"]] == [
        (40, searches.TOKEN),
        (1, searches.TOKEN),
    ]
    assert found["goals"][0] == {"goal": "tool_ended slow", "runs": 12}
    assert found["token"] == searches.OPEN.token
    (bare,) = read(replace(searches.BAD, failed=()))["results"]
    assert {each["token"] for each in bare["findings"]} == {""}


def test_a_replay_says_which_cancels_it_made() -> None:
    scenario, function = read(sweeps.REPLAY, FUNCTION)["results"]
    assert scenario["scenario"] == "cancel/slow"
    assert scenario["findings"][0]["cancels"] == [str(sweeps.EARLY)]
    assert (function["scenario"], function["on"]) == ("pages.both", "asyncio")


def test_the_totals_are_the_sum_of_all_results() -> None:
    totals = totals_of([result_of(item) for item in ITEMS])
    assert (totals.scenarios_run, totals.scenarios_failed) == (2, 1)
    assert (totals.sweeps, totals.points, totals.reached) == (2, 7, 5)
    assert (totals.searches, totals.goals, totals.goals_reached) == (2, 2, 1)
    assert totals.replays == 2
    assert totals.runs == 2 + 2 + 2 * 1_234 + 4 + 1_234
    assert totals.unresolved == 1 + 2
    assert read(*ITEMS)["totals"]["points"] == 7


def test_the_totals_are_told_in_a_few_lines() -> None:
    assert totals_lines(Totals()) == []
    some = Totals(scenarios_run=1, sweeps=1, points=1, reached=1, searches=1, schedules=3)
    assert totals_lines(some) == [
        "1 scenario run",
        "1 sweep: 1 of 1 cancel point reached",
        "1 search: 3 schedules tried",
    ]
    gaps = {"CAP": 1, "ORDER": 2, "PAIR": 2, "STOP": 2}
    many = Totals(2, 1, 2, 1_100, 1_000, 2, 1, 3, 2, 1, unresolved=2, not_judged=gaps, incomplete=1)
    told = totals_lines(many)
    assert told == [
        "2 scenarios run",
        "2 sweeps: 1,000 of 1,100 cancel points reached",
        "2 searches: 1 schedule tried; 2 of 3 goals reached",
        "incomplete, with less tried than there is: 1",
        "1 replay",
        "unresolved: 2 runs",
        "not judged in any scenario: ORDER, PAIR, STOP",
    ]
    assert totals_lines(many, named=3) == told
    assert totals_lines(many, named=2)[-1] == "not judged in any scenario: 3 invariants"
