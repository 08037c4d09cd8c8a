"""The FSM loop with its steps as points, and its session with all that it does seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.core.json_text import Json
from harness.loops.fsm.loop import Loop
from harness.loops.fsm.messages import Message, ToolCall
from harness.loops.fsm.pending import PendingToolResult
from harness.loops.fsm.registry import Running, Stamp
from harness.loops.fsm.session import Session
from harness.loops.fsm.subagent import Subagents
from harness.loops.fsm.tools import Answer, Results, Tools
from harness.loops.fsm.transcript import saved_text
from harness.runner.conform.fsm_world import World


class WatchedSession(Session):
    """A session that tells what it does."""

    world: World
    first: WatchedLoop | None = None
    """The vector's own loop, and not one that it started."""

    def auto_save(self, messages: Sequence[Message], system: str | None, stamp: Stamp) -> None:
        """Write the conversation."""
        seen = self.world.seen
        roles = [message.role for message in messages]
        seen.auto_saves.append({"messages": len(roles), "roles": roles, "system": system})
        seen.event("auto_save", len(roles))
        seen.saved_text = saved_text(messages)
        self.world.hit("during_auto_save")
        super().auto_save(messages, system, stamp)

    def generate_title(self, stamp: Stamp) -> None:
        """Ask for a title."""
        self.world.seen.title_calls += 1
        self.world.seen.event("title_call")
        super().generate_title(stamp)

    def notify(self, kind: str, payload: Json = None) -> None:
        """Tell the user interface."""
        super().notify(kind, payload)
        if kind == "context":
            self.world.seen.updates.append([self.calibrator.last_raw, self.ratio])


class WatchedLoop(Loop):
    """A loop whose steps are points."""

    session: WatchedSession

    def __init__(self, session: WatchedSession, messages: list[Message], **given: Any) -> None:
        super().__init__(session, messages, **given)
        self._world = session.world
        self._is_first = session.first is None
        if session.first is None:
            session.first = self
        self.tools = WatchedTools(session, self.stamp, self.cancelled, top_level=self.top_level)

    def run(self) -> str | None:
        """Run to the end."""
        self._world.begins(self)
        try:
            return super().run()
        finally:
            self._world.ends()

    def entered(self, state: str) -> None:
        """A state begins."""
        world = self._world
        if self._is_first:
            world.seen.states.append(state)
        world.step()
        world.seen.event("state", f"{world.prefix}{state}")
        world.hit(f"enter:{state}")
        if state == "WAIT":
            world.hit("before_round")

    def wait(self) -> None:
        """Ask the model."""
        super().wait()
        if self._is_first:
            self._world.seen.infos.append(self._flags())

    def run_tools(self) -> None:
        """Run the pending calls."""
        self._world.hit("before_tools")
        super().run_tools()
        self._world.hit("after_tools")

    def append_result(self, call: ToolCall, answer: Answer) -> None:
        """Answer a call."""
        self._world.hit("before_delivery")
        super().append_result(call, answer)
        self._world.seen.event("deliver", call.id)
        self._world.hit("during_delivery")

    def _flags(self) -> Json:
        info = self.info
        flags = {name: getattr(info, name) is not None for name in ("assistant", "usage")}
        flags |= {"tool_calls": bool(info.tool_calls), "budget": info.budget}
        flags |= {"compacted": info.compacted}
        set_ones: dict[str, Json] = {name: True for name, on in flags.items() if on}
        return set_ones if info.error is None else {**set_ones, "error": info.error}


class WatchedTools(Tools):
    """Calls whose steps are points."""

    _session: WatchedSession

    def run(self, calls: Sequence[ToolCall]) -> Results:
        """Run all calls."""
        results = super().run(calls)
        world = self._session.world
        if not world.prefix:
            world.seen.round_results.append({key: each.text for key, each in results.items()})
        return results

    def visit(self, call: ToolCall, running: Running) -> str | PendingToolResult:
        """Run one call."""
        world = self._session.world
        world.hit("before_tool")
        given = super().visit(call, running)
        world.hit("after_tool")
        return given

    def wait(self, handle: PendingToolResult) -> Any:
        """Wait for a late result."""
        world = self._session.world
        world.seen.event("wait", getattr(handle, "name", "Agent"))
        world.hit("during_async_wait")
        world.release_early()
        return super().wait(handle)


class WatchedSubagents(Subagents):
    """Sub-agents whose starts and answers are seen."""

    _session: WatchedSession

    def run(self, prompt: str, description: str, stamp: Stamp | None = None) -> str:
        """Let a sub-agent do a task."""
        result = super().run(prompt, description, stamp)
        self._session.world.seen.sub_results.append([prompt, result])
        return result

    def start(self, arguments: dict[str, Json], running: Running) -> Any:
        """Start one for a call."""
        self._session.world.ran("Agent", arguments)
        return super().start(arguments, running)
