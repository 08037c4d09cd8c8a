"""What is written down of published frameworks is whole, and the page of findings shows it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest

from harness.core.monotonic import MONOTONIC
from harness.exploration.sweep import MODES
from harness.invariants import INVARIANTS
from tests.published.expected import (
    PAGE,
    REPOSITORY,
    UNTOLD,
    Case,
    Found,
    Framework,
    all_findings,
    findings,
    page,
    row,
    table,
)

FOUND = {
    f"{framework.name} {found.invariant}": (case, found)
    for framework in all_findings()
    for case in framework.sweeps
    for found in case.findings
}


def test_the_page_has_the_table_that_the_data_make() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, f"write it: python -m tests.published.expected\n{table()}"


def test_a_page_with_another_table_is_another_page() -> None:
    assert page("# A page\n\n| old |\n|---|\n\nEnd.\n") == f"# A page\n\n{table()}\n\nEnd.\n"


@pytest.mark.parametrize(("case", "found"), FOUND.values(), ids=FOUND)
def test_what_is_found_can_be_read_and_counted(case: Case, found: Found) -> None:
    assert found.invariant in {*[invariant.id for invariant in INVARIANTS], MONOTONIC}
    assert set(found.points) <= {*MODES, UNTOLD}
    assert 0 < sum(found.points.values()) <= case.points + 1
    for sentence in (found.happens, found.why):
        assert sentence[0].isupper()
        assert sentence.endswith(".")
        assert not {"|", "\n"} & set(sentence)


@pytest.mark.parametrize("framework", all_findings(), ids=lambda framework: framework.name)
def test_versions_are_those_that_the_tests_install(framework: Framework) -> None:
    groups = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["dependency-groups"]
    pinned = [each.replace("[openai]", "") for group in groups.values() for each in group]
    assert f"{framework.name}=={framework.version}" in pinned
    for case in framework.sweeps:
        assert (REPOSITORY / case.scenario).exists()
        module = case.agent.partition(":")[0]
        assert (REPOSITORY / f"{module.replace('.', '/')}.py").exists()


def test_a_row_says_whose_fault_it_is_where_it_was_reported_and_what_needs_no_cancel() -> None:
    found = Found(
        "PAIR",
        {"early": 2, UNTOLD: 1},
        "It breaks.",
        False,
        "It is meant.",
        "https://a/b/c/issues/1",
    )
    case = Case("some:Agent", 9, (found,))
    assert row("some 1.0", found, case) == (
        "| some 1.0 | [trip](recipes/trip.yaml), the turn is cancelled | PAIR | "
        "2 of 9, and without a cancel | "
        "It breaks. *No fault*. It is meant. Reported: [b/c#1](https://a/b/c/issues/1). |"
    )
    found = Found("PAIR", {UNTOLD: 1}, "It breaks.", True, "It is bad.")
    assert row("some 1.0", found, Case("some.ways:Streamed", whom="nobody")) == (
        "| some 1.0 | [trip](recipes/trip.yaml), streamed, nothing is cancelled | PAIR | "
        "every run | It breaks. *A fault*. It is bad. |"
    )


def test_a_field_that_is_not_known_is_named(tmp_path: Path) -> None:
    (tmp_path / "findings.yaml").write_text('{name: some, version: "1", sweeps: [{agnet: a}]}')
    with pytest.raises(msgspec.ValidationError, match="agnet"):
        findings(tmp_path)
