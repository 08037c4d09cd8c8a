"""What breaks each rule of Gemini's."""

from __future__ import annotations

from harness.wire.gemini_words import is_unjudged, read_signature, signs_calls
from harness.wire.strict.gemini_turns import Part, Turn, contents_of, turns_of
from harness.wire.strict.rule import Breach, Case

_ROLES = ("user", "model", "function")
"""The third is an old one of what functions gave."""


def signed(case: Case) -> bool:
    """Whether the model signs its calls."""
    return signs_calls(case.model)


def wrong_count(case: Case) -> Breach | None:
    """G1: a turn of calls that as many responses do not follow, also where nothing follows."""
    turns = turns_of(case)
    for at, turn in enumerate(turns):
        given = turns[at + 1].responses if at + 1 < len(turns) else []
        if turn.calls and len(turn.calls) != len(given):
            return Breach(
                "Please ensure that the number of function response parts is equal to the number "
                "of function call parts of the function call turn."
            )
    return None


def call_first(case: Case) -> Breach | None:
    """G2: calls with which a conversation begins, as where a history was cut."""
    turns = turns_of(case)
    if turns and turns[0].calls:
        return Breach(
            "Please ensure that function call turn comes immediately after a user turn or after a "
            "function response turn."
        )
    return None


def response_without_call(case: Case) -> Breach | None:
    """G3: responses that no calls stand before."""
    before: Turn | None = None
    for turn in turns_of(case):
        if turn.responses and (before is None or not before.calls):
            return Breach(
                "Please ensure that function response turn comes immediately after a function "
                "call turn."
            )
        before = turn
    return None


def wrong_role(case: Case) -> Breach | None:
    """G4: a role that is none, or a response in a content that says none."""
    responding = {part.content for turn in turns_of(case) for part in turn.responses}
    for number, content in enumerate(contents_of(case)):
        role = content.get("role")
        if role not in _ROLES and (role is not None or number in responding):
            return Breach("Please use a valid role: user, model.", f"contents[{number}].role")
    return None


def unsigned(case: Case) -> Breach | None:
    """G5: a step since the user spoke last whose first call has no signature."""
    steps: list[Part] = []
    for turn in turns_of(case):
        if turn.of_model:
            steps += turn.calls[:1]
        elif len(turn.responses) < len(turn.parts):
            steps = []
    for call in steps:
        if not _signature(call):
            given = call.get("functionCall")
            name = given.get("name") if isinstance(given, dict) else None
            return Breach(
                "Function call is missing a thought_signature in functionCall parts. This is "
                "required for tools to work correctly. Additional data, function call "
                f"`default_api:{name}` , position {call.content + 1}."
            )
    return None


def foreign_signature(case: Case) -> Breach | None:
    """G6: a signature that was never given."""
    issued = case.issued
    if issued is None:
        return None
    for turn in turns_of(case):
        for part in turn.parts:
            signature = _signature(part)
            known = not signature or is_unjudged(signature)
            if not known and not issued.given(read_signature(signature)):
                return Breach("Corrupted thought signature.")
    return None


def nothing_said(case: Case) -> Breach | None:
    """G7: no contents, or one without parts."""
    contents = contents_of(case)
    if not contents:
        return Breach("* GenerateContentRequest.contents: contents is not specified", "contents")
    for number, content in enumerate(contents):
        if not content.get("parts"):
            place = f"contents[{number}].parts"
            return Breach(f"* GenerateContentRequest.{place}: must not be empty", place)
    return None


def ends_with_model(case: Case) -> Breach | None:
    """G8: the model's words stand last; calls that do are for G1."""
    turns = turns_of(case)
    if turns and turns[-1].of_model and not turns[-1].calls:
        return Breach(
            "Please ensure that multiturn requests end with a user role or a function response."
        )
    return None


def _signature(part: Part) -> str:
    given = part.get("thoughtSignature")
    return given if isinstance(given, str) else ""
