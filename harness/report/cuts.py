"""What a loop took out of its conversation, and what the model is shown of it afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.core.events import (
    Compacted,
    ReplyEnded,
    RequestSent,
    Salvaged,
    Trimmed,
    TurnEnded,
    TurnStarted,
)
from harness.core.messages import Message
from harness.core.trace import Trace
from harness.core.wording import counted
from harness.report import text
from harness.report.values import message_text, word

SHOWN = 2
"""How many messages of a request are shown: the note or the summary in the place of what is gone
and the first message that was kept, or the last two.
"""


def indented(messages: Sequence[Message]) -> Iterator[str]:
    """Messages, a line each, below what they belong to."""
    for message in messages:
        yield f"    {message_text(message)}"


class _Sent:
    """The requests of a run, made whole."""

    def __init__(self) -> None:
        self._conversations: dict[str, tuple[Message, ...]] = {}

    def take(self, event: RequestSent) -> tuple[Message, ...]:
        """All messages of a request."""
        whole = self.last(event.conversation)[: event.kept] + event.added
        self._conversations[event.conversation] = whole
        return whole

    def last(self, conversation: str) -> tuple[Message, ...]:
        """All messages of a conversation's last request; none where there was none."""
        return self._conversations.get(conversation, ())


def _begins(event: RequestSent, messages: Sequence[Message]) -> Iterator[str]:
    yield f"  request {word(event.reply)} of {len(messages)} messages begins with"
    yield from indented(messages[:SHOWN])


def trims(trace: Trace) -> Iterator[str]:
    """Each cut of the history for a request, and how that request begins."""
    sent = _Sent()
    turn, waiting = 0, False
    for entry in trace:
        match entry.event:
            case TurnStarted(turn=turn):
                pass
            case Trimmed() as event:
                yield f"turn {turn}: {text.facts(event)}"
                waiting = True
            case RequestSent() as event:
                messages = sent.take(event)
                if waiting:
                    yield from _begins(event, messages)
                waiting = False
            case _:
                pass


def compactions(trace: Trace) -> Iterator[str]:
    """Each try to sum up, and how the conversation begins that the next reply is to.

    A request that is followed by one more try was for that one's summary, and is not shown.
    """
    sent = _Sent()
    turn, waiting = 0, False
    next_request: list[str] = []
    for entry in trace:
        match entry.event:
            case TurnStarted(turn=turn):
                waiting = False
            case TurnEnded():
                yield from next_request
                next_request = []
            case Compacted() as event:
                yield f"turn {turn}: {text.facts(event)}"
                next_request, waiting = [], True
            case RequestSent() as event:
                yield from next_request
                messages = sent.take(event)
                next_request = list(_begins(event, messages)) if waiting else []
                waiting = False
            case _:
                pass


def salvages(trace: Trace) -> Iterator[str]:
    """Each round that was left out, with what is known of what stood there, and how the first
    request of the next turn ends.
    """
    sent = _Sent()
    conversations: dict[str, str] = {}
    """Of each reply, by its place."""
    rounds: dict[str, tuple[str, Message]] = {}
    """By a call's id, the conversation in which it is made, and the message that makes it."""
    turn, cut = 0, 0
    for entry in trace:
        match entry.event:
            case TurnStarted(turn=turn):
                pass
            case RequestSent() as event:
                messages = sent.take(event)
                conversations[event.reply] = event.conversation
                if 0 < cut < turn:
                    yield f"  request {word(event.reply)} of {len(messages)} messages ends with"
                    yield from indented(messages[-SHOWN:])
                    cut = 0
            case ReplyEnded(reply=reply, message=Message() as message):
                here = conversations.get(reply, "")
                rounds.update((call.id, (here, message)) for call in message.calls)
            case Salvaged() as event:
                yield f"turn {turn}: {text.facts(event)}"
                found = next((rounds[each] for each in event.call_ids if each in rounds), None)
                stood = (*sent.last(found[0]), found[1]) if found else ()
                yield from _left_out(event, stood)
                cut = turn
            case _:
                pass


def _left_out(event: Salvaged, stood: Sequence[Message]) -> Iterator[str]:
    shown = stood[event.kept_messages :][: event.removed_messages]
    yield "  removed"
    yield from indented(shown)
    more = event.removed_messages - len(shown)
    if more:
        yield f"    and {counted(more, 'message')} that no request has shown"
