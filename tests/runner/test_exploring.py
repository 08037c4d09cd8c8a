"""Sweeping and replaying from Python: what is accepted, what comes back, what is refused."""

from __future__ import annotations

import asyncio
import itertools
import pickle
import shlex
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness import sometimes
from harness.core.choices import Draw
from harness.core.errors import NoPoints, NotDeterministic, ReplayMismatch, UsageError
from harness.core.messages import ModelRequest, user
from harness.core.ports import Env
from harness.exploration.budget import Budget, Means, Progress
from harness.exploration.probe import Shot
from harness.exploration.search_report import Undecided
from harness.loops import LOOPS
from harness.runner.agents import Subject, loop_subject, subject_for
from harness.runner.evidence import of_open
from harness.runner.explored import OnAgent
from harness.runner.exploring import explore, replay, sweep
from harness.runner.files.load import load_text
from harness.runner.probe import AgentProbe
from harness.runner.token import Token, digest
from harness.sim.orders import ORDERS, Order
from tests.bugs.planted_relations import ForgetsWhatItBegan
from tests.subjects.hand_loop import HandLoop, MendedHandLoop

CASE = """\
about: Two tools, one of them slow.
loops: [turn]
tools:
  quick: {returns: "1", takes: 10ms}
  slow: {returns: "2", takes: 50ms}
turns:
  - user: Go.
    model:
      - calls: [quick, slow]
      - say: Gone.
"""
SCENARIO = load_text(CASE, "case.yaml")
EARLY = Shot("1.1", 1, "early", "turn")


class Stoppable(MendedHandLoop):
    """Has a stop of its own, which stops the turn."""

    async def turn(self, text: str | None) -> None:
        self.task = asyncio.current_task()
        await super().turn(text)

    def cancel(self) -> None:
        assert self.task is not None
        self.task.cancel()


def counting() -> object:
    """Builds agents of which each says something else than the one before."""
    numbers = itertools.count()

    class Counting(HandLoop):
        def request(self) -> object:
            return replace(super().request(), system=f"You are number {self.number}.")

    def build(env: object) -> Counting:
        agent = Counting(env)  # type: ignore[arg-type]
        agent.number = next(numbers)
        return agent

    return build


def token(*shots: Shot, tape: tuple[Draw, ...] = ()) -> str:
    return str(Token.of(digest(SCENARIO), tape, shots))


# --- sweep


def test_a_scenario_is_a_text_a_file_or_itself(tmp_path: Path) -> None:
    file = tmp_path / "case.yaml"
    file.write_text(CASE, encoding="utf-8")
    reports = [
        sweep(given, MendedHandLoop, whom=["turn"]).report
        for given in (CASE, SCENARIO, file, str(file))
    ]
    assert {report.status for report in reports} == {"PASS"}
    assert len({report.points for report in reports}) == 1


def test_an_agent_is_a_function_a_subject_or_a_name() -> None:
    kind = LOOPS[0]
    assert subject_for(HandLoop, SCENARIO).name == "HandLoop"
    subject = Subject("mine", HandLoop)
    assert subject_for(subject, SCENARIO) is subject
    safe = loop_subject(kind, SCENARIO)
    for given in (None, "turn"):
        assert replace(subject_for(given, SCENARIO), build=safe.build) == safe
    named = subject_for("tests.subjects.hand_loop:HandLoop", SCENARIO)
    assert (named.build, named.options[0]) == (HandLoop, "--agent")


@pytest.mark.parametrize(
    ("loops", "says"), [((), "no loops"), (("turn", "other"), "the loops turn, other")]
)
def test_without_an_agent_the_scenario_names_one_loop(loops: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError, match=f"case.yaml names {says}; say which agent to run it on"):
        sweep(replace(SCENARIO, loops=loops))
    with pytest.raises(UsageError, match=f"the scenario names {says}"):
        sweep(replace(SCENARIO, loops=loops, source=""))


