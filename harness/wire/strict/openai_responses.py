"""What OpenAI refuses of a Responses request, by the numbers of dossier section 3.3.

What is judged is the whole conversation: with what the provider remembers, also the responses that
the request refers to. Without memory, R4 to R7 judge nothing. Not refused: items without their ids,
states or reasoning, and messages in the short form.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from harness.wire.responses import Item, Kept, items_of
from harness.wire.strict.rule import Breach, Case, Rule

_CALLS = {"function_call": "function", "custom_tool_call": "custom tool"}
_RESULTS = {f"{kind}_output": kind for kind in _CALLS}
_OTHERS = (*_RESULTS, "computer_call_output", "mcp_approval_response")
"""What stands in a conversation and is not the model's, beside messages."""


class _Talk(Struct, frozen=True):
    """A conversation: what the provider has, and what the request brings.

    `whole` says that nothing before it is unknown.
    """

    before: list[Item]
    own: list[Item]
    whole: bool


def _previous(case: Case) -> str | None:
    found = case.body.get("previous_response_id")
    return found if isinstance(found, str) else None


def _talk(case: Case) -> _Talk:
    own, previous, issued = items_of(case.body), _previous(case), case.issued
    before: list[Item] | None = []
    if issued is not None:
        own = [issued.responses.resolved(item) or item for item in own]
        before = [] if previous is None else issued.responses.chain(previous)
    elif previous is not None:
        before = None
    whole = before is not None and case.body.get("conversation") is None
    return _Talk(before or [], own, whole)


def _unknown_previous(case: Case) -> Breach | None:
    previous = _previous(case)
    if case.issued is None or previous is None:
        return None
    if case.issued.responses.chain(previous) is not None:
        return None
    return Breach(f"Previous response with id '{previous}' not found.", "previous_response_id")


def _not_stored(case: Case) -> Breach | None:
    """An item that is only referred to, or reasoning that only its id stands for."""
    if case.issued is None:
        return None
    for item in items_of(case.body):
        kept = case.issued.responses.item(_text(item, "id"))
        missing = kept is None or not kept.stored
        reasoning = kept is not None and item.get("type") == "reasoning"
        sealed = item.get("encrypted_content") is not None
        if missing and (item.get("type") == "item_reference" or (reasoning and not sealed)):
            return _input(
                f"Item with id '{_text(item, 'id')}' not found. Items are not persisted when "
                "`store` is set to false. Try again with `store` set to true, or remove this item "
                "from your input."
            )
    return None


def _duplicate(case: Case) -> Breach | None:
    talk = case.once(_talk)
    seen: set[str] = set()
    for item in (*talk.before, *talk.own):
        item_id = _text(item, "id")
        if item_id in seen:
            again = "Remove duplicate items from your input and try again."
            return _input(f"Duplicate item found with id {item_id}. {again}")
        if item_id:
            seen.add(item_id)
    return None


def _without_reasoning(case: Case) -> Breach | None:
    own = case.once(_talk).own
    ids = {_text(item, "id") for item in own}
    for item, kept in _known(case, own):
        if kept.stored and kept.reasoning is not None and kept.reasoning not in ids:
            return _input(
                f"Item '{item['id']}' of type '{kept.item['type']}' was provided without its "
                f"required 'reasoning' item: '{kept.reasoning}'."
            )
    return None


def _known(case: Case, items: list[Item]) -> Iterator[tuple[Item, Kept]]:
    """The items that the provider remembers, where it does."""
    if case.issued is None:
        return
    for item in items:
        kept = case.issued.responses.item(_text(item, "id"))
        if kept is not None:
            yield item, kept


def _without_following(case: Case) -> Breach | None:
    """Reasoning with an id, and behind it nothing of the model's, or another item than followed."""
    own = case.once(_talk).own
    for item, after in zip(own, (*own[1:], None), strict=False):
        if item.get("type") != "reasoning" or not _text(item, "id"):
            continue
        if after is None or not _follows(case, item, after):
            return _input(
                f"Item '{item['id']}' of type 'reasoning' was provided without its required "
                "following item."
            )
    return None


def _follows(case: Case, item: Item, after: Item) -> bool:
    after_id = _text(after, "id")
    if case.issued is not None and after_id:
        responses = case.issued.responses
        kept = responses.item(item["id"])
        if kept is not None and responses.item(after_id) is not None:
            return kept.following == after_id
    kind = after.get("type", "message")
    return after.get("role") == "assistant" if kind == "message" else kind not in _OTHERS


def _unasked(case: Case) -> Breach | None:
    talk = case.once(_talk)
    calls = {(item.get("type"), _text(item, "call_id")) for item in (*talk.before, *talk.own)}
    for item in talk.own if talk.whole else ():
        kind, call_id = _RESULTS.get(_text(item, "type")), _text(item, "call_id")
        if kind is not None and (kind, call_id) not in calls:
            what = f"{_CALLS[kind]} call output with call_id {call_id}"
            return _input(f"No tool call found for {what}.")
    return None


def _unanswered(case: Case) -> Breach | None:
    talk = case.once(_talk)
    items = (*talk.before, *talk.own)
    answered = {(_RESULTS.get(_text(item, "type")), _text(item, "call_id")) for item in items}
    for item in items:
        kind, call_id = _text(item, "type"), _text(item, "call_id")
        if kind in _CALLS and (kind, call_id) not in answered:
            return _input(f"No tool output found for {_CALLS[kind]} call {call_id}.")
    return None


def _input(message: str) -> Breach:
    return Breach(message, "input")


def _text(item: Item, key: str) -> str:
    found = item.get(key)
    return found if isinstance(found, str) else ""


RULES: tuple[Rule, ...] = (
    Rule(
        "R6",
        "The previous response is a stored one.",
        "reported",
        _unknown_previous,
        code="previous_response_not_found",
    ),
    Rule("R7", "What is referred to is stored.", "known", _not_stored, status=404),
    Rule("R5", "An item stands once.", "reported", _duplicate),
    Rule("R4", "What was reasoned about comes with it.", "reported", _without_reasoning),
    Rule("R3", "Reasoning comes with what follows it.", "reported", _without_following),
    Rule("R2", "Every output has a call.", "reported", _unasked),
    Rule("R1", "Every call has an output.", "reported", _unanswered),
)
"""The rules, in the order in which they speak."""
