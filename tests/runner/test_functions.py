"""Exploring a function: what can be run, what is refused, what a run says, what replays it."""

from __future__ import annotations

import asyncio
import functools
import socket
from collections.abc import Callable as Calls
from contextlib import suppress
from typing import Any, cast

import pytest
from msgspec.structs import replace

from harness.core.errors import (
    NoPoints,
    NotDeterministic,
    ReplayMismatch,
    UsageError,
)
from harness.exploration.attempts import tape_of
from harness.exploration.chance import Chance
from harness.exploration.probe import Shot, Waiting
from harness.exploration.sweep import MODES
from harness.runner.exploring import USUAL_MODES, Modes, explore, replay, sweep
from harness.runner.functions.allow import Allow
from harness.runner.functions.probe import FunctionProbe
from harness.runner.functions.subject import Factory, Function
from harness.runner.token import Token
from harness.sim.draws import choose
from harness.sim.goals import sometimes
from harness.sim.stop import Limits

EARLY = Shot("1", 1, "early", "task")
HERE = "tests.runner.test_functions"


async def sleeps() -> str:
    await asyncio.sleep(1)
    return "slept"


async def naps(seconds: float = 1) -> None:
    await asyncio.sleep(seconds)


class Program:
    """Makes a task already where it is made itself."""

    def __init__(self) -> None:
        self.task = asyncio.create_task(naps())

    async def run(self) -> None:
        await self.task


class Callable:
    async def __call__(self) -> None:
        await asyncio.sleep(1)


@pytest.mark.parametrize(
    ("factory", "name"),
    [
        (sleeps, "sleeps"),
        (naps, "naps"),
        (Program, "Program"),
        (Callable(), "Callable"),
        (functools.partial(naps, 2), "naps"),
        (functools.partial(functools.partial(naps), 2), "naps"),
        (lambda: naps(2), "<lambda>"),
    ],
)
def test_what_can_be_run(factory: Factory, name: str) -> None:
    probe = FunctionProbe(factory)
    assert probe.name == f"{HERE}.{name}"
    run = probe.run()
    assert run.findings == ()
    assert [site.k for site in run.sites if site.path == "1"] == [0, 1]
    assert [each.came_to for each in probe.run((), (EARLY,)).landings] == ["propagated"]


def test_a_function_within_another_is_named_shortly() -> None:
    async def inner() -> None:
        await asyncio.sleep(1)

    function = Function(inner)
    assert function.name == f"{HERE}.test_a_function_within_another_is_named_shortly.inner"
    assert function.digest != Function(sleeps).digest


async def generates() -> Any:
    yield 1


async def takes(seconds: float, *, twice: bool) -> None: ...


def plain() -> None: ...


def yields() -> Any:
    yield 1


class Breaks:
    def __init__(self) -> None:
        raise LookupError("no settings")


class NotAsync:
    def run(self) -> None: ...


class RunsNothing:
    run = 5


class Yields:
    def run(self) -> Any:
        yield 1


class TakesMore:
    async def run(self, more: int) -> None: ...


class WithCheck:
    check = 5

    async def run(self) -> None: ...


class Endless:
    def __init__(self) -> None:
        while True:
            pass


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (5, "what is to be explored is 5; expected a function without arguments, `async def`"),
        ("sleeps", "'sleeps' is not"),
        (generates, f"{HERE}.generates is an asynchronous generator, which nothing iterates"),
        (takes, f"{HERE}.takes takes arguments (seconds, twice), and each run calls it without"),
        (yields, f"{HERE}.yields is a generator, which nothing iterates"),
        (plain, f"{HERE}.plain never waits, so that there is nothing that a cancel would cut sh"),
        (functools.partial(plain), f"{HERE}.plain never waits"),
        (NotAsync(), "what is to be explored is an object of class NotAsync, which would be the s"),
        (Breaks, f"{HERE}.Breaks gave nothing to run: LookupError: no settings (tests/runner"),
        (NotAsync, f"{HERE}.NotAsync never waits"),
        (
            RunsNothing,
            f"{HERE}.RunsNothing gave an object of class RunsNothing whose `run` is no m",
        ),
        (Yields, f"{HERE}.Yields's run is a generator, which nothing iterates"),
        (dict, "builtins.dict gave an object of class dict without `run`"),
        (TakesMore, f"{HERE}.TakesMore's run takes arguments (more)"),
        (WithCheck, f"{HERE}.WithCheck gave an object whose `check` is no method"),
    ],
)
def test_what_cannot_be_run_is_an_error(factory: Any, message: str) -> None:
    if isinstance(factory, str):
        message = ""  # a text is the path of a scenario
    with pytest.raises((UsageError, NoPoints, OSError)) as caught:
        sweep(factory)
    assert str(caught.value).startswith(message)


