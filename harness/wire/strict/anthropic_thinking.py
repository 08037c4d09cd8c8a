"""What Anthropic refuses of reasoning."""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.json_text import Json
from harness.core.messages import Thinking
from harness.wire.anthropic_words import redacted
from harness.wire.strict.anthropic_turns import THINKING, Block, Turn, generation, turns_of
from harness.wire.strict.rule import Breach, Case, Issued

_INTERLEAVED = "interleaved-thinking-"
_UNCHANGED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
    "These blocks must remain as they were in the original response."
)


def enabled(case: Case) -> bool:
    """Whether reasoning with a budget is asked for."""
    return _option(case).get("type") == "enabled"


def loop_without_thinking(case: Case) -> Breach | None:
    """A13: a loop of calls that does not begin with reasoning.

    Models reason once for a whole loop, unless they may in between: so it is enough that its first
    or its last turn begins with it.
    """
    turns = turns_of(case)
    if not turns or not turns[-1].of("tool_result"):
        return None
    loop: list[Turn] = []
    for turn in reversed(turns):
        if turn.role == "user" and not turn.of("tool_result"):
            break
        if turn.role == "assistant":
            loop.append(turn)
    firsts = [turn.blocks[0] for turn in (loop[0], loop[-1]) if turn.blocks] if loop else []
    if not firsts or any(block.kind in THINKING for block in firsts):
        return None
    found = f"Expected `thinking` or `redacted_thinking`, but found `{firsts[-1].kind}`"
    must = (
        "When `thinking` is enabled, a final `assistant` message must start with a thinking block"
    )
    return Breach(f"{firsts[-1].place}.type: {found}. {must}.")


def changed(case: Case) -> Breach | None:
    """A14: reasoning that comes back otherwise than it was given.

    In the model's latest turn all of it must be there in its order; before that, each block for
    itself must be one that was given.
    """
    issued = case.issued
    if issued is None:
        return None
    turns = [turn for turn in turns_of(case) if turn.role == "assistant"]
    for turn in turns:
        for block in turn.blocks:
            if block.kind in THINKING and not issued.given(_signature(block)):
                return _invalid(block)
    for turn in turns[:-1]:
        for block in turn.blocks:
            if block.kind in THINKING and not _was_given(_thought(block), issued):
                return _invalid(block)
    return _latest_changed(turns[-1], issued) if turns else None


def ends_with_thinking(case: Case) -> Breach | None:
    """A15: a turn of the model's that ends with reasoning."""
    for turn in turns_of(case):
        if turn.role == "assistant" and turn.blocks and turn.blocks[-1].kind in THINKING:
            kind = turn.blocks[-1].kind
            return Breach(
                f"messages.{turn.last}: The final block in an assistant message cannot be `{kind}`."
            )
    return None


def budget(case: Case) -> Breach | None:
    """A16: a budget that leaves nothing for the reply; reasoning in between may have more."""
    given, limit = _option(case).get("budget_tokens"), case.body.get("max_tokens")
    if any(beta.startswith(_INTERLEAVED) for beta in case.betas):
        return None
    if isinstance(given, int) and isinstance(limit, int) and given >= limit:
        return Breach("`max_tokens` must be greater than `thinking.budget_tokens`.")
    return None


def forced_tool(case: Case) -> Breach | None:
    """A16.choice: a call is forced where the model is to reason."""
    choice = case.body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") in ("any", "tool"):
        return Breach("Thinking may not be enabled when tool_choice forces tool use.")
    return None


def outdated(case: Case) -> Breach | None:
    """A17: a model that reasons as it sees fit has no budget."""
    if generation(case.model) >= (4, 7):
        return Breach('"thinking.type.enabled" is not supported for this model.')
    return None


def thinking_while_disabled(case: Case) -> Breach | None:
    """A22: the last message is the model's and holds reasoning, which is not asked for."""
    turns = turns_of(case)
    if _option(case).get("type") in ("enabled", "adaptive") or not turns:
        return None
    for block in turns[-1].blocks if turns[-1].role == "assistant" else ():
        if block.kind in THINKING:
            what = f"an `assistant` message in the final position cannot contain `{block.kind}`"
            return Breach(f"{block.place}: When thinking is disabled, {what}.")
    return None


def _option(case: Case) -> dict[str, Json]:
    found = case.body.get("thinking")
    return found if isinstance(found, dict) else {}


def _thought(block: Block) -> Thinking:
    if block.kind == "redacted_thinking":
        return redacted(block.text("data"))
    return Thinking(block.text("thinking"), block.text("signature"))


def _signature(block: Block) -> str:
    return _thought(block).signature or ""


def _was_given(thought: Thinking, issued: Issued) -> bool:
    return any(thought in group for group in issued.given(thought.signature or ""))


def _latest_changed(turn: Turn, issued: Issued) -> Breach | None:
    """Whether a turn's reasoning is something else than that of some replies, one after another."""
    blocks = [block for block in turn.blocks if block.kind in THINKING]
    thoughts = [_thought(block) for block in blocks]
    at = 0
    while at < len(blocks):
        rest = thoughts[at:]
        fits = [_fits(rest, group) for group in issued.given(rest[0].signature or "")]
        if not any(fits):
            return Breach(f"{blocks[at].place}: {_UNCHANGED}")
        at += max(fits)
    return None


def _fits(thoughts: Sequence[Thinking], group: Sequence[Thinking]) -> int:
    """How much of what comes back is what a reply had; the end of a reply that was cut off may be
    missing.
    """
    length = min(len(thoughts), len(group))
    return length if tuple(thoughts[:length]) == tuple(group[:length]) else 0


def _invalid(block: Block) -> Breach:
    return Breach(f"{block.place}: Invalid `signature` in `thinking` block")