def test_a_clean_loop_passes_in_every_mode() -> None:
    modes = ("start", "early", "late", "mid", "double")
    found = sweep(SCENARIO, modes=modes)
    assert found.check() is found
    assert [tally.name for tally in found.report.by_mode] == list(modes)
    assert all(tally.points for tally in found.report.by_mode)


def test_a_failure_comes_with_the_nearest_run_that_passes() -> None:
    found = sweep(SCENARIO, HandLoop, whom=["turn"])
    assert found.status == "FAIL"
    first = found.failed[0]
    assert [group.key.partition(":")[0] for group in first.groups] == ["RESUME"]
    assert first.run.lines
    assert first.beside is not None
    assert first.beside.run.findings == ()
    assert first.rerun == f"replay({first.token!r}, case, HandLoop)"
    with pytest.raises(AssertionError, match="FAIL case on HandLoop"):
        found.check()


def test_findings_of_one_run_stand_together() -> None:
    found = sweep(SCENARIO, MendedHandLoop, whom=["task"])
    assert len(found.failed) < len(found.report.failed)
    assert [group for each in found.failed for group in each.groups] == list(found.report.failed)


def test_where_every_other_run_fails_there_is_none_beside() -> None:
    cut = load_text(CASE + "    cancel: {after: tool_started slow}\n", "case.yaml")
    found = sweep(cut, HandLoop, modes=["late"], whom=["turn"])
    assert found.failed[0].groups[0].shots == ()
    assert found.failed[0].beside is None
    assert "FAIL without a cancel" in str(found)


def test_a_double_cancel_is_compared_with_each_of_its_cancels() -> None:
    class Hasty(MendedHandLoop):
        async def run_tools(self, calls):
            try:
                return await super().run_tools(calls)
            except asyncio.CancelledError:
                answers, self.messages[-2:] = self.messages[-2:], []
                await asyncio.sleep(0.01)
                self.messages += answers
                raise

    found = sweep(SCENARIO, Hasty, modes=["double"], whom=["turn"])
    first = found.failed[0]
    assert len(first.groups[0].shots) == 2
    assert first.beside is not None
    assert first.beside.changed == f"without the cancel {first.groups[0].shots[1]}"


def test_a_sweep_goes_to_other_processes_and_back() -> None:
    found = sweep(SCENARIO, HandLoop)
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


def test_progress_is_told_after_each_run() -> None:
    told: list[Progress] = []
    found = sweep(SCENARIO, HandLoop, means=Means(on_progress=told.append))
    assert [each.runs for each in told] == list(range(1, found.report.runs + 1))


def test_a_budget_that_is_spent_leaves_the_sweep_open() -> None:
    found = sweep(SCENARIO, budget=9)
    assert (found.status, found.report.runs) == ("INCOMPLETE", 9)
    with pytest.raises(UsageError, match="a budget of 0 runs"):
        sweep(SCENARIO, budget=0)


def test_what_a_scenario_allows_is_tolerated() -> None:
    allowed = load_text(CASE + "allow: [{invariant: RESUME, why: It is known.}]\n", "case.yaml")
    found = sweep(allowed, HandLoop, modes=["late"], whom=["turn"]).check()
    assert [tally.tolerated for tally in found.report.by_mode] == [len(found.report.points)]
    assert f"\ntolerated: RESUME, It is known. ({len(found.report.points)} points)" in str(found)


def test_what_only_several_runs_show_is_shown_by_two_of_them_and_by_the_sweep_again() -> None:
    found = sweep(SCENARIO, ForgetsWhatItBegan, modes=["early", "late"], whom=["turn"])
    [failed] = found.failed
    [group] = failed.groups
    shot, against = group.shots[0], group.against
    text = str(found)
    assert failed.beside is not None
    assert failed.beside.changed == f"cancelled at {against}"
    assert f"\nFAIL cancelled at {shot}\n" in text
    assert f"\nMONOTONIC: cancelled at {shot} the next request lacks the call call_1_1_1, " in text
    assert f"which it has when cancelled at {against} (at " in text
    assert "\n  > 0s       2      request_sent        2.1 main" in text
    assert replay(failed.token, SCENARIO, ForgetsWhatItBegan).ok
    called = "ForgetsWhatItBegan, modes=['early', 'late'], whom=['turn'])"
    assert text.splitlines()[-1] == failed.rerun == f"sweep({SCENARIO.name}, {called}"


