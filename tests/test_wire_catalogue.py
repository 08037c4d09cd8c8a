"""What is shown here, and by what, of the public reports about streams, retries, fake models and
recorded traffic.

`data/wire_reports.csv` maps each to a scenario or a test, or to the reason why there is none, and
`data/wire_report_ids.txt` says what must be there.
"""

from __future__ import annotations

import re

from tests.test_catalogue import NAMED, exists, listed, table

REPORTS = table("wire_reports.csv")


def test_every_report_is_shown_or_has_its_reason() -> None:
    assert [f"{row['report']} {row['kind']}" for row in REPORTS] == listed("wire_report_ids.txt")
    for row in REPORTS:
        assert row["shown_by"] or row["reason"], row
        assert row["shown_by"] == "" or exists(row["shown_by"]), row
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", row["source"]), row


def test_what_a_reason_names_is_there() -> None:
    named = [name for row in REPORTS for name in NAMED.findall(row["reason"])]
    assert len(named) >= 10
    for name in named:
        assert exists(name if "::" in name else f"scenarios/{name}.yaml"), name


def test_a_reason_is_short() -> None:
    assert max(len(row["reason"]) for row in REPORTS) < 200


def test_no_report_is_in_both_tables() -> None:
    here = {row["report"] for row in REPORTS}
    assert here.isdisjoint(row["report"] for row in table("reports.csv"))
