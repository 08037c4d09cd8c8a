"""The state-machine loop as an agent under test: a synchronous one, in the runner's own frame."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from harness.core.events import InsideEvent, LoopEvent, UsageCounted
from harness.core.json_text import Json, dumps
from harness.core.messages import Message as Neutral
from harness.core.messages import ToolSchema, Usage
from harness.core.outcome import CANCELLED, COMPLETED, Error, Outcome
from harness.core.ports import Aborted, Env, Started, ToolFailed
from harness.loops.fsm.client import RequestOptions
from harness.loops.fsm.env_client import EnvClient, to_neutral
from harness.loops.fsm.loop import ABRT, ERRS, TABLE, TERMINAL, Loop
from harness.loops.fsm.messages import user
from harness.loops.fsm.pending import PendingToolResult
from harness.loops.fsm.policy import POLICIES, Policy
from harness.loops.fsm.ports import Ports
from harness.loops.fsm.registry import Running, RunTool, Tool
from harness.loops.fsm.session import Session, Settings
from harness.loops.fsm.subagent import Subagents
from harness.loops.kind import LoopKind

SYSTEM_PROMPT = "You are a helpful assistant that works with tools until the task is done."


class FsmAgent:
    """Plays each turn as a run of one session, which keeps the conversation; `make` builds it."""

    def __init__(
        self, env: Env, config: Mapping[str, Json], policy: Policy, make: type[Loop] = Loop
    ) -> None:
        self._env = env
        self._make = make
        self._policy = policy
        self._playing = False
        self._world = _World(env, self.cancel)
        self._client = EnvClient(env, config["model"], self.cancel, policy)
        self.session = Session(
            self._client,
            self._world.ports(),
            settings=_settings(config),
            policy=policy,
            ask=lambda: bool(config["plan_is_approved"]),
        )
        if not config["titles"]:
            self.session.title = "untitled"
        self._tools = _Tools(env, self.session, self._world, self.cancel)
        for schema in env.tools.schemas():
            self.session.registry.register(self._tools.tool(schema, config))
        if config["subagents"]:
            self.session.registry.register(Subagents(self.session, make).tool())
        if config["plan_mode"]:
            self.session.plan.enter()

    def turn(self, text: str | None) -> Outcome:
        """Play one user turn; None resumes."""
        session = self.session
        said = [] if text is None else [user(text)]
        session.begin_run()
        self._playing = True
        try:
            loop = self._make(session, [*session.last_messages, *said])
            loop.run()
        finally:
            self._playing = False
            if self._client.counted != Usage():
                self._world.observe(UsageCounted(self._client.counted))
        match loop.machine.state:
            case state if state == ABRT:
                return CANCELLED
            case state if state == ERRS:
                return Error("generate", loop.result or "")
            case _:
                return COMPLETED

    def cancel(self) -> None:
        """Stop the turn that is running, from anywhere; between turns there is nothing to stop."""
        if not self._playing:
            return
        self.session.cancel()
        if self._policy.waits_end_with_cancel:
            self._tools.stop()

    def history(self) -> tuple[Neutral, ...]:
        """The conversation as the next turn begins with it."""
        return tuple([to_neutral(message) for message in self.session.last_messages])


class _World:
    """What the loop needs of the world: files in memory, time of the run, and no threads.

    What would run in a thread runs at once. A Ctrl-C that comes in between is a cancel.
    """

    def __init__(self, env: Env, cancel: Callable[[], None]) -> None:
        self._env = env
        self._cancel = cancel
        self._files: dict[str, str] = {}
        self._words = 0

    def ports(self) -> Ports:
        """All of it."""
        return Ports(
            clock=self,
            threads=self,
            files=self,
            token=self.token,
            save=self.save,
            notify=lambda kind, payload: self.observe(LoopEvent(kind, payload)),
            observe=self.observe,
        )

    def observe(self, event: InsideEvent) -> None:
        """Report something."""
        self.heed(lambda: self._env.observe(event))

    def heed(self, wait: Callable[[], object]) -> bool:
        """Wait; False where a stop came in between."""
        try:
            wait()
        except KeyboardInterrupt:
            self._cancel()
        except Aborted:
            pass
        else:
            return True
        return False

    def now(self) -> int:
        """The time of the run."""
        return self._env.clock.now()

    def sleep(self, nanoseconds: int) -> None:
        """Wait."""
        self.heed(lambda: self._env.clock.wait(nanoseconds))

    def start(self, work: Callable[[], None]) -> None:
        """Run `work`, now."""
        work()

    def event(self) -> _Flag:
        """A flag."""
        return _Flag(self._env, self)

    def lock(self) -> AbstractContextManager[Any]:
        """Nothing to lock: there is one thread."""
        return nullcontext()

    def resolve(self, path: str) -> str:
        """There are no links."""
        return path

    def write(self, path: str, text: str) -> None:
        """Keep a file in memory."""
        self._files[path] = text

    def save(self, text: str, _system: str | None) -> None:
        """Keep the conversation's file, and tell of it."""
        self.write("conversation.md", text)
        self.observe(LoopEvent("saved", None))

    def token(self) -> str:
        """A fresh word."""
        self._words += 1
        return f"word-{self._words}"