def test_the_line_that_sweeps_again_is_a_command_where_one_can() -> None:
    subject = Subject("x", ForgetsWhatItBegan, ("--agent", "bugs:Forgets"))
    case = replace(SCENARIO, source="a b.yaml")
    found = sweep(case, subject, modes=["early"], whom=["turn"], roles=["turn", "tool"])
    assert shlex.split(found.failed[0].rerun) == [
        *("harness", "sweep", "a b.yaml", "--agent", "bugs:Forgets"),
        *("--modes", "early", "--whom", "turn", "--roles", "turn,tool"),
    ]


def test_a_loss_is_tolerated_where_a_scenario_or_a_policy_says_so() -> None:
    allow = "allow: [{invariant: MONOTONIC, policy: reference, why: It is old.}]\n"
    allowed = load_text(CASE + allow, "case.yaml")
    old = Subject("x", ForgetsWhatItBegan, policy="reference")
    known = replace(old, policy="safe", known={"MONOTONIC": "It is known."})
    for subject, why in ((old, "It is old."), (known, "It is known.")):
        found = sweep(allowed, subject, modes=["early"], whom=["turn"]).check()
        assert f"\ntolerated: MONOTONIC, {why} (" in str(found)
    assert not sweep(allowed, replace(old, policy="safe"), modes=["early"], whom=["turn"]).ok


def test_a_cancel_that_is_never_over_is_a_failure_that_says_what_keeps_busy() -> None:
    class Spins(HandLoop):
        async def run_tools(self, calls):
            try:
                return await super().run_tools(calls)
            except asyncio.CancelledError:
                for _ in itertools.repeat(None):
                    await asyncio.sleep(0)

    found = sweep(SCENARIO, Spins, modes=["late"], whom=["turn"], roles=["turn"])
    assert [point.came for point in found.report.points] == ["failed"]
    assert found.report.points[0].landings == ("never ended",)
    assert "most of the last by 1" in str(found)


def test_what_cannot_be_swept_is_an_error() -> None:
    with pytest.raises(NoPoints, match=r"no point to cancel at .* the roles model"):
        sweep(SCENARIO, HandLoop, roles=["model"])
    with pytest.raises(UsageError, match=r"unknown mode 'lat' \(did you mean 'late'"):
        sweep(SCENARIO, modes=["lat"])  # type: ignore[list-item]
    with pytest.raises(
        UsageError, match=r"HandLoop has no cancel\(\), so nobody can be told as 'ag"
    ):
        sweep(SCENARIO, HandLoop, whom=["agent"])
    assert sweep(SCENARIO, Stoppable, modes="early", whom="agent").report.whom == ("agent",)
    with pytest.raises(NotDeterministic, match=r"line 2 is the first that differs\n.* number \d"):
        sweep(SCENARIO, counting())  # type: ignore[arg-type]


class BreaksAtOnce(HandLoop):
    async def turn(self, text: str | None) -> None:
        raise ValueError("config missing")


def test_what_breaks_before_it_waits_is_told_with_why() -> None:
    for modes in (["start"], ["early"]):
        swept = sweep(SCENARIO, BreaksAtOnce, modes=modes, whom="turn")  # type: ignore[arg-type]
        assert swept.status == "FAIL"
        assert swept.report.failed[0].shots == ()
        assert "ValueError: config missing" in swept.report.failed[0].message
        with pytest.raises(AssertionError, match=r"^FAIL case on BreaksAtOnce"):
            swept.check()


def test_a_run_that_differs_only_when_it_is_cancelled_is_not_deterministic_either() -> None:
    numbers = itertools.count()

    class Moody(HandLoop):
        async def run_tools(self, calls):
            try:
                return await super().run_tools(calls)
            except asyncio.CancelledError:
                self.messages.append(user(f"Cancelled {next(numbers)} times."))
                raise

    with pytest.raises(NotDeterministic, match=r"cancelled at 1#\d/\w+:turn went different"):
        sweep(SCENARIO, Moody, whom=["turn"])


