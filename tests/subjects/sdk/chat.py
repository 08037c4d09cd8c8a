"""OpenAI's Chat Completions, by the library `openai`."""

from typing import Any

import openai

from harness.core.json_text import loads
from harness.core.ports import Env
from tests.subjects.sdk.loop import SYSTEM, Call, Incomplete, Result


class Chat:
    """What is remembered, and how it is said; `own` has the library build its own HTTP client."""

    def __init__(self, env: Env, *, stream: bool = True, sync: bool = False, own: bool = False):
        self.env = env
        self.stream = stream
        self.history: list[Any] = [{"role": "system", "content": SYSTEM}]
        kind: Any = openai.OpenAI if sync else openai.AsyncOpenAI
        given = {} if own else {"http_client": env.http(sync=sync)}
        self.client = kind(api_key="sk-not-a-key", base_url=f"{env.base_url}/v1", **given)

    def say(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})

    def answer(self, results: list[Result]) -> None:
        self.history += [
            {"role": "tool", "tool_call_id": result.call.id, "content": result.text}
            for result in results
        ]

    def asked(self) -> dict[str, Any]:
        more: dict[str, Any] = {"stream_options": {"include_usage": True}} if self.stream else {}
        tools = list(self.env.tools.schemas("openai_chat")) or openai.omit
        return {
            "model": "gpt-4.1",
            "messages": self.history,
            "tools": tools,
            "stream": self.stream,
            **more,
        }

    def keep(self, message: Any) -> list[Call]:
        self.history.append(message)
        return [
            Call(call["id"], call["function"]["name"], loads(call["function"]["arguments"] or "{}"))
            for call in message.get("tool_calls") or ()
        ]


class Pieces:
    """A streamed reply as it comes together."""

    def __init__(self) -> None:
        self.text = ""
        self.calls: dict[int, dict[str, Any]] = {}
        self.finish: str | None = None

    def add(self, chunk: Any) -> None:
        for choice in chunk.choices:
            self.text += choice.delta.content or ""
            self.finish = choice.finish_reason or self.finish
            for piece in choice.delta.tool_calls or ():
                empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                call = self.calls.setdefault(piece.index, empty)
                call["id"] = piece.id or call["id"]
                call["function"]["name"] = piece.function.name or call["function"]["name"]
                call["function"]["arguments"] += piece.function.arguments or ""

    def whole(self) -> dict[str, Any]:
        if self.finish is None:
            raise Incomplete("the stream ended before the reply was whole")
        return self.message()

    def message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.calls:
            message["tool_calls"] = [call for _index, call in sorted(self.calls.items())]
        return message


class AsyncChat(Chat):
    async def ask(self) -> list[Call]:
        reply = await self.client.chat.completions.create(**self.asked())
        if not self.stream:
            return self.keep(reply.choices[0].message.model_dump(exclude_none=True))
        pieces = Pieces()
        async with reply:
            async for chunk in reply:
                pieces.add(chunk)
        return self.keep(pieces.whole())


class SyncChat(Chat):
    def ask(self) -> list[Call]:
        reply = self.client.chat.completions.create(**self.asked())
        if not self.stream:
            return self.keep(reply.choices[0].message.model_dump(exclude_none=True))
        pieces = Pieces()
        with reply:
            for chunk in reply:
                pieces.add(chunk)
        return self.keep(pieces.whole())


class TakesWhatCame(AsyncChat):
    """The mistake: a stream that ends early is taken for a whole reply."""

    async def ask(self) -> list[Call]:
        pieces = Pieces()
        async with await self.client.chat.completions.create(**self.asked()) as reply:
            async for chunk in reply:
                pieces.add(chunk)
        return self.keep(pieces.message())
