"""No agent tells the model its keys."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from harness.core import key_shapes
from harness.core.events import Delta, ReplyEnded, RequestSent, ToolEnded, TurnStarted
from harness.core.json_text import Json, dumps
from harness.core.messages import Message, Text, ToolCall
from harness.invariants.invariant import Facts, Fold
from harness.invariants.reader import Here, on

Heard: TypeAlias = TurnStarted | ToolEnded | Delta | ReplyEnded
"""What comes into an agent."""

_LEAST = 16
"""How long a key is at least."""
_CACHED = 4096
"""Up to how many characters it is kept what a text holds: the same ones come in run after run."""


class Secrets(Fold):
    """No request holds a key, a token or a password that nothing of the run had said before: not
    the user, nor a tool, nor the model.
    """

    id = "SECRETS"
    needs = (RequestSent,)

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.heard: list[Heard] = []
        self.told: set[str] = set()

    @on(TurnStarted, ToolEnded, Delta, ReplyEnded)
    def listened(self, event: Heard) -> None:
        """Keep what came into the agent; it is read only where a key was found."""
        self.heard.append(event)

    @on(RequestSent)
    def request(self, event: RequestSent) -> None:
        """Judge what a request adds."""
        for message in event.added:
            for text in _texts(message):
                if len(text) >= _LEAST:
                    self._look(text, event.reply)
        head = event.head
        if head is not None:
            self._look(head.system, event.reply)
            for tool in head.tools:
                self._look(tool.description, event.reply)

    def _look(self, text: str, reply: str) -> None:
        for kind, key in _cached(text) if len(text) <= _CACHED else _keys(text):
            if key not in self.told and not self._was_heard(key):
                self.told.add(key)
                self.report_here(
                    f"request {reply} holds {kind}, which nobody had told the agent in this run: "
                    f"{key[:4]}..., {len(key)} characters"
                )

    def _was_heard(self, key: str) -> bool:
        return any(key in text for event in self.heard for text in _said(event)) or key in "".join(
            [event.text for event in self.heard if isinstance(event, Delta)]
        )


def _keys(text: str) -> tuple[tuple[str, str], ...]:
    """The keys in a text, each with its kind."""
    return tuple([(each.name, text[each.start : each.end]) for each in key_shapes.find(text)])


_cached = lru_cache(_CACHED)(_keys)


def _texts(message: Message) -> Iterator[str]:
    for block in message.content:
        if isinstance(block, Text):
            yield block.text
        elif isinstance(block, ToolCall):
            yield from _in_json(block.args if block.raw is None else block.raw)


def _in_json(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _in_json(each)
    elif isinstance(value, list):
        for each in value:
            yield from _in_json(each)


def _said(event: Heard) -> Iterator[str]:
    """The texts that an event brought to the agent, whole."""
    match event:
        case TurnStarted(text=text):
            yield text or ""
        case ToolEnded():
            yield event.error or ""
            yield event.value if isinstance(event.value, str) else dumps(event.value)
        case ReplyEnded(message=Message() as message):
            yield from _texts(message)
        case _:
            pass
