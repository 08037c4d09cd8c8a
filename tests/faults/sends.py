"""Loops that send what they should not: one fault a class, as public reports tell of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from harness.core.events import InsideEvent, Trimmed
from harness.core.json_text import Json
from harness.core.messages import (
    Message,
    ModelRequest,
    Text,
    Thinking,
    assistant,
    tool_result,
    user,
)
from harness.core.outcome import Outcome, StepLimit
from harness.loops.turn.tokens import message_tokens
from tests.faults.seams import Sound

Group = list[Message]
"""A message with calls and the results that follow it, or any other message alone."""


def groups(messages: Iterable[Message]) -> list[Group]:
    found: list[Group] = []
    for message in messages:
        if message.role == "tool" and found:
            found[-1].append(message)
        else:
            found.append([message])
    return found


class LosesFailures(Sound):
    """Sends no result for a call that came to nothing."""

    def shows(self, messages: Sequence[Message]) -> Iterator[Message]:
        return (message for message in messages if not message.is_error)


class AnswersInTheUsersName(Sound):
    """Sends each result as a word of the user's."""

    def shows(self, messages: Sequence[Message]) -> Iterator[Message]:
        for message in messages:
            yield user(message.text) if message.role == "tool" else message


class LeavesTheLastStepOpen(Sound):
    """Sends no results for the calls after which the budget was spent."""

    def __init__(self, env: Any, settings: dict[str, Any]) -> None:
        super().__init__(env, settings)
        self.open: set[str | None] = set()

    async def turn(self, text: str | None) -> Outcome:
        outcome = await super().turn(text)
        if isinstance(outcome, StepLimit):
            self.open |= {call.id for call in groups(self.history())[-1][0].calls}
        return outcome

    def shows(self, messages: Sequence[Message]) -> Iterator[Message]:
        return (message for message in messages if message.tool_call_id not in self.open)


class AnswersTheFirstRoundOnly(Sound):
    """Sends results for the first calls of the conversation, and for no later ones."""

    def shows(self, messages: Sequence[Message]) -> Iterator[Message]:
        rounds = 0
        for group in groups(messages):
            rounds += len(group) > 1
            yield from group[:1] if rounds > 1 else group


class KeepsOneResultAnId(Sound):
    """Keeps results by the id of their call, so that of two with one id the last is left."""

    def shows(self, messages: Sequence[Message]) -> Iterator[Message]:
        last = {m.tool_call_id: at for at, m in enumerate(messages) if m.role == "tool"}
        for at, message in enumerate(messages):
            if message.role != "tool" or last[message.tool_call_id] == at:
                yield message


class KeepsOneResultATool(Sound):
    """Keeps results by the name of their tool, so that of two the last counts for both."""

    def shows(self, messages: Sequence[Message]) -> Iterator[Message]:
        for group in groups(messages):
            names = [call.name for call in group[0].calls]
            last = dict(zip(names, group[1:], strict=False))
            yield group[0]
            for name, result in zip(names, group[1:], strict=False):
                yield replace(result, content=last[name].content)


class AnswersInOrderOfFinishing(Sound):
    """Sends the results of parallel calls as they came in; refusals come in at once."""

    def __init__(self, env: Any, settings: dict[str, Any]) -> None:
        super().__init__(env, settings)
        self.finished: list[str | None] = []

    async def uses(self, name: str, args: Json, call_id: str | None) -> Json:
        value = await super().uses(name, args, call_id)
        self.finished.append(call_id)
        return value

    def shows(self, messages: Sequence[Message]) -> Iterator[Message]:
        for first, *results in groups(messages):
            yield first
            yield from sorted(results, key=self.when)

    def when(self, result: Message) -> int:
        known = result.tool_call_id in self.finished
        return self.finished.index(result.tool_call_id) if known else -1


class FlushesOldResults(Sound):
    """After a failure the later results of the reply are told as cancelled."""

    def shows(self, messages: Sequence[Message]) -> Iterator[Message]:
        for first, *results in groups(messages):
            yield first
            failed = False
            for result in results:
                assert result.tool_call_id is not None
                yield tool_result(result.tool_call_id, "cancelled") if failed else result
                failed = failed or result.is_error


class SendsNoEmptyResults(Sound):
    """Sends no result where there is nothing in it."""

    def shows(self, messages: Sequence[Message]) -> Iterator[Message]:
        return (m for m in messages if m.role != "tool" or m.text not in ("null", "[]"))


class LosesTheRound(Sound):
    """Sends nothing of a step that was cut off."""

    def shows(self, messages: Sequence[Message]) -> Iterator[Message]:
        for group in groups(messages):
            if not any(message.is_error for message in group):
                yield from group


