"""Anthropic's Messages, by the library `anthropic`."""

from typing import Any

import anthropic

from harness.core.ports import Env
from tests.subjects.sdk.loop import SYSTEM, Call, Incomplete, Result


class Messages:
    """What is remembered, and how it is said."""

    def __init__(self, env: Env, *, stream: bool = True, sync: bool = False, own: bool = False):
        self.env = env
        self.stream = stream
        self.history: list[Any] = []
        kind: Any = anthropic.Anthropic if sync else anthropic.AsyncAnthropic
        given = {} if own else {"http_client": env.http(sync=sync)}
        self.client = kind(api_key="sk-not-a-key", base_url=env.base_url, **given)

    def say(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})

    def answer(self, results: list[Result]) -> None:
        content = [
            {
                "type": "tool_result",
                "tool_use_id": result.call.id,
                "content": result.text,
                "is_error": result.failed,
            }
            for result in results
        ]
        self.history.append({"role": "user", "content": content})

    def asked(self) -> dict[str, Any]:
        return {
            "model": "claude-opus-4-8",
            "max_tokens": 1024,
            "system": SYSTEM,
            "messages": self.history,
            "tools": list(self.env.tools.schemas("anthropic")) or anthropic.omit,
        }

    def keep(self, message: Any) -> list[Call]:
        if message.stop_reason is None:
            raise Incomplete("the stream ended before the reply was whole")
        if message.content:
            self.history.append({"role": "assistant", "content": message.content})
        return [Call(b.id, b.name, b.input) for b in message.content if b.type == "tool_use"]


class AsyncMessages(Messages):
    async def ask(self) -> list[Call]:
        if not self.stream:
            return self.keep(await self.client.messages.create(**self.asked()))
        async with self.client.messages.stream(**self.asked()) as reply:
            return self.keep(await reply.get_final_message())


class SyncMessages(Messages):
    def ask(self) -> list[Call]:
        if not self.stream:
            return self.keep(self.client.messages.create(**self.asked()))
        with self.client.messages.stream(**self.asked()) as reply:
            return self.keep(reply.get_final_message())


class SaysItAfterwards(AsyncMessages):
    """The mistake: what the model said before its calls is kept behind them."""

    def keep(self, message: Any) -> list[Call]:
        calls = super().keep(message)
        content = sorted(message.content, key=lambda block: block.type == "text")
        self.history[-1] = {"role": "assistant", "content": content}
        return calls
