"""Interactions written by hand, in OpenAI's Chat Completions."""

from __future__ import annotations

from typing import Any

from harness.core.json_text import dumps
from harness.transport.cassettes.form import Cassette, Chunk, Interaction
from harness.wire.http import Request

MS = 1_000_000
URL = "http://x.test/v1/chat/completions"


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str | None = None, **calls: Any) -> dict[str, Any]:
    """A message of the model; calls by their ids, each a name and arguments."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": key, "type": "function", "function": {"name": name, "arguments": dumps(args)}}
            for key, (name, args) in calls.items()
        ]
    return message


def gave(call: str, text: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": text}


def asking(*messages: dict[str, Any], **more: Any) -> Request:
    """A request; `system`, `tools` (names), and what else stands in its body."""
    system = more.pop("system", None)
    tools = more.pop("tools", ())
    body: dict[str, Any] = {"model": "m", "messages": list(messages), **more}
    if system is not None:
        body["messages"].insert(0, {"role": "system", "content": system})
    if tools:
        body["tools"] = [{"type": "function", "function": {"name": name}} for name in tools]
    return Request("POST", URL, (("content-type", "application/json"),), dumps(body).encode())


def replying(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What an interaction with a whole reply is made of."""
    stop = more.pop("stop", "tool_calls" if message.get("tool_calls") else "stop")
    choice = {"index": 0, "finish_reason": stop, "message": message}
    reply = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
    }
    return {
        "protocol": "openai_chat",
        "status": 200,
        "headers": (("content-type", "application/json"),),
        "chunks": (Chunk(0, dumps(reply).encode()),),
        **more,
    }


def taped(*exchanges: tuple[Request, dict[str, Any]]) -> Cassette:
    """A cassette of requests and what came of each, a second apart unless they say otherwise."""
    return Cassette(
        interactions=tuple(
            [
                Interaction(request=request, **{"begun": at * 1_000 * MS, "line": at + 1, **given})
                for at, (request, given) in enumerate(exchanges)
            ]
        )
    )
