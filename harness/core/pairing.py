"""Which result answers which call: the rule that every provider checks before it reads on.

Each call of an assistant message is answered exactly once, by the tool messages that follow it
directly, before anything else; a tool message answers a call of the assistant message before it.
Judged one message at a time, so that a growing history is never read twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from harness.core.messages import Message
from harness.core.wording import plural


class Breach(Struct, frozen=True):
    """One break of the rule, at message `index` of the list."""

    kind: Literal["unanswered", "orphan", "answered_twice"]
    index: int
    call_ids: tuple[str, ...]

    @property
    def message(self) -> str:
        """The breach, in a sentence."""
        ids = ", ".join(self.call_ids)
        match self.kind:
            case "unanswered":
                calls = plural("call", len(self.call_ids))
                return f"messages[{self.index}]: no result follows for the {calls} {ids}"
            case "orphan":
                return f"messages[{self.index}]: a result for {ids}, which no call before it asked"
            case "answered_twice":
                return f"messages[{self.index}]: a second result for {ids}"


class Open(Struct, frozen=True):
    """Where the rule stands after a message: calls of the last group, waiting and answered.

    A call's identity is its position, so ids are kept in a list and may repeat.
    """

    index: int = -1
    waiting: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()


START = Open()


def advance(state: Open, index: int, message: Message) -> tuple[Open, tuple[Breach, ...]]:
    """Take in message `index`; the new state, and what the message breaks."""
    if message.role == "tool":
        call_id = message.tool_call_id or ""
        if call_id in state.waiting:
            at = state.waiting.index(call_id)
            left = state.waiting[:at] + state.waiting[at + 1 :]
            return Open(state.index, left, (*state.answered, call_id)), ()
        kind: Literal["orphan", "answered_twice"] = (
            "answered_twice" if call_id in state.answered else "orphan"
        )
        return state, (Breach(kind, index, (call_id,)),)
    breaches = finish(state)
    if message.role == "assistant":
        calls = message.calls
        if calls:
            return Open(index, tuple([call.id for call in calls])), breaches
    return START, breaches


def finish(state: Open) -> tuple[Breach, ...]:
    """What is still open where the list ends here."""
    return (Breach("unanswered", state.index, state.waiting),) if state.waiting else ()


class Follower:
    """Judges the requests of one conversation, reading each message once however long it grows."""

    __slots__ = ("_states", "_within")

    def __init__(self) -> None:
        self._states: list[Open] = [START]
        self._within: list[tuple[int, Breach]] = []

    def take(self, kept: int, added: Sequence[Message]) -> list[Breach]:
        """All breaches of a request of which the first `kept` messages were there before."""
        states, within = self._states, self._within
        del states[kept + 1 :]
        while within and within[-1][0] >= kept:
            within.pop()
        for index, message in enumerate(added, kept):
            state, broken = advance(states[-1], index, message)
            states.append(state)
            within.extend((index, breach) for breach in broken)
        return [*(breach for _index, breach in within), *finish(states[-1])]


def breaches(messages: Iterable[Message]) -> tuple[Breach, ...]:
    """All breaches of a whole list.

    >>> from harness.core.messages import ToolCall, assistant, user
    >>> [b.message for b in breaches([assistant("", ToolCall("c1", "t", {})), user("go on")])]
    ['messages[0]: no result follows for the call c1']
    """
    state = START
    found: list[Breach] = []
    for index, message in enumerate(messages):
        state, broken = advance(state, index, message)
        found.extend(broken)
    return (*found, *finish(state))
