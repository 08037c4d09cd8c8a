"""What every agent does that can be tested at all, and that can be stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.core.durations import NS_PER_UNIT
from harness.core.ports import Build
from harness.fakes.script import GenerateFails, Reply, ScriptedCall
from harness.fakes.tool_spec import Answers, Behaviour, Returns, ToolSpec
from harness.runner.agents import Subject, subject_for
from harness.runner.exploring import sweep
from harness.runner.run import run
from harness.runner.scenario import Cancel, Expect, Scenario, Turn
from harness.testing.conformance.laws import Law, expect, hold
from harness.testing.generated import saved, subject_told, told

_CLOCK = ToolSpec("clock", Behaviour(Returns("14:05"), takes=10 * NS_PER_UNIT["ms"]))
_SKY = ToolSpec("sky", Behaviour(Returns("grey"), takes=50 * NS_PER_UNIT["ms"]))
_BROKEN = ToolSpec("broken", Behaviour(Answers("out of order")))
_TOOLS = (_CLOCK, _SKY, _BROKEN)
_DONE = Expect(outcome="completed")


def _scenario(name: str, about: str, *turns: Turn) -> Scenario:
    return Scenario(name, about, tools=_TOOLS, turns=turns, source=f"{name}.yaml")


def _asks(*tools: str, say: str = "Let me see.", cancel: Cancel | None = None) -> Turn:
    calls = tuple([ScriptedCall(tool) for tool in tools])
    replies = (Reply(say, calls=calls), Reply("Here it is."))
    return Turn("What time is it?", replies, cancel, None if cancel else _DONE)


_AGAIN = Turn("And now?", (Reply("The same."),), expect=_DONE)
SIDE_BY_SIDE = _scenario("side_by_side", "Two tools are asked for at once.", _asks("clock", "sky"))
WITHOUT_WORDS = _scenario(
    "without_words",
    "Two tools are asked for, and nothing is said beside.",
    _asks("clock", "sky", say=""),
)
SCENARIOS = (
    _scenario("answer", "The model answers.", Turn("Hi.", (Reply("Hello."),), expect=_DONE)),
    _scenario("tool", "The model asks for a tool.", _asks("clock"), _AGAIN),
    SIDE_BY_SIDE,
    _scenario("tool_fails", "A tool fails, and the model hears of it.", _asks("broken"), _AGAIN),
    _scenario("no_such_tool", "The model asks for what there is not.", _asks("nosuch"), _AGAIN),
    _scenario(
        "request_fails",
        "A request fails, and the next turn goes on.",
        Turn("Hi.", (Reply(fault=GenerateFails("no")),)),
        _AGAIN,
    ),
    _scenario(
        "stopped",
        "The turn is stopped while two tools run, and the next one goes on.",
        _asks("clock", "sky", cancel=Cancel("tool_started", "sky")),
        _AGAIN,
    ),
)
"""What every agent must be able to play."""


def check_agent(agent: Build | Subject | str, *, levels: Sequence[str] = ("model",)) -> None:
    """Hold an agent against what all of them do; NotConforming tells of all that does not hold.

    `agent` is the function that builds it, its name as `package.module:build`, or a subject; it is
    played at each of `levels`, as ``http:anthropic``. It must ask the model and run the tools that
    it is given, keep every invariant in a few small scenarios, and go on after a cancel anywhere.
    UsageError for what is no agent, and where there is no such level.
    """
    fits = callable(agent) or isinstance(agent, Subject | str)
    expect(agent, "the function that builds an agent, its name, or a subject", fits=fits)
    expect(levels, "a list of levels", fits=bool(levels) and not isinstance(levels, str))
    for level in levels:
        given = subject_for(agent, SIDE_BY_SIDE) if isinstance(agent, str) else agent
        subject = subject_told(given, SIDE_BY_SIDE, level)
        hold(f"the agent {subject.name}", subject, LAWS)


def plays_what_all_play(subject: Subject) -> Iterator[str]:
    """It comes to the end of small scenarios, and breaks no invariant."""
    for scenario in SCENARIOS:
        if not run(scenario, subject).ok:
            yield f"{scenario.about}{told(scenario, subject)}"


def does_the_same_twice(subject: Subject) -> Iterator[str]:
    """The same scenario gives the same run in one process; nothing lives on from run to run."""
    if subject.process is not None:  # it runs in real time
        return
    for scenario in SCENARIOS:
        once, twice = (run(scenario, subject).trace.lines() for _ in range(2))
        if once != twice:
            pairs = zip([*once, "the end"], [*twice, "the end"], strict=False)
            at, (one, other) = next(
                (at, both) for at, both in enumerate(pairs) if both[0] != both[1]
            )
            yield f"{scenario.name}: entry {at} is {one} once, and {other} the next time"


def goes_on_after_a_cancel_anywhere(subject: Subject) -> Iterator[str]:
    """Wherever a turn with tools is cancelled, no invariant is broken, and the next turn works."""
    if subject.process is not None:
        return
    swept = sweep(SIDE_BY_SIDE, subject, whom="turn")
    if swept.status != "PASS":
        yield f"{SIDE_BY_SIDE.about}\n{swept}\n{saved(SIDE_BY_SIDE)}"


LAWS: tuple[Law[Subject], ...] = (
    plays_what_all_play,
    does_the_same_twice,
    goes_on_after_a_cancel_anywhere,
)
"""What `check_agent` holds an agent against."""
