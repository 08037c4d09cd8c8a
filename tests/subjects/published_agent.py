"""The published agent python-agent-harness 1.5.3: its own session and loop, in our env.

The package is as it comes. What it lets its users set is set: a client, tools, the texts of its
configuration, hooks. What it says in fixed words is put into ours where it leaves for the model, so
that scenarios and traces can be compared word by word. All that it writes is in a temporary folder.
"""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from python_agent_harness import agent, config, models, session
from python_agent_harness.tools import agent_tool, base

from harness.core.events import (
    Compacted,
    LoopEvent,
    Salvaged,
    StateEntered,
    UsageCounted,
)
from harness.core.json_text import Json, dumps
from harness.core.messages import Message as Neutral
from harness.core.messages import ToolSchema, Usage
from harness.core.outcome import CANCELLED, COMPLETED, Error, Outcome
from harness.core.ports import Env, Started, ToolFailed
from harness.loops.fsm.agent import KIND
from harness.loops.fsm.agent_world import AgentWorld
from harness.loops.fsm.context import unanswered
from harness.loops.fsm.env_client import to_neutral
from harness.loops.fsm.prompts import TEXTS
from harness.loops.fsm.tokens import WINDOWS, payload_tokens
from tests.subjects.published_client import PLAN_FILE, Client

PATHS = ("path", "parent")
"""Arguments that the package takes for paths, from the folder of the process."""


class PublishedAgent:
    """One session of the package, with `settings` as our own state-machine loop has them."""

    def __init__(self, env: Env, settings: Mapping[str, Json]) -> None:
        configure(settings)
        folder = tempfile.mkdtemp(prefix="published-agent-")
        self.close = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        os.environ["XDG_DATA_HOME"] = folder
        self._playing = False
        self.world = AgentWorld(env, self.cancel)
        self.client = Client(env, settings["model"], self.world, self.cancel)
        self.session = Session(self.world, folder, self.client, settings)
        self.client.words.plan_file = self.session.plan_mode.plan_file
        tools = Tools(env, self.world, settings["async_tools"])
        for schema in env.tools.schemas():
            self.session.registry.register(tools.tool(schema))
        if settings["subagents"]:
            self.session.registry.register(agent_tool.AgentTool())
        if settings["plan_mode"]:
            self.session.switch_to_plan()

    def turn(self, text: str | None) -> Outcome:
        """Play one user turn as the package's own user interface does: the loop has a thread of its
        own, and a Ctrl-C, which never comes there, is a cancel.
        """
        own = self.session
        said = [] if text is None else [models.Message("user", text)]
        own.run_generation += 1
        loop = Loop(own, [*own.last_messages, *said])
        errors: list[BaseException | None] = []

        def work() -> None:
            error: BaseException | None = None
            try:
                loop.run()
            except BaseException as raised:
                error = raised
            errors.append(error)
            self._report_end(loop)

        self._playing = True
        worker = threading.Thread(target=work, daemon=True)
        while not self.world.heed(worker.start):
            pass
        while not self.world.heed(worker.join):
            pass
        self._playing = False
        own.cancel_event.clear()  # and not as a turn begins: a cancel may have come by then
        if errors[0] is not None:
            raise errors[0]
        match loop.state:
            case "ABRT":
                return CANCELLED
            case "ERRS":
                return Error("generate", loop.result or "")
            case _:
                return COMPLETED

    def cancel(self) -> None:
        """Stop the turn that is running."""
        if self._playing:
            self.session.cancel()

    def history(self) -> tuple[Neutral, ...]:
        """The conversation as the next turn begins with it."""
        return tuple([to_neutral(self.client.words.message(m)) for m in self.session.last_messages])

    def _report_end(self, loop: Any) -> None:
        kept, there = len(self.session.last_messages), len(loop.messages)
        if kept < there:
            said = [self.client.words.message(message) for message in loop.messages]
            self.world.observe(Salvaged(kept, there - kept, unanswered(said, kept)))
        spent = sum(self.client.spent, Usage())
        if spent != Usage():
            self.world.observe(UsageCounted(spent))


def build(env: Env, settings: Mapping[str, Json] | None = None) -> PublishedAgent:
    """The agent for one run; `settings` are some of those of our own state-machine loop."""
    return PublishedAgent(env, {**KIND.settings, **(settings or {})})


def configure(settings: Mapping[str, Json]) -> None:
    """Set the package's configuration, which is one for the process, for a run."""
    window = settings["window_tokens"]
    config.MAX_NUDGES = settings["max_nudges"]
    config.CONTEXT_TRIGGER = settings["context_trigger"]
    config.SUBAGENT_MAX_ROUNDS = settings["subagent_max_rounds"]
    config.CONTEXT_WINDOWS = [("", window)] if window else list(WINDOWS)
    config.NUDGE_MESSAGE = TEXTS.nudge
    config.COMPACT_HEADER = TEXTS.compact_header
    config.COMPACT_SEPARATOR = TEXTS.compact_separator
    config.PLAN_MODE_SUBAGENT_REMINDER = TEXTS.plan_reminder
    config.PLAN_EXIT_APPROVED_MESSAGE = TEXTS.plan_approved


