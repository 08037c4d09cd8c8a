"""The turn loop with its surroundings in between, so that a fault can be put at any one seam."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, ClassVar

from harness.core.durations import parse_duration
from harness.core.events import InsideEvent
from harness.core.json_text import Json
from harness.core.messages import Message, ModelRequest
from harness.core.outcome import Outcome
from harness.core.ports import Env
from harness.core.reply import ReplyDone, ReplyPart, TextDelta
from harness.loops.turn.agent import TurnAgent
from harness.loops.turn.config import default_config
from harness.loops.turn.policy import SAFE, Policy


class Sound(TurnAgent):
    """Nothing is wrong with this one; each fault changes one of these methods."""

    policy: ClassVar[Policy] = SAFE

    def __init__(self, env: Env, settings: dict[str, Any]) -> None:
        if "cancel_grace" in settings:
            settings = {**settings, "cancel_grace": parse_duration(settings["cancel_grace"])}
        self.outer = env
        self.settings = default_config(**self.set(settings))
        self.number = 0
        """The turn, from 1."""
        self.stopped = False
        """Whether the turn was told to stop."""
        self.last: Outcome | None = None
        """How the turn before ended."""
        self.text = ""
        """What the reply has said so far."""
        self.done = False
        """Whether it is whole."""
        super().__init__(Between(env, self), self.settings, self.policy)

    def set(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings."""
        return settings

    async def turn(self, text: str | None) -> Outcome:
        self.number += 1
        try:
            self.last = await super().turn(text)
        finally:
            self.stopped = False
        return self.last

    def cancel(self) -> None:
        self.stopped = True
        super().cancel()

    def asks(self, request: ModelRequest) -> ModelRequest:
        """What is sent in place of `request`."""
        messages = tuple(self.shows(request.messages))
        return ModelRequest(request.model, request.system, messages, request.tools)

    def shows(self, messages: Sequence[Message]) -> Iterable[Message]:
        """The messages that are sent."""
        return messages

    async def generate(self, request: ModelRequest) -> AsyncIterator[ReplyPart]:
        """Send a request."""
        self.text, self.done = "", False
        return Reading(await self.outer.model.generate(self.asks(request)), self)

    def gets(self, part: ReplyPart) -> Iterable[ReplyPart]:
        """What comes of a part of the reply."""
        return [part]

    def ends(self) -> Iterable[ReplyPart]:
        """What comes at the end of the stream."""
        return []

    async def leaves(self, stream: Any) -> None:
        """Close a stream that is not read on."""
        await stream.aclose()

    async def uses(self, name: str, args: Json, call_id: str | None) -> Json:
        """Run a tool."""
        return await self.outer.tools.call(name, args, call_id)

    def tells(self, event: InsideEvent) -> Iterable[InsideEvent]:
        """What is reported in place of `event`."""
        return [event]


class Between:
    """The env as the loop sees it."""

    def __init__(self, env: Env, agent: Sound) -> None:
        self._env = env
        self._agent = agent
        self.model = agent
        self.tools = self
        self.clock = env.clock

    def observe(self, event: InsideEvent) -> None:
        for each in self._agent.tells(event):
            self._env.observe(each)

    def schemas(self, provider: str = "neutral") -> Sequence[Any]:
        return self._env.tools.schemas(provider)

    def functions(self) -> Any:
        raise AssertionError("the turn loop passes the call's id")

    async def call(self, name: str, args: Json, call_id: str | None = None) -> Json:
        return await self._agent.uses(name, args, call_id)


class Reading:
    """A stream of the model as the loop sees it."""

    def __init__(self, stream: AsyncIterator[ReplyPart], agent: Sound) -> None:
        self._stream = stream
        self._agent = agent
        self._left: list[ReplyPart] = []
        self._over = False

    def __aiter__(self) -> Reading:
        return self

    async def __anext__(self) -> ReplyPart:
        agent = self._agent
        while not self._left and not self._over:
            try:
                part = await anext(self._stream)
            except StopAsyncIteration:
                self._over = True
                self._left += agent.ends()
                break
            if isinstance(part, TextDelta):
                agent.text += part.text
            self._left += agent.gets(part)
            agent.done = agent.done or isinstance(part, ReplyDone)
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop(0)

    async def aclose(self) -> None:
        await self._agent.leaves(self._stream)
