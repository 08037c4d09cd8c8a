"""The turn loop as an agent under test: the run's model and tools, a signal for each turn."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any
from weakref import WeakSet

import msgspec

from harness.core.budget import Budget
from harness.core.cancel_signal import CancelSignal
from harness.core.durations import format_duration, parse_duration
from harness.core.errors import UsageError
from harness.core.events import UsageCounted
from harness.core.json_text import Json
from harness.core.messages import Message, ToolCall, Usage
from harness.core.outcome import Outcome
from harness.core.ports import Env, Tools
from harness.loops.kind import LoopKind
from harness.loops.turn.config import AgentConfig, default_config
from harness.loops.turn.log import MemoryLog
from harness.loops.turn.loop import Bindings, create_loop
from harness.loops.turn.policy import POLICIES, Policy
from harness.loops.turn.registry import ToolRegistry
from harness.loops.turn.usage import UsageTracker


class TurnAgent:
    """Plays each turn with a loop and a signal of its own; log, tools and counts stay."""

    def __init__(self, env: Env, config: AgentConfig, policy: Policy) -> None:
        self._env = env
        self._config = config
        self._policy = policy
        self._log = MemoryLog(policy)
        self._tools = registry_of(env.tools)
        self._usage = UsageTracker()
        self._signal = CancelSignal()
        self._early: WeakSet[asyncio.Task[Any]] | None = WeakSet()
        """The tasks that a stop before the turn may be meant for; None where that is not known."""
        self._playing = False

    async def turn(self, text: str | None) -> Outcome:
        """Play one user turn; None resumes."""
        if self._early is not None and all(task.done() for task in self._early):
            self._signal = CancelSignal()  # whoever was told to stop never began
        self._early = WeakSet()
        self._playing = True
        bindings = Bindings(signal=self._signal, usage=self._usage, observe=self._env.observe)
        loop = create_loop(
            self._env.model, self._log, self._tools, self._config, bindings, self._policy
        )
        try:
            return await loop.run(text)
        finally:
            self._playing = False
            self._signal = CancelSignal()
            if self._usage.total() != Usage():
                self._env.observe(UsageCounted(self._usage.total()))

    def cancel(self) -> None:
        """Stop the turn that is running, or whose task was made and has not begun; from any thread,
        any number of times.

        From a thread without an event loop, nobody can tell whether there is such a task: between
        turns, it stops the next one.
        """
        if not self._playing and self._early is not None:
            self._early = _with_unbegun(self._early)
        self._signal.abort()

    def history(self) -> tuple[Message, ...]:
        """The conversation as the next request would carry it, before it is cut to size."""
        return self._log.derive_messages()


def _with_unbegun(known: WeakSet[asyncio.Task[Any]]) -> WeakSet[asyncio.Task[Any]] | None:
    """`known` and the tasks of this thread's event loop that have not begun; None without one."""
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:
        return None
    for task in tasks:
        coro: Any = task.get_coro()
        if not inspect.iscoroutine(coro) or inspect.getcoroutinestate(coro) == inspect.CORO_CREATED:
            known.add(task)
    return known


def registry_of(tools: Tools) -> ToolRegistry:
    """A registry over the tools of a run; the id of each call goes with it."""

    async def call(call: ToolCall) -> Json:
        return await tools.call(call.name, call.args, call.id)

    registry = ToolRegistry()
    for schema in tools.schemas():
        registry.register(schema, call)
    return registry


def build(env: Env, config: Mapping[str, Json], policy: str) -> TurnAgent:
    """The agent for one run; UsageError where a setting is not one, or of the wrong type."""
    settings: dict[str, Any] = dict(config)
    if "cancel_grace" in settings:
        settings["cancel_grace"] = _grace(settings["cancel_grace"])
    chosen = next(known for known in POLICIES if known.name == policy)
    return TurnAgent(env, default_config(**settings), chosen)


def budget(config: Mapping[str, Json]) -> Budget:
    """What the loop may spend with these settings."""
    settings = {**KIND.settings, **config}
    steps = settings["max_steps"]
    return Budget(
        steps=steps if steps > 0 else None,
        parallel_tools=max(1, settings["max_parallel_tool_calls"]),
        keep_messages=max(1, settings["context_keep_recent"]),
    )


def _grace(spelled: Json) -> int:
    if not isinstance(spelled, str):
        raise UsageError(f"cancel_grace is {spelled!r}; write a duration, such as 10ms")
    try:
        return parse_duration(spelled)
    except ValueError as error:
        raise UsageError(f"cancel_grace: {error}") from None


_DEFAULTS = AgentConfig()

KIND = LoopKind(
    name="turn",
    settings={
        **msgspec.structs.asdict(_DEFAULTS),
        "cancel_grace": format_duration(_DEFAULTS.cancel_grace),
    },
    policies=tuple([policy.name for policy in POLICIES]),
    build=build,
    budget=budget,
    events=("text", "thinking", "tool", "tool_result", "done", "turn_end"),
    known={policy.name: policy.known for policy in POLICIES},
)
"""How the turn loop stands among the loops."""
