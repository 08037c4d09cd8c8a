"""What a model signed comes back as it was: a provider takes nothing else."""

from __future__ import annotations

from harness.core.events import Delta, Received, ReplyEnded, RequestSent
from harness.core.messages import Message, Thinking
from harness.invariants.invariant import Facts
from harness.invariants.reader import Here, on
from harness.invariants.requests import RequestFold, Sent


class RoundTrip(RequestFold):
    """Signed reasoning goes back with the calls that it led to, byte for byte; once the user has
    spoken again, all of it may be left out.
    """

    id = "ROUNDTRIP"
    needs = (RequestSent,)

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.turn = 0
        self.open: set[str] = set()
        """Replies of which the trace does not yet say what they were."""
        self.signed: set[Thinking] = set()
        self.signed_with: dict[str, list[tuple[int, list[Thinking]]]] = {}
        """For each call of an id: the turn that asked for it, the signed reasoning before it."""
        self.told: set[str] = set()
        self.over_http: set[str] = set()
        self.shown: set[str] = set()
        self.partly_known = False
        """Whether a client may have signed reasoning of a reply that is nowhere told whole."""

    @on(Received)
    def received(self, event: Received) -> None:
        """Over HTTP, signatures come before a reply is whole."""
        self.over_http.add(event.reply)

    @on(Delta)
    def came(self, event: Delta) -> None:
        """Some of a reply has come."""
        self.shown.add(event.reply)

    @on(ReplyEnded)
    def replied(self, event: ReplyEnded) -> None:
        """Remember what the model signed."""
        self.open.discard(event.reply)
        if event.message is None and event.reply in self.over_http:
            self.partly_known |= event.end == "torn" or event.reply in self.shown
        if event.message is not None:
            signed = _signed(event.message)
            self.signed.update(signed)
            for call in event.message.calls:
                self.signed_with.setdefault(call.id, []).append((self.turn, signed))

    def request(self, sent: Sent) -> None:
        """Judge what a request adds, each breach once however often it is sent."""
        self.turn = sent.turn
        conversation = sent.conversation
        for at, message in enumerate(conversation.added, conversation.kept):
            breach = self.changed(message) if message.role == "assistant" else None
            if breach is not None and (told := f"messages[{at}]: {breach}") not in self.told:
                self.told.add(told)
                self.report(f"{sent.name}: {told}", sent.index, sent.turn)
        self.open.add(sent.event.reply)

    def changed(self, message: Message) -> str | None:
        """What is wrong with the signed reasoning of a reply that is sent back."""
        if not self.signed:
            return None
        signed = _signed(message)
        known = not (self.open or self.partly_known)
        if known and not self.signed.issuperset(signed):
            return "signed reasoning is not what the model gave"
        for call in message.calls:
            given = self.signed_with.get(call.id)
            if given and all(self.is_missed(*each, signed) for each in given):
                return f"the signed reasoning before the call {call.id} is missing"
        return None

    def is_missed(self, turn: int, given: list[Thinking], signed: list[Thinking]) -> bool:
        """Whether a message with reasoning `signed` lacks what was `given` in a turn."""
        return bool(given) and given != signed and (bool(signed) or turn == self.turn)


def _signed(message: Message) -> list[Thinking]:
    return [
        block
        for block in message.content
        if type(block) is Thinking and block.signature is not None
    ]
