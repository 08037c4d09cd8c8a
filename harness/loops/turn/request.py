"""The next request, from what the log holds."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from harness.core.messages import ModelRequest
from harness.loops.turn.config import AgentConfig, Texts
from harness.loops.turn.context import Seams
from harness.loops.turn.tokens import Estimate, text_tokens
from harness.loops.turn.trim import Ledger, Trim, TrimOutcome, trim


@runtime_checkable
class KeepsLedger(Protocol):
    """A log that keeps the sizes of its messages, so that a trim reads only what is new."""

    def ledger(self, estimate: Estimate) -> Ledger:
        """Its messages and their sizes under `estimate`."""
        ...


def next_request(
    seams: Seams, config: AgentConfig, texts: Texts, estimate: Estimate, bound: Trim | None
) -> tuple[ModelRequest, TrimOutcome]:
    """What would be sent now, without a side effect, and what was cut to make it fit.

    `bound` takes the place of `trim` where it is given.
    """
    log = seams.log
    system = text_tokens(config.system_prompt)
    window, threshold = config.context_window_tokens, config.context_trim_threshold
    keep, marker = config.context_keep_recent, texts.trim_marker
    if bound is not None:
        messages, outcome = bound(log.derive_messages(), system, window, threshold, keep)
    elif window != 0 and isinstance(log, KeepsLedger):
        messages, outcome = log.ledger(estimate).cut(system, window, threshold, keep, marker)
    else:
        messages, outcome = trim(
            log.derive_messages(),
            system,
            window,
            threshold,
            keep,
            estimate=estimate,
            marker=marker,
        )
    tools = tuple(seams.tools.schemas())
    return ModelRequest(config.model, config.system_prompt, messages, tools), outcome
