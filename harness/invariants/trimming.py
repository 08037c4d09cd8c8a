"""What a cut of the history may take, and how large what is left may be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from harness.core.events import ReplyEnded, RequestHead
from harness.core.messages import Message
from harness.core.wording import plural
from harness.invariants.conversation import Conversation, in_quotes, said
from harness.invariants.invariant import Facts
from harness.invariants.reader import Here, on
from harness.invariants.requests import RequestFold, Sent


class Pinned(RequestFold):
    """A cut of the history leaves the system prompt, the system messages at the front and the tools
    of a conversation as they were.

    A loop that changes them at other times too, as for a date or a mode, is free to; a tool that
    was called since the last request may have taken itself away.
    """

    id = "PINNED"

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.pins: dict[str, _Pins] = {}
        self.places: dict[str, str] = {}
        """The conversations of requests, by their replies."""
        self.called: dict[str, set[str]] = {}
        """By conversation, the tools that were called since its last request."""

    @on(ReplyEnded)
    def replied(self, event: ReplyEnded) -> None:
        """Remember what a whole reply called."""
        name = self.places.pop(event.reply, None)
        if name is not None and event.message is not None:
            self.called[name] = {call.name for call in event.message.calls}

    def request(self, sent: Sent) -> None:
        """Hold what stands before the history against what stood there first."""
        name, head = sent.event.conversation, sent.event.head
        pins, called = self.pins.get(name), self.called.pop(name, set())
        self.places[sent.event.reply] = name
        if pins is None or sent.fresh:
            head = pins.head if pins is not None and head is None else head
            assert head is not None, "a conversation's first request has a head"
            # Where earlier turns sent nothing, the history may be cut already, and a note lead it.
            pinned = 0 if sent.main and sent.turn > 1 else sent.conversation.systems
            self.pins[name] = _Pins(head, sent.conversation, pinned)
        elif pins.look(sent, called):
            self.judged = True
            for lost in pins.lost:
                self.tell(sent, f"was cut and lost {lost}")


class _Pins:
    """What stood before the history of one conversation at first, and what of that is gone."""

    def __init__(self, head: RequestHead, conversation: Conversation, pinned: int) -> None:
        self.lost: list[str] = []
        """What this request has lost, and no request had before."""
        self.head = head
        self._system: str | None = head.system
        """What the system prompt is known to hold; None where it changes by itself."""
        self._tools = {tool.name for tool in head.tools}
        leading = conversation.messages[: conversation.systems]
        self._front = [said(message) for message in leading[:pinned]]
        self._systems = [
            at for at, each in enumerate(conversation.messages) if each.role == "system"
        ]
        self._leading = len(leading)
        self._opening = conversation.messages[len(leading) : len(leading) + 1]
        self._spoken = len(conversation.messages) - len(self._systems)

    def look(self, sent: Sent, called: AbstractSet[str]) -> bool:
        """Take in a request; whether its history was cut. Of the tools, those that were `called`
        may be gone.
        """
        conversation, head = sent.conversation, sent.event.head
        messages, kept = conversation.messages, conversation.kept
        while self._systems and self._systems[-1] >= kept:
            self._systems.pop()
        self._systems += [
            at for at, each in enumerate(conversation.added, kept) if each.role == "system"
        ]
        front = conversation.systems
        spoken, opening = len(messages) - len(self._systems), messages[front : front + 1]
        cut = spoken < self._spoken or opening != self._opening or front < self._leading
        self._spoken, self._opening, self._leading = spoken, opening, front
        lost: list[str] = []
        if head is not None:
            self.head = head
            self._tools -= called - {tool.name for tool in head.tools}
            lost += self._lost_of_head()
        if self._front and kept < len(self._front):
            lost += self._lost_of_front(messages)
        self.lost = lost
        return cut

    def _lost_of_head(self) -> Iterator[str]:
        if self._system is not None and self._system not in self.head.system:
            self._system = None
            yield "its system prompt"
        gone = self._tools - {tool.name for tool in self.head.tools}
        if gone:
            self._tools -= gone
            yield f"tools: {', '.join(sorted(gone))}"

    def _lost_of_front(self, messages: Sequence[Message]) -> Iterator[str]:
        there = [self.head.system, *(said(messages[at]) for at in self._systems)]
        for text in self._front:
            if not any(text in each for each in there):
                yield f"the system message {in_quotes(text)}"
        self._front = [text for text in self._front if any(text in each for each in there)]


class TaskKept(RequestFold):
    """What the user said in a turn is in each request of the turn, unless another model has put it
    into other words.
    """

    id = "TASK-KEPT"

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.told = 0
        self.beside: set[str] = set()
        """Replies outside the main conversation, by their place."""
        self.summaries: list[str] = []
        """What they said."""

    @on(ReplyEnded)
    def replied(self, event: ReplyEnded) -> None:
        """Remember what was said beside the main conversation."""
        if event.message and event.reply in self.beside:
            self.summaries.append(said(event.message))

    def request(self, sent: Sent) -> None:
        """Look for the user's text."""
        if not sent.main:
            self.beside.add(sent.event.reply)
            return
        self.judged = self.judged or sent.live.text != ""
        if sent.missing and self.told != sent.turn:
            self.told = sent.turn
            if not self.put_in_other_words(sent.conversation):
                self.tell(sent, f"has lost what the user said in turn {sent.turn}")

    def put_in_other_words(self, conversation: Conversation) -> bool:
        """Whether the request holds what a model outside the conversation has said."""
        texts = [said(message) for message in conversation.added]
        return any(summary and summary in text for summary in self.summaries for text in texts)