class KeepsHalfAnswers(Sound):
    """Sends the half of an answer that had come when it was cut off, as if it were whole."""

    def __init__(self, env: Any, settings: dict[str, Any]) -> None:
        super().__init__(env, settings)
        self.half: list[Message] = []

    async def turn(self, text: str | None) -> Outcome:
        try:
            return await super().turn(text)
        finally:
            if self.text and not self.done:
                self.half = [assistant(self.text)]

    def shows(self, messages: Sequence[Message]) -> Iterator[Message]:
        yield from messages[:-1]
        yield from self.half
        yield messages[-1]


class ForgetsItsThoughts(Sound):
    """Sends no reasoning back, though it was signed."""

    def shows(self, messages: Sequence[Message]) -> Iterator[Message]:
        for message in messages:
            kept = [block for block in message.content if not isinstance(block, Thinking)]
            yield replace(message, content=tuple(kept))


class AddsLateResults(Sound):
    """Sends what a tool gave when its turn was long over."""

    def __init__(self, env: Any, settings: dict[str, Any]) -> None:
        super().__init__(env, settings)
        self.late: list[Message] = []

    async def uses(self, name: str, args: Json, call_id: str | None) -> Json:
        begun_in = self.number
        value = await super().uses(name, args, call_id)
        if self.number != begun_in:
            assert call_id is not None
            self.late.append(tool_result(call_id, str(value)))
        return value

    def shows(self, messages: Sequence[Message]) -> Iterator[Message]:
        yield from messages[:-1]
        yield from self.late
        yield messages[-1]


# --- histories that are cut


class Cutting(Sound):
    """Knows whether the next request was cut; what a fault makes of it is in `cut`."""

    def __init__(self, env: Any, settings: dict[str, Any]) -> None:
        super().__init__(env, settings)
        self.trimmed = False

    def tells(self, event: InsideEvent) -> Iterable[InsideEvent]:
        self.trimmed = self.trimmed or isinstance(event, Trimmed)
        return [event]

    def asks(self, request: ModelRequest) -> ModelRequest:
        request = super().asks(request)
        trimmed, self.trimmed = self.trimmed, False
        return self.cut(request) if trimmed else request

    def cut(self, request: ModelRequest) -> ModelRequest:
        """What is sent in place of a request that was cut."""
        note = request.messages[0]
        return replace(request, messages=(note, *self.left(self.history(), note)))

    def left(self, messages: Sequence[Message], note: Message) -> Sequence[Message]:
        """What is left of the history."""
        return messages


class CutsAnywhere(Cutting):
    """Keeps the last messages, wherever that cuts."""

    def left(self, messages: Sequence[Message], note: Message) -> Sequence[Message]:
        return messages[-self.settings.context_keep_recent :]


class CutsUntilItFits(Cutting):
    """Takes the oldest message away, again and again, until the rest fits."""

    def left(self, messages: Sequence[Message], note: Message) -> Sequence[Message]:
        budget = self.settings.context_window_tokens - message_tokens(note)
        while sum(map(message_tokens, messages)) > budget:
            messages = messages[1:]
        return messages


class CutsTheMiddle(Cutting):
    """Keeps the start and the end, and cuts between them."""

    def left(self, messages: Sequence[Message], note: Message) -> Sequence[Message]:
        return (*messages[:2], *messages[-1:])


class SummarizesItsTaskAway(Cutting):
    """Puts a summary of its own words in the place of what the user said."""

    def left(self, messages: Sequence[Message], note: Message) -> Sequence[Message]:
        rest = [message for message in messages[-4:] if message.role != "user"]
        return (assistant("So far I was asked to read."), *rest)


class ForgetsItsOrders(Cutting):
    """Loses the system prompt when it cuts."""

    def cut(self, request: ModelRequest) -> ModelRequest:
        return replace(request, system="")


class NeverCuts(Cutting):
    """Has switched cutting off: once there was nothing to cut, and that counted as a failure."""

    def cut(self, request: ModelRequest) -> ModelRequest:
        return replace(request, messages=self.history())


class CountsLetters(Cutting):
    """Counts four letters as a token, in whatever script, and cuts by that."""

    def cut(self, request: ModelRequest) -> ModelRequest:
        letters = sum(len(message.text) for message in self.history())
        fits = letters / 4 <= self.settings.context_window_tokens
        return replace(request, messages=self.history()) if fits else request


class StubsLongQuestions(Sound):
    """Puts a stub in the place of what a user said at length."""

    def shows(self, messages: Sequence[Message]) -> Iterator[Message]:
        for message in messages:
            long = message.role == "user" and len(message.text) > 200
            yield Message("user", (Text("[output removed]"),)) if long else message
