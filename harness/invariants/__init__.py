"""What must hold: one file a family, one class an invariant."""

from __future__ import annotations

from harness.invariants.cancellation import Cancel, Quiesce
from harness.invariants.effects import EffectOnce
from harness.invariants.invariant import Invariant
from harness.invariants.pairing import Pair, Resume
from harness.invariants.termination import OneTerminal, TerminalTruth

INVARIANTS: tuple[Invariant, ...] = (
    Pair,
    Resume,
    OneTerminal,
    TerminalTruth,
    Cancel,
    EffectOnce,
    Quiesce,
)