def test_a_coroutine_is_no_function() -> None:
    with pytest.raises(UsageError, match="a coroutine, which can run only once; give the function"):
        sweep(sleeps())  # type: ignore[arg-type]


def test_a_factory_that_never_returns_is_an_error() -> None:
    probe = FunctionProbe(Endless, limits=Limits(work=200_000_000))
    with pytest.raises(UsageError, match=r"Endless gave nothing to run: .*Endless\.__init__"):
        probe.run()


def test_a_function_takes_no_agent_and_a_scenario_no_allow() -> None:
    with pytest.raises(UsageError, match="a function is run as it is"):
        sweep(sleeps, "turn")
    with pytest.raises(UsageError, match="allow is for functions"):
        sweep("scenarios/cancel/slow_tool.yaml", allow=["error"])


async def looks_up() -> None:
    await asyncio.sleep(1)
    socket.getaddrinfo("example.org", 80)


async def looks_up_in_the_end() -> None:
    try:
        await asyncio.sleep(1)
    except asyncio.CancelledError:
        with suppress(Exception):
            socket.getaddrinfo("example.org", 80)
        raise


async def polls() -> None:
    while True:  # noqa: ASYNC110
        await asyncio.sleep(60)


def test_what_comes_to_no_end_by_itself_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"cannot be explored: .*/test_functions\.py:\d+ in looks"):
        sweep(looks_up)
    probe = FunctionProbe(polls, limits=Limits(steps=50))
    with pytest.raises(UsageError, match="does not end by itself; the run took 50 steps"):
        probe.run()


def test_a_run_that_leaves_the_simulation_after_a_cancel_is_not_resolved() -> None:
    swept = sweep(looks_up_in_the_end)
    assert swept.status == "INCOMPLETE"
    assert "test_functions.py" in swept.report.incomplete[0]


def test_a_limit_that_is_met_by_chance_is_not_resolved() -> None:
    async def polls_by_chance() -> None:
        await asyncio.sleep(1)
        if choose("busy", 2):
            await polls()

    probe = FunctionProbe(polls_by_chance, limits=Limits(steps=50))
    run = probe.run((), (), lambda _source, _label, bound: bound - 1)
    assert str(run.unresolved).startswith("step limit: the run took 50 steps to get to 1441s;")
    probe = FunctionProbe(polls_by_chance, limits=Limits(time=10**12))
    assert str(probe.run((), (), lambda *_: 1).unresolved).startswith("time limit: the next timer")


async def cannot_be_ended() -> None:
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


async def starts_what_cannot_be_ended() -> None:
    task = asyncio.create_task(cannot_be_ended())
    await asyncio.sleep(1)
    assert not task.done()


def test_a_task_that_swallows_its_abort_is_a_finding_and_no_hang() -> None:
    found = [group.key for group in sweep(starts_what_cannot_be_ended).report.failed]
    assert found[0].startswith("leaked task: tests/runner/test_functions.py:")


async def waits_for_itself() -> None:
    tasks: list[asyncio.Task[None]] = []

    async def wait_for(number: int) -> None:
        await asyncio.sleep(1)
        await tasks[number]

    tasks += [asyncio.create_task(wait_for(1)), asyncio.create_task(wait_for(0))]
    await asyncio.wait(tasks)


