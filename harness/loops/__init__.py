"""The reference loops: what the harness is tried on, and what a good loop may look like."""

from __future__ import annotations

from harness.loops.fsm.agent import KIND as FSM
from harness.loops.kind import LoopKind
from harness.loops.turn.agent import KIND as TURN

LOOPS: tuple[LoopKind, ...] = (TURN, FSM)
