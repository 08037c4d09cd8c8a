"""What breaks each rule of Responses."""

from __future__ import annotations

from hypothesis.strategies import DrawFn

from harness.core.json_text import Json
from harness.core.messages import Message, ModelRequest, Thinking, ToolCall, user
from harness.testing.invalid.fault import Fault, Faults, call_ids, some
from harness.testing.strategies_values import below, pick
from harness.wire import asked_by, remember
from harness.wire.codec import Answer, Asked
from harness.wire.openai_responses.codec import OpenAIResponses
from harness.wire.strict.rule import Issued

MODEL = "gpt-4o"
GO: Json = {"role": "user", "content": "Go on."}
SAID: Json = {"role": "assistant", "content": "Well."}
REASONED: Json = {"type": "reasoning", "id": "rs_bad", "summary": []}


def call(call_id: str) -> dict[str, Json]:
    """A call, without an id of its own."""
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}


def output(call_id: str) -> dict[str, Json]:
    """What a function gave."""
    return {"type": "function_call_output", "call_id": call_id, "output": "ok"}


def _unknown_previous(draw: DrawFn) -> Fault:
    named = f"resp_{draw(below(10))}"
    return Fault((GO,), {"previous_response_id": named}, issued=Issued())


def _not_stored(draw: DrawFn) -> Fault:
    lost: Json = {"type": "item_reference", "id": f"msg_{draw(below(10))}"}
    return Fault((GO, lost), issued=Issued())


def _duplicate(draw: DrawFn) -> Fault:
    twice = {"type": "message", "id": "msg_bad", "role": "assistant"}
    said: list[Json] = [{"type": "output_text", "text": "Well."}]
    item: Json = {**twice, "content": said}
    return Fault((item, *pick(draw, ((), (GO,))), item))


def _without_reasoning(_draw: DrawFn) -> Fault:
    """A call that the model made after it had reasoned, as a stored response."""
    codec, issued = OpenAIResponses(), Issued()
    message = Message("assistant", (Thinking("hm", "sealed"), ToolCall("bad_1", "f", {})))
    asked = codec.write(Asked(ModelRequest(MODEL, "", (user("Hi."),))))
    answer = Answer(message, None, "calls", id="resp_1")
    remember(codec, asked, asked_by(codec, asked, issued), answer, issued)
    return Fault(({**call("bad_1"), "id": "fc_1_1"}, output("bad_1")), issued=issued)


def _without_following(draw: DrawFn) -> Fault:
    return Fault((REASONED, *pick(draw, ((GO,), (GO, SAID)))))


def _unasked(draw: DrawFn) -> Fault:
    return Fault((pick(draw, (GO, SAID)), *map(output, call_ids(draw))))


def _unanswered(draw: DrawFn) -> Fault:
    ids = call_ids(draw)
    return Fault((*map(call, ids), *map(output, some(draw, ids)), GO))


FAULTS: Faults = {
    "R6": _unknown_previous,
    "R7": _not_stored,
    "R5": _duplicate,
    "R4": _without_reasoning,
    "R3": _without_following,
    "R2": _unasked,
    "R1": _unanswered,
}
