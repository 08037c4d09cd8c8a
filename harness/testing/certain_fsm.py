"""What surely happens in a turn of the state-machine loop, under its safe policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from harness.fakes.script import Reply, ScriptedCall
from harness.fakes.tool_spec import ToolSpec
from harness.testing.certain import Certain, hangs, read_reply, run_tool


class FsmLimits(Struct, frozen=True):
    """What the loop's settings make of a turn.

    It nudges `nudges` times in a row. Tools in `late` run beside the others, unless they are
    `asking`, which are seen through one by one. Those that are `guarded` may be refused.
    """

    nudges: int = 0
    late: frozenset[str] = frozenset()
    asking: frozenset[str] = frozenset()
    guarded: frozenset[str] = frozenset()


def certain_fsm(
    replies: Sequence[Reply], specs: Mapping[str, ToolSpec], limits: FsmLimits, turn: int = 1
) -> Certain:
    """What surely happens in turn number `turn`, which has these replies, if nobody cuts it.

    Requests for summaries and titles, and those of sub-agents, come on top of it.
    """
    found = Certain()
    found.add("turn_started")
    nudged = 0
    for step, reply in enumerate(replies, 1):
        found.add("state_entered", "WAIT")
        found.add("loop_event", "context")
        found.add("request_sent", f"{turn}.{step}")
        if not read_reply(found, reply):
            break
        found.add("loop_event", "saved")
        if reply.calls:
            nudged = 0
            if not _run(found, reply.calls, specs, limits):
                break
            continue
        found.add("state_entered", "SUPERVISE")
        if nudged == limits.nudges:
            found.answered = True
            break
        nudged += 1
    return found


def _run(
    found: Certain,
    calls: Sequence[ScriptedCall],
    specs: Mapping[str, ToolSpec],
    limits: FsmLimits,
) -> bool:
    """Take in the calls of a reply; False where they do not surely come to an end."""
    found.add("state_entered", "TOOL")
    found.add("loop_event", "tool_start")
    for call in calls:
        found.add("loop_event", "tool_running")
        if call.tool in limits.guarded:
            continue
        run_tool(found, call, specs)
        beside = call.tool in limits.late and call.tool not in limits.asking
        if hangs(call, specs):
            found.hangs = True
            if not beside:
                return False
    if found.hangs:
        return False
    found.add("state_entered", "TRET")
    for _call in calls:
        found.add("loop_event", "tools")
    return True
