"""What a scenario for the state-machine loop has beside turns, tools and replies: its settings, the
calls that only this loop knows, and replies for summaries, titles and sub-agents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis.strategies import DrawFn
from msgspec import Struct
from msgspec.structs import replace

from harness.core.json_text import Json
from harness.fakes.script import Also, AlsoWhen, GenerateFails, Reply, ScriptedCall
from harness.loops.fsm.plan_mode import PLAN_EXIT
from harness.loops.fsm.prompts import TEXTS as SAID
from harness.loops.fsm.subagent import AGENT
from harness.runner.scenario import Turn
from harness.testing.certain_fsm import FsmLimits
from harness.testing.strategies_script import draw_faulty, draw_reply
from harness.testing.strategies_values import AT_TIMES, BOTH, TEXTS, below, pick, weighted

GUARDED = "Write"
"""The tool that plan mode keeps from what is not the plan."""
_PLAN = {"path": "plans", "filename": "word-1.md"}
_OTHER = {"path": "src", "filename": "parser.py"}
_TASK = {"subagent_type": "general", "description": "look it up", "prompt": "Look it up."}

_NUDGES = weighted((0, 6), (1, 2), (2, 1))
_WINDOWS = weighted((None, 3), (80, 1), (160, 1), (320, 1))
_ROUNDS = weighted((None, 3), (1, 1), (2, 1))
_SUBAGENTS = weighted((False, 3), (True, 1))
_PLANS = weighted((False, 5), (True, 1))
_DECLINED = weighted((False, 2), (True, 1))
_EACH_LATE = weighted((False, 2), (True, 1))


class Fsm(Struct, frozen=True):
    """The settings of a state-machine loop, and what they make of a script.

    `calls` are for the loop itself, and for the tool that its plan mode guards. It is given
    `summaries` that may make its conversation shorter.
    """

    config: dict[str, Json] = {}
    limits: FsmLimits = FsmLimits()
    calls: tuple[ScriptedCall, ...] = ()
    summaries: int = 0


def draw_fsm(draw: DrawFn, names: Sequence[str], *, alone: bool, trims: bool) -> Fsm:
    """Settings for tools of these `names`; where the loop is not `alone`, none that has it ask for
    more replies of a turn, or call what other loops do not know; without `trims` none that has it
    make its conversation shorter.
    """
    config: dict[str, Json] = {}
    calls: list[ScriptedCall] = []
    window = draw(_WINDOWS) if trims else None
    summaries = 0
    if window is not None:
        config["system_prompt"] = "Be brief."
        config["window_tokens"] = window
        summaries = draw(below(2)) + 1
    # A summary lets it be nudged anew, which nobody can foresee.
    nudges = draw(_NUDGES) if alone and window is None else 0
    if nudges:
        config["max_nudges"] = nudges
    if alone and draw(_SUBAGENTS):
        config["subagents"] = True
        calls.append(ScriptedCall(AGENT, _TASK))
        rounds = draw(_ROUNDS)
        if rounds is not None:
            config["subagent_max_rounds"] = rounds
    if alone and draw(_PLANS):
        config["plan_mode"] = True
        calls += [ScriptedCall(PLAN_EXIT), *(ScriptedCall(GUARDED, to) for to in (_PLAN, _OTHER))]
        # An approved plan takes a tool away; a cut that takes one away would look the same.
        if window is not None or draw(_DECLINED):
            config["plan_is_approved"] = False
    late, asking = ([name for name in names if draw(each)] for each in (_EACH_LATE, AT_TIMES))
    if late:
        config["async_tools"] = late
    if asking:
        config["interactive_tools"] = asking
    if draw(AT_TIMES):
        config["titles"] = True
    limits = FsmLimits(nudges, frozenset(late), frozenset(asking), frozenset([GUARDED]))
    return Fsm(config, limits, tuple(calls), summaries)


def draw_asks(draw: DrawFn, steps: int, nudges: int) -> list[bool]:
    """Which replies of a turn ask for tools: `steps` - 1 that do, and all the answers that it takes
    until nobody nudges; at times one is nudged to work.
    """
    lazy = steps > 1 and nudges > 0 and draw(AT_TIMES)
    return [*([False] * lazy), *([True] * (steps - 1)), *([False] * (nudges + 1))]


def draw_own_call(draw: DrawFn, reply: Reply, calls: Sequence[ScriptedCall]) -> Reply:
    """`reply`, at times with one of `calls` among its own."""
    if not reply.calls or not calls or not draw(BOTH):
        return reply
    made = list(reply.calls)
    made.insert(draw(below(len(made) + 1)), pick(draw, calls))
    return replace(reply, calls=tuple(made))


def draw_also(
    draw: DrawFn, fsm: Fsm, names: Sequence[str], turns: Sequence[Turn], *, faults: bool
) -> tuple[Also, ...]:
    """Replies for all that may be asked beside the turns; none is due but where nothing is cut."""
    aside: list[Also] = []

    def answer() -> Reply:
        reply = draw_reply(draw, (), asks=False)
        reply = draw_faulty(draw, reply) if faults and draw(AT_TIMES) else reply
        # While the conversation is too long it asks for summaries, whatever it is told to wait.
        waits = getattr(reply.fault, "retry_after", None) is not None
        return replace(reply, fault=None) if waits else reply

    if fsm.summaries:
        good = [replace(answer(), optional=True) for _ in range(fsm.summaries)]
        aside.append(_also("summary", SAID.compact_prompt, [*good, _NO_MORE]))
    if fsm.config.get("titles"):
        replies = [answer(), *[Reply(draw(TEXTS)) for _ in turns]]
        titles = [replace(reply, optional=True) for reply in replies]
        aside.append(_also("title", SAID.title_prompt, titles))
    tasks = [call for turn in turns for r in turn.replies for call in r.calls if call.tool == AGENT]
    if tasks:
        # A reply that is gone with a summary, before a tool of it ran, is asked for once more.
        runs = len(tasks) * (fsm.summaries + 1)
        replies = [reply for _ in range(runs) for reply in _task(draw, names, answer)]
        aside.append(_also("helper", SAID.subagent_prompt, replies))
    return tuple(aside)


_NO_MORE = Reply(fault=GenerateFails("no more summaries"), optional=True, fault_times=None)
"""What each further request for a summary comes to: under some policies, they have no end."""


def _task(draw: DrawFn, names: Sequence[str], answer: Callable[[], Reply]) -> list[Reply]:
    """What a sub-agent is told until it has an answer.

    A task that is broken off leaves its replies to the next one, which then needs no more of them
    than there are: each task uses up one answer at most.
    """
    asking = [_by_own_ids(draw_reply(draw, names, asks=True)) for _ in range(draw(below(3)))]
    return [replace(reply, optional=True) for reply in (*asking, answer())]


def _by_own_ids(reply: Reply) -> Reply:
    """`reply`, no call of which has an id that one of the main agent's may have at the same time:
    which of them a tool ran for could not be told.
    """
    return replace(reply, calls=tuple([replace(call, id=None) for call in reply.calls]))


def _also(name: str, prompt: str, replies: Sequence[Reply]) -> Also:
    start = " ".join(prompt.split()[:4])
    return Also(name, AlsoWhen(system_contains=start), tuple(replies))
