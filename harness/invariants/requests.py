"""What each request shows, and what it lacks of what had happened before it.

It is read once a run, for all invariants that judge requests: of the messages only those that a
request adds, so that the work grows with the trace and not with its square.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from harness.core.events import (
    Compacted,
    Estimated,
    ReplyEnded,
    RequestSent,
    ToolEffect,
    ToolEnded,
    ToolStarted,
    Trimmed,
    TurnEnded,
    TurnStarted,
)
from harness.core.json_text import Json
from harness.core.messages import Message, ToolCall
from harness.core.outcome import Completed
from harness.core.pairing import Breach, Follower
from harness.invariants.conversation import Conversation, LiveText, Voices
from harness.invariants.invariant import Fold
from harness.invariants.reader import Here, Reader, on


class ToolCalled(Struct, eq=False):
    """A call that a tool ran for, which the next request has to show: `number` counts runs of
    tools, `effect` says that it did what cannot be undone.
    """

    number: int
    call_id: str
    name: str
    args: Json
    turn: int
    effect: bool = False
    was_shown: bool = False


class Sent(Struct, eq=False):
    """A request as it was sent: its conversation stands as it shows it.

    `lost` are calls that it must show and does not. `stands_in` says that something may stand in
    the place of what is gone: the loop reported a cut, or says something that it has not said
    before. `missing` says that a main request does not hold what the user said.
    """

    index: int
    turn: int
    event: RequestSent
    conversation: Conversation
    voices: Voices
    live: LiveText
    missing: bool
    stands_in: bool
    lost: Sequence[ToolCalled]
    watched: bool
    """Whether there was any call that it had to show."""
    trimmed: Trimmed | None
    estimated: int | None
    fresh: bool
    """Whether it begins a conversation beside the main one, maybe another one of that name."""
    breaches: Sequence[Breach]
    """What of it breaks the pairing of calls and results, and has not in an earlier request."""

    @property
    def main(self) -> bool:
        """Whether this is the conversation between the user and the agent."""
        return self.event.conversation == "main"

    @property
    def name(self) -> str:
        """The request, as violations call it."""
        return f"request {self.event.reply}"


class RequestFold(Fold):
    """An invariant that judges requests."""

    def request(self, sent: Sent) -> None:
        """Judge a request."""
        raise NotImplementedError

    def tell(self, sent: Sent, message: str) -> None:
        """Report what is wrong with a request."""
        self.report(f"{sent.name} {message}", sent.index, sent.turn)


class Requests(Reader):
    """Reads a run and gives its requests, each to all `takers`."""

    def __init__(self, here: Here, takers: Sequence[Callable[[Sent], None]]) -> None:
        super().__init__(here)
        self._takers = takers
        self._voices = Voices()
        self._live = LiveText()
        self._conversations: dict[str, Conversation] = {}
        self._pairings: dict[str, _Pairing] = {}
        self._debts: dict[str, _Debts] = {}
        self._places: dict[str, str] = {}
        """The conversation of each reply, and of each call that the model asked for."""
        self._begun: set[str] = set()
        """Conversations beside the main one that the turn has begun."""
        self._several: set[str] = set()
        """Those of which it has begun several; whose call is missing there is not known."""
        self._runs = 0
        self._called: dict[str, ToolCalled] = {}
        self._structured = False
        """Whether the agent shows calls as calls; some write them out as plain text."""
        self._trimmed: Trimmed | None = None
        self._compacted = False
        self._estimated: int | None = None

    @on(TurnStarted)
    def _turn_started(self, event: TurnStarted) -> None:
        self._voices.heard(event.text)
        self._live.start(event.text)
        self._begun.clear()
        self._several.clear()

    @on(TurnEnded)
    def _turn_ended(self, event: TurnEnded) -> None:
        if isinstance(event.outcome, Completed):
            for debts in self._debts.values():
                debts.shown.clear()

    @on(ReplyEnded)
    def _replied(self, event: ReplyEnded) -> None:
        message = event.message
        if message is not None:
            self._voices.replied(message)
            where = self._places.get(event.reply, "main")
            self._places.update((call.id, where) for call in message.calls)

    @on(ToolStarted)
    def _started(self, event: ToolStarted) -> None:
        self._runs += 1
        called = ToolCalled(self._runs, event.call_id, event.name, event.args, self.here.turn)
        self._called[event.call_id] = called

    @on(ToolEffect)
    def _effect(self, event: ToolEffect) -> None:
        called = self._called.get(event.call_id)
        if called is not None:
            called.effect = True
            self._owe(called)

    @on(ToolEnded)
    def _ended(self, event: ToolEnded) -> None:
        called = self._called.get(event.call_id)
        if called is not None and event.end != "cancelled":
            self._owe(called)

    def _owe(self, called: ToolCalled) -> None:
        where = self._places.get(called.call_id, "main")
        debts = self._debts.get(where)
        if debts is None:
            debts = self._debts[where] = _Debts()
        debts.owe(called)

    @on(Trimmed)
    def _cut(self, event: Trimmed) -> None:
        self._trimmed = event

    @on(Compacted)
    def _summed_up(self, event: Compacted) -> None:
        self._compacted = self._compacted or event.failed is None

    @on(Estimated)
    def _sized(self, event: Estimated) -> None:
        self._estimated = event.tokens

    @on(RequestSent)
    def _request(self, event: RequestSent) -> None:
        name = event.conversation
        conversation = self._conversations.get(name)
        if conversation is None:
            conversation = self._conversations[name] = Conversation()
            self._pairings[name] = _Pairing()
        conversation.take(event)
        self._places[event.reply] = name
        added, voices, turn = conversation.added, self._voices, self.here.turn
        self._structured = self._structured or any(each.role == "tool" for each in added)
        reported = self._trimmed is not None or self._compacted
        stands_in = voices.new_note(added) or reported
        fresh = self._begins(event, conversation)
        if fresh or name in self._several:
            self._debts.pop(name, None)
        debts = self._debts.get(name)
        lost: Sequence[ToolCalled] = ()
        watched = False
        if debts is not None:
            debts.look(conversation)
            watched = bool(debts.missing or debts.shown)
            lost = debts.lost(turn)
            if lost and (stands_in or self._in_words(added)):
                lost = ()
        missing = name == "main" and self._live.missing(conversation)
        trimmed, estimated = self._trimmed, self._estimated
        self._trimmed = self._estimated = None
        self._compacted = False
        sent = Sent(
            self.here.index,
            turn,
            event,
            conversation,
            voices,
            self._live,
            missing,
            stands_in,
            lost,
            watched,
            trimmed,
            estimated,
            fresh,
            self._pairings[name].take(event),
        )
        for take in self._takers:
            take(sent)

    def _begins(self, event: RequestSent, conversation: Conversation) -> bool:
        """Whether this is the first request of a conversation beside the main one."""
        name = event.conversation
        if name == "main" or ("~" in event.reply and name in self._begun):
            return False  # it is sent again; nothing is that was asked for in a turn before
        if any(message.role == "assistant" for message in conversation.messages):
            return False
        if name in self._begun:
            self._several.add(name)
        self._begun.add(name)
        return True

    def _in_words(self, added: Sequence[Message]) -> bool:
        """Whether calls may be shown in words of the loop's own."""
        return not self._structured and any(map(self._voices.made_by_the_loop, added))


