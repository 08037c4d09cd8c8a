"""openai-agents, as its recipe uses it, cancelled everywhere."""

import pytest

from tests.published.expected import Case, cases

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings("ignore:Exception ignored in. <coroutine object run_single_turn"),
]


@pytest.mark.parametrize("case", cases(__file__), ids=str)
def test_a_sweep_finds_what_is_written_down_and_nothing_else(case: Case) -> None:
    case.check()