# --- replay


def test_a_failure_shows_again() -> None:
    found = sweep(SCENARIO, HandLoop, whom=["turn"])
    for failed in found.failed:
        again = replay(failed.token, SCENARIO, HandLoop)
        assert again.run == failed.run
        assert again.status == "FAIL"
        assert str(again).splitlines()[-1] == failed.rerun


def test_a_mended_agent_does_not_fail_again() -> None:
    assert replay(token(EARLY), SCENARIO, MendedHandLoop).check().run.landings[0].came_to == (
        "cancelled"
    )


def test_choices_are_replayed_too() -> None:
    drawn = (Draw("latency", "quick call_1_1_1", 4, 5),)
    replayed = replay(token(EARLY, tape=drawn), SCENARIO, HandLoop)
    assert "\nlatency of quick call_1_1_1: ten times (4 of 5)\n" in str(replayed)
    with pytest.raises(ReplayMismatch, match="was never asked for: latency 'slow call_9'"):
        replay(token(tape=(Draw("latency", "slow call_9", 1, 5),)), SCENARIO, HandLoop)


def test_a_cancel_that_is_not_reached_shows_nothing() -> None:
    replayed = replay(token(Shot("1.9", 1, "early", "turn")), SCENARIO, MendedHandLoop)
    assert replayed.status == "INCOMPLETE"
    replayed = replay(token(Shot("1.9", 1, "early", "turn")), SCENARIO, BreaksAtOnce)
    with pytest.raises(AssertionError) as caught:
        replayed.check()
    says = str(caught.value).splitlines()
    assert says[0] == "FAIL case on BreaksAtOnce"
    assert (
        "FAIL: the cancel 1.9#1/early:turn was not reached; what is wrong with this run comes "
        "without it"
    ) in says


def test_a_replay_without_a_cancel_is_the_plain_run() -> None:
    assert replay(token(), SCENARIO, HandLoop).ok


def test_the_line_of_a_subject_that_a_command_can_name_is_the_command() -> None:
    subject = subject_for("tests.subjects.hand_loop:HandLoop", SCENARIO)
    case = replace(SCENARIO, source="a b.yaml")
    line = str(replay(token(EARLY), case, subject)).splitlines()[-1]
    assert shlex.split(line) == [
        *("harness", "replay", token(EARLY), "a b.yaml"),
        *("--agent", "tests.subjects.hand_loop:HandLoop"),
    ]


def test_a_token_for_an_agent_with_a_stop_needs_one() -> None:
    own = token(replace(EARLY, whom="agent"))
    assert replay(own, SCENARIO, Stoppable).ok
    with pytest.raises(UsageError, match="calls the agent's own stop, but HandLoop has no cancel"):
        replay(own, SCENARIO, HandLoop)


def test_what_is_set_up_in_the_first_run_of_a_process_is_no_part_of_what_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Client:
        looked = False

    class LooksOnce(HandLoop):
        async def ask(self):
            if not Client.looked:
                Client.looked = bool(await asyncio.to_thread(str, 1))
            return await super().ask()

    for found in (sweep(SCENARIO, LooksOnce), explore(SCENARIO, LooksOnce, cancels=1)):
        token = found.failed[0].token
        monkeypatch.setattr(Client, "looked", False)  # as in another process
        again = replay(token, SCENARIO, LooksOnce)
        assert again.run.lines == found.failed[0].run.lines
        monkeypatch.setattr(Client, "looked", False)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="was made of another scenario"):
        replay(token(EARLY), CASE.replace("Go.", "Gone?"))
    with pytest.raises(NotDeterministic):
        replay(token(EARLY), SCENARIO, counting())  # type: ignore[arg-type]


# --- explore


class AsTheyFinish(MendedHandLoop):
    """Answers calls in the order in which their tools finish."""

    async def run_tools(self, calls):
        answers = []

        async def run(call):
            answers.append(await self.run_tool(call))
            sometimes(f"{call.name} number {len(answers)}")

        await asyncio.gather(*map(run, calls))
        return answers


