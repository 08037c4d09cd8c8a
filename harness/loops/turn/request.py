"""The next request, from what the log holds."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from msgspec import Struct

from harness.core.messages import ModelRequest
from harness.core.ports import SessionLog
from harness.loops.turn.config import AgentConfig, Texts
from harness.loops.turn.context import Seams
from harness.loops.turn.tokens import Estimate, text_tokens
from harness.loops.turn.trim import UNTRIMMED, Ledger, Trim, TrimOutcome


@runtime_checkable
class KeepsLedger(Protocol):
    """A log that keeps the sizes of its messages, so that a trim reads only what is new."""

    def ledger(self, estimate: Estimate) -> Ledger:
        """Its messages and their sizes under `estimate`."""
        ...


class NextRequest(Struct, frozen=True):
    """A request, what was cut to make it fit, and its estimated size where that was looked at."""

    request: ModelRequest
    cut: TrimOutcome
    tokens: int | None


def next_request(
    seams: Seams, config: AgentConfig, texts: Texts, estimate: Estimate, bound: Trim | None
) -> NextRequest:
    """What would be sent now, without a side effect.

    `bound` takes the place of `trim` where it is given; what it leaves is not measured again.
    """
    log = seams.log
    system = text_tokens(config.system_prompt)
    window, threshold = config.context_window_tokens, config.context_trim_threshold
    keep, marker = config.context_keep_recent, texts.trim_marker
    tokens: int | None = None
    if bound is not None:
        messages, outcome = bound(log.derive_messages(), system, window, threshold, keep)
    elif window == 0:
        messages, outcome = log.derive_messages(), UNTRIMMED
    else:
        ledger = _ledger(log, estimate)
        messages, outcome = ledger.cut(system, window, threshold, keep, marker)
        tokens = system + ledger.sent(outcome, marker)
    tools = tuple(seams.tools.schemas())
    request = ModelRequest(config.model, config.system_prompt, messages, tools)
    return NextRequest(request, outcome, tokens)


def _ledger(log: SessionLog, estimate: Estimate) -> Ledger:
    if isinstance(log, KeepsLedger):
        return log.ledger(estimate)
    ledger = Ledger(estimate)
    ledger.extend(log.derive_messages())
    return ledger