def test_a_circle_is_told_and_ended() -> None:
    run = FunctionProbe(waits_for_itself, keep_lines=True).run()
    assert [key.partition(":")[0] for key in [finding.key for finding in run.findings]] == [
        "deadlock"
    ]
    assert run.left[1:] == (
        Waiting("1.1", run.left[1].where, ("1.2",)),
        Waiting("1.2", run.left[1].where, ("1.1",)),
    )
    assert "1.1 waits for 1.2 at tests/runner/test_functions.py:" in run.findings[0].message
    assert run.findings[0].key in [group.key for group in sweep(waits_for_itself).report.failed]


async def works() -> int:
    return sum(range(10))


def test_a_function_that_never_waits_has_no_points() -> None:
    with pytest.raises(NoPoints, match=f"{HERE}.works never waits"):
        sweep(works)


class Counting:
    runs = 0

    async def run(self) -> None:
        Counting.runs += 1
        for _ in range(Counting.runs):
            await asyncio.sleep(1)


def test_what_is_not_deterministic_is_an_error_that_says_where() -> None:
    with pytest.raises(NotDeterministic) as caught:
        sweep(Counting)
    assert "line 20 is the first that differs\n  first:  " in str(caught.value)


class Told:
    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(naps(), name="named")
            await asyncio.sleep(2)

    def check(self) -> None: ...


def test_the_text_of_a_run_has_a_line_an_event() -> None:
    run = FunctionProbe(Told, keep_lines=True).run((), (EARLY,))
    group, line = "tests/runner/test_functions.py:%d in Told.run", Told.run.__code__.co_firstlineno
    assert [line.rstrip() for line in run.lines] == [
        "0s       0      made      making",
        "0s       0      begins",
        "0s       0      ended     returned",
        "0s       1      made      Told.run",
        "0s       1      begins",
        f"0s       1.1    made      naps at {group % (line + 2)}",
        f"0s       1      waits     #1 at {group % (line + 3)}",
        "0s       1      cancelled by 1#1/early:task",
        "0s       1.1    begins",
        "0s       1.1    waits     #1 at tests/runner/test_functions.py:"
        f"{naps.__code__.co_firstlineno + 1} in naps",
        "0s       1      goes on",
        f"0s       1      waits     #2 at {group % (line + 1)}",
        "0s       1.1    goes on",
        "0s       1.1    ended     cancelled, 1 cancel open",
        "0s       1      goes on",
        "0s       1      ended     cancelled, 1 cancel open",
        "0s       check  made      checking",
        "0s       check  begins",
        "0s       check  ended     returned",
    ]
    assert FunctionProbe(Told).run().lines == ()


async def raises_later() -> None:
    await asyncio.sleep(1)
    raise ValueError("late")


def test_a_finding_names_the_line_that_shows_it() -> None:
    run = FunctionProbe(raises_later, keep_lines=True).run()
    assert run.findings[0].line is not None
    assert run.lines[run.findings[0].line] == "1s       1      ended     raised ValueError"


class Racing:
    """Two clients draw a number and wait for the same instant."""

    def __init__(self) -> None:
        self.order: list[int] = []

    async def client(self, number: int) -> None:
        await asyncio.sleep(1)
        if choose("slow", 3) == 2:
            await asyncio.sleep(1)
        self.order.append(number)
        if self.order == [1]:
            sometimes("second first")

    async def run(self) -> None:
        await asyncio.gather(self.client(0), self.client(1))

    def check(self) -> None:
        assert self.order != [1, 0], "the second was first"


def test_equal_ways_have_equal_digests_and_others_have_not() -> None:
    probe = FunctionProbe(Racing, "completions")
    first = probe.run((), (), lambda *_: 0)
    assert first.digest == probe.run().digest
    swapped = probe.run((), (), lambda source, label, _: int((source, label) == ("tie", "1")))
    again = probe.run(tape_of(swapped))
    assert swapped.digest == again.digest != first.digest
    assert probe.run((), (EARLY,)).digest != first.digest
    assert len({probe.run(places).digest for places in ((), tape_of(swapped))}) == 2
    assert FunctionProbe(Racing, "completions", keep_lines=True).run().digest == first.digest


async def uses_jobs() -> None:
    loop = asyncio.get_running_loop()
    loop.set_task_factory(getattr(asyncio, "eager_task_factory", None))
    await asyncio.gather(asyncio.to_thread(int), naps(), sleeps(), asyncio.to_thread(int))
    asyncio.create_task(naps())  # noqa: RUF006 - it outlives the run