class Trim(RequestFold):
    """A cut takes the oldest first: no reply is gone from between others of its kind, those with
    calls and those without, that are still there.

    A call without its results is PAIR's to judge, and a newest step that is gone EFFECT-KEPT's.
    """

    id = "TRIM"

    def request(self, sent: Sent) -> None:
        """Hold a request against the one before."""
        gap = self.gap(sent) if sent.conversation.removed else None
        if gap:
            self.tell(sent, f"was cut and lost {gap}, though older ones are kept")

    def gap(self, sent: Sent) -> str | None:
        """A reply that is gone although an older one and something newer are left."""
        conversation = sent.conversation
        left = [_key(message) for message in conversation.added]
        before = [_key(message) for message in conversation.removed]
        there = set(left)
        gone = [key not in there for key in before]
        if not any(gone):
            return None
        self.judged = True
        kinds = ["calls"]
        if not any(sent.voices.changed(message) for message in conversation.added):
            kinds.append("reply")  # else a reply that seems gone may be one that was shortened
        replies = [key for key in left if key[0] in ("calls", "reply")]
        if not replies:
            return None
        # What is gone after the newest reply that is left was taken back, not cut out.
        end = before.index(replies[-1]) if replies[-1] in before else len(before)
        older = {_kind(message) for message in conversation.messages[: conversation.kept]}
        for message, away in zip(conversation.removed[:end], gone, strict=False):
            kind = _kind(message)
            if not away:
                older.add(kind)
            elif kind in kinds and kind in older:
                return _named(message)
        return None


def _kind(message: Message) -> str:
    if message.role != "assistant":
        return message.role
    return "calls" if message.calls else "reply"


def _key(message: Message) -> tuple[str, ...]:
    """What a message is known by, though it may be shortened."""
    kind = _kind(message)
    if kind == "calls":
        return kind, *(call.id for call in message.calls)
    return kind, message.tool_call_id or said(message)


def _named(message: Message) -> str:
    calls = [call.id for call in message.calls]
    if not calls:
        return f"the reply {in_quotes(said(message))}"
    return f"the {plural('call', len(calls))} {', '.join(calls)}"


class Bound(RequestFold):
    """After a cut a request is within its budget by the loop's own estimate, unless no more is left
    than the messages that are always kept, or the turn that is being played.
    """

    id = "BOUND"

    def request(self, sent: Sent) -> None:
        """Hold the estimate of a request that was cut against the budget of the cut."""
        cut, tokens = sent.trimmed, sent.estimated
        if cut is None or tokens is None:
            return
        self.judged = True
        always = self.facts.budget.keep_messages or 0
        if tokens > cut.budget and cut.kept_messages > always and not self.nothing_else(sent):
            self.tell(
                sent,
                f"was cut to a budget of {cut.budget} tokens and still has ~{tokens}, "
                f"in {cut.kept_messages} messages",
            )

    def nothing_else(self, sent: Sent) -> bool:
        """Whether the turn that is being played is all that is left, beside a note."""
        conversation = sent.conversation
        live = sent.live.place(conversation)
        return live is not None and live <= conversation.systems + 1


FACTOR = 2
"""How far a loop's estimate may be from what a provider would count, either way."""
SMALL = 200
"""Below this many tokens the frame of a request weighs too much to compare."""


class Estimate(RequestFold):
    """A loop's estimate of a request of 200 tokens or more is within a factor of 2 of what a
    provider would count.
    """

    id = "ESTIMATE"

    def request(self, sent: Sent) -> None:
        """Hold an estimate against the request that it is of."""
        estimated, tokens = sent.estimated, sent.event.tokens
        if estimated is None or tokens < SMALL:
            return
        self.judged = True
        if not tokens / FACTOR <= estimated <= tokens * FACTOR:
            self.tell(
                sent,
                f"was estimated as {estimated} tokens; a provider would count about {tokens}",
            )
