"""What an FSM vector's loop talks to: clients and tools that do what the vector says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.core import json_plain
from harness.core.json_text import Json
from harness.loops.fsm.client import CancelCheck, RequestOptions, Usage
from harness.loops.fsm.messages import Message, ToolCall, wire
from harness.loops.fsm.pending import PendingToolResult
from harness.loops.fsm.registry import Running, Tool
from harness.runner.conform.common import only_keys
from harness.runner.conform.fsm_world import World

_TOOL = {
    "name", "kind", "required", "schema", "description", "behaviour", "value", "values", "release",
    "rank", "twice", "queue_prompt", "plan_on", "raise_at",
}  # fmt: skip
_BEHAVIOURS = {"return", "none", "nonstr", "raise", "echo", "delay", "exit", "diff"}


class ScriptedClient:
    """A client that answers from the script; `name` is how requests tell it."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name

    def abort(self) -> None:
        """Nothing to break off."""

    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Json] | None,
        system: str | None,
        options: RequestOptions,
        on_delta: Callable[[str], None] | None,
        cancel_check: CancelCheck,
        on_retry: Callable[[], None] | None,
    ) -> Any:
        """Ask for the next reply."""
        world = self._world
        world.request(
            "sub" if world.prefix else "main",
            messages=[wire(message, empty_ids=False) for message in messages],
            tools=None if tools is None else [tool["function"]["name"] for tool in tools],
            system=system,
            temperature=options.temperature,
            max_tokens=options.max_tokens,
            reasoning_effort=options.reasoning_effort,
            stream=options.stream,
            has_on_delta=on_delta is not None,
            has_on_retry=on_retry is not None,
            client=self._name,
            cancelled_at_send=cancel_check(),
        )
        world.hit("during_request")
        item = world.next_reply(messages)
        if during := item.get("cancel_during"):
            world.triggers.act("cancel" if during is True else during)
        for _ in range(item.get("retries", 0)):
            if on_retry is not None:
                on_retry()
        text = item.get("text") or ""
        for delta in item.get("deltas", [text] if text else []):
            if on_delta is not None:
                on_delta(delta)
        if "error" in item:
            raise RuntimeError(item["error"])
        return _bad(item, _message(item), _usage(item.get("usage")))

    def chat_sync(
        self,
        messages: Sequence[Message],
        *,
        system: str,
        temperature: float | None = None,
        cancel_check: CancelCheck | None = None,
    ) -> Any:
        """Ask for a summary or a title."""
        world = self._world
        is_title = system == world.triggers.session.texts.title_prompt
        kind = "title" if is_title else "compaction"
        world.request(
            kind,
            messages=[wire(message, empty_ids=False) for message in messages],
            tools=None,
            system=system,
            temperature=temperature,
            client=self._name,
            has_cancel_check=cancel_check is not None,
        )
        world.hit(f"during_{kind}")
        item = world.title if is_title else world.next_summary()
        if during := item.get("cancel_during"):
            world.triggers.act("cancel" if during is True else during)
        if "error" in item:
            raise RuntimeError(item["error"])
        return _bad(item, _message(item), Usage())[0]


def _bad(item: Json, message: Message, usage: Usage) -> Any:
    match item.get("bad"):
        case None:
            return message, usage
        case "none_usage":
            return message, None
        case "none_message":
            return None, usage
        case "not_tuple":
            return 5
        case _:
            raise KeyboardInterrupt("ctrl-c in worker")


def _message(item: Json) -> Message:
    reasoning = item.get("reasoning")
    content = item.get("content", f"{reasoning or ''}{item.get('text') or ''}")
    calls = item.get("tool_calls")
    return Message("assistant", content, calls_of(calls), reasoning=reasoning)


def calls_of(calls: Json) -> list[ToolCall] | None:
    """Calls as vectors spell them."""
    if calls is None:
        return None
    return [ToolCall(call["id"], call["name"], call["arguments"]) for call in calls]


def _usage(given: Json) -> Usage:
    match given:
        case None:
            return Usage()
        case int():
            return Usage(given)
        case _:
            return Usage(given.get("input", 0), given.get("output", 0))


class ScriptedHandle(PendingToolResult):
    """A late result; it is delivered as its tool's `release` says."""

    def __init__(self, world: World, spec: Json, value: Json) -> None:
        super().__init__(world.threads)
        self.name: str = spec["name"]
        self.rank: int = spec.get("rank", 0)
        self._world = world
        self._spec = spec
        self._value = value
        self._delivered = False

    def release(self) -> None:
        """Deliver, once."""
        if self._delivered:
            return
        self._delivered = True
        if self._spec["behaviour"] == "raise":
            self.fail(RuntimeError(self._value))
            return
        self._world.seen.event("deliver_async", self.name)
        self.deliver(self._value)
        if "twice" in self._spec:
            self.deliver(self._spec["twice"])

    def wait(self) -> Any:
        """Deliver what is left, and give it."""
        self.release()
        return super().wait()


class ScriptedTool:
    """A tool that does what its `spec` says."""

    def __init__(self, world: World, spec: Json) -> None:
        self._world = world
        self._spec = only_keys(spec, _TOOL, "a tool")
        self._runs = 0
        if spec["behaviour"] not in _BEHAVIOURS:
            raise ValueError(f"unknown tool behaviour {spec['behaviour']!r}")

    def tool(self) -> Tool:
        """The tool as a registry takes it."""
        spec = self._spec
        required = spec.get("required", [])
        properties = {name: {"type": "string"} for name in required}
        schema = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        return Tool(
            spec["name"],
            self.run,
            spec.get("description", f"tool {spec['name']}"),
            spec.get("schema", schema),
        )

    def run(self, arguments: dict[str, Json], running: Running) -> Any:
        """Run it."""
        spec, world = self._spec, self._world
        world.ran(spec["name"], arguments)
        session = world.triggers.session
        self._runs += 1
        if "queue_prompt" in spec:
            session.pending_user_prompts.append(spec["queue_prompt"])
        if spec.get("plan_on"):
            session.plan.on = True
        value = self._value(arguments, running)
        if spec["kind"] == "sync":
            return value
        handle = ScriptedHandle(world, spec, value)
        late = "own_wait" if spec["behaviour"] in ("delay", "raise") else "dispatch"
        match spec.get("release", late):
            case "dispatch":
                handle.release()
            case "first_wait":
                world.early.append(handle)
            case _:
                pass
        return handle

    def _value(self, arguments: dict[str, Json], running: Running) -> Any:
        spec = self._spec
        value = spec.get("value")
        if spec.get("values"):
            value = spec["values"][min(self._runs, len(spec["values"])) - 1]
        match spec["behaviour"]:
            case "none":
                return None
            case "raise" if spec["kind"] == "sync" or spec.get("raise_at") == "run":
                raise RuntimeError(value)
            case "echo":
                return f"{spec['name']}:{json_plain.dumps_sorted(arguments)}"
            case "exit":
                raise SystemExit("tool exit")
            case "diff":
                running.diff = value
                return "ok"
            case _:
                return value
