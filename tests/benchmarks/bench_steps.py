"""What a long turn costs: one turn of 100 and of 1,000 steps, trace and verdict included.

Linear would be 10 times; what must be copied into each request grows with the history.
"""

from __future__ import annotations

import time

from harness.fakes.script import Reply, ScriptedCall
from harness.fakes.tool_spec import Behaviour, Returns, ToolSpec
from harness.loops import LOOPS
from harness.runner.run import run
from harness.runner.scenario import Scenario, Turn

ROUNDS = 5


def seconds(steps: int) -> float:
    """The best of several runs of one turn with `steps` model calls."""
    calls = [Reply(calls=(ScriptedCall("look", {"step": step}),)) for step in range(1, steps)]
    turn = Turn("Look around.", (*calls, Reply(say="Nothing to see.")))
    scenario = Scenario("steps", turns=(turn,), tools=(ToolSpec("look", Behaviour(Returns("x"))),))
    kind = next(kind for kind in LOOPS if kind.name == "turn")
    config = {"max_steps": 0, "context_window_tokens": 10_000_000}
    best = float("inf")
    for _round in range(ROUNDS):
        start = time.perf_counter()
        result = run(scenario, lambda env: kind.build(env, config, "safe"))
        best = min(best, time.perf_counter() - start)
        assert result.ok, result.failures
    return best


def main() -> None:
    """Measure and print."""
    short, long = seconds(100), seconds(1_000)
    print(f"  100 steps {short * 1000:8.1f} ms")
    print(f"1,000 steps {long * 1000:8.1f} ms, {long / short:.1f} times 100 steps")


if __name__ == "__main__":
    main()