@pytest.mark.parametrize("function", [Racing, uses_jobs])
def test_runs_without_sites_go_the_same_ways(function: Factory) -> None:
    quick = FunctionProbe(function, "tasks", places=False)
    whole = FunctionProbe(function, "tasks", places=False, sites=True)
    chances = [Chance("random", 0, index) for index in range(20)]
    runs = [quick.run((), (), chance.picker()) for chance in chances]
    beside = [whole.run((), (), chance.picker()) for chance in chances]
    assert [replace(run, sites=()) for run in beside] == runs
    assert len({run.digest for run in runs}) > 1
    assert {bool(run.sites) for run in runs} == {False}
    assert {bool(run.sites) for run in beside} == {True}


def test_a_draw_of_the_code_itself_is_a_choice_with_a_label_of_its_own() -> None:
    asked = FunctionProbe(Racing).run().asked
    assert [(each.source, each.label, each.bound) for each in asked] == [
        ("user", "slow#1", 3),
        ("user", "slow#2", 3),
    ]


def test_a_search_finds_an_order_or_a_draw_and_replays_it() -> None:
    explored = explore(Racing, goals=["reached second first"], keep_going=True)
    assert explored.report.goals[0][1] > 0
    [found] = explored.failed
    [draw] = found.found[0].shrunk.tape
    assert draw.source in ("tie", "user")
    again = replay(found.token, Racing)
    assert again.run.findings == found.run.findings
    assert found.rerun == f"replay({found.token!r}, {HERE}.Racing)"


def test_cancels_can_be_mixed_into_a_search() -> None:
    found = explore(starts_what_may_be_lost, cancels=1).report.found
    assert [each.key.partition(":")[0] for each in found] == ["orphan child"]


async def starts_what_may_be_lost() -> None:
    task = asyncio.create_task(naps(5))
    await asyncio.sleep(1)
    await task


def test_a_goal_that_is_no_place_is_an_error() -> None:
    with pytest.raises(UsageError, match="'tool_ended slow' is no goal of a function"):
        explore(Racing, goals=["tool_ended slow"])


async def swallows() -> None:
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(1)


def test_what_is_allowed_must_be_needed() -> None:
    swept = sweep(swallows, allow=["swallowed"]).check()
    assert [group.key for group in swept.report.tolerated] == ["swallowed: swallows"]
    assert sweep(swallows, allow="swallowed").ok
    with pytest.raises(UsageError, match="allow is 5; expected names of classes of findings"):
        sweep(swallows, allow=5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="allow names orphan child, and no run has shown it"):
        sweep(swallows, allow=["swallowed", "orphan child"])
    with pytest.raises(UsageError, match="allow names swallowed, and no run has shown it"):
        explore(swallows, allow=["swallowed"])
    assert sweep(swallows, allow=["error"]).status == "FAIL"


@pytest.mark.parametrize("name", ["swalowed", "swallowed:ValueError", ""])
def test_an_unknown_class_is_an_error(name: str) -> None:
    with pytest.raises(UsageError, match=f"unknown class of findings '{name}'"):
        Allow([name])


def test_a_replay_says_what_was_decided_and_found() -> None:
    token = sweep(swallows).failed[0].token
    replayed = replay(token, swallows)
    assert (replayed.status, replayed.ok) == ("FAIL", False)
    text = str(replayed)
    assert text.splitlines()[0] == f"{HERE}.swallows on asyncio"
    assert text.splitlines()[2] == "FAIL: something is wrong with this run"
    assert text.splitlines()[-1] == f"replay({token!r}, {HERE}.swallows)"
    with pytest.raises(AssertionError, match="something is wrong with this run"):
        replayed.check()
    mended = replay(token, swallows, allow=["swallowed"]).check()
    assert "PASS: nothing is wrong with this run" in str(mended)


def test_a_token_of_another_function_is_an_error() -> None:
    token = sweep(swallows).failed[0].token
    with pytest.raises(UsageError, match=f"made of another function: .* and {HERE}.sleeps is"):
        replay(token, sleeps)
    with pytest.raises(UsageError, match="made of another scenario"):
        replay(token, "scenarios/cancel/slow_tool.yaml")


