"""pydantic-ai, as its recipe uses it and in other ways, cancelled everywhere."""

import pytest

from tests.published.expected import Case, cases, check_way

pytestmark = [pytest.mark.nightly]


@pytest.mark.parametrize("case", cases(__file__), ids=str)
def test_a_sweep_finds_what_is_written_down_and_nothing_else(case: Case) -> None:
    case.check()


@pytest.mark.parametrize("way", ["Streamed", "Threads", "Synchronous"])
def test_other_ways_of_using_it_run_in_virtual_time(way: str) -> None:
    check_way(f"tests.published.pydantic_ai.ways:{way}")
