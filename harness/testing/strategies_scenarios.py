"""The strategy for whole scenarios of turns: generated, and yet each of them can be played."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Literal

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from msgspec import Struct
from msgspec.structs import replace

from harness.core.json_text import Json
from harness.fakes.script import Also, Reply, ScriptedCall
from harness.fakes.tool_spec import ToolSpec
from harness.loops import LOOPS
from harness.runner.levels import Level, level_of
from harness.runner.scenario import Cancel, Scenario, Turn
from harness.testing.certain import Certain, Limits, certain
from harness.testing.certain_fsm import certain_fsm
from harness.testing.strategies_fsm import (
    GUARDED,
    Fsm,
    draw_also,
    draw_asks,
    draw_fsm,
    draw_own_call,
)
from harness.testing.strategies_levels import carried, carried_also, spoken
from harness.testing.strategies_script import (
    draw_faulty,
    draw_hanging,
    draw_reply,
    draw_stuck_tool,
    tools,
)
from harness.testing.strategies_values import (
    AT_TIMES,
    BOTH,
    SELDOM,
    TEXTS,
    TOOL_NAMES,
    below,
    check_count,
    check_names,
    pick,
    weighted,
)

STUCK = "stuck"
"""The tool that never comes back; only turns that are cut call it."""
_GOES_ON = (
    "turn_started",
    "request_sent",
    "delta",
    "tool_started",
    "state_entered",
    "loop_event",
)
"""Events whose task surely waits for something afterwards."""
_ANSWERED = ("turn_started", "reply_ended", "state_entered", "loop_event")
"""Events at which a turn may not have begun, or may be as good as answered."""

_TOOLS = {name: tools(names=(name,)) for name in (*TOOL_NAMES, GUARDED)}
_HOW_MANY_TOOLS = weighted((0, 1), (1, 3), (2, 3), (3, 2))
_UNCALLED = weighted((False, 1), (True, 3))
"""Whether a tool that nobody calls is there all the same."""
_MAX_STEPS = weighted((None, 12), (1, 1), (2, 2), (3, 1))
_MAX_PARALLEL = weighted((None, 6), (1, 1), (2, 1))
_WINDOWS = weighted((None, 5), (16, 1), (32, 1), (64, 1))
_KEEPS = weighted((1, 1), (2, 1), (4, 1))
_BY: SearchStrategy[Literal["task"] | None] = weighted((None, 2), ("task", 1))


class _World(Struct, frozen=True):
    """What the turns of one scenario share."""

    tools: Mapping[str, ToolSpec]
    stuck: ToolSpec
    limits: Limits
    fsm: Fsm
    loops: Sequence[str]
    max_steps: int
    kinds: SearchStrategy[str]
    """What becomes of a turn."""
    level: Level
    """Where the scenario is to be played, too."""

    def certain(self, script: Sequence[Reply]) -> Certain:
        """What surely happens in a turn of this script, as if it were the first one."""
        specs = {**self.tools, STUCK: self.stuck}
        found = [certain(script, specs, self.limits)] if self.loops != ("fsm",) else []
        found += [certain_fsm(script, specs, self.fsm.limits)] if "fsm" in self.loops else []
        return reduce(and_, found)


class _Drawn(Struct, frozen=True):
    """A turn, whether it would rather resume, and whether it leaves something to resume."""

    turn: Turn
    resumes: bool
    cut: bool


def scenarios(
    *,
    max_turns: int = 3,
    max_steps: int = 3,
    cancels: bool = True,
    faults: bool = True,
    trims: bool = True,
    loops: Sequence[str] = ("turn",),
    level: str = "model",
) -> SearchStrategy[Scenario]:
    """A scenario that each of `loops` can play from start to end, at `level` too.

    It loads, declares the tools that it names, but for ``nosuch``, which there is not, and those
    that a loop has itself; it has a reply for whatever is asked, and no cancel that cannot act, nor
    anything that hangs without one. It expects nothing: invariants judge it.
    `cancels`, `faults` and `trims` (settings that have a loop cut its history, or sum it up) may be
    left out; `loops` are the reference loops that the file names: for ``("fsm",)`` it has nudges,
    plan mode and sub-agents too. At a `level` such as ``http:anthropic`` it has only what its
    protocol can carry and its provider takes (harness/testing/strategies_levels.py).

    UsageError for a loop or a level that there is not, and for fewer than one turn or step.
    """
    check_count("max_turns", max_turns, 1)
    check_count("max_steps", max_steps, 1)
    check_names("loops", loops, [kind.name for kind in LOOPS], least=0)
    return _scenarios(max_turns, max_steps, cancels, faults, trims, tuple(loops), level_of(level))


@st.composite
def _scenarios(
    draw: DrawFn,
    max_turns: int,
    max_steps: int,
    cancels: bool,  # noqa: FBT001 - given by `scenarios` alone
    faults: bool,  # noqa: FBT001
    trims: bool,  # noqa: FBT001
    loops: tuple[str, ...],
    played_at: Level,
) -> Scenario:
    names = TOOL_NAMES[: draw(_HOW_MANY_TOOLS)]
    for_turn = _config(draw, trims=trims, steps="fsm" not in loops) if loops != ("fsm",) else {}
    fsm = draw_fsm(draw, names, alone=loops == ("fsm",), trims=trims) if "fsm" in loops else Fsm()
    if fsm.config.get("plan_mode"):
        names = (*names, GUARDED)
    world = _World(
        {name: draw(_TOOLS[name]) for name in names},
        draw_stuck_tool(draw, STUCK),
        Limits(for_turn.get("max_steps"), for_turn.get("max_parallel_tool_calls", 4)),
        fsm,
        loops,
        max_steps,
        weighted(
            ("answer", 5),
            ("fault", 3 * faults),
            ("cancel", 4 * cancels),
            ("stuck", 1 * faults * cancels),
        ),
        played_at,
    )
    each_turn = _turns(world)
    turns: list[Turn] = []
    cut = False
    # The number first, and each turn drawn as one: so a shrinker can leave out any of them.
    for number in range(1, draw(below(max_turns)) + 2):
        each = draw(each_turn)
        turns.append(_placed(each, number, resumes=cut and each.resumes))
        cut = each.cut
    also = carried_also(draw_also(draw, fsm, names, turns, faults=faults), played_at)
    called = {call.tool for reply in _replies(turns, also) for call in reply.calls}
    # Drawn with the others, though it is not called: so a shrinker can leave it out.
    declared = [spec for spec in world.tools.values() if spec.name in called or draw(_UNCALLED)]
    return Scenario(
        "generated",
        "Generated.",
        loops,
        _settings(for_turn, fsm.config, loops),
        (*declared, *((world.stuck,) if STUCK in called else ())),
        tuple(turns),
        also,
        source="generated.yaml",
    )


def _replies(turns: Sequence[Turn], also: Sequence[Also]) -> Iterator[Reply]:
    """All that a model says in a scenario."""
    for turn in turns:
        yield from turn.replies
    for aside in also:
        yield from aside.replies


def _settings(
    for_turn: dict[str, Json], for_fsm: dict[str, Json], loops: Sequence[str]
) -> dict[str, Json]:
    """Settings as a file has them: under the name of their loop, where it is not the only one."""
    if "fsm" not in loops:
        return for_turn
    named = {"turn": for_turn, "fsm": for_fsm}
    return {name: config for name, config in named.items() if config}


def _config(draw: DrawFn, *, trims: bool, steps: bool) -> dict[str, Json]:
    """Settings of a turn loop: at times few `steps`, few tools at once, a small window."""
    config: dict[str, Json] = {}
    most, parallel = draw(_MAX_STEPS) if steps else None, draw(_MAX_PARALLEL)
    window = draw(_WINDOWS) if trims else None
    if most is not None:
        config["max_steps"] = most
    if parallel is not None:
        config["max_parallel_tool_calls"] = parallel
    if window is not None:
        config["system_prompt"] = "Be brief."
        config["context_window_tokens"] = window
        config["context_keep_recent"] = draw(_KEEPS)
    if draw(SELDOM):
        config["cancel_grace"] = "10ms"
    return config


@st.composite
def _turns(draw: DrawFn, world: _World) -> _Drawn:
    """A turn, as if it were the first one."""
    kind = draw(world.kinds)
    text, resumes = spoken(draw(TEXTS), world.level), draw(AT_TIMES)
    names, fsm = tuple(world.tools), world.fsm
    steps = draw(below(world.max_steps)) + 1 if names or fsm.calls else 1
    asks = draw_asks(draw, steps, fsm.limits.nudges)
    script = [draw_own_call(draw, draw_reply(draw, names, asks=each), fsm.calls) for each in asks]
    if kind in ("fault", "stuck"):
        at = draw(below(len(script)))
        script[at] = (draw_faulty if kind == "fault" else _stuck)(draw, script[at])
    cuts = kind in ("cancel", "stuck")
    script = [carried(reply, world.level, cut=cuts) for reply in script]
    sure = world.certain(script)
    cancel = _cancel(draw, sure, script) if cuts else None
    return _Drawn(Turn(text, tuple(script), cancel), resumes, _is_cut(sure, cancel))


def _is_cut(sure: Certain, cancel: Cancel | None) -> bool:
    """Whether a turn surely leaves something to go on with: it began, and came to no answer."""
    if cancel is None:
        return not sure.answered
    return cancel.after not in _ANSWERED


def _placed(drawn: _Drawn, number: int, *, resumes: bool) -> Turn:
    """The turn as turn number `number`."""
    user, cancel = None if resumes else drawn.turn.user, drawn.turn.cancel
    if cancel is not None and cancel.after == "request_sent" and cancel.name is not None:
        step = cancel.name.partition(".")[2]
        cancel = replace(cancel, name=f"{number}.{step}")
    return replace(drawn.turn, user=user, cancel=cancel)


def _stuck(draw: DrawFn, reply: Reply) -> Reply:
    """`reply`, which hangs, or which calls a tool that does."""
    if not reply.calls or draw(BOTH):
        return draw_hanging(draw, reply)
    calls = list(reply.calls)
    calls.insert(draw(below(len(calls) + 1)), ScriptedCall(STUCK))
    return replace(reply, calls=tuple(calls))


def _cancel(draw: DrawFn, sure: Certain, script: Sequence[Reply]) -> Cancel:
    """A cancel after an event that surely comes, or at a time when the turn is surely running."""
    by = draw(_BY)
    if script[0].takes and draw(SELDOM):
        return Cancel(at=script[0].takes // 2, by=by)
    kind = pick(draw, sorted({kind for kind, _name in sure.events}))
    counts = {name: count for (each, name), count in sure.events.items() if each == kind}
    name = pick(draw, [None, *[name for name in counts if name is not None]])
    nth = draw(below(counts[name] if name is not None else sum(counts.values()))) + 1
    early = ("early",) if kind != "reply_ended" else ()  # after the last one nothing may follow
    late = ("late",) if kind in _GOES_ON and not sure.hangs else ()
    return Cancel(kind, name, nth, by=by, mode=pick(draw, ("now", *early, *late)))
