"""google-adk, as its recipe uses it and in other ways, cancelled everywhere."""

import pytest

import harness
from tests.published.expected import REPOSITORY, Case, cases

CASES = cases(__file__)
pytestmark = [pytest.mark.nightly]
TRIP = REPOSITORY / "docs" / "recipes" / "trip.yaml"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_sweep_finds_what_is_written_down_and_nothing_else(case: Case) -> None:
    case.check()


@pytest.mark.parametrize("way", ["Streamed", "Threads", "Synchronous"])
def test_other_ways_of_using_it_run_in_virtual_time(way: str) -> None:
    result = harness.run(TRIP, f"tests.published.google_adk.ways:{way}")
    assert [str(outcome) for outcome in result.outcomes] == ["Completed()", "Completed()"]
    assert (
        harness.run(TRIP, f"tests.published.google_adk.ways:{way}").trace.digest
        == result.trace.digest
    )
