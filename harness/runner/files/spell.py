"""A scenario as the file that it would be: the inverse of loading."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from harness.core import yaml_text
from harness.core.budget import Budget
from harness.core.durations import format_duration
from harness.core.json_text import Json
from harness.core.messages import Usage
from harness.fakes.script import Fault, Reply, ScriptedCall
from harness.fakes.tool_spec import (
    Answers,
    Behaviour,
    CancelsItself,
    Case,
    Hangs,
    Raises,
    Returns,
    ToolSpec,
)
from harness.runner.files.script_format import CALL_KEYS, SAYS
from harness.runner.scenario import Cancel, Expect, Scenario, Turn


def spell_text(scenario: Scenario) -> str:
    """The YAML text of a file that loads as `scenario`, but for its name, source and lines."""
    return yaml_text.dump(spell(scenario))


def spell(scenario: Scenario) -> dict[str, Json]:
    """What the file holds; keys that say no more than their absence are left out."""
    declared = {spec.name for spec in scenario.tools}
    spelled: dict[str, Json] = {"about": scenario.about}
    if scenario.loops:
        spelled["loops"] = list(scenario.loops)
    if scenario.config:
        spelled["config"] = scenario.config
    if scenario.tools:
        spelled["tools"] = {spec.name: _tool(spec) for spec in scenario.tools}
    spelled["turns"] = [_turn(turn, declared) for turn in scenario.turns]
    if scenario.also:
        spelled["also"] = [
            {
                "name": also.name,
                "when": _changed(also.when),
                "model": [_reply(reply, declared) for reply in also.replies],
            }
            for also in scenario.also
        ]
    if scenario.order != "place":
        spelled["order"] = scenario.order
    if scenario.budget != Budget():
        spelled["budget"] = _changed(scenario.budget)
    if scenario.allow:
        spelled["allow"] = [_changed(allow) for allow in scenario.allow]
    if not scenario.strict:
        spelled["strict"] = False
    return spelled


def _changed(value: Struct, *spans: str) -> dict[str, Json]:
    """The fields of `value` that are not their defaults; those named in `spans` as durations."""
    spelled: dict[str, Json] = {}
    for name, default in _defaults(type(value)):
        found: Any = getattr(value, name)
        if found != default or type(found) is not type(default):
            spelled[name] = format_duration(found) if name in spans else found
    return spelled


@cache
def _defaults(kind: type[Struct]) -> tuple[tuple[str, Any], ...]:
    """The fields of a struct that a file may hold, with their defaults."""
    return tuple(
        [
            (info.name, {} if info.default_factory is dict else info.default)
            for info in msgspec.structs.fields(kind)
            if info.name != "line"
        ]
    )


def _turn(turn: Turn, declared: set[str]) -> dict[str, Json]:
    spelled: dict[str, Json] = {"resume": True} if turn.user is None else {"user": turn.user}
    if turn.replies:
        spelled["model"] = [_reply(reply, declared) for reply in turn.replies]
    if turn.cancel is not None:
        spelled["cancel"] = _cancel(turn.cancel)
    if turn.expect is not None:
        spelled["expect"] = _expect(turn.expect)
    return spelled


def _cancel(cancel: Cancel) -> dict[str, Json]:
    spelled = _changed(cancel, "at")
    name = spelled.pop("name", None)
    if name is not None:
        spelled["after"] = f"{cancel.after} {name}"
    return spelled


def _expect(expect: Expect) -> dict[str, Json]:
    spelled = {k: list(v) if isinstance(v, tuple) else v for k, v in _changed(expect).items()}
    if expect.usage is not None:
        spelled["usage"] = _usage(expect.usage)
    if expect.under:
        spelled["under"] = {policy: _expect(other) for policy, other in expect.under.items()}
    return spelled


def _reply(reply: Reply, declared: set[str]) -> dict[str, Json]:
    spelled = _changed(reply, "takes", "each")
    if reply.signature is not None and not reply.think:
        spelled = {"think": "", **spelled}
    if reply.calls:
        spelled["calls"] = [_call(call, declared) for call in reply.calls]
    if reply.usage is not None:
        spelled["usage"] = _usage(reply.usage)
    if reply.fault is not None:
        spelled["fault"] = _fault(reply.fault)
        if reply.fault_times is None:
            spelled["fault_times"] = "always"
    return spelled if spelled.keys() & set(SAYS) else {"say": "", **spelled}


def _usage(usage: Usage) -> dict[str, Json]:
    return _changed(usage) or {"prompt_tokens": 0}


def _call(call: ScriptedCall, declared: set[str]) -> Json:
    plain = call.raw is None and call.id is None and call.tool in declared
    if plain and call.args == {}:
        return call.tool
    if plain and isinstance(call.args, dict) and call.tool not in CALL_KEYS:
        return {call.tool: call.args}
    spelled: dict[str, Json] = {"tool": call.tool}
    if call.raw is not None:
        spelled["raw"] = call.raw
    elif call.args != {}:
        spelled["args"] = call.args
    if call.id is not None:
        spelled["id"] = call.id
    if call.tool not in declared:
        spelled["undeclared"] = True
    return spelled


def _fault(fault: Fault) -> Json:
    name = str(fault.__struct_config__.tag)
    settings = _changed(fault, "retry_after", "takes")
    return {name: settings} if settings else name


def _tool(spec: ToolSpec) -> dict[str, Json]:
    spelled: dict[str, Json] = {} if spec.calls else _behaviour(spec.behaviour)
    if spec.cases:
        spelled["when"] = [_case(case) for case in spec.cases]
    if spec.calls:
        spelled["calls"] = [_behaviour(behaviour) for behaviour in spec.calls]
    if spec.description:
        spelled["description"] = spec.description
    if spec.parameters is not None:
        spelled["parameters"] = spec.parameters
    return spelled


def _case(case: Case) -> dict[str, Json]:
    return {"args": case.args, **_behaviour(case.behaviour)}


def _behaviour(behaviour: Behaviour) -> dict[str, Json]:
    spelled: dict[str, Json] = {}
    match behaviour.action:
        case Returns(value=None):
            pass
        case Returns(value=value):
            spelled["returns"] = value
        case Answers(message=message):
            spelled["error"] = message
        case Raises(message=message):
            spelled["raises"] = message
        case Hangs():
            spelled["hangs"] = True
        case CancelsItself():
            spelled["cancels_itself"] = True
    if behaviour.takes:
        spelled["takes"] = format_duration(behaviour.takes)
    if behaviour.effect != "end":
        spelled["effect"] = behaviour.effect
    match behaviour.on_cancel:
        case "honour":
            pass
        case "ignore":
            spelled["on_cancel"] = "ignore"
        case "cleanup":
            spelled["on_cancel"] = {"cleanup": format_duration(behaviour.cleanup)}
    return spelled
