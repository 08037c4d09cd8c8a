"""What must hold: one file a family, one class an invariant."""

from __future__ import annotations

from harness.invariants.accepted import Accepted
from harness.invariants.accounting import UsageTotals
from harness.invariants.calls import (
    BadArguments,
    CallTruth,
    FailVisible,
    ResultTotal,
    Slots,
    UnknownTool,
)
from harness.invariants.cancellation import Cancel, Quiesce
from harness.invariants.compaction import CompactHonest, CompactProgress
from harness.invariants.completeness import CompleteOnly, NoSilentDrop
from harness.invariants.durability import Durable, EffectKept, LogHistory
from harness.invariants.effects import EffectOnce
from harness.invariants.fake import Fake
from harness.invariants.invariant import Invariant
from harness.invariants.limits import Cap, Count, Limit, LoopDetect, Serial
from harness.invariants.network import NoNet
from harness.invariants.ordering import Order
from harness.invariants.pairing import Pair, Resume
from harness.invariants.recordings import Miss
from harness.invariants.retrying import RetryAfter, RetryBound, RetryVisible
from harness.invariants.roundtrip import RoundTrip
from harness.invariants.secrets import Secrets
from harness.invariants.shape import Shape
from harness.invariants.termination import OneTerminal, TerminalTruth
from harness.invariants.trimming import Bound, Estimate, Pinned, TaskKept, Trim
from harness.invariants.truth import OutcomeTruth, Sibling

INVARIANTS: tuple[Invariant, ...] = (
    Pair,
    Resume,
    OneTerminal,
    TerminalTruth,
    Cancel,
    EffectOnce,
    Quiesce,
    CompleteOnly,
    NoSilentDrop,
    Order,
    Slots,
    CallTruth,
    UnknownTool,
    BadArguments,
    ResultTotal,
    FailVisible,
    Limit,
    Count,
    Cap,
    Serial,
    LoopDetect,
    UsageTotals,
    Fake,
    Shape,
    RoundTrip,
    Accepted,
    NoNet,
    Miss,
    Secrets,
    RetryAfter,
    RetryBound,
    RetryVisible,
    OutcomeTruth,
    Sibling,
    EffectKept,
    Durable,
    LogHistory,
    Pinned,
    TaskKept,
    Trim,
    Bound,
    Estimate,
    CompactProgress,
    CompactHonest,
)
