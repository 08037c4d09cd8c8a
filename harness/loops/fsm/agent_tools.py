"""The tools of a simulated run as the loop's own: each is started beside it, and waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from harness.core.json_text import Json, dumps
from harness.core.messages import ToolSchema
from harness.core.ports import Env, Started, ToolFailed
from harness.loops.fsm.agent_world import AgentWorld
from harness.loops.fsm.pending import GivenUp, PendingToolResult, in_thread
from harness.loops.fsm.registry import Running, RunTool, Tool
from harness.loops.fsm.session import Session


class AgentTools:
    """The tools of a run; each runs beside the loop, which waits for it, or has a thread wait."""

    def __init__(self, env: Env, session: Session, world: AgentWorld) -> None:
        self._env = env
        self._session = session
        self._world = world
        self._running: list[Started] = []

    def tool(self, schema: ToolSchema, config: Mapping[str, Json]) -> Tool:
        """A tool of the run for the loop's registry."""
        late = schema.name in config["async_tools"]
        asks = schema.name in config["interactive_tools"]
        run = self._later(schema.name) if late else self._at_once(schema.name)
        return Tool(schema.name, run, schema.description, schema.parameters, interactive=asks)

    def stop(self) -> None:
        """Stop what runs, and whoever waits for it at once."""
        for tool in tuple(self._running):
            tool.cancel()
        self._env.abort()

    def _at_once(self, name: str) -> RunTool:
        def run(arguments: dict[str, Json], running: Running) -> str | None:
            try:
                return self._run(name, arguments, running)
            except GivenUp:
                text = self._session.texts.given_up
                return self._session.instead(running.call_id, name, text)

        return run

    def _later(self, name: str) -> RunTool:
        def run(arguments: dict[str, Json], running: Running) -> PendingToolResult:
            return in_thread(self._world, lambda: self._run(name, arguments, running))

        return run

    def _run(self, name: str, arguments: dict[str, Json], running: Running) -> str | None:
        """Run a tool and give its value as a text; raises what it raises, GivenUp where a stop
        came before it had one.
        """
        tool = self._start(name, arguments, running)
        if tool is None:
            raise GivenUp
        while not (tool.done() or self._stopped(running)):
            self._world.heed(tool.join)
        if not tool.done():
            self._world.sleep(0)  # one that heeds its cancel has ended then
        if not tool.done():
            raise GivenUp
        try:
            value = tool.result()
        except asyncio.CancelledError:
            if self._session.cancelled(running.stamp):
                raise GivenUp from None
            raise ToolFailed("it was cancelled") from None
        return value if value is None or isinstance(value, str) else dumps(value)

    def _start(self, name: str, arguments: dict[str, Json], running: Running) -> Started | None:
        """Start a tool; None where a stop came before."""
        started: list[Started] = []

        def start() -> None:
            started.append(self._env.tools.start(name, arguments, running.call_id))

        self._world.heed(start)
        if not started:
            return None
        [tool] = started
        self._running.append(tool)
        tool.then(lambda: self._running.remove(tool))
        if self._stopped(running):
            tool.cancel()
        return tool

    def _stopped(self, running: Running) -> bool:
        session = self._session
        return session.policy.waits_end_with_cancel and session.cancelled(running.stamp)
