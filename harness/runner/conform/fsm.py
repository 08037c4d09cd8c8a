"""Vectors of whole FSM runs: a scripted world in, everything that can be seen of the loop out."""

from __future__ import annotations

import re

import msgspec

from harness.core import json_plain
from harness.core.json_text import Json
from harness.loops.fsm.client import RequestOptions
from harness.loops.fsm.loop import TERMINAL
from harness.loops.fsm.messages import Message
from harness.loops.fsm.policy import REFERENCE
from harness.loops.fsm.prompts import Texts
from harness.loops.fsm.registry import Tool
from harness.loops.fsm.session import Settings
from harness.loops.fsm.subagent import Subagents
from harness.loops.fsm.tokens import WINDOWS, Calibrator
from harness.runner.conform.common import VectorTexts, difference, only_keys
from harness.runner.conform.fsm_script import ScriptedClient, ScriptedTool, calls_of
from harness.runner.conform.fsm_watched import WatchedLoop, WatchedSession, WatchedSubagents
from harness.runner.conform.fsm_world import Hang, World

_SCENARIO = {
    "name", "top_level", "entry", "messages", "system", "session_system", "session_sub_system",
    "tools", "model", "model_repeat", "subagents", "compaction", "title", "cancel",
    "tools_enabled", "alive", "max_rounds", "window", "model_name", "calibration", "plan_mode",
    "plan_file", "pending_prompts", "pending_user_prompts", "first_user", "no_title",
    "save_error", "config", "max_steps", "tags", "real_texts", "session", "prompt", "description",
    "separate_sub_client",
}  # fmt: skip
_PLAN_FILE = "/plans/PLAN.md"
_WINDOW_MODEL = "oracle-model"
AGENT_SPEC_LENGTH = 867
"""How long the Agent tool's spec is where the vectors were recorded; it counts in estimates."""


def check(vector: Json, texts: VectorTexts) -> str | None:
    """Play the vector's run and compare all that it expects."""
    scenario = only_keys(vector["scenario"], _SCENARIO, "the scenario")
    play = Play(scenario, texts.fsm)
    found = play.found(play.run())
    expected = only_keys(vector["expected"], set(found), "what is expected")
    found = {key: found[key] for key in expected}
    if "python-text" in scenario.get("tags", ()):
        expected, found = _without_python_text(expected), _without_python_text(found)
    return difference(expected, found)


class Play:
    """One vector's session and loop, in its scripted world."""

    def __init__(self, scenario: Json, texts: Texts) -> None:
        self._scenario = scenario
        self._world = World(scenario)
        self._session = self._session_of(texts)
        self._world.triggers.session = self._session
        for spec in scenario.get("tools") or ():
            self._session.registry.register(ScriptedTool(self._world, spec).tool())
        if "subagents" in scenario:
            self._session.registry.register(self._agent_tool())
        self._own = [_message(each) for each in scenario.get("messages", [_FIRST])]

    def run(self) -> dict[str, Json]:
        """Run it to its end; what it gave, or what it raised."""
        ended: dict[str, Json] = {"result": None, "exception": None, "hang": False}
        try:
            ended["result"] = self._enter()
        except Hang:
            ended["hang"] = True
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            ended["exception"] = f"{type(error).__name__}: {error}"
        return ended

    def _enter(self) -> str | None:
        scenario, session = self._scenario, self._session
        if scenario.get("entry", "loop") == "run_subagent":
            subagents = Subagents(session, WatchedLoop)
            return subagents.run(scenario["prompt"], scenario.get("description", ""))
        return WatchedLoop(
            session,
            self._own,
            top_level=scenario.get("top_level", True),
            system=scenario.get("system", "SYS"),
            max_rounds=scenario.get("max_rounds", 60),
        ).run()

    def found(self, ended: dict[str, Json]) -> dict[str, Json]:
        """All that was seen, in the vectors' spelling."""
        world, session = self._world, self._session
        seen, loop = world.seen, session.first
        assert loop is not None
        state = loop.machine.state
        by_caller = self._scenario.get("entry", "loop") == "loop"
        nudges = list(zip(seen.states, seen.states[1:], strict=False)).count(("SUPERVISE", "WAIT"))
        return {
            "name": self._scenario["name"],
            "states": seen.states,
            "terminal": state if state in TERMINAL else None,
            "rounds": loop.rounds,
            **ended,
            "loop_result": loop.result,
            "error": loop.info.error,
            "terminal_text": loop.terminal_text,
            "infos": seen.infos,
            "nudges": nudges,
            "nudge_count": loop.supervisor.nudges,
            "messages": [_message_json(message) for message in loop.messages],
            "caller_list_len": len(self._own) if by_caller else None,
            "last_messages": [_message_json(message) for message in session.last_messages],
            "pending_left": [call.id for call in loop.pending],
            "queued_left": [session.plan.queue, session.pending_user_prompts],
            "harness_injected": loop.reminded,
            "cancelled": session.cancelled(loop.stamp),
            "stale": session.stale(loop.stamp),
            "compacting": session.compacting,
            "requests": seen.requests,
            "deltas": seen.deltas,
            "notify": seen.notify,
            "logs": seen.logs,
            "auto_saves": seen.auto_saves,
            "saved_text": seen.saved_text,
            "title_calls": seen.title_calls,
            "title": session.title,
            "first_user": session.first_user,
            "tool_runs": seen.tool_runs,
            "round_results": seen.round_results,
            "sub_results": seen.sub_results,
            "context": {
                "ratio": session.ratio,
                "factor": session.calibrator.factor,
                "last_raw": session.calibrator.last_raw,
                "updates": seen.updates,
            },
            "triggers_fired": world.triggers.fired,
            "triggers_unfired": world.triggers.unfired,
            "script_exhausted": seen.exhausted,
            "events": seen.events,
        }

    def _session_of(self, texts: Texts) -> WatchedSession:
        scenario, world = self._scenario, self._world
        client = ScriptedClient(world, "main")
        apart = scenario.get("separate_sub_client") or "subagents" in scenario
        session = WatchedSession(
            client,
            world.ports(),
            subagent_client=ScriptedClient(world, "sub") if apart else client,
            settings=_settings(scenario),
            policy=REFERENCE,
            texts=texts,
        )
        session.world = world
        session.tools_enabled = scenario.get("tools_enabled", True)
        session.alive = scenario.get("alive", True)
        session.calibrator = Calibrator(scenario.get("calibration", 1.0))
        session.plan.on = scenario.get("plan_mode", False)
        session.plan.plan_file = scenario.get("plan_file", _PLAN_FILE)
        session.plan.queue = list(scenario.get("pending_prompts", ()))
        session.pending_user_prompts = list(scenario.get("pending_user_prompts", ()))
        session.first_user = scenario.get("first_user")
        session.title = "Preset" if scenario.get("no_title") else None
        return session

    def _agent_tool(self) -> Tool:
        """The Agent tool, as long as the recorded one."""
        subagents = WatchedSubagents(self._session, WatchedLoop)
        tool = subagents.tool("")
        short = len(json_plain.dumps_ascii(tool.spec()))
        return subagents.tool("." * (AGENT_SPEC_LENGTH - short))


