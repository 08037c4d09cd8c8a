"""The conversation as a list: cut or mended where it broke off, added to, and summed up."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import takewhile

from harness.loops.fsm.messages import Message, user
from harness.loops.fsm.prompts import REMINDER_TAG, Texts


def salvage(messages: Sequence[Message]) -> list[Message]:
    """The longest start of a conversation in which every call is answered.

    A round is a message with calls and the results that follow it; the first one that something
    else interrupts, or that the end does, is where the conversation is cut. Results that nobody
    asked for are kept, and a result that is there once answers all calls of its id.
    """
    opened, waiting = 0, set[str | None]()
    for index, message in enumerate(messages):
        if message.role == "tool":
            waiting.discard(message.tool_call_id)
        elif waiting:
            break
        elif message.role == "assistant" and message.tool_calls:
            opened, waiting = index, {call.id for call in message.tool_calls}
    return list(messages[:opened] if waiting else messages)


def unanswered(messages: Sequence[Message], at: int) -> tuple[str, ...]:
    """The ids of the round at `at` that none of the results right behind it answers."""
    behind = takewhile(lambda message: message.role == "tool", messages[at + 1 :])
    given = {message.tool_call_id for message in behind}
    asked = [call.id for call in messages[at].tool_calls or ()]
    return tuple(dict.fromkeys(call_id for call_id in asked if call_id not in given))


def repair(messages: Sequence[Message], no_result: str) -> list[Message]:
    """The whole conversation with every call answered right behind it, once and in order.

    A result that came late goes to its place, one that nobody asked for goes away, and where there
    is none, `no_result` says so. What is valid already stays as it is.

    >>> from harness.loops.fsm.messages import ToolCall, user
    >>> cut = [Message("assistant", tool_calls=[ToolCall("1", "look")]), user("go on")]
    >>> [(message.role, message.content) for message in repair(cut, "none")]
    [('assistant', None), ('tool', 'none'), ('user', 'go on')]
    """
    kept: list[Message] = []
    waiting: dict[str | None, deque[int]] = {}
    """By id, where in `kept` the calls of the last round that used it wait for a result."""
    for message in messages:
        if message.role == "tool":
            places = waiting.get(message.tool_call_id)
            if places:
                kept[places.popleft()] = message
            continue
        kept.append(message)
        if message.role == "assistant" and message.tool_calls:
            waiting.update({call.id: deque() for call in message.tool_calls})
            for call in message.tool_calls:
                waiting[call.id].append(len(kept))
                kept.append(Message("tool", no_result, tool_call_id=call.id, name=call.name))
    return kept


def inject(messages: list[Message], prompts: Sequence[str]) -> None:
    """Put prompts into `messages`: before the user's last text where it comes last, else behind."""
    at = len(messages)
    if messages:
        last = messages[-1]
        if last.role == "user" and isinstance(last.content, str) and not last.tool_call_id:
            at -= 1
    messages[at:at] = [user(prompt, injected=True) for prompt in prompts]


def conversation(messages: Sequence[Message]) -> str:
    """What was said, as one text to be summed up; calls are not in it."""
    return "\n\n".join([f"{m.role}: {text}" for m in messages if (text := m.text())])


def kept_prompts(messages: Sequence[Message], texts: Texts) -> list[str]:
    """What the user said, which a compaction keeps word by word.

    Nudges and earlier summaries go. Of reminders of a mode, only the last unbroken run stays.
    """
    last = range(0)
    for index, message in enumerate(messages):
        if _is_reminder(message, texts):
            last = range(last.start if index == last.stop > 0 else index, index + 1)
    kept: list[str] = []
    for index, message in enumerate(messages):
        text = message.text() if message.role == "user" else ""
        if not text or text == texts.nudge or text.startswith(texts.compact_header):
            continue
        if index in last or not _is_reminder(message, texts):
            kept.append(text)
    return kept


def compacted(summary: str, prompts: Sequence[str], texts: Texts) -> list[Message]:
    """The conversation that stands for the one that was summed up."""
    frame = f"{texts.compact_header}{summary}{texts.compact_separator}".strip()
    return [user(frame), *[user(prompt) for prompt in prompts]]


def _is_reminder(message: Message, texts: Texts) -> bool:
    text = message.text() if message.role == "user" else ""
    start, _, end = texts.plan_approved.partition("%s")
    approved = len(text) >= len(start) + len(end) and text.startswith(start) and text.endswith(end)
    return approved or text.startswith(REMINDER_TAG)
