"""Gemini's generateContent, by the library `google-genai`."""

import ssl
from contextlib import closing
from typing import Any, ClassVar

from google import genai
from google.genai import types

from harness.core.ports import Env
from tests.subjects.sdk.loop import SYSTEM, Call, Incomplete, Result

TLS = ssl.create_default_context()
"""One for all clients: else each reads the certificates of the machine twice, longer than a run."""


class Gemini:
    """What is remembered, and how it is said."""

    client_args: ClassVar[dict[str, Any] | None] = {"verify": TLS, "ssl": TLS}

    def __init__(self, env: Env, *, stream: bool = True, sync: bool = False, own: bool = False):
        self.env = env
        self.stream = stream
        self.history: list[Any] = []
        given = {"client_args": self.client_args, "async_client_args": self.client_args}
        if not own:
            name = "httpx_client" if sync else "httpx_async_client"
            given[name] = env.http(sync=sync)
        options = types.HttpOptions(base_url=env.base_url, **given)
        self.whole = genai.Client(api_key="not-a-key", http_options=options)  # it closes when freed
        self.client: Any = self.whole.models if sync else self.whole.aio.models

    def say(self, text: str) -> None:
        self.history.append(types.Content(role="user", parts=[types.Part(text=text)]))

    def answer(self, results: list[Result]) -> None:
        parts = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=result.call.id,
                    name=result.call.name,
                    response={"error" if result.failed else "result": result.text},
                )
            )
            for result in results
        ]
        self.history.append(types.Content(role="user", parts=parts))

    def asked(self) -> dict[str, Any]:
        tools = list(self.env.tools.schemas("gemini"))
        config = types.GenerateContentConfig(
            system_instruction=SYSTEM,
            tools=[types.Tool.model_validate(tool) for tool in tools] or None,
        )
        return {"model": "gemini-3-pro", "contents": self.history, "config": config}

    def keep(self, parts: list[Any], finish: Any) -> list[Call]:
        if finish is None:
            raise Incomplete("the stream ended before the reply was whole")
        if parts:
            self.history.append(types.Content(role="model", parts=parts))
        called = [part.function_call for part in parts if part.function_call]
        return [Call(call.id, call.name, call.args) for call in called]


class Gathered:
    """The parts of a reply, and why it ended."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.finish: Any = None

    def add(self, chunk: Any) -> None:
        for candidate in chunk.candidates or ():
            self.parts += (candidate.content and candidate.content.parts) or ()
            self.finish = candidate.finish_reason or self.finish


class AsyncGemini(Gemini):
    async def ask(self) -> list[Call]:
        gathered = Gathered()
        if self.stream:
            reply = await self.client.generate_content_stream(**self.asked())
            async for chunk in reply:
                gathered.add(chunk)
        else:
            gathered.add(await self.client.generate_content(**self.asked()))
        return self.keep(gathered.parts, gathered.finish)


class SyncGemini(Gemini):
    def ask(self) -> list[Call]:
        gathered = Gathered()
        if self.stream:
            with closing(self.client.generate_content_stream(**self.asked())) as reply:
                for chunk in reply:
                    gathered.add(chunk)
        else:
            gathered.add(self.client.generate_content(**self.asked()))
        return self.keep(gathered.parts, gathered.finish)


class LosesSignatures(AsyncGemini):
    """The mistake: of a call only its name and arguments are kept."""

    def keep(self, parts: list[Any], finish: Any) -> list[Call]:
        bare = [types.Part(text=p.text, function_call=p.function_call) for p in parts]
        return super().keep(bare, finish)
