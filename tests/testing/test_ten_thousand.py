"""Ten thousand generated scenarios, none of which is invalid: each is read from its file as it was,
can be played to its end, and breaks no invariant.
"""

from __future__ import annotations

import pytest

from harness.runner.agents import find_loop, loop_subject
from harness.testing.generated import check_generated
from tests.runner.scenarios import bare
from tests.testing.pool import pool
from tests.testing.test_generated_scenarios import reread

SHARES = {("turn",): 5_000, ("fsm",): 3_000, ("turn", "fsm"): 2_000}


@pytest.mark.nightly
@pytest.mark.parametrize("loops", SHARES, ids=" and ".join)
def test_none_of_ten_thousand_is_invalid(loops: tuple[str, ...]) -> None:
    assert sum(SHARES.values()) == 10_000
    drawn = pool(*loops, size=SHARES[loops])
    assert len({repr(scenario) for scenario in drawn}) == SHARES[loops]
    for scenario in drawn:
        again = reread(scenario)
        assert bare(again) == bare(scenario)
        for loop in loops:
            check_generated(again, loop_subject(find_loop(loop), again))
