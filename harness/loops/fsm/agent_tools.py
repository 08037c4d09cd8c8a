"""The tools of a simulated run as the loop's own: each is started beside it, and waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from harness.core.json_text import Json, dumps
from harness.core.messages import ToolSchema
from harness.core.ports import Env, Started, ToolFailed
from harness.loops.fsm.agent_world import AgentWorld
from harness.loops.fsm.pending import PendingToolResult
from harness.loops.fsm.registry import Running, RunTool, Tool
from harness.loops.fsm.session import Session


class AgentTools:
    """The tools of a run; each runs beside the loop, which waits at once or later."""

    def __init__(
        self, env: Env, session: Session, world: AgentWorld, cancel: Callable[[], None]
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
