"""What a provider remembers of its responses, by which a client refers to what was said before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from harness.core.json_text import Json

Item: TypeAlias = dict[str, Any]
"""An item of a conversation, as it goes over the wire."""


class Kept(Struct, frozen=True):
    """An item of a response: whether it was stored, and its place in the response.

    `reasoning` is the id of the reasoning right before it, `following` the id of what comes next;
    None where there is none.
    """

    item: Item
    stored: bool
    reasoning: str | None = None
    following: str | None = None


class _Response(Struct, frozen=True):
    """What was new in a response, what it was asked and what it answered; and the one before it."""

    previous: _Response | None
    items: Sequence[Item]


class Responses:
    """The responses of a provider by their ids, and the items in them by theirs."""

    def __init__(self) -> None:
        self._stored: dict[str, _Response] = {}
        self._items: dict[str, Kept] = {}

    def keep(self, body: Mapping[str, Any], reply: Mapping[str, Any]) -> None:
        """Keep a response: the body that asked for it, and its own.

        One that is not to be stored is known by its items only.
        """
        stored = body.get("store") is not False
        output: list[Item] = reply["output"]
        if stored:
            asked = [item for each in items_of(body) if (item := self.resolved(each)) is not None]
            previous = self._stored.get(str(body.get("previous_response_id")))
            self._stored[reply["id"]] = _Response(previous, (*asked, *output))
        for before, item, after in zip((None, *output), output, (*output[1:], None), strict=False):
            reasons = before is not None and before["type"] == "reasoning"
            self._items[item["id"]] = Kept(
                item,
                stored,
                before["id"] if before is not None and reasons else None,
                None if after is None else after["id"],
            )

    def chain(self, response_id: str) -> list[Item] | None:
        """The conversation up to the end of a response; None where none with the id is stored."""
        found = self._stored.get(response_id)
        if found is None:
            return None
        parts: list[Sequence[Item]] = []
        while found is not None:
            parts.append(found.items)
            found = found.previous
        return [item for part in reversed(parts) for item in part]

    def item(self, item_id: str) -> Kept | None:
        """An item of a response; None for a stranger."""
        return self._items.get(item_id)

    def resolved(self, item: Item) -> Item | None:
        """An item itself where it only refers to one; None where that is not stored."""
        if item.get("type") != "item_reference":
            return item
        kept = self._items.get(str(item.get("id")))
        return kept.item if kept is not None and kept.stored else None


def items_of(body: Mapping[str, Json]) -> list[Item]:
    """What a body brings of a conversation; a text is a user's message, and what is no item is
    left out.
    """
    given = body.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