class _Flag:
    """A flag that the turn waits for in virtual time."""

    def __init__(self, env: Env, world: _World) -> None:
        self._env = env
        self._world = world
        self._raised = asyncio.Event()

    def set(self) -> None:
        """Raise it."""
        self._raised.set()

    def wait(self) -> None:
        """Wait until it is raised."""
        while not self._raised.is_set():
            self._world.heed(lambda: self._env.block(self._raised.wait))


class _Tools:
    """The tools of a run; each runs beside the loop, which waits at once or later."""

    def __init__(
        self, env: Env, session: Session, world: _World, cancel: Callable[[], None]
    ) -> None:
        self._env = env
        self._session = session
        self._world = world
        self._cancel = cancel
        self._running: list[Started] = []
        self._waiting = False

    def tool(self, schema: ToolSchema, config: Mapping[str, Json]) -> Tool:
        """A tool of the run for the loop's registry."""
        late = schema.name in config["async_tools"]
        asks = schema.name in config["interactive_tools"]
        run = self._later(schema.name) if late else self._at_once(schema.name)
        return Tool(schema.name, run, schema.description, schema.parameters, interactive=asks)

    def stop(self) -> None:
        """Stop what runs, and whoever waits for it at once."""
        for tool in self._running:
            tool.cancel()
        if self._waiting:
            self._env.abort()

    def _at_once(self, name: str) -> RunTool:
        def run(arguments: dict[str, Json], running: Running) -> str | None:
            tool = self._start(name, arguments, running)
            if tool is not None:
                while not (tool.done() or self._stopped(running)):
                    self._wait(tool.join)
                if not tool.done():
                    self._world.sleep(0)  # one that heeds its cancel has ended then
                if tool.done():
                    try:
                        return _value(tool)
                    except asyncio.CancelledError:
                        if not self._session.cancelled(running.stamp):
                            raise ToolFailed("it was cancelled") from None
            return self._session.instead(running.call_id, name, self._session.texts.given_up)

        return run

    def _later(self, name: str) -> RunTool:
        def run(arguments: dict[str, Json], running: Running) -> PendingToolResult:
            handle = PendingToolResult(self._world)
            tool = self._start(name, arguments, running)
            if tool is None:
                handle.give_up()
                return handle

            def ended() -> None:
                try:
                    handle.deliver(_value(tool))
                except asyncio.CancelledError:
                    if self._session.cancelled(running.stamp):
                        handle.give_up()
                    else:
                        handle.fail(ToolFailed("it was cancelled"))
                except Exception as error:
                    handle.fail(error)

            tool.then(ended)
            return handle

        return run

    def _start(self, name: str, arguments: dict[str, Json], running: Running) -> Started | None:
        """Start a tool; None where a stop came before."""
        started: list[Started] = []
        self._wait(lambda: started.append(self._env.tools.start(name, arguments, running.call_id)))
        if not started:
            return None
        [tool] = started
        self._running.append(tool)
        tool.then(lambda: self._running.remove(tool))
        if self._stopped(running):
            tool.cancel()
        return tool

    def _wait(self, wait: Callable[[], object]) -> None:
        """Wait until `stop` at most."""
        self._waiting = True
        self._world.heed(wait)
        self._waiting = False

    def _stopped(self, running: Running) -> bool:
        session = self._session
        return session.policy.waits_end_with_cancel and session.cancelled(running.stamp)


def _value(tool: Started) -> str | None:
    """What a tool that has ended gives, as a text."""
    value = tool.result()
    return value if value is None or isinstance(value, str) else dumps(value)


def _settings(config: Mapping[str, Json]) -> Settings:
    window = config["window_tokens"]
    own = Settings()
    return Settings(
        model=config["model"],
        main=RequestOptions(),
        system=config["system_prompt"] or None,
        windows=(("", window),) if window else own.windows,
        max_nudges=config["max_nudges"],
        context_trigger=config["context_trigger"],
        subagent_max_rounds=config["subagent_max_rounds"],
    )


def build(env: Env, config: Mapping[str, Json], policy: str) -> FsmAgent:
    """The agent for one run."""
    chosen = next(known for known in POLICIES if known.name == policy)
    return FsmAgent(env, {**KIND.settings, **config}, chosen)


KNOWN: Mapping[str, str] = {
    "CANCEL": "What was being prepared is still done: a request, a title, a tool.",
    "EFFECT-KEPT": "A round that is cancelled is dropped with all that its tools did.",
    "RESUME": "A round whose calls have one id counts as answered when one of them is.",
}
"""The invariants that some cancel breaks under the recorded policy, each with the reason."""

KIND = LoopKind(
    name="fsm",
    settings={
        "model": Settings().model,
        "system_prompt": SYSTEM_PROMPT,
        "max_nudges": 0,
        "window_tokens": 0,
        "context_trigger": Settings().context_trigger,
        "subagent_max_rounds": Settings().subagent_max_rounds,
        "titles": False,
        "subagents": False,
        "plan_mode": False,
        "plan_is_approved": True,
        "async_tools": [],
        "interactive_tools": [],
    },
    policies=tuple([policy.name for policy in POLICIES]),
    build=build,
    events=(
        "context",
        "error",
        "compact",
        "tool_start",
        "tool_running",
        "tool",
        "tools",
        "saved",
    ),
    states=tuple(dict.fromkeys([*[row.source for row in TABLE], *TERMINAL])),
    known={"reference": KNOWN},
)
"""How the state-machine loop stands among the loops."""