class Deadlocks(MendedHandLoop):
    """Its tools wait for one another where the slow one is done first."""

    async def run_tools(self, calls):
        done = []
        tasks = {}

        async def run(call):
            answer = await self.run_tool(call)
            done.append(call.name)
            if done[0] == "slow":
                await asyncio.wait([tasks["quick" if call.name == "slow" else "slow"]])
            return answer

        for call in calls:
            tasks[call.name] = asyncio.ensure_future(run(call))
        return await asyncio.gather(*tasks.values())


SAME = load_text(CASE.replace("50ms", "10ms"), "case.yaml")
ONE_OF_TWO = Draw("tie", "1", 1, 2)


def test_a_search_finds_what_an_order_breaks_and_makes_it_simple() -> None:
    found = explore(SAME, AsTheyFinish, strategy="random", seed=3)
    assert (found.status, found.scenario, found.loop) == ("FAIL", "case", "AsTheyFinish")
    (failed,) = found.failed
    assert [each.key.partition(":")[0] for each in failed.found] == ["ORDER"]
    assert failed.found[0].shrunk.tape == (ONE_OF_TWO,)
    assert failed.beside is not None
    assert (
        failed.beside.changed
        == "without tie 1: task 1.2 goes on before 1.1 (number 2 of 2 that may go next)"
    )
    assert failed.beside.run.findings == ()
    text = str(found)
    assert "\n  tie 1: task 1.2 goes on before 1.1 (number 2 of 2 that may go next)\n" in text
    assert text.splitlines()[-1] == f"replay({failed.token!r}, case, AsTheyFinish)"
    with pytest.raises(AssertionError, match="FAIL case on AsTheyFinish"):
        found.check()


def test_what_was_found_is_replayed_in_the_order_it_was_found_in() -> None:
    (failed,) = explore(SAME, AsTheyFinish, strategy="random", seed=3).failed
    assert Token.parse(failed.token).order == "completions"
    again = replay(failed.token, SAME, AsTheyFinish)
    assert (again.run.lines, again.run.findings) == (failed.run.lines, failed.run.findings)
    assert again.status == "FAIL"
    stock = str(Token.of(digest(SAME), (ONE_OF_TWO,)))
    with pytest.raises(ReplayMismatch, match="was never asked for: tie '1'"):
        replay(stock, SAME, AsTheyFinish)


@pytest.mark.parametrize("order", ["completions", "tasks", "all"])
def test_the_ordinary_case_of_every_order_is_that_of_asyncio(order: Order) -> None:
    probe = OnAgent(SAME, subject_for(AsTheyFinish, SAME)).probe(order)
    assert probe.run().digest == AgentProbe(SAME, subject_for(AsTheyFinish, SAME)).run().digest


def test_in_stock_order_nothing_but_latency_and_pieces_are_choices() -> None:
    plain = [explore(SAME, AsTheyFinish, order=order, runs=3).report.baseline for order in ORDERS]
    sources = [{each.source for each in run.asked} for run in plain]
    stock = {"latency", "chunking"}
    assert sources == [stock, {*stock, "tie"}, {*stock, "tie", "ready"}, {*stock, "tie", "ready"}]


def test_a_clean_loop_passes_a_search_with_its_goals() -> None:
    found = explore(SCENARIO, runs=60, goals=("tool_ended slow",), cancels=1, strategy="random")
    assert found.check() is found
    assert found.budget == Budget(60, 30.0)
    (goal,) = found.report.goals
    assert goal[0] == "tool_ended slow"
    assert 0 < goal[1] <= 60


def test_goals_that_no_run_reaches_leave_a_search_open() -> None:
    first = "reached slow number 1"
    found = explore(SCENARIO, AsTheyFinish, runs=2, goals=[first, "tool_ended quick"])
    assert found.status == "INCOMPLETE"
    assert found.report.incomplete == (f"no run of 2 came to: {first}",)
    assert found.report.goals == (
        (first, 0),
        ("tool_ended quick", 2),
        ("reached quick number 1", 2),
        ("reached slow number 2", 2),
    )
    whole = explore(SCENARIO, AsTheyFinish, goals=[first], keep_going=True, runs=60)
    assert dict(whole.report.goals)[first] > 0


