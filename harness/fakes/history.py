"""What a request's history shows of the turn that is played; reads each message once."""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.json_text import Json
from harness.core.messages import Message, ModelRequest, ToolCall
from harness.core.trace import common_prefix
from harness.fakes.line import Given, Line
from harness.fakes.well_formed import check_messages


class Reading:
    """What one request showed.

    `text_at` is the index of the message that holds the turn's text, -1 where none does. `shown`
    is the last step that the history shows; `marks` holds it for each message from `start` on, so
    that the next request is read from where it differs. `follows` is False where the request has
    nothing that tells it from a request of another conversation.
    """

    __slots__ = ("follows", "marks", "messages", "start", "system", "text_at")

    def __init__(
        self,
        system: str,
        messages: tuple[Message, ...],
        text_at: int,
        start: int,
        marks: list[int],
    ) -> None:
        self.system = system
        self.messages = messages
        self.text_at = text_at
        self.start = start
        self.marks = marks
        self.follows = True

    @property
    def shown(self) -> int:
        """The last step that the history shows, 0 where it shows none."""
        return self.marks[-1] if self.marks else 0


class History:
    """The main conversation, as its requests have shown it so far."""

    __slots__ = ("_by_call", "_last", "_line", "_text", "_turn_began")

    def __init__(self) -> None:
        self._by_call: dict[str, dict[Given, None]] = {}
        self._last: Reading | None = None
        self._line: Line | None = None
        self._text: str | None = None
        self._turn_began = False

    def start_turn(self, line: Line, text: str | None) -> None:
        """From here on, look for the replies of `line`, after the user's `text`."""
        self._line = line
        self._text = None if text is None else text.strip()
        self._turn_began = False

    def gave(self, given: Given) -> None:
        """From here on, recognise `given` by the ids of its calls."""
        for call in given.message.calls:
            self._by_call.setdefault(call.id, {})[given] = None

    def keep(self, reading: Reading) -> None:
        """Take `reading` for the conversation's last request."""
        self._last = reading
        self._turn_began = True

    def read(self, request: ModelRequest) -> Reading:
        """What `request` shows, read from where it differs from the last one.

        UsageError where it holds what is no message.
        """
        messages = tuple(request.messages)
        last = self._last
        kept = common_prefix(last.messages, messages) if last is not None else 0
        check_messages(messages[kept:], kept)
        if last is None or not self._turn_began:
            return self._first_of_turn(request, messages, kept)
        text_at, start, marks = last.text_at, last.start, last.marks
        if kept < start:
            if kept <= text_at:
                text_at = self._find_text(messages, 0)
            start, marks = text_at + 1, []
        reading = Reading(request.system, messages, text_at, start, marks[: kept - start])
        self._mark(reading)
        reading.follows = kept > text_at >= 0 or self._goes_on(reading, kept)
        return reading

    def _first_of_turn(
        self, request: ModelRequest, messages: tuple[Message, ...], kept: int
    ) -> Reading:
        """A request before any reply of the turn: what it holds was there before the replies.

        The text must be new, for an older turn may have had the same; only where old messages are
        gone, as after an undone turn, may it stand anywhere.
        """
        before = self._last.messages if self._last is not None else ()
        text_at = self._find_text(messages, kept)
        if text_at < 0 and not kept == len(before) < len(messages):
            text_at = self._find_text(messages, 0)
        reading = Reading(request.system, messages, text_at, len(messages), [])
        if text_at < 0:
            gone = self._text is None or kept < len(before)
            reading.follows = gone and self._goes_on(reading, kept)
        return reading

    def _find_text(self, messages: Sequence[Message], low: int) -> int:
        """The last user message from `low` on that holds the turn's text, or -1."""
        if self._text is None:
            return -1
        for index in range(len(messages) - 1, low - 1, -1):
            if messages[index].role == "user" and self._text in messages[index].text:
                return index
        return -1

    def _goes_on(self, reading: Reading, kept: int) -> bool:
        """Whether anything shows that the request is of this conversation."""
        last = self._last
        return (
            last is None
            or kept == len(last.messages)
            or reading.system == last.system
            or reading.shown > 0
            or last.messages[-1] in reading.messages
        )

    def _mark(self, reading: Reading) -> None:
        shown = reading.shown
        for message in reading.messages[reading.start + len(reading.marks) :]:
            if message.role == "assistant":
                shown = self._recognise(message, shown)
            reading.marks.append(shown)

    def _recognise(self, message: Message, shown: int) -> int:
        """The step that `message` shows, by its call ids, else by what it says or asks; `shown`
        where it shows none after that.
        """
        assert self._line is not None
        given = self._line.given
        calls = message.calls
        known = False
        for call in calls:
            same_id = self._by_call.get(call.id)
            if same_id is None:
                continue
            known = True
            if shown < len(given) and given[shown] in same_id:
                return shown + 1
            for each in same_id:
                if each.line is self._line and each.step > shown:
                    return each.step
        if known:
            return shown
        text = message.text
        asked = _asked(calls)
        for each in given[shown:]:
            if (each.said and each.said in text) or (asked and asked == _asked(each.message.calls)):
                return each.step
        return shown


def _asked(calls: list[ToolCall]) -> list[tuple[str, Json]]:
    return [(call.name, call.args) for call in calls]
