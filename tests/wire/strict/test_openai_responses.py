"""Each thing that OpenAI refuses of Responses is refused as it does, and its neighbour is not."""

from __future__ import annotations

import pytest

from harness.core.json_text import Json
from harness.core.messages import Message, Text, Thinking, ToolCall, tool_result, user
from harness.wire import asked_by, refused_by, remember
from harness.wire.codec import Answer
from harness.wire.http import Request
from harness.wire.openai_responses.codec import OpenAIResponses
from harness.wire.strict.openai_responses import RULES
from harness.wire.strict.rule import Issued, Refused
from harness.wire.writing import bytes_of

CODEC = OpenAIResponses()
USER: Json = {"role": "user", "content": "Hi"}
CALLS = (ToolCall("a", "f", {}), ToolCall("b", "f", {}))
MESSAGE = Message("assistant", (Thinking("hm", "sealed"), *CALLS))
RS: Json = {"type": "reasoning", "id": "rs_1_0", "summary": []}
FC: Json = {"type": "function_call", "id": "fc_1_1", "call_id": "a", "name": "f", "arguments": "{}"}
FC2: Json = {**FC, "id": "fc_1_2", "call_id": "b"}
BARE: Json = {key: value for key, value in FC.items() if key != "id"}
DONE: Json = {"type": "function_call_output", "call_id": "a", "output": ""}
DONE2: Json = {**DONE, "call_id": "b"}
CUSTOM: Json = {"type": "custom_tool_call", "call_id": "a", "name": "f", "input": ""}
SAID: Json = {"role": "assistant", "content": "Well."}


def refer(item_id: str) -> Json:
    return {"type": "item_reference", "id": item_id}


def request(*items: Json, **more: Json) -> Request:
    return Request("POST", "/v1/responses", (), bytes_of({"model": "m", "input": [*items], **more}))


def remembering(**more: Json) -> Issued:
    """What a provider remembers that has thought and called twice."""
    issued = Issued()
    first = request(USER, **more)
    answer = Answer(MESSAGE, None, "calls", id="resp_1")
    remember(CODEC, first, asked_by(CODEC, first, issued), answer, issued)
    return issued


def judged(
    asked: Request, issued: Issued | None = None, *, pedantic: bool = True
) -> Refused | None:
    return refused_by("openai_responses", asked, issued, pedantic=pedantic)


PREVIOUS = {"previous_response_id": "resp_1"}
TABLE: list[tuple[str, Request, Request, str]] = [
    # rule, what breaks just it, its repaired twin, what is said
    ("R1", request(USER, BARE), request(USER, BARE, DONE), "output found for function call a."),
    (
        "R1",
        request(CUSTOM, DONE2, {**BARE, "call_id": "b"}),
        request(CUSTOM, {**DONE, "type": "custom_tool_call_output"}),
        "output found for custom tool call a.",
    ),
    ("R1", request(DONE, **PREVIOUS), request(DONE, DONE2, **PREVIOUS), "function call b."),
    ("R2", request(USER, DONE), request(USER, BARE, DONE), "call output with call_id a."),
    (
        "R2",
        request(DONE, DONE2, {**DONE, "call_id": "c"}, **PREVIOUS),
        request(DONE, DONE2, **PREVIOUS),
        "call_id c.",
    ),
    ("R3", request(RS, USER), request(RS, SAID), "'rs_1_0' of type 'reasoning'"),
    ("R3", request(USER, RS), request(USER, {**RS, "id": None}), "following item."),
    ("R3", request(RS, DONE, BARE), request(RS, BARE, DONE), "following item."),
    (
        "R3",
        request(RS, FC2, FC, DONE, DONE2),
        request(RS, FC, FC2, DONE, DONE2),
        "following item.",
    ),
    ("R4", request(FC, DONE), request(RS, FC, DONE), "'reasoning' item: 'rs_1_0'."),
    (
        "R4",
        request(refer("fc_1_1"), DONE),
        request(refer("rs_1_0"), refer("fc_1_1"), DONE),
        "of type 'function_call'",
    ),
    ("R5", request(RS, FC, FC, DONE), request(RS, FC, BARE, DONE), "with id fc_1_1."),
    (
        "R5",
        request(RS, FC, DONE, DONE2, **PREVIOUS),
        request(DONE, DONE2, **PREVIOUS),
        "with id rs_1_0.",
    ),
    (
        "R6",
        request(DONE, DONE2, previous_response_id="resp_2"),
        request(DONE, DONE2, **PREVIOUS),
        "'resp_2' not found.",
    ),
    ("R7", request(refer("msg_9")), request(refer("fc_1_2"), DONE2), "id 'msg_9' not found."),
]


