"""What every provider wants of a request beside paired calls: who speaks first, nothing empty."""

from __future__ import annotations

from harness.core.events import ReplyEnded, RequestSent
from harness.core.messages import Image, Message, Text, Thinking, ToolCall
from harness.core.verdict import Severity
from harness.invariants.conversation import Conversation
from harness.invariants.invariant import Facts
from harness.invariants.reader import Here, on
from harness.invariants.requests import RequestFold, Sent


class Shape(RequestFold):
    """A request begins with a user's message, after the system's, has no message without content,
    and says signed reasoning first in its message.

    A main request that has lost what the user said is TASK-KEPT's to judge, and an empty result
    is no concern of this one. Where a loop puts a message of its own beside one of the same role,
    some providers object: a soft finding.
    """

    id = "SHAPE"
    needs = (RequestSent,)

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.spoken = False
        """Whether a turn in which the user said something has come to a request."""
        self.without_user = False
        """Whether a turn that resumes nothing has begun the main conversation."""
        self.open: set[str] = set()
        """Replies of which the trace does not yet say what they were."""
        self.told: set[str] = set()

    @on(ReplyEnded)
    def replied(self, event: ReplyEnded) -> None:
        """Take note that a reply is over."""
        self.open.discard(event.reply)

    def request(self, sent: Sent) -> None:
        """Judge what a request adds."""
        self.spoken = self.spoken or (sent.main and sent.live.text != "")
        conversation = sent.conversation
        for breach in (*self.roles(sent), *self.contents(conversation)):
            self.once(sent, breach, self.severity)
        for breach in self.neighbours(sent):
            self.once(sent, breach, "soft")
        self.open.add(sent.event.reply)

    def once(self, sent: Sent, breach: str, severity: Severity) -> None:
        """Report a breach, once however often it is sent."""
        if breach not in self.told:
            self.told.add(breach)
            self.report(f"{sent.name}: {breach}", sent.index, sent.turn, severity)

    def resumes_nothing(self, sent: Sent) -> bool:
        """Whether a turn resumes though the turns before it were cut before they had begun: what
        the user said then never reached the loop.
        """
        return not self.spoken and sent.turn > 1

    def roles(self, sent: Sent) -> list[str]:
        """What is wrong with who speaks first."""
        conversation = sent.conversation
        first = conversation.systems
        if first < conversation.kept or sent.missing:
            return []  # the message was there before, or is TASK-KEPT's to miss
        messages = conversation.messages
        if not any(message.role == "user" for message in messages):
            if self.resumes_nothing(sent):
                self.without_user = self.without_user or sent.main
                return []
            return ["there is no message of a user"]
        role = messages[first].role
        if role == "assistant" and self.without_user and sent.main:
            return []  # what came of the turn that resumed nothing stays the first
        if role != "user":
            return [f"the first message is the {role}'s, not a user's"]
        return []

    def contents(self, conversation: Conversation) -> list[str]:
        """What is wrong with single messages."""
        found: list[str] = []
        for at, message in enumerate(conversation.added, conversation.kept):
            if _says_nothing(message):
                found.append(f"messages[{at}]: a message of the {message.role} says nothing")
            elif message.role == "assistant" and _comes_late(message):
                found.append(f"messages[{at}]: signed reasoning does not come first")
        return found

    def neighbours(self, sent: Sent) -> list[str]:
        """Messages of one role beside each other, of which the loop made one."""
        found = []
        conversation, voices = sent.conversation, sent.voices
        before = conversation.messages[conversation.kept - 1] if conversation.kept else None
        for at, message in enumerate(conversation.added, conversation.kept):
            role = message.role
            if (
                before is not None
                and role == before.role
                and (role == "user" or (role == "assistant" and not self.open))
                and (voices.made_by_the_loop(message) or voices.made_by_the_loop(before))
            ):
                found.append(f"messages[{at}]: a second message of the {role} in a row")
            before = message
        return found


def _comes_late(message: Message) -> bool:
    """Whether a text or a call stands before signed reasoning; one without words is a signature
    alone, which some providers put beside a call.
    """
    other = False
    for block in message.content:
        if type(block) is not Thinking:
            other = True
        elif other and block.text and block.signature is not None:
            return True
    return False


def _says_nothing(message: Message) -> bool:
    """Whether a message has no content; a user may send the empty text, a model may not."""
    if message.role == "tool":
        return False
    if message.role != "assistant":
        return not message.content
    for block in message.content:
        match block:
            case Text(text=text) if text == "":
                continue
            case Text() | Thinking() | ToolCall() | Image():
                return False
    return True
