"""One run of the fakes on a kernel, for tests that play the agent themselves."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, Self

from harness.core.choices import Choices
from harness.core.events import Event, event_kind
from harness.core.messages import Message, ModelRequest
from harness.core.reply import ReplyDone, ReplyPart
from harness.core.trace import Recorder
from harness.fakes.model import FakeModel
from harness.fakes.place import Stage
from harness.fakes.script import Also, Reply, ScriptedCall
from harness.fakes.tool_spec import Action, Behaviour, Returns, ToolSpec
from harness.fakes.tools import FakeTools
from harness.sim.kernel import Kernel

MS = 1_000_000
OK = Returns("ok")


class Turn(NamedTuple):
    """What the user says, None for a resume, and what the model replies."""

    user: str | None
    replies: tuple[Reply, ...]


def turn(user: str | None, *replies: Reply) -> Turn:
    return Turn(user, replies)


def calls(*names: str, **fields: Any) -> Reply:
    return Reply(
        calls=tuple(ScriptedCall(name, {"n": n}) for n, name in enumerate(names)), **fields
    )


def tool(name: str, action: Action = OK, **fields: Any) -> ToolSpec:
    return ToolSpec(name, Behaviour(action, **fields))


class World:
    """Everything that an agent talks to; its first turn is being played. Use it in a `with`."""

    def __init__(
        self,
        *turns: Turn,
        also: Sequence[Also] = (),
        order: Any = "place",
        tools: Sequence[ToolSpec] = (),
        choices: Choices | None = None,
        refuse: Callable[[tuple[Message, ...]], str | None] | None = None,
    ) -> None:
        self.kernel = Kernel()
        self.recorder = Recorder(self.kernel.now, self.kernel.current_path)
        self.turns = turns
        self.stage = Stage(also, self.recorder, by_place=order == "place")
        self.choices = choices or Choices()
        self.model = FakeModel(self.stage, self.recorder, self.choices, refuse)
        self.tools = FakeTools(tools, self.stage, self.recorder, self.choices)
        self.turn = 0
        self.tasks = 0
        if turns:
            self.start_turn()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.kernel.tear_down()

    def start_turn(self) -> None:
        self.turn += 1
        playing = self.turns[self.turn - 1]
        self.stage.start_turn(self.turn, playing.user, playing.replies)

    def end_turn(self, *, cut: bool = False) -> list[str]:
        return self.stage.end_turn(cut=cut)

    def next_turn(self, *, cut: bool = False) -> None:
        self.end_turn(cut=cut)
        self.start_turn()

    def task(self, coro: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        self.tasks += 1
        return self.kernel.spawn(coro, str(self.tasks))

    def play(self, coro: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end."""
        task = self.task(coro)
        stop = self.kernel.run_until(task.done)
        assert stop.reason == "done", stop
        return task.result()

    def run_for(self, nanoseconds: int) -> None:
        self.kernel.drain(self.kernel.now() + nanoseconds)

    def read(self, *messages: Message, system: str = "sys", model: str = "m") -> list[ReplyPart]:
        """Send a request and read the whole reply."""
        return self.play(self.reading(request(*messages, system=system, model=model)))

    async def reading(self, sent: ModelRequest) -> list[ReplyPart]:
        return [part async for part in await self.model.generate(sent)]

    def ask(self, *messages: Message, system: str = "sys", model: str = "m") -> Message:
        """Send a request and give the reply's message."""
        done = [p for p in self.read(*messages, system=system, model=model) if type(p) is ReplyDone]
        return done[-1].message

    def call(self, name: str, args: Any, call_id: str | None = None) -> Any:
        return self.play(self.tools.call(name, args, call_id))

    @property
    def events(self) -> list[Event]:
        return [entry.event for entry in self.recorder.entries]

    def of(self, *kinds: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kinds)]

    @property
    def kinds(self) -> list[str]:
        return [event_kind(type(event)) for event in self.events]


def request(*messages: Message, system: str = "sys", model: str = "m") -> ModelRequest:
    return ModelRequest(model, system, messages)
