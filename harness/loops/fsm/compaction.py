"""Replacing a conversation that has grown too large by a summary and the user's own words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.core.events import Compacted
from harness.loops.fsm.client import CancelCheck
from harness.loops.fsm.context import compacted, conversation, kept_prompts
from harness.loops.fsm.messages import Message, user, wire
from harness.loops.fsm.session import Session
from harness.loops.fsm.tokens import payload_tokens


def is_needed(session: Session, patience: float = 0.0) -> bool:
    """Whether the context is fuller than it should be, and something can be done about it;
    `patience` is how full it may be all the same.
    """
    if session.ratio is None or session.compacting or not session.tools_enabled:
        return False
    return session.ratio > max(session.settings.context_trigger, patience)


def compact(
    session: Session,
    messages: Sequence[Message],
    cancelled: CancelCheck,
    replace: Callable[[list[Message]], None],
) -> bool:
    """Ask for a summary and hand `replace` the conversation that takes the place of `messages`.

    False where nothing came of it; a failure is told, and the conversation may go on as it was.
    """
    before = after = _size(messages)
    failed: str | None = None
    session.compacting = True
    try:
        shorter = _shorter(session, messages, cancelled)
        replace(shorter)
        after = _size(shorter)
        session.notify_done("compact")
    except _Useless as useless:
        failed = str(useless)
    except Exception as error:
        failed = str(error)
        session.notify("error")
        session.ports.log(f"compaction failed: {error}")
    finally:
        session.compacting = False
    session.ports.observe(Compacted(before, after, failed))
    return failed is None


class _Useless(Exception):
    """There is nothing to put in the conversation's place, though nothing broke."""


def _shorter(
    session: Session, messages: Sequence[Message], cancelled: CancelCheck
) -> list[Message]:
    """What may take the place of `messages`; raises _Useless, and what the client raises."""
    prompts = kept_prompts(messages, session.texts)
    if not prompts:
        raise _Useless("the user has said nothing")
    reply = session.client.chat_sync(
        [user(conversation(messages))],
        system=session.texts.compact_prompt,
        cancel_check=cancelled,
    )
    summary = reply.without_reasoning()
    if not (summary.strip() if session.policy.summary_must_say_something else summary):
        raise _Useless("the summary is empty")
    shorter = compacted(summary, prompts, session.texts)
    if session.policy.compaction_must_shrink and _size(shorter) >= _size(messages):
        why = "the summary is no shorter than what it sums up"
        session.ports.log(f"compaction failed: {why}")
        raise _Useless(why)
    return shorter


def _size(messages: Sequence[Message]) -> int:
    return payload_tokens(None, [wire(message) for message in messages], [])
