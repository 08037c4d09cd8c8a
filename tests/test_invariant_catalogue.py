"""The catalogue of invariants: each with its rule, and one public report that it comes from."""

from __future__ import annotations

import re

from harness.invariants import INVARIANTS
from harness.invariants.relations import RELATIONS
from tests.test_catalogue import REPOSITORY, table

PAGE = (REPOSITORY / "docs" / "reference" / "invariants.md").read_text(encoding="utf-8")
SECTIONS = re.split(r"^### (.+)\n", PAGE, flags=re.MULTILINE)[1:]
IDS, TEXTS = SECTIONS[::2], SECTIONS[1::2]
FORM = re.compile(
    r"\n(?P<rule>\S.{15,}?)\n\n"
    r"Seen in \[(?P<source>(?P<name>[\w./-]+)#(?P<number>\d+))\]\((?P<link>\S+)\)\. \S.{20,}?\n"
    r"(?:\n## .*)?\Z",
    re.DOTALL,
)
REPORTED = {row["source"] for name in ("reports.csv", "wire_reports.csv") for row in table(name)}


def test_it_has_every_invariant_and_relation_once() -> None:
    assert sorted(IDS) == sorted(each.id for each in (*INVARIANTS, *RELATIONS))
    between = PAGE.index("## Between runs")
    assert [each.id for each in RELATIONS if PAGE.index(f"### {each.id}\n") < between] == []


def test_each_tells_of_one_public_report_of_its_own() -> None:
    found = [FORM.match(text) for text in TEXTS]
    assert [name for name, match in zip(IDS, found, strict=True) if match is None] == []
    told = [match for match in found if match is not None]
    sources = [match["source"] for match in told]
    assert set(sources) <= REPORTED
    assert len(set(sources)) == len(sources)
    for match in told:
        assert match["link"] == f"https://github.com/{match['name']}/issues/{match['number']}"
