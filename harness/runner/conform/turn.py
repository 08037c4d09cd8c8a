"""Vectors of whole turns: a scripted world in, everything that can be seen of the loop out."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.core.errors import AgentError
from harness.core.json_text import Json
from harness.core.messages import ModelRequest
from harness.loops.turn import sse
from harness.loops.turn.config import AgentConfig
from harness.loops.turn.context import LOG, MODEL, TOOLS, Context, Plugin, Token, mount_plugins
from harness.loops.turn.events import CallTold, EndTold, ResultTold, TurnEvent
from harness.loops.turn.loop import LOOP, Bindings, loop_plugin
from harness.loops.turn.policy import REFERENCE
from harness.loops.turn.row_text import outcome_json, row_from_json, row_json
from harness.loops.turn.usage import UsageTracker
from harness.runner.conform.common import VectorTexts, difference, message_json, only_keys, play
from harness.runner.conform.turn_world import (
    ANSWER_DONE,
    Cancel,
    ScriptedModel,
    ScriptedTools,
    Thrown,
    WatchedLog,
)

_SCENARIO = {
    "input", "inputs", "config", "llm", "llm_default", "tools", "cancel", "schemas",
    "schemas_throw", "missing", "no_sink", "no_usage", "llm_shadowed", "scoped", "log_before",
    "turn_counter",
}  # fmt: skip


def check(vector: Json, texts: VectorTexts) -> str | None:
    """Play the vector's turns and compare all that it expects."""
    scenario = only_keys(vector["scenario"], _SCENARIO, "the scenario")
    world = World(scenario, texts)
    outcomes = play(world.play)
    found = world.found(outcomes)
    expected = only_keys(vector["expected"], set(found), "what is expected")
    if not any("ms" in tool for tool in (scenario.get("tools") or {}).values()):
        # Tools that take no time never run side by side, whatever the loop does.
        expected = {key: value for key, value in expected.items() if key != "max_active"}
    return difference(expected, {key: found[key] for key in expected})


class World:
    """One vector's loop, on its scripted services."""

    def __init__(self, scenario: Json, texts: VectorTexts) -> None:
        self._scenario = scenario
        self._cancel = Cancel(scenario.get("cancel"))
        self._model = ScriptedModel(
            scenario.get("llm") or [], scenario.get("llm_default", ANSWER_DONE), self._cancel
        )
        self._tools = ScriptedTools(scenario, self._cancel)
        self._log = WatchedLog(
            REFERENCE,
            texts.texts,
            rows=[row_from_json(row) for row in scenario.get("log_before") or ()],
            turns=scenario.get("turn_counter") or 0,
        )
        self._log.watch = self._cancel
        self._usage = UsageTracker()
        self._events: list[TurnEvent] = []
        self._texts = texts

    async def play(self) -> list[Json]:
        """Play every input; the outcome or the rejection of each."""
        loop = self._context().get(LOOP)
        assert loop is not None
        self._cancel.hit("before_turn")
        outcomes: list[Json] = []
        inputs = self._scenario.get("inputs") or [self._scenario.get("input", "hi")]
        for text in inputs:
            try:
                outcomes.append({"outcome": outcome_json(await loop.run(text))})
            except AgentError as error:
                outcomes.append({"rejects": {"name": "AgentError", "message": str(error)}})
            except Thrown as error:
                outcomes.append({"rejects": {"name": error.name, "message": str(error)}})
        return outcomes

    def found(self, outcomes: list[Json]) -> dict[str, Json]:
        """All that was seen, in the vectors' spelling."""
        frames = [sse.frame(event) for event in self._events]
        return {
            "outcomes": outcomes,
            "log": [row_json(row) for row in self._log.rows()],
            "events": [_event_json(event) for event in self._events],
            "sse": [{"event": name, "payload": payload} for name, payload in frames],
            "generate_calls": len(self._model.requests),
            "requests": [_request_json(request) for request in self._model.requests],
            "dispatched": self._tools.dispatched,
            "max_active": self._tools.max_active,
            "streams_closed": [stream.closed for stream in self._model.streams],
            "usage": {
                "latest": msgspec.structs.asdict(self._usage.latest()),
                "total": msgspec.structs.asdict(self._usage.total()),
            },
            "cancel_fired": self._cancel.fired,
            "derived_after": [message_json(m) for m in self._log.derive_messages()],
        }

    def _context(self) -> Context:
        scenario = self._scenario
        missing = set(scenario.get("missing") or ())
        config = msgspec.structs.asdict(self._texts.config) | (scenario.get("config") or {})
        bindings = Bindings(
            signal=self._cancel.signal,
            sink=None if scenario.get("no_sink") else self._tell,
            usage=None if scenario.get("no_usage") else self._usage,
        )
        plugins: list[Plugin] = []
        if "llm_shadowed" in scenario:
            shadowed = ScriptedModel(scenario["llm_shadowed"], ANSWER_DONE, self._cancel)
            plugins.append(_provide("shadowed model", MODEL, shadowed))
        if "llm" not in missing:
            plugins.append(_provide("model", MODEL, self._model))
        if "session" not in missing:
            plugins.append(_provide("log", LOG, self._log))
        if "registry" not in missing:
            plugins.append(_provide("tools", TOOLS, self._tools))
        context = Context()
        mount_plugins(context, plugins)
        scope = context.scoped() if scenario.get("scoped") else context
        loop = loop_plugin(
            msgspec.convert(config, AgentConfig),
            bindings,
            policy=REFERENCE,
            texts=self._texts.texts,
        )
        mount_plugins(scope, [loop])
        return scope

    def _tell(self, event: TurnEvent) -> None:
        self._events.append(event)
        self._cancel.hit("event", str(_event_json(event)["kind"]))


def _provide(name: str, token: Token[Any], service: Any) -> Plugin:
    return Plugin(name, lambda context: context.provide(token, service))


def _event_json(event: TurnEvent) -> dict[str, Json]:
    name, payload = sse.frame(event)
    match event:
        case CallTold():
            return {"kind": "tool_call", **payload}
        case ResultTold(call_id=call_id):
            told = {key: value for key, value in payload.items() if key != "id"}
            return {"kind": name, "callId": call_id, **told}
        case EndTold(outcome=outcome):
            return {"kind": name, "outcome": outcome_json(outcome)}
        case _:
            return {"kind": name, **payload}


def _request_json(request: ModelRequest) -> Json:
    return {
        "model": request.model,
        "system": request.system,
        "messages": [message_json(message) for message in request.messages],
        "tools": [msgspec.structs.asdict(schema) for schema in request.tools],
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
    }