class _Pairing:
    """The breaches that each request of a conversation adds, each told once."""

    __slots__ = ("_follower", "_told")

    def __init__(self) -> None:
        self._follower = Follower()
        self._told: set[Breach] = set()

    def take(self, event: RequestSent) -> Sequence[Breach]:
        """Go on to the next request."""
        found = self._follower.take(event.kept, event.added)
        if not found:
            return ()
        fresh = [breach for breach in found if breach not in self._told]
        self._told.update(fresh)
        return fresh


class _Debts:
    """The calls that one conversation has to show: `missing` those that its last request does not,
    `shown` the others, each with its place there, in rising order.
    """

    __slots__ = ("missing", "shown")

    def __init__(self) -> None:
        self.missing: dict[str, ToolCalled] = {}
        self.shown: list[tuple[int, ToolCalled]] = []

    def owe(self, called: ToolCalled) -> None:
        """From the next request on this is to be shown."""
        if not called.was_shown:
            self.missing[called.call_id] = called

    def look(self, conversation: Conversation) -> None:
        """See what the next request shows; only what it adds is read."""
        missing, shown = self.missing, self.shown
        while shown and shown[-1][0] >= conversation.kept:
            _at, called = shown.pop()
            missing[called.call_id] = called
        if missing:
            for at, message in enumerate(conversation.added, conversation.kept):
                if message.tool_call_id is not None:
                    self._found(at, message.tool_call_id)
                elif message.role == "assistant":
                    for call in message.calls:
                        self._found(at, call.id)
        if missing:
            self._look_harder(conversation)

    def _look_harder(self, conversation: Conversation) -> None:
        """Some agents give calls other ids; what is owed late may have been shown before."""
        for at, message in enumerate(conversation.added, conversation.kept):
            for call in message.calls:
                same = self._same(call)
                if same is not None:
                    self._found(at, same.call_id)
        for call_id in list(self.missing):
            place = conversation.called.get(call_id)
            if place is not None:
                self._found(place, call_id)
        self.shown.sort(key=_place)

    def _same(self, call: ToolCall) -> ToolCalled | None:
        """A missing call of that tool with these arguments."""
        for called in self.missing.values():
            if called.name == call.name and called.args == call.args:
                return called
        return None

    def _found(self, at: int, call_id: str) -> None:
        called = self.missing.pop(call_id, None)
        if called is not None:
            called.was_shown = True
            self.shown.append((at, called))

    def lost(self, turn: int) -> list[ToolCalled]:
        """What is missing and must not be, in a request of `turn`; all is settled with it.

        What was shown once may be cut away later: within its turn, or as older than something of
        its turn that is still shown.
        """
        missing = self.missing
        if not missing and (not self.shown or self.shown[0][1].turn >= turn):
            return []
        newest = max((called.number for _at, called in self.shown), default=0)
        lost = [
            called
            for called in missing.values()
            if not called.was_shown or (called.turn < turn and called.number > newest)
        ]
        missing.clear()
        self.shown = [(at, called) for at, called in self.shown if called.turn >= turn]
        return lost


def _place(shown: tuple[int, ToolCalled]) -> int:
    return shown[0]