def test_of_a_deadlock_it_is_told_who_waits_for_whom() -> None:
    found = explore(SCENARIO, Deadlocks)
    (failed,) = found.failed
    assert [(each.path, each.awaits) for each in failed.run.left] == [
        ("1", ("1.1", "1.2")),
        ("1.1", ("1.2",)),
        ("1.2", ("1.1",)),
    ]
    assert "\n    in a circle: 1.1 waits for 1.2 waits for 1.1\n" in str(found)


def test_a_run_that_a_limit_ends_without_a_finding_is_shown_with_its_busiest_lines() -> None:
    class Leaks(MendedHandLoop):
        async def run_tools(self, calls):
            answers = await super().run_tools(calls)
            if asyncio.get_running_loop().time() > 1000.07:

                async def spin():
                    for _ in itertools.repeat(None):
                        await asyncio.sleep(0)

                asyncio.get_running_loop().call_later(1, lambda: asyncio.ensure_future(spin()))
            return answers

    found = explore(SCENARIO, Leaks, order="fifo", strategy="few", runs=10)
    assert (found.status, found.report.found) == ("INCOMPLETE", ())
    assert found.open is not None
    assert found.open.busy[0].where.endswith("in spin")
    assert "INCOMPLETE: 1 run not resolved; the first is run 10: instant_limit, " in str(found)
    assert Token.parse(found.open.token).tape == (Draw("latency", "quick call_1_1_1", 4, 5),)
    assert str(found).splitlines()[-1] == found.open.rerun


def test_seconds_count_where_there_is_a_clock() -> None:
    ticks = itertools.count()
    timed = explore(SCENARIO, seconds=5, means=Means(clock=lambda: next(ticks)))
    assert timed.report.ended.startswith("the budget of 5 s is spent, after ")
    assert timed.budget == Budget(10_000, 5)
    assert "budget: 10,000 runs and 5 s; it ended since the budget of 5 s is spent" in str(timed)
    assert explore(SCENARIO, seconds=5, runs=3, means=Means()).budget == Budget(3, None)


def test_seconds_are_real_ones_where_no_clock_is_given() -> None:
    timed = explore(SCENARIO, seconds=1e-9)
    assert timed.report.ended.startswith("the budget of 1e-09 s is spent, after 2 runs")
    assert explore(SCENARIO, seconds=None, runs=3).budget == Budget(3, None)


def test_a_search_that_goes_on_tells_each_kind_of_finding_once() -> None:
    found = explore(
        SCENARIO, HandLoop, cancels=2, keep_going=True, runs=80, strategy="random", order="tasks"
    )
    keys = [each.key for failed in found.failed for each in failed.found]
    assert len(keys) == len(set(keys)) > 1
    assert {*keys} == {each.key for each in found.report.found}
    assert all(failed.beside is not None for failed in found.failed)


def test_what_cannot_be_searched_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"unknown order 'task' \(did you mean 'tasks'"):
        explore(SCENARIO, order="task")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"unknown strategy 'rnd'"):
        explore(SCENARIO, strategy="rnd")
    with pytest.raises(UsageError, match="'tool' is no goal"):
        explore(SCENARIO, goals=["tool"])
    with pytest.raises(UsageError, match=r"goal 'tool_ended slwo': unknown tool 'slwo' \(did you"):
        explore(SCENARIO, goals=["tool_ended slwo"])
    with pytest.raises(UsageError, match="a budget of 0 runs"):
        explore(SCENARIO, runs=0)
    for means in (Means(), Means(clock=float)):
        with pytest.raises(UsageError, match="a budget of 3 runs and -1 seconds"):
            explore(SCENARIO, runs=3, seconds=-1, means=means)
    with pytest.raises(UsageError, match="strategy few makes no cancels; use auto, random or pct"):
        explore(SCENARIO, strategy="few", cancels=1)
    with pytest.raises(NotDeterministic, match=r"line 2 is the first that differs\n.* number \d"):
        explore(SCENARIO, counting())  # type: ignore[arg-type]


