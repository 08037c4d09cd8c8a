"""Each rule refuses what breaks it and nothing else does, and accepts the same put right."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from harness.core.messages import Block, Message, ModelRequest, Text, Thinking, ToolCall
from harness.testing.strategies import histories
from harness.wire.codec import Asked
from harness.wire.gemini.codec import Gemini
from harness.wire.http import Request
from harness.wire.strict import case_of
from harness.wire.strict.gemini import RULES
from harness.wire.strict.rule import Case, Issued, refusal

NEW, OLD = "gemini-3-pro-preview", "gemini-2.5-flash"


def user(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts), **more}


def said(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def text(words: str = "Hi", **more: Any) -> dict[str, Any]:
    return {"text": words, **more}


def call(name: str = "f", signature: str | None = None) -> dict[str, Any]:
    signed = {} if signature is None else {"thoughtSignature": signature}
    return {"functionCall": {"name": name, "args": {}}, **signed}


def response(name: str = "f") -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"output": "ok"}}}


GO = user(text("Go"))


def case(*contents: Any, model: str = OLD, issued: Issued | None = None, **more: Any) -> Case:
    return Case({"model": model, "contents": list(contents), **more}, "", issued)


def memory() -> Issued:
    issued = Issued()
    issued.remember(Message("assistant", (Thinking("why", "EqQB+/8="), ToolCall("a", "f", {}))))
    issued.remember(Message("assistant", (Text("Hi"), Thinking("", "sig"))))
    return issued


KEPT: dict[str, Any] = {"model": NEW, "issued": memory()}
COUNT = "number of function response parts is equal"
SIGNED = {"model": NEW}

BROKEN: list[tuple[str, str, Case, Case]] = [
    ("G7", "contents is not specified", case(), case(GO)),
    ("G7", "contents is not specified", case(contents="Go"), case(GO)),
    ("G7", r"contents\[0\].parts: must not be empty", case(user(), GO), case(GO, GO)),
    ("G7", r"contents\[1\].parts", case(GO, {"role": "model"}, GO), case(GO, said(text()), GO)),
    ("G4", "valid role", case({"role": "tool", "parts": [text()]}), case(GO)),
    (
        "G4",
        "valid role: user, model.",
        case(GO, said(call()), {"parts": [response()]}),
        case({"parts": [text()]}, said(call()), {"role": "function", "parts": [response()]}),
    ),
    (
        "G2",
        "function call turn comes immediately after a user turn",
        case(said(call()), user(response())),
        case(GO, said(call()), user(response())),
    ),
    (
        "G2",
        "function call turn",
        case(said(text()), said(call()), user(response())),
        case(said(text()), GO, said(call()), user(response())),
    ),
    (
        "G3",
        "function response turn comes immediately after a function call turn",
        case(GO, said(text()), user(response())),
        case(GO, said(text(), call()), user(response())),
    ),
    ("G3", "response turn", case(user(response())), case(GO)),
    (
        "G1",
        COUNT,
        case(GO, said(call(), call("g")), user(response())),
        case(GO, said(call(), call("g")), user(response()), user(response("g"))),
    ),
    (
        "G1",
        COUNT,
        case(GO, said(call()), user(response(), response())),
        case(GO, said(call()), said(call()), user(response(), response())),
    ),
    (
        "G1",
        COUNT,
        case(GO, said(call()), user(text("Stop."))),
        case(GO, said(call()), user(response(), text("Stop."))),
    ),
    ("G1", COUNT, case(GO, said(call())), case(GO, said(call()), user(response()))),
    (
        "G5",
        r"missing a thought_signature in functionCall parts\. .*`default_api:f` , position 2\.",
        case(GO, said(call(), call("g", "c2ln")), user(response(), response("g")), **SIGNED),
        case(GO, said(call("f", "c2ln"), call("g")), user(response(), response("g")), **SIGNED),
    ),
    (
        "G5",
        "`default_api:g` , position 4",
        case(
            GO,
            said(call("f", "c2ln")),
            user(response()),
            said(call("g", "")),
            user(response("g")),
            **SIGNED,
        ),
        case(
            GO,
            said(call()),
            user(response()),
            user(text("And?")),
            said(call("g", "c2ln")),
            user(response("g")),
            **SIGNED,
        ),
    ),
    (
        "G5",
        "position 2",
        case(GO, said({"function_call": 1}), user(response()), model="models-of-tomorrow"),
        case(GO, said({"function_call": 1}), user(response())),
    ),
    (
        "G6",
        "Corrupted thought signature",
        case(GO, said(call("f", "EqQC")), user(response()), **KEPT),
        case(GO, said(call("f", "EqQB+/8=")), user(response()), **KEPT),
    ),
    (
        "G6",
        "Corrupted",
        case(GO, said(text(), text("", thoughtSignature="?")), GO, **KEPT),
        case(GO, said(text(), text("", thought_signature="c2ln")), GO, model=OLD, issued=memory()),
    ),
    (
        "G8",
        "end with a user role or a function response",
        case(GO, said(text())),
        case(GO, said(text()), GO),
    ),
]
IDS = [f"{rule}-{number}" for number, (rule, *_) in enumerate(BROKEN)]


@pytest.mark.parametrize(("rule", "words", "broken", "repaired"), BROKEN, ids=IDS)
def test_a_rule_refuses_just_what_breaks_it(
    rule: str, words: str, broken: Case, repaired: Case
) -> None:
    refused = refusal(broken, RULES, pedantic=True)
    assert refused is not None
    assert refused.rule.id == rule
    assert (refused.failure.status, refused.failure.kind) == (400, "INVALID_ARGUMENT")
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(refused.failure.message)
    others = [each for each in RULES if each.id != rule]
    assert refusal(broken, others, pedantic=True) is None
    assert refusal(repaired, RULES, pedantic=True) is None


def test_every_rule_is_broken_here() -> None:
    assert {rule for rule, *_ in BROKEN} == {rule.id for rule in RULES}


def test_pedantic_rules_speak_only_when_asked() -> None:
    for rule, _, broken, _ in BROKEN:
        told = refusal(broken, RULES)
        assert (told is None) == (rule in ("G7", "G8"))


def test_signatures_come_back_in_either_alphabet_and_packed() -> None:
    for signature in ("EqQB+/8=", "EqQB-_8=", "dGV4dDpzaWc="):
        kept = case(GO, said(call("f", signature)), user(response()), **KEPT)
        assert refusal(kept, RULES, pedantic=True) is None


@pytest.mark.parametrize(
    "signature",
    ["skip_thought_signature_validator", "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="],
)
def test_a_signature_that_says_that_there_is_none_is_let_through(signature: str) -> None:
    foreign = case(GO, said(call("f", signature)), user(response()), **KEPT)
    assert refusal(foreign, RULES, pedantic=True) is None


def test_what_a_library_keeps_frame_by_frame_is_one_turn() -> None:
    kept = [
        said(text("Let me ", thought=True)),
        said(text("see.", thought=True)),
        said(text("Bo")),
        said(text("th.")),
        said(call("f", "EqQB+/8="), call("g")),
        said(text("")),
        user(response(), response("g")),
    ]
    assert refusal(case(GO, *kept, **KEPT), RULES, pedantic=True) is None
    cut = refusal(case(*kept, **KEPT), RULES)
    assert cut is not None
    assert cut.rule.id == "G2"


def test_the_path_tells_the_model() -> None:
    path = f"http://provider.test/v1/models/{NEW}:generateContent"
    assert case_of(Request("POST", path, (), b"{}")).model == NEW


@given(histories())
def test_a_history_that_holds_together_is_accepted(history: tuple[Message, ...]) -> None:
    """Also by a model that signs its calls, where all that is signed comes back."""
    codec, issued = Gemini(), Issued()
    messages: list[Message] = []
    for number, message in enumerate(history):
        messages.append(_signed(message, f"s{number}"))
        issued.remember(messages[-1])
    for model, sent in ((OLD, history), (NEW, tuple(messages))):
        written = codec.write(Asked(ModelRequest(model, "", sent)))
        assert refusal(case_of(written, issued if model == NEW else None), RULES) is None


def _signed(message: Message, signature: str) -> Message:
    """The same with a signature for its calls."""
    content: list[Block] = [each for each in message.content if not isinstance(each, Thinking)]
    at = next((n for n, each in enumerate(content) if isinstance(each, ToolCall)), None)
    if at is not None:
        content.insert(at, Thinking("", signature))
    return replace(message, content=tuple(content))


@pytest.mark.parametrize("odd", [None, 1, "x", [1], [{"role": 1}], [{"parts": 1}], [[{}]]])
def test_odd_contents_are_judged_without_harm(odd: Any) -> None:
    for contents in (odd, [{"role": "model", "parts": odd}], [{"role": "user", "parts": odd}]):
        refusal(Case({"contents": contents}, "", memory()), RULES, pedantic=True)
    signed = {"functionCall": {}, "thoughtSignature": odd}
    refusal(case(GO, said(signed), user(response()), **KEPT), RULES)