def test_a_token_that_does_not_fit_is_an_error() -> None:
    found = explore(Racing).failed[0]
    racing = Racing.run

    async def alone(self: Racing) -> None:
        await self.client(0)

    try:
        Racing.run = alone  # type: ignore[method-assign]
        with pytest.raises(ReplayMismatch, match="never asked for"):
            replay(found.token, Racing)
    finally:
        Racing.run = racing  # type: ignore[method-assign]


class Draws:
    bound = 3

    async def run(self) -> None:
        await asyncio.sleep(1)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.draw())

    async def draw(self) -> None:
        await asyncio.sleep(1)
        if choose("answer", Draws.bound) == 2:
            raise ConnectionError


class DrawsInItsCheck(Draws):
    async def draw(self) -> None: ...

    def check(self) -> None:
        choose("answer", 0)


def test_a_draw_that_does_not_fit_is_an_error_wherever_it_was_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    token = explore(Draws).failed[0].token
    assert replay(token, Draws).status == "FAIL"
    monkeypatch.setattr(Draws, "bound", 5)
    with pytest.raises(ReplayMismatch, match=r"the tape decides user 'answer#1' as 2 of 3"):
        replay(token, Draws)
    with pytest.raises(UsageError, match="the bound is how many values"):
        sweep(DrawsInItsCheck)


def test_goals_may_have_blanks_around_their_words() -> None:
    async def comes_here() -> None:
        await asyncio.sleep(1)
        sometimes("a  place")

    explore(comes_here, goals=["  reached  a  place "]).check()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: sweep(naps, modes=cast("Any", "erly")), r"unknown mode 'erly' \(did you mean 'ea"),
        (lambda: sweep(naps, allow="swallowed"), "allow names swallowed, and no run has shown it"),
        (lambda: sweep(naps, whom="agent"), "unknown addressee 'agent'; known: task"),
        (lambda: replay(cast("Any", naps), naps), r"the token is <function naps at .*expected its"),
        (lambda: explore(naps, cancels=-1), "cancels is -1; expected how many a run may have"),
        (lambda: explore(naps, goals=["reached"]), "'reached' is no goal of a function, which has"),
        (
            lambda: explore(naps, goals=["reachd x"]),
            r"a function \(did you mean 'reached'\?\), whi",
        ),
    ],
)
def test_a_mistake_in_what_is_asked_for_is_told(call: Calls[[], object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        call()


def test_what_is_a_list_of_one_may_be_its_text_and_modes_may_be_all() -> None:
    assert sweep(naps, modes="early", roles="turn", whom="task").report.modes == ("early",)
    assert sweep(naps, modes="all").report.modes == MODES == sweep(naps, modes=["all"]).report.modes
    assert explore(naps, goals="reached x").report.goals == (("reached x", 0),)


async def breaks_early() -> None:
    raise ValueError("config missing")


@pytest.mark.parametrize("modes", [USUAL_MODES, ["early"]])
def test_what_fails_before_it_waits_is_told_with_why(modes: Modes) -> None:
    swept = sweep(breaks_early, modes=modes)
    assert swept.status == "FAIL"
    [group] = swept.report.failed
    assert group.shots == ()
    assert group.message.startswith("error:ValueError: the main task raised ValueError: config mi")


def test_a_replay_takes_what_a_search_takes() -> None:
    token = str(Token.of(Function(naps).digest))
    with pytest.raises(UsageError, match="a function is run as it is; give an agent only to a sce"):
        replay(token, cast("Any", naps), "turn")
    with pytest.raises(UsageError, match="allow is for functions; a scenario says itself what it"):
        replay(token, cast("Any", "scenarios/hello.yaml"), allow=["error"])


def test_a_draw_of_very_many_values_is_replayed() -> None:
    async def takes_one_of_many() -> None:
        await asyncio.sleep(1)
        if choose("user", 10**17):
            raise ValueError

    [failed] = explore(takes_one_of_many, strategy="random", runs=10).failed
    assert not replay(failed.token, takes_one_of_many).ok