@pytest.mark.parametrize(("rule", "broken", "repaired", "said"), TABLE)
def test_what_is_refused(rule: str, broken: Request, repaired: Request, said: str) -> None:
    issued = remembering()
    refused = judged(broken, issued)
    assert refused is not None
    assert refused.rule.id == rule
    failure = refused.failure
    assert said in failure.message
    assert failure.kind == "invalid_request_error"
    assert failure.status == (404 if rule == "R7" else 400)
    own = ("previous_response_not_found", "previous_response_id")
    assert (failure.code, failure.param) == (own if rule == "R6" else (None, "input"))
    assert judged(repaired, issued) is None


def test_every_rule_is_in_the_table() -> None:
    assert {rule for rule, *_ in TABLE} == {rule.id for rule in RULES}


def test_what_was_not_stored() -> None:
    issued = remembering(store=False)
    for broken in (request(RS, FC, DONE), request(refer("fc_1_1"), DONE)):
        refused = judged(broken, issued)
        assert refused is not None
        assert refused.rule.id == "R7"
    assert judged(request(RS, FC, DONE), issued, pedantic=False) is None
    assert judged(request({**RS, "encrypted_content": "sealed"}, FC, DONE), issued) is None
    assert judged(request(FC, DONE), issued) is None
    refused = judged(request(DONE, DONE2, **PREVIOUS), issued)
    assert refused is not None
    assert refused.rule.id == "R6"


def test_without_memory_only_the_request_itself_is_judged() -> None:
    for accepted in (
        request(DONE, **PREVIOUS),
        request(DONE, conversation="conv_1"),
        request(FC, DONE),
        request(refer("fc_1_1")),
        Request("POST", "/v1/responses", (), bytes_of({"input": "Hi"})),
        Request("POST", "/v1/responses", (), bytes_of({"input": 5})),
        Request("POST", "/v1/responses", (), bytes_of({"input": [5, {"type": 5, "id": 5}]})),
    ):
        assert judged(accepted) is None
    refused = judged(request(FC, FC, DONE))
    assert refused is not None
    assert refused.rule.id == "R5"


def test_a_chain_is_the_whole_conversation() -> None:
    issued = remembering()
    second = request(DONE, DONE2, **PREVIOUS)
    asked = asked_by(CODEC, second, issued)
    results = (tool_result("a", ""), tool_result("b", ""))
    assert asked.request.messages == (user("Hi"), MESSAGE, *results)
    said = Message("assistant", (Text("Well."),))
    remember(CODEC, second, asked, Answer(said, id="resp_2"), issued)
    third = request(USER, refer("nobody"), previous_response_id="resp_2")
    history = (user("Hi"), MESSAGE, *results, said, user("Hi"))
    assert asked_by(CODEC, third, issued).request.messages == history
    again = request(USER, refer("rs_1_0"), refer("fc_1_1"), DONE)
    half = Message("assistant", MESSAGE.content[:2])
    assert asked_by(CODEC, again, issued).request.messages == (user("Hi"), half, results[0])
    nothing = Request("POST", "/v1/responses", (), bytes_of({"model": "m", **PREVIOUS}))
    assert asked_by(CODEC, nothing, issued).request.messages == (user("Hi"), MESSAGE)


def test_one_id_for_two_responses_makes_no_circle() -> None:
    issued = remembering()
    second = request(DONE, DONE2, **PREVIOUS)
    asked = asked_by(CODEC, second, issued)
    remember(CODEC, second, asked, Answer(Message("assistant"), id="resp_1"), issued)
    chain = issued.responses.chain("resp_1")
    assert chain is not None
    assert len(chain) == 6
