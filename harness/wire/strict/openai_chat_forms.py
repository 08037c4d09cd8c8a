"""What stands in a Chat Completions request: lists that are empty, names that are too long, and
parameters that a model does not take.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.core.json_text import Json
from harness.wire.strict.openai_chat_pairing import calls_in, messages
from harness.wire.strict.rule import Breach, Case

_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_REASONS = re.compile(r"o\d|gpt-5(?!.*chat)")


def reasons(case: Case) -> bool:
    """Whether the model that is asked for is one that reasons."""
    return _REASONS.match(case.model.rpartition("/")[2]) is not None


def no_messages(case: Case) -> Breach | None:
    """There is no message."""
    return _empty("messages") if case.body.get("messages") == [] else None


def no_calls(case: Case) -> Breach | None:
    """A list of calls is empty."""
    for at, message in enumerate(messages(case)):
        if message.get("tool_calls") == []:
            return _empty(f"messages[{at}].tool_calls")
    return None


def no_content(case: Case) -> Breach | None:
    """A message says nothing, and has nothing else."""
    for at, message in enumerate(messages(case)):
        role = message.get("role")
        instead = any(
            message.get(key) for key in ("tool_calls", "function_call", "refusal", "audio")
        )
        if role == "function" or message.get("content") is not None:
            continue
        if role != "assistant" or not instead:
            return Breach(
                "Invalid value for 'content': expected a string, got null.",
                f"messages.[{at}].content",
            )
    return None


def long_id(case: Case) -> Breach | None:
    """The id of a call is too long: more than 40 characters, or 64 with models that reason."""
    most = 64 if reasons(case) else 40
    for at, message in enumerate(messages(case)):
        for n, call in enumerate(calls_in(message)):
            if breach := _long(call.get("id"), most, f"messages[{at}].tool_calls[{n}].id"):
                return breach
    return None


def odd_name(case: Case) -> Breach | None:
    """The name of a tool has other characters than letters, digits, _ and -."""
    for name, place in _names(case):
        if not _NAME.fullmatch(name):
            return Breach(
                f"Invalid '{place}': string does not match pattern. Expected a string that "
                f"matches the pattern '^{_NAME.pattern}$'.",
                place,
            )
    return None


def long_name(case: Case) -> Breach | None:
    """The name of a tool is longer than 64 characters."""
    for name, place in _names(case):
        if breach := _long(name, 64, place):
            return breach
    return None


def long_description(case: Case) -> Breach | None:
    """The description of a tool is longer than 1,024 characters."""
    for given, place in _tools(case):
        if breach := _long(given.get("description"), 1024, f"{place}.description"):
            return breach
    return None


def without_tools(case: Case) -> Breach | None:
    """There is a choice of tools, and no tool."""
    for key in ("tool_choice", "parallel_tool_calls"):
        if case.body.get(key) is not None and not case.body.get("tools"):
            return Breach(f"'{key}' is only allowed when 'tools' are specified.", key)
    return None


def temperature(case: Case) -> Breach | None:
    """A temperature, and not the one that is there without."""
    if case.body.get("temperature") in (None, 1):
        return None
    return _unsupported("temperature", "")


def max_tokens(case: Case) -> Breach | None:
    """A limit by its old name."""
    if case.body.get("max_tokens") is None:
        return None
    return _unsupported("max_tokens", " Use 'max_completion_tokens' instead.")


def _unsupported(key: str, instead: str) -> Breach:
    return Breach(f"Unsupported parameter: '{key}' is not supported with this model.{instead}", key)


def _empty(place: str) -> Breach:
    return Breach(
        f"Invalid '{place}': empty array. Expected an array with minimum length 1, but got an "
        "empty array instead.",
        place,
    )


def _long(text: Json, most: int, place: str) -> Breach | None:
    if not isinstance(text, str) or len(text) <= most:
        return None
    return Breach(
        f"Invalid '{place}': string too long. Expected a string with maximum length {most}, but "
        f"got a string with length {len(text)} instead.",
        place,
    )


def _names(case: Case) -> Iterator[tuple[str, str]]:
    """The names of tools and of functions that were called, and where they stand."""
    for given, place in _tools(case):
        yield from _named(given, place)
    for at, message in enumerate(messages(case)):
        for n, call in enumerate(calls_in(message)):
            for kind in ("function", "custom"):
                yield from _named(call.get(kind), f"messages[{at}].tool_calls[{n}].{kind}")


def _named(given: Json, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(given, dict) and isinstance(given.get("name"), str):
        yield given["name"], f"{place}.name"


def _tools(case: Case) -> Iterator[tuple[dict[str, Json], str]]:
    """What is told of each tool, and where."""
    tools = case.body.get("tools")
    for n, tool in enumerate(tools if isinstance(tools, list) else ()):
        for kind in ("function", "custom"):
            if isinstance(tool, dict) and isinstance(tool.get(kind), dict):
                yield tool[kind], f"tools[{n}].{kind}"
