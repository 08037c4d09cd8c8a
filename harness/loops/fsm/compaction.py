"""Replacing a conversation that has grown too large by a summary and the user's own words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.loops.fsm.client import CancelCheck
from harness.loops.fsm.context import compacted, conversation, kept_prompts
from harness.loops.fsm.messages import Message, user, wire
from harness.loops.fsm.session import Session
from harness.loops.fsm.tokens import payload_tokens


def is_needed(session: Session) -> bool:
    """Whether the context is fuller than it should be, and something can be done about it."""
    if session.ratio is None or session.compacting or not session.tools_enabled:
        return False
    return session.ratio > session.settings.context_trigger


def compact(
    session: Session,
    messages: Sequence[Message],
    cancelled: CancelCheck,
    replace: Callable[[list[Message]], None],
) -> bool:
    """Ask for a summary and hand `replace` the conversation that takes the place of `messages`.

    False where nothing came of it; a failure is told, and the conversation may go on as it was.
    """
    prompts = kept_prompts(messages, session.texts)
    if not prompts:
        return False
    session.compacting = True
    try:
        reply = session.client.chat_sync(
            [user(conversation(messages))],
            system=session.texts.compact_prompt,
            cancel_check=cancelled,
        )
        summary = reply.without_reasoning()
        if not summary:
            return False
        shorter = compacted(summary, prompts, session.texts)
        if session.policy.compaction_must_shrink and _size(shorter) >= _size(messages):
            session.ports.log("compaction failed: the summary is no shorter than what it sums up")
            return False
        replace(shorter)
        session.notify("compact")
        return True
    except Exception as error:
        session.notify("error")
        session.ports.log(f"compaction failed: {error}")
        return False
    finally:
        session.compacting = False


def _size(messages: Sequence[Message]) -> int:
    return payload_tokens(None, [wire(message) for message in messages], [])
