"""From the rows of a log to the messages that a model should see, one row at a time."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from msgspec import UNSET

from harness.core import json_text
from harness.core.messages import Block, Message, Text, ToolCall, tool_result
from harness.core.rows import (
    AssistantRow,
    Row,
    ThinkingRow,
    ToolCallRow,
    ToolResultRow,
    TurnEndRow,
    TurnStartRow,
    UserRow,
)
from harness.loops.turn.config import TEXTS, Texts
from harness.loops.turn.policy import SAFE, Policy


def derive(rows: Iterable[Row], policy: Policy = SAFE, texts: Texts = TEXTS) -> tuple[Message, ...]:
    """The messages that `rows` mean.

    The calls of one reply are one message; a call that the log holds no result for is answered in
    the tool's place, right after its siblings' results. Rows of calls inside a call (`parent_id`)
    and of reasoning say nothing to the model.
    """
    derivation = Derivation(policy, texts)
    for row in rows:
        derivation.add(row)
    return (*derivation.messages, *derivation.tail())


class Derivation:
    """Rows go in one by one; `messages` only ever grows, `tail` is what would close it now."""

    def __init__(self, policy: Policy = SAFE, texts: Texts = TEXTS) -> None:
        self.messages: list[Message] = []
        self._valid = policy.valid_history
        self._texts = texts
        self._reply: AssistantRow | None = None
        """What a reply said, whose calls may follow directly."""
        self._calls: list[ToolCall] = []
        """The calls of a reply that is not closed yet."""
        self._group = False
        """Whether the last messages are a reply with calls and results for them."""
        self._waiting: list[str] = []
        """The ids of its calls that have no result yet."""

    def add(self, row: Row) -> None:
        """Take in the next row."""
        if isinstance(row, ToolCallRow):
            if row.parent_id is UNSET:
                raw = None if row.raw is UNSET else row.raw
                self._calls.append(ToolCall(row.id, row.name, row.args, raw))
            return
        self._close_reply()
        match row:
            case UserRow(text=text, attachments=images):
                self._put(Message("user", (Text(text), *images)))
            case AssistantRow():
                self._reply = row
                if not self._valid:
                    self._close_reply()
            case ToolResultRow():
                if row.parent_id is UNSET:
                    self._answer(row)
            case TurnStartRow() | ThinkingRow() | TurnEndRow():
                pass

    def tail(self) -> list[Message]:
        """The messages that follow `messages` if the log ends here."""
        if not self._waiting and not self._calls and self._reply is None:
            return []
        end = copy.copy(self)
        end.messages = []
        end._close_reply()
        end._close_group()
        return end.messages

    def _close_reply(self) -> None:
        reply, calls = self._reply, self._calls
        if reply is None and not calls:
            return
        self._reply, self._calls = None, []
        blocks = () if reply is None else self._said(reply)
        if blocks or calls:
            self._put(Message("assistant", (*blocks, *calls)), calls)

    def _said(self, reply: AssistantRow) -> tuple[Block, ...]:
        signed = () if reply.thinking is UNSET else reply.thinking
        # Beside calls an empty text is left out; alone it is no message that a provider takes.
        return signed if self._valid and not reply.text else (*signed, Text(reply.text))

    def _put(self, message: Message, calls: Iterable[ToolCall] = ()) -> None:
        # The recorded behaviour does not look at a message that follows a group directly, so
        # calls in it stay unanswered; a valid history has no such gap.
        looked_at = self._valid or not self._group
        self._close_group()
        self.messages.append(message)
        if looked_at:
            self._waiting = [call.id for call in calls]
            self._group = bool(self._waiting)

    def _answer(self, row: ToolResultRow) -> None:
        if self._valid:
            if row.id not in self._waiting:
                return
            self._waiting.remove(row.id)
        else:
            self._waiting = [call_id for call_id in self._waiting if call_id != row.id]
        failed = row.error is not None and (row.error != "" or self._valid)
        text = f"Error: {row.error}" if failed else json_text.dumps(row.value)
        self.messages.append(tool_result(row.id, text, is_error=row.error is not None))

    def _close_group(self) -> None:
        for call_id in self._waiting:
            text = self._texts.derive_unanswered
            self.messages.append(tool_result(call_id, text, is_error=True))
        self._waiting = []
        self._group = False