def test_what_a_scenario_allows_is_tolerated_in_a_search_too() -> None:
    allowed = load_text(CASE + "allow: [{invariant: ORDER, why: It is known.}]\n", "case.yaml")
    found = explore(allowed, AsTheyFinish, runs=60).check()
    (known,) = found.report.tolerated
    assert known.count > 1
    assert str(found).endswith(f"\ntolerated: ORDER, It is known. (in {known.count} runs)")


def test_an_exploration_goes_to_other_processes_and_back() -> None:
    found = explore(SCENARIO, AsTheyFinish)
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


# --- how many runs it takes


def built(agent: type[HandLoop]) -> tuple[list[int], object]:
    """A function that builds agents, and the list that counts them."""
    counts: list[int] = []

    def build(env: object) -> HandLoop:
        counts.append(1)
        return agent(env)  # type: ignore[arg-type]

    return counts, build


def test_a_replay_takes_two_runs_beside_the_one_that_sets_up_its_process() -> None:
    counts, build = built(HandLoop)
    replay(token(EARLY), SCENARIO, build)  # type: ignore[arg-type]
    assert len(counts) == 3


def test_a_sweep_that_passes_takes_the_runs_that_it_tells() -> None:
    counts, build = built(MendedHandLoop)
    found = sweep(SCENARIO, build, whom=["turn"])  # type: ignore[arg-type]
    assert len(counts) == found.check().report.runs


def test_the_run_without_a_cancel_stands_beside_many_and_is_made_once() -> None:
    counts, build = built(HandLoop)
    found = sweep(SCENARIO, build)  # type: ignore[arg-type]
    beside = {each.beside.changed for each in found.failed if each.beside}
    assert len(beside) > 1
    shown = len(counts) - found.report.runs
    points = {group.shots for group in found.report.failed}
    others = {shots for each in found.failed for shots in ((),)} | points
    assert len(found.failed) < shown <= len(points) + len(others) + len(beside)


def test_a_run_that_decided_too_much_has_no_line_that_replays_it() -> None:
    first = explore(SCENARIO, AsTheyFinish).report
    tape = tuple([Draw("tie", str(number), 1, 2) for number in range(1_000)])
    report = replace(first, undecided=1, undecided_first=Undecided("limit", 1, tape, ()))
    explored = OnAgent(SCENARIO, subject_for(MendedHandLoop, SCENARIO))
    left = of_open(report, explored, "completions")
    assert left is not None
    assert left.rerun == ""
    assert Token.parse(left.token).tape == tuple(sorted(tape, key=lambda draw: draw.label))
    assert left.busy
    said = str(replace(explore(SCENARIO, AsTheyFinish), open=left))
    assert f"its token has {len(left.token):,} characters, too many for a line" in said


class TakesWhatComes:
    """Takes a reply that broke off for a whole one."""

    def __init__(self, env: Env) -> None:
        self.env = env

    async def turn(self, text: str | None) -> None:
        asked = ModelRequest("m", "", (user(text or ""),))
        async for _part in await self.env.model.generate(asked):
            pass


SAYS = "about: A word.\nturns:\n  - {user: Go., model: [{say: Gone.}]}\n"


@pytest.mark.parametrize("level", ["model", "http", "http:anthropic", "server:gemini"])
def test_a_search_may_make_replies_go_wrong(level: str) -> None:
    assert explore(SAYS, TakesWhatComes, level=level, runs=40).ok
    found = explore(SAYS, TakesWhatComes, level=level, faults=True, seconds=None)
    (failed,) = found.failed
    assert "though its last reply was torn" in str(found)
    assert {draw.source for draw in Token.parse(failed.token).tape} == {"fault"}
    assert not replay(failed.token, SAYS, TakesWhatComes, level=level).ok


def test_a_function_gets_no_replies_that_could_go_wrong() -> None:
    with pytest.raises(UsageError, match="faults are for scenarios"):
        explore(asyncio.Event, faults=True)
