"""A loop that reads a provider's stream itself, without any library but one for HTTP."""

from collections.abc import Iterator
from typing import Any

from harness.core.json_text import dumps, loads
from harness.core.ports import Env
from tests.subjects.sdk.chat import Chat
from tests.subjects.sdk.loop import AsyncLoop, Call, Incomplete, Result


class OwnParser:
    """Chat Completions over a plain client: lines of bytes, events of lines, a reply of events."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self.client = env.http()
        self.url = f"{env.base_url}/v1/chat/completions"
        self.history: list[Any] = []
        self.start()

    def say(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})

    def answer(self, results: list[Result]) -> None:
        Chat.answer(self, results)  # type: ignore[arg-type]

    def start(self) -> None:
        """Forget what was read of the reply before."""
        self.buffer = b""
        self.data = ""
        self.text = ""
        self.calls: dict[int, dict[str, Any]] = {}
        self.whole = False

    async def ask(self) -> list[Call]:
        self.start()
        body = {
            "model": "gpt-4.1",
            "messages": self.history,
            "tools": list(self.env.tools.schemas("openai_chat")),
            "stream": True,
        }
        headers = {"authorization": "Bearer sk-not-a-key", "content-type": "application/json"}
        content = dumps(body).encode()
        async with self.client.stream("POST", self.url, content=content, headers=headers) as reply:
            async for data in reply.aiter_bytes():
                for line in self.lines(data):
                    self.line(line)
        if not self.whole:
            raise Incomplete("the stream ended before the reply was whole")
        return self.keep()

    def lines(self, data: bytes) -> Iterator[str]:
        """The lines that end in these bytes."""
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            yield line.decode()

    def line(self, line: str) -> None:
        if line.startswith("data:"):
            self.data = line.removeprefix("data:").strip()
        elif not line.strip() and self.data:
            data, self.data = self.data, ""
            self.event(data)

    def event(self, data: str) -> None:
        if data != "[DONE]":
            for choice in loads(data)["choices"]:
                self.choice(choice)

    def choice(self, choice: Any) -> None:
        self.text += choice["delta"].get("content") or ""
        for piece in choice["delta"].get("tool_calls") or ():
            self.piece(piece)
        self.whole = self.whole or choice["finish_reason"] is not None

    def piece(self, piece: Any) -> None:
        call = self.calls.setdefault(piece["index"], {"id": "", "name": "", "arguments": ""})
        function = piece["function"]
        call["id"] = piece.get("id") or call["id"]
        call["name"] = function.get("name") or call["name"]
        call["arguments"] += function.get("arguments") or ""

    def keep(self) -> list[Call]:
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        calls = [call for _index, call in sorted(self.calls.items())]
        if calls:
            message["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": call["arguments"] or "{}"},
                }
                for call in calls
            ]
        self.history.append(message)
        return [Call(c["id"], c["name"], loads(c["arguments"] or "{}")) for c in calls]


class DecodesEachChunk(OwnParser):
    """Reads each chunk as text: a character that two chunks share is lost."""

    def lines(self, data: bytes) -> Iterator[str]:
        yield from super().lines(data.decode(errors="replace").encode())


class ParsesEveryLine(OwnParser):
    """Takes every line that is not empty for data."""

    def line(self, line: str) -> None:
        super().line(f"data: {line.removeprefix('data: ')}" if line.strip() else line)


class AppendsNames(OwnParser):
    """Adds up all that fragments of a call say, names and ids too."""

    def piece(self, piece: Any) -> None:
        call = self.calls.setdefault(piece["index"], {"id": "", "name": "", "arguments": ""})
        call["id"] += piece.get("id") or ""
        call["name"] += piece["function"].get("name") or ""
        call["arguments"] += piece["function"].get("arguments") or ""


class TakesWhatCame(OwnParser):
    """Takes a stream that has ended for a whole reply."""

    def start(self) -> None:
        super().start()
        self.whole = True


class SkipsToolsOnRecordings(OwnParser):
    """Runs no tools where a reply is not live, as if nobody would notice."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.client.event_hooks = {"response": [self.look]}
        self.live = True

    async def look(self, response: Any) -> None:
        carried = getattr(response.stream._stream, "_exchange", None)
        self.live = not type(carried).__module__.startswith("harness.runner.cassettes")

    def keep(self) -> list[Call]:
        calls = super().keep()
        return calls if self.live else []


def right(env: Env) -> AsyncLoop:
    return AsyncLoop(env, OwnParser(env))


def decodes_each_chunk(env: Env) -> AsyncLoop:
    return AsyncLoop(env, DecodesEachChunk(env))


def parses_every_line(env: Env) -> AsyncLoop:
    return AsyncLoop(env, ParsesEveryLine(env))


def appends_names(env: Env) -> AsyncLoop:
    return AsyncLoop(env, AppendsNames(env))


def takes_what_came(env: Env) -> AsyncLoop:
    return AsyncLoop(env, TakesWhatCame(env))


def skips_tools_on_recordings(env: Env) -> AsyncLoop:
    return AsyncLoop(env, SkipsToolsOnRecordings(env))
