"""What public reports say goes wrong in agent loops, by families: each has its invariants, or its
relations, and for each of them a planted bug that it catches.

`tests/data/families.csv` has a line for each name in the catalogue of reports: the number of its
family, what judges it, a bug that shows it for each of these, and what the family says.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import pytest

from harness.invariants import INVARIANTS
from harness.invariants.relations import RELATIONS
from tests.bugs.planted import PLANTED
from tests.bugs.planted_relations import RELATED

DATA = Path(__file__).parents[1] / "data/families.csv"
FAMILIES = 29
BUGS: dict[str, set[str]] = defaultdict(set)
"""By the bug's name, what catches it; test_planted.py and test_planted_relations.py prove it."""
for bug in (*PLANTED, *RELATED):
    BUGS[bug.build.__name__].add(bug.caught_by)


def table() -> list[dict[str, str]]:
    with DATA.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_all_families_of_the_catalogue_are_there_and_say_what_they_are() -> None:
    rows = table()
    numbers = [int(row["family"]) for row in rows]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(1, FAMILIES + 1))
    said = {row["family"] for row in rows if row["says"].endswith(".")}
    assert len(said) == FAMILIES
    assert len({row["name"] for row in rows}) == len(rows)


@pytest.mark.parametrize("row", table(), ids=lambda row: f"{row['family']} {row['name']}")
def test_a_family_is_judged_and_each_judge_catches_a_planted_bug(row: dict[str, str]) -> None:
    judges, planted = row["judged_by"].split(), row["planted"].split()
    print(f"{row['name']}: {', '.join(judges)} by {', '.join(planted)}")
    assert judges
    assert len(judges) == len(planted)
    for judge, name in zip(judges, planted, strict=True):
        assert judge in BUGS[name]


def test_everything_that_judges_is_for_a_family() -> None:
    known = {each.id for each in INVARIANTS} | {each.id for each in RELATIONS}
    judging = {name for row in table() for name in row["judged_by"].split()}
    assert judging == known == {judge for caught in BUGS.values() for judge in caught}