class Session(session.Session):
    """The package's session with its hooks taken: it reports to the run, and answers for a user."""

    def __init__(
        self, world: AgentWorld, folder: str, client: Client, settings: Mapping[str, Json]
    ) -> None:
        super().__init__(
            folder,
            client,
            settings["model"],
            system_prompt=settings["system_prompt"],
            subagent_system_prompt=TEXTS.subagent_prompt,
            registry=base.Registry(),
        )
        self.world = world
        self.notify_fn = lambda kind, payload=None: world.observe(LoopEvent(kind, payload))
        self.confirm_fn = lambda _prompt: bool(settings["plan_is_approved"])
        self.title_wanted = bool(settings["titles"])
        self.plan_mode.plan_file = str(Path(folder) / PLAN_FILE)
        self.calling = threading.local()
        """The id and the arguments of the call that each thread is at."""

    def execute_tool(self, name: str, args: dict[str, Json], call_id: str | None = None) -> Any:
        """Run a tool, which can look up for which call it is; paths are those of the folder."""
        self.calling.id, self.calling.args = call_id, args
        paths = {key: str(Path(self.project_dir) / args[key]) for key in PATHS if args.get(key)}
        return super().execute_tool(name, {**args, **paths}, call_id)

    def auto_save(self, messages: list[Any], system: str | None) -> None:
        """Write the conversation, and tell of it."""
        super().auto_save(messages, system)
        self.world.observe(LoopEvent("saved", None))

    def generate_session_title(self) -> None:
        """Ask for a title, where the scenario wants one."""
        if self.title_wanted:
            super().generate_session_title()


class Loop(agent.AgentLoop):
    """The package's loop, which tells of its compactions."""

    def compact(self) -> bool:
        """Compact the conversation; whether that succeeded."""
        before = self._size()
        done: bool = super().compact()
        failed = None if done else "the package does not say why"
        self.session.world.observe(Compacted(before, self._size(), failed))
        return done

    def _size(self) -> int:
        return payload_tokens(None, [message.to_api() for message in self.messages], [])


def _telling(state: str, handler: Callable[[Any], None]) -> Callable[[Any], None]:
    """A state's handler, which first tells that the state is entered; of sub-agents too."""

    @functools.wraps(handler)
    def handle(loop: Any) -> None:
        loop.session.world.observe(StateEntered(state))
        handler(loop)

    return handle


agent.AgentLoop.HANDLERS = {
    state: _telling(state, handler) for state, handler in agent.AgentLoop.HANDLERS.items()
}


class Tools:
    """The env's tools as the package's; `late` are those that run in the background."""

    def __init__(self, env: Env, world: AgentWorld, late: list[str]) -> None:
        self._env = env
        self._world = world
        self._late = late

    def tool(self, schema: ToolSchema) -> Any:
        """A tool of the run for the package's registry."""
        tool = _Tool()
        tool.name, tool.description = schema.name, schema.description
        tool.parameters = schema.parameters
        tool.work = self._later if schema.name in self._late else self._at_once
        return tool

    def _at_once(self, name: str, arguments: dict[str, Json], call: str | None) -> Any:
        return self._result(self._start(name, arguments, call))

    def _later(self, name: str, arguments: dict[str, Json], call: str | None) -> Any:
        """As the package's own tools do: the work begins at once, and a thread waits for it."""
        tool, handle = self._start(name, arguments, call), _Pending()

        def work() -> None:
            try:
                handle.deliver(self._result(tool))
            except Exception as failed:
                handle.failed = failed
                handle.deliver("")

        threading.Thread(target=work, daemon=True).start()
        return handle

    def _start(self, name: str, arguments: dict[str, Json], call: str | None) -> Started:
        started: list[Started] = []

        def start() -> None:
            started.append(self._env.tools.start(name, arguments, call))

        while not started:
            self._world.heed(start)
        return started[0]

    def _result(self, tool: Started) -> Any:
        while not tool.done():  # nothing breaks off a tool of the package
            self._world.heed(tool.join)
        try:
            value = tool.result()
        except asyncio.CancelledError:
            raise ToolFailed("it was cancelled") from None
        return value if value is None or isinstance(value, str) else dumps(value)


class _Tool(base.Tool):
    work: Callable[[str, dict[str, Json], str | None], Any]

    def run(self, args: dict[str, Json], ctx: Any) -> Any:
        calling = ctx.session.calling
        return self.work(self.name, calling.args, calling.id)


class _Pending(base.PendingToolResult):
    """A late result that may be a failure."""

    failed: Exception | None = None

    def wait(self) -> str:
        value: str = super().wait()
        if self.failed is not None:
            raise self.failed
        return value
