"""Calls and their results in Chat Completions: each tool message answers a call of the assistant's
message before it, each call once, in any order, before anything else.

A call's identity is its place, so where two calls have one id, it is answered twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from harness.core.json_text import Json
from harness.wire.strict.rule import Breach, Case


class Group(Struct):
    """A message, the ids of the calls in it, and the tool messages right behind it.

    `results` are the place of each, and the id that it answers; `after` is the place behind them.
    """

    calls: list[str]
    results: list[tuple[int, str]]
    after: int


def messages(case: Case) -> list[dict[str, Json]]:
    """The messages of a request; what is none counts as an empty one."""
    return case.once(_messages)


def _messages(case: Case) -> list[dict[str, Json]]:
    found = case.body.get("messages")
    return [each if isinstance(each, dict) else {} for each in _listed(found)]


def calls_in(message: dict[str, Json]) -> list[dict[str, Json]]:
    """The calls in a message; what is none counts as an empty one."""
    found = _listed(message.get("tool_calls")) if message.get("role") == "assistant" else []
    return [each if isinstance(each, dict) else {} for each in found]


def groups(case: Case) -> list[Group]:
    """The messages of a request that have calls, or results right behind them, with these."""
    return case.once(_groups)


def _groups(case: Case) -> list[Group]:
    return [group for group in _all_groups(case) if group.calls or group.results]


def _all_groups(case: Case) -> Iterator[Group]:
    group = Group([], [], 0)
    for at, message in enumerate(messages(case)):
        if message.get("role") == "tool":
            group.results.append((at, _id(message.get("tool_call_id"))))
        else:
            yield group
            group = Group([_id(call.get("id")) for call in calls_in(message)], [], at)
        group.after = at + 1
    yield group


def orphan(case: Case) -> Breach | None:
    """A tool message that follows no calls."""
    for group in groups(case):
        if group.results and not group.calls:
            return Breach(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
                "message with 'tool_calls'.",
                f"messages.[{group.results[0][0]}].role",
            )
    return None


def unasked(case: Case) -> Breach | None:
    """A tool message that follows calls, and answers none of them."""
    for group in groups(case):
        for at, call_id in group.results if group.calls else ():
            if call_id not in group.calls:
                return Breach(
                    f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' "
                    "of previous message.",
                    f"messages.[{at}].tool_call_id",
                )
    return None


def answered_twice(case: Case) -> Breach | None:
    """A call that has more than one result."""
    for group in groups(case):
        left = Counter(group.calls)
        seen: dict[str, int] = {}
        for at, call_id in group.results:
            if call_id in seen and not left[call_id]:
                return Breach(
                    f"Duplicate value for 'tool_call_id' of '{call_id}', in "
                    f"messages[{seen[call_id]}] and messages[{at}].",
                    f"messages.[{at}].tool_call_id",
                )
            seen[call_id] = at
            left[call_id] -= left[call_id] > 0
    return None


def unanswered(case: Case) -> Breach | None:
    """Calls that have no result; the provider names the place at which it should have been."""
    last = len(messages(case)) - 1
    for group in groups(case):
        left = Counter(group.calls) - Counter([call_id for _, call_id in group.results])
        if left:
            ids = ", ".join([call_id for call_id in dict.fromkeys(group.calls) if left[call_id]])
            return Breach(
                "An assistant message with 'tool_calls' must be followed by tool messages "
                "responding to each 'tool_call_id'. The following tool_call_ids did not have "
                f"response messages: {ids}",
                f"messages.[{min(group.after, last)}].role",
            )
    return None


def _listed(found: Json) -> list[Json]:
    return found if isinstance(found, list) else []


def _id(found: Json) -> str:
    return found if isinstance(found, str) else ""
