"""What surely happens in a turn, so that a generated cancel stands where it can act."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from harness.core.messages import Message
from harness.core.reply import ReplyDone, ReplyInterrupted, TextDelta, ThinkingDelta
from harness.fakes.line import fault_name
from harness.fakes.neutral import NeutralFault, neutral
from harness.fakes.parts import stream_parts
from harness.fakes.script import (
    DoneTwice,
    GenerateFails,
    Hang,
    LateThinking,
    Reply,
    ScriptedCall,
    Torn,
)
from harness.fakes.tool_spec import Behaviour, Hangs, ToolSpec
from harness.fakes.wire_faults import Stall


class Limits(Struct, frozen=True):
    """What a loop's settings cut short: the steps of a turn, the tools that run side by side."""

    steps: int | None = None
    parallel: int = 4


class Certain(Struct):
    """What comes about in every agent that reads replies to their end signal, runs the tools that
    it is asked for, and does not ask again for a reply that failed.

    `events` counts outside events by kind and name. Where `hangs` is true the turn may never end by
    itself; where `answered` is true it surely comes to an answer.
    """

    events: Counter[tuple[str, str | None]] = field(default_factory=Counter)
    hangs: bool = False
    answered: bool = False

    def __and__(self, other: Certain) -> Certain:
        """What surely happens in both of two loops."""
        return Certain(
            self.events & other.events,
            self.hangs or other.hangs,
            self.answered and other.answered,
        )

    def add(self, kind: str, name: str | None = None) -> None:
        """One more event."""
        self.events[kind, name] += 1


def certain(
    replies: Sequence[Reply], specs: Mapping[str, ToolSpec], limits: Limits, turn: int = 1
) -> Certain:
    """What surely happens in turn number `turn`, which has these replies, if nobody cuts it."""
    found = Certain()
    found.add("turn_started")
    for step, reply in enumerate(replies[: limits.steps], 1):
        found.add("request_sent", f"{turn}.{step}")
        if not read_reply(found, reply):
            break
        if not reply.calls:
            found.answered = True
            break
        if not _run(found, reply.calls, specs, limits.parallel):
            break
    return found


def read_reply(found: Certain, reply: Reply) -> bool:
    """Take in a reply; False where the turn does not surely go on after it."""
    fault = neutral(reply.fault)
    name = "" if reply.fault is None else fault_name(reply.fault)
    if isinstance(fault, GenerateFails):
        found.add("fault_injected", name)
        found.add("reply_ended", "failed")
        return False
    if isinstance(fault, Hang) and fault.after is None:
        found.add("fault_injected", name)
        found.hangs = True
        return False
    if name and fault is None:
        found.add("fault_injected", name)
    for at, part in enumerate(stream_parts(reply, Message("assistant"), 0, fault)[0]):
        if isinstance(fault, Stall) and at == fault.after:
            found.add("fault_injected", name)
        match part:
            case ThinkingDelta():
                found.add("delta", "thinking")
            case TextDelta():
                found.add("delta", "text")
            case ReplyDone():
                return _read_on(found, fault)
            case ReplyInterrupted():
                found.add("reply_ended", "torn")
                return False
            case _:
                pass
    found.add("fault_injected", name)
    if isinstance(fault, Hang):
        found.hangs = True
    else:
        found.add("reply_ended", "torn" if isinstance(fault, Torn) else "failed")
    return False


def _read_on(found: Certain, fault: NeutralFault | None) -> bool:
    """What follows an end signal: there some agents read on and others do not."""
    match fault:
        case None | Stall():
            found.add("reply_ended", "complete")
            return True
        case DoneTwice() | LateThinking():
            return True
        case _:
            found.hangs = isinstance(fault, Hang)
            return False


def _run(
    found: Certain, calls: Sequence[ScriptedCall], specs: Mapping[str, ToolSpec], parallel: int
) -> bool:
    """Take in the calls of a reply; False where they do not surely come to an end."""
    for start in range(0, len(calls), parallel):
        beside = calls[start : start + parallel]
        for call in beside:
            run_tool(found, call, specs)
        if any(hangs(call, specs) for call in beside):
            found.hangs = True
            return False
    return True


def run_tool(found: Certain, call: ScriptedCall, specs: Mapping[str, ToolSpec]) -> None:
    """Take in a call, if it is one that surely runs."""
    if not _runs(call, specs):
        return
    found.add("tool_started", call.tool)
    if all(map(_takes_effect, _behaviours(specs[call.tool]))):
        found.add("tool_effect", call.tool)
    if not hangs(call, specs):
        found.add("tool_ended", call.tool)


def hangs(call: ScriptedCall, specs: Mapping[str, ToolSpec]) -> bool:
    """Whether a call surely runs and may never come back."""
    return _runs(call, specs) and any(
        isinstance(behaviour.action, Hangs) for behaviour in _behaviours(specs[call.tool])
    )


def _runs(call: ScriptedCall, specs: Mapping[str, ToolSpec]) -> bool:
    return call.tool in specs and call.raw is None and isinstance(call.args, dict)


def _behaviours(spec: ToolSpec) -> list[Behaviour]:
    return [*(case.behaviour for case in spec.cases), spec.behaviour, *spec.calls]


def _takes_effect(behaviour: Behaviour) -> bool:
    at_once = behaviour.effect == "start"
    return at_once or (behaviour.effect == "end" and not isinstance(behaviour.action, Hangs))
