"""OpenAI's Responses, by the library `openai`."""

from typing import Any

import openai

from harness.core.json_text import loads
from harness.core.ports import Env
from tests.subjects.sdk.loop import SYSTEM, Call, Incomplete, Result


class Responses:
    """What is remembered, and how it is said; the provider stores what it says only if `stored`."""

    stored = False

    def __init__(self, env: Env, *, stream: bool = True, sync: bool = False, own: bool = False):
        self.env = env
        self.stream = stream
        self.history: list[Any] = []
        kind: Any = openai.OpenAI if sync else openai.AsyncOpenAI
        given = {} if own else {"http_client": env.http(sync=sync)}
        self.client = kind(api_key="sk-not-a-key", base_url=f"{env.base_url}/v1", **given)

    def say(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})

    def answer(self, results: list[Result]) -> None:
        self.history += [
            {"type": "function_call_output", "call_id": result.call.id, "output": result.text}
            for result in results
        ]

    def asked(self) -> dict[str, Any]:
        return {
            "model": "gpt-5.5",
            "instructions": SYSTEM,
            "input": self.history,
            "tools": list(self.env.tools.schemas("openai_responses")) or openai.omit,
            "stream": self.stream,
            "store": self.stored,
            "include": ["reasoning.encrypted_content"],
        }

    def keep(self, output: Any) -> list[Call]:
        items = [item.model_dump(exclude_none=True) for item in output]
        self.history += items
        return [
            Call(item["call_id"], item["name"], loads(item["arguments"] or "{}"))
            for item in items
            if item["type"] == "function_call"
        ]


class AsyncResponses(Responses):
    async def ask(self) -> list[Call]:
        reply = await self.client.responses.create(**self.asked())
        if not self.stream:
            return self.keep(reply.output)
        async with reply:
            async for event in reply:
                if event.type == "response.completed":
                    return self.keep(event.response.output)
        raise Incomplete("the stream ended before the reply was whole")


class SyncResponses(Responses):
    def ask(self) -> list[Call]:
        reply = self.client.responses.create(**self.asked())
        if not self.stream:
            return self.keep(reply.output)
        with reply:
            for event in reply:
                if event.type == "response.completed":
                    return self.keep(event.response.output)
        raise Incomplete("the stream ended before the reply was whole")


class DropsReasoning(AsyncResponses):
    """The mistake: what the model thought is left out, and what it thought it for is sent back."""

    stored = True

    def keep(self, output: Any) -> list[Call]:
        return super().keep([item for item in output if item.type != "reasoning"])
