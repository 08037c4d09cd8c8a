"""Two loops that exist on paper only, for what loading asks of loops."""

from __future__ import annotations

from typing import Any

from harness.loops.kind import LoopKind


def _never(*_args: Any) -> Any:
    raise AssertionError("loading builds no loop")


TURN = LoopKind(
    "turn",
    {
        "max_steps": 16,
        "max_parallel_tool_calls": 4,
        "context_trim_threshold": 0.8,
        "cancel_grace": "0s",
        "model": "small",
    },
    ("safe", "reference"),
    _never,
    events=("text", "thinking", "tool_call", "tool_result", "done", "turn_end"),
)
FSM = LoopKind(
    "fsm",
    {"max_rounds": 8, "max_steps": 16, "plan": False, "seed": None},
    ("safe", "reference"),
    _never,
    states=("idle", "planning"),
)
KINDS = (TURN, FSM)
