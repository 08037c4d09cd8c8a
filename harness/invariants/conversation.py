"""What the requests of a conversation show, and who said it: the user, the model or the loop."""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.events import RequestSent
from harness.core.json_text import well_formed
from harness.core.messages import Message


class Conversation:
    """One conversation as its last request shows it; each message is taken in once.

    `kept` leading messages were in the request before, `added` follow them; `removed` followed
    them before. `called` has the first message that shows a call, by the call's id.
    """

    __slots__ = ("added", "called", "kept", "messages", "removed")

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.called: dict[str, int] = {}
        self.kept = 0
        self.added: Sequence[Message] = ()
        self.removed: Sequence[Message] = ()

    def take(self, request: RequestSent) -> None:
        """Go on to the next request."""
        messages, called, kept = self.messages, self.called, request.kept
        self.removed = messages[kept:]
        for message in self.removed:
            for call in message.calls:
                if called.get(call.id, -1) >= kept:
                    del called[call.id]
        messages[kept:] = request.added
        for at, message in enumerate(request.added, kept):
            if message.role == "assistant":
                for call in message.calls:
                    called.setdefault(call.id, at)
        self.kept, self.added = kept, request.added

    @property
    def systems(self) -> int:
        """How many system messages lead the request."""
        for index, message in enumerate(self.messages):
            if message.role != "system":
                return index
        return len(self.messages)


class LiveText:
    """What the user said in the turn that is being played, and where the requests hold it.

    A loop may say more around it. A turn without words (a resume, the empty text) has nothing to
    be missed.
    """

    __slots__ = ("_at", "text")

    def __init__(self) -> None:
        self.text = ""
        self._at: int | None = None

    def start(self, text: str | None) -> None:
        """A turn begins."""
        self.text = well_formed(text or "").strip()
        self._at = None

    def place(self, conversation: Conversation) -> int | None:
        """The last message that holds the text, or None; quick while messages are only added."""
        if self._at is None or self._at >= conversation.kept:
            self._at = self.find(conversation.messages)
        return self._at

    def missing(self, conversation: Conversation) -> bool:
        """Whether the request does not hold what the user said."""
        return self.text != "" and self.place(conversation) is None

    def find(self, messages: Sequence[Message]) -> int | None:
        """The last of `messages` that holds the text."""
        for index in range(len(messages) - 1, -1, -1):
            message = messages[index]
            if message.role == "user" and self.text in well_formed(message.text):
                return index
        return None


class Voices:
    """Who said what. What neither a user nor the model said, the loop made: a note, a summary, a
    reminder, a reply that it changed.
    """

    __slots__ = ("_live", "_noted", "_replies", "_tools", "_users")

    def __init__(self) -> None:
        self._live = ""
        self._users: set[str] = set()
        self._replies: set[str] = set()
        self._tools: set[str] = set()
        self._noted: set[str] = set()

    def heard(self, text: str | None) -> None:
        """The user said `text`."""
        self._live = well_formed(text or "").strip()
        self._users.add(self._live)

    def replied(self, message: Message) -> None:
        """The model said this."""
        self._replies.add(said(message))
        self._tools.update([call.name for call in message.calls])

    def listen(self, messages: Sequence[Message]) -> None:
        """Note where the loop puts more around what the user says now: it will be sent again."""
        for message in messages:
            if message.role == "user" and self._live:
                text = said(message)
                if self._live in text:
                    self._users.add(text)

    def speaks_now(self, messages: Sequence[Message]) -> bool:
        """Whether what the user says now is among `messages`, or the user says nothing."""
        return not self._live or any(
            message.role == "user" and self._live in said(message) for message in messages
        )

    def made_by_the_loop(self, message: Message) -> bool:
        """Whether neither a user nor the model nor a tool said this."""
        match message.role:
            case "tool":
                return False
            case "system":
                return True
            case "user":
                return said(message) not in self._users
            case "assistant":
                calls = message.calls
                if calls:  # by name, for some agents give calls other ids
                    return not any(call.name in self._tools for call in calls)
                return said(message) not in self._replies

    def changed(self, message: Message) -> bool:
        """Whether this is a reply as no model gave it."""
        return message.role == "assistant" and self.made_by_the_loop(message)

    def new_note(self, messages: Sequence[Message]) -> bool:
        """Whether the loop says something here that it has not said before: what may stand in the
        place of messages that are gone.
        """
        found = False
        self.listen(messages)
        for message in messages:
            if self.made_by_the_loop(message):
                text = said(message)
                found = found or text not in self._noted
                self._noted.add(text)
        return found


def said(message: Message) -> str:
    """The text of a message, without white space around it."""
    return well_formed(message.text).strip()


def in_quotes(text: str) -> str:
    """A text as violations quote it: its beginning, where it is long."""
    return repr(text if len(text) <= 60 else text[:59] + "…")


def holds_text(messages: Sequence[Message], text: str) -> bool:
    """Whether a reply among `messages` has `text`, with more around it or with some of it cut."""
    for message in messages:
        if message.role == "assistant":
            shown = said(message)
            if text in shown or (shown and shown in text):
                return True
    return False