_PYTHON_TEXT = re.compile("(Error: .* — |Error: (?!.* — )).*$", re.MULTILINE)
_FIRST: Json = {"role": "user", "content": "do the task"}


def _settings(scenario: Json) -> Settings:
    config, given = scenario.get("config", {}), scenario.get("session", {})
    window, defaults = scenario.get("window"), Settings()
    low, high = defaults.calibration
    options = {
        "main": {name: value for name, value in given.items() if not name.startswith("subagent_")},
        "subagent": {
            name.removeprefix("subagent_"): value
            for name, value in given.items()
            if name.startswith("subagent_")
        },
    }
    return Settings(
        model=scenario.get("model_name", "gpt-5-mini") if window is None else _WINDOW_MODEL,
        main=msgspec.convert(options["main"], RequestOptions),
        subagent=msgspec.convert(options["subagent"], RequestOptions),
        system=scenario.get("session_system", "SESSION SYS"),
        subagent_system=scenario.get("session_sub_system", "SESSION SUB"),
        windows=WINDOWS if window is None else ((_WINDOW_MODEL, window), *WINDOWS),
        max_nudges=config.get("MAX_NUDGES", defaults.max_nudges),
        context_trigger=config.get("CONTEXT_TRIGGER", defaults.context_trigger),
        calibration=(config.get("CALIBRATION_MIN", low), config.get("CALIBRATION_MAX", high)),
    )


def _message(value: Json) -> Message:
    known = {"role", "content", "tool_calls", "tool_call_id", "name", "injected", "reasoning"}
    fields = only_keys(value, known, "a message")
    return Message(**{**fields, "tool_calls": calls_of(fields.get("tool_calls"))})


def _message_json(message: Message | None) -> Json:
    if message is None:  # what a broken client put there
        return None
    spelled: dict[str, Json] = {
        "role": message.role,
        "content": message.content,
        "injected": message.injected,
    }
    if message.tool_calls is not None:
        names = ("id", "name", "arguments", "result", "diff")
        spelled["tool_calls"] = [
            {name: getattr(call, name) for name in names} for call in message.tool_calls
        ]
    for name in ("tool_call_id", "name", "reasoning"):
        if (value := getattr(message, name)) is not None:
            spelled[name] = value
    return spelled


def _without_python_text(value: Json) -> Json:
    """What is expected or found, without what Python itself says in errors."""
    if isinstance(value, dict):
        return {
            key: str(item).partition(":")[0] if key == "exception" else _without_python_text(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_without_python_text(item) for item in value]
    return _PYTHON_TEXT.sub(r"\1", value) if isinstance(value, str) else value
