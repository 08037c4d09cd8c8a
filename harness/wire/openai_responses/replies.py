"""What whole and streamed replies of this protocol are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from harness.core.json_text import Json, well_formed
from harness.core.messages import Block, Image, Message, Text, Thinking, ToolCall, Usage
from harness.wire.codec import Answer, Asked, Garbled, Noise, ProviderError, Stopped
from harness.wire.openai_failures import told_failure
from harness.wire.openai_responses.items import blocks_of, call_words, part_of, written_block
from harness.wire.openai_responses.requests import custom_names, written_schema
from harness.wire.reading import Field

_INCOMPLETE: dict[Stopped, str] = {"length": "max_output_tokens", "filtered": "content_filter"}
_ECHOED: dict[str, Json] = {
    "background": False,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "store": True,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
"""What a response tells of how it was asked for, and what it tells where that was not said."""


class Refusing(Struct, frozen=True):
    """What a model says where it will not answer, as the last thing of its reply."""

    said: str


Spoken = Block | Refusing


def spoken(answer: Answer) -> list[Spoken]:
    """What a reply holds, each as an item: models draw no pictures here."""
    blocks: list[Spoken] = [
        block for block in answer.message.content if not isinstance(block, Image)
    ]
    return blocks if answer.refusal is None else [*blocks, Refusing(answer.refusal)]


def head(asked: Asked, answer: Answer) -> dict[str, Any]:
    """A response that is in progress."""
    request, options = asked.request, asked.options
    tools = options.get("tools") or [
        {**written_schema(tool), "strict": True} for tool in request.tools
    ]
    return {
        "id": answer.id,
        "object": "response",
        "created_at": answer.created,
        "status": "in_progress",
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "instructions": request.system or None,
        "max_output_tokens": request.max_tokens,
        "model": answer.model or request.model,
        "output": [],
        "temperature": 1.0 if request.temperature is None else request.temperature,
        "tools": tools,
        "service_tier": "auto",
        "usage": None,
        **{key: options.get(key, usual) for key, usual in _ECHOED.items()},
    }


def ending(asked: Asked, answer: Answer, output: list[Json]) -> dict[str, Any]:
    """What of a response is otherwise when it is over."""
    incomplete = None if answer.refusal is not None else _INCOMPLETE.get(answer.stopped)
    return head(asked, answer) | {
        "status": "completed" if incomplete is None else "incomplete",
        "completed_at": answer.created if incomplete is None else None,
        "incomplete_details": None if incomplete is None else {"reason": incomplete},
        "output": output,
        "service_tier": "default",
        "usage": written_usage(answer.usage or Usage()),
    }


def strange(noise: Noise) -> dict[str, Any]:
    """A member that no client knows, where such noise is on."""
    return {"x_new": {"since": "tomorrow"}} if noise.unknown else {}


class Writer:
    """Writes the items of one reply, whole and as they are when they begin.

    With noise that is unknown, messages tell their phase.
    """

    def __init__(self, asked: Asked, answer: Answer, noise: Noise) -> None:
        self.custom = custom_names(asked.options)
        self._suffix = answer.id.removeprefix("resp_")
        self._last = len(spoken(answer)) - 1
        self._cut_off = answer.refusal is None and answer.stopped in _INCOMPLETE
        self._phase: dict[str, Json] = {}
        if noise.unknown:
            self._phase = {"phase": "commentary" if answer.message.calls else "final_answer"}

    def item(self, at: int, block: Spoken) -> dict[str, Any]:
        """The whole item at a place; the last one of a reply that was cut off is incomplete."""
        over = "incomplete" if self._cut_off and at == self._last else "completed"
        match block:
            case Thinking():
                return self._reasoning(at, block)
            case ToolCall():
                written = {**written_block(block, self.custom), "status": over}
                return {"id": self.id_of(at, block), **written}
            case _:
                return {**self._message(at, block, over), "content": [written_part(block)]}

    def begun(self, at: int, block: Spoken) -> dict[str, Any]:
        """The same item when it begins: nothing of it is said yet."""
        match block:
            case Thinking():
                return {**self._reasoning(at, block), "summary": []}
            case ToolCall(name=name):
                _, key = call_words(name, self.custom)
                return {**self.item(at, block), "status": "in_progress", key: ""}
            case _:
                return self._message(at, block, "in_progress")

    def id_of(self, at: int, block: Spoken) -> str:
        """The id of an item: its kind, its reply and its place there."""
        match block:
            case Thinking():
                kind = "rs"
            case ToolCall(name=name):
                kind = "ctc" if name in self.custom else "fc"
            case _:
                kind = "msg"
        return f"{kind}_{self._suffix}_{at}"

    def _reasoning(self, at: int, block: Thinking) -> dict[str, Any]:
        return {"id": self.id_of(at, block), **written_block(block, self.custom)}

    def _message(self, at: int, block: Spoken, status: str) -> dict[str, Any]:
        kind = {"type": "message", "status": status, "role": "assistant", "content": []}
        return {"id": self.id_of(at, block), **kind, **self._phase}


def written_part(block: Spoken) -> dict[str, Any]:
    """The part of a message that holds a block."""
    if isinstance(block, Refusing):
        return {"type": "refusal", "refusal": block.said}
    text = block.text if isinstance(block, Text) else ""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def written_reply(asked: Asked, answer: Answer, noise: Noise) -> dict[str, Any]:
    """The body of a whole reply."""
    writer = Writer(asked, answer, noise)
    output: list[Json] = [writer.item(at, block) for at, block in enumerate(spoken(answer))]
    return ending(asked, answer, output) | strange(noise)


def written_usage(usage: Usage) -> dict[str, Json]:
    """What was counted, with all the details that the provider tells."""
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens or usage.prompt_tokens + usage.completion_tokens,
    }


def usage_of(field: Field) -> Usage:
    """What was counted; what is left out is 0."""
    details = [("input_tokens_details", "cached_tokens")]
    details.append(("output_tokens_details", "reasoning_tokens"))
    cached, reasoning = [
        field[key][name].integer() or 0 if field.has(key) else 0 for key, name in details
    ]
    given, output, total = [
        field[key].integer() or 0 for key in ("input_tokens", "output_tokens", "total_tokens")
    ]
    return Usage(given, output, total, cached, reasoning)


def answered(response: Field, items: Mapping[int, Field]) -> Answer:
    """The reply that a response is; `items` are its output where it holds none itself.

    ProviderError where it failed. A reason to be incomplete that nobody knows is a limit.
    """
    status = response["status"].text() if response.has("status") else "completed"
    if status == "failed":
        raise ProviderError(told_failure(response["error"].value, 200))
    if status not in ("completed", "incomplete"):
        raise Garbled(f"the response is {status!r}; expected 'completed', 'incomplete' or 'failed'")
    output = [*response["output"].items()] if response.has("output") else []
    content: list[Block] = []
    refused: list[str] = []
    for item in output or [items[at] for at in sorted(items)]:
        if item["type"].value != "message":
            content += blocks_of(item) or []
            continue
        for part in item["content"].items():
            if part["type"].value == "refusal":
                refused.append(part["refusal"].text())
            else:
                content.append(part_of(part))
    message = Message("assistant", tuple([_well_formed(block) for block in content]))
    refusal = well_formed("".join(refused)) if refused else None
    stopped: Stopped = "calls" if message.calls else "end"
    if refusal is not None:
        stopped = "refused"
    elif status == "incomplete":
        stopped = _cut_off(response)
    return Answer(
        message,
        usage_of(response["usage"]) if response.has("usage") else None,
        stopped,
        refusal,
        response["id"].text() if response.has("id") else "",
        response["model"].text() if response.has("model") else "",
        int(response["created_at"].number() or 0),
    )


def _cut_off(response: Field) -> Stopped:
    details = response["incomplete_details"]
    filtered = details.value is not None and details["reason"].value == "content_filter"
    return "filtered" if filtered else "length"


def _well_formed(block: Block) -> Block:
    match block:
        case Text(text=text):
            return Text(well_formed(text))
        case Thinking(text=text, signature=signature):
            return Thinking(well_formed(text), signature)
        case _:
            return block
