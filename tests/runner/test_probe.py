"""A scenario as something to explore: its sites, its choices, what comes of its cancels."""

import asyncio
import threading
from itertools import count

from msgspec.structs import replace

from harness.core.choices import Draw
from harness.core.messages import ModelRequest, user
from harness.exploration.probe import NOT_REACHED, REFUSED, Shot
from harness.exploration.sweep import sweep
from harness.fakes.script import Reply, ScriptedCall
from harness.fakes.tool_spec import Behaviour, Returns, ToolSpec
from harness.loops import LOOPS
from harness.runner.agents import Subject, loop_subject
from harness.runner.probe import AgentProbe
from harness.runner.run import judge_trace
from harness.runner.scenario import Cancel, Scenario, Turn
from tests.subjects.hand_loop import HandLoop, MendedHandLoop

MS = 1_000_000
TOOLS = (
    ToolSpec("slow", Behaviour(Returns("ok"), takes=50 * MS)),
    ToolSpec("quick", Behaviour(Returns("ok"), takes=10 * MS)),
)
ASKS = Turn("Go.", (Reply(calls=(ScriptedCall("slow"), ScriptedCall("quick"))), Reply(say="Gone.")))
CASE = Scenario("case", turns=(ASKS,), tools=TOOLS)


def probe(build, case=CASE, **options):
    return AgentProbe(case, Subject("agent", build), **options)


def shoot(build, *shots, case=CASE):
    return probe(build, case).run(shots=shots)


def test_sites_have_roles_turns_and_lines():
    sites = {(site.path, site.k): site for site in probe(MendedHandLoop).run().sites}
    assert {site.role for site in sites.values()} == {"turn", "tool"}
    assert {site.turn for site in sites.values()} == {1}
    assert sites["1.1", 1].where.endswith("in HandLoop.run_tool")
    kind = LOOPS[0]
    roles = {site.role for site in AgentProbe(CASE, loop_subject(kind, CASE)).run().sites}
    assert roles == {"turn", "model", "tool"}


def test_the_same_run_has_the_same_digest_and_another_has_another():
    one, again = probe(MendedHandLoop).run(), probe(MendedHandLoop).run()
    assert (one.digest, one.steps, one.sites) == (again.digest, again.steps, again.sites)
    late = probe(MendedHandLoop).run((Draw("latency", "quick call_1_1_2", 4, 5),))
    assert late.digest != one.digest


def test_choices_are_told_as_they_are_asked_for():
    asked = probe(MendedHandLoop).run().asked
    assert {each.source for each in asked} == {"latency", "chunking"}
    assert all(each.value == 0 for each in asked)
    drawn = (Draw("latency", "quick call_1_1_2", 4, 5),)
    replayed = probe(MendedHandLoop).run(drawn).asked
    assert [each.value for each in replayed if each.label == "quick call_1_1_2"] == [4]


def test_who_can_be_told():
    class Stoppable(MendedHandLoop):
        def cancel(self):
            pass

    assert probe(MendedHandLoop).whom == ("turn", "task")
    assert probe(Stoppable).whom == ("agent", "turn", "task")


def test_a_shot_at_the_turn_finds_the_classic_bug_and_not_in_the_mended_loop():
    shot = Shot("1.1", 1, "early", "turn")
    [finding] = shoot(HandLoop, shot).findings
    assert finding.key.startswith("RESUME: the request after a cancelled turn is not valid")
    run = shoot(MendedHandLoop, shot)
    assert run.findings == ()
    assert [landing.came_to for landing in run.landings] == ["cancelled"]


def test_a_run_that_reaches_a_limit_is_unresolved_and_that_is_no_finding_of_its_own():
    class Leaking(MendedHandLoop):
        async def turn(self, text):
            async def spin():
                await asyncio.sleep(1)
                for _ in count():
                    await asyncio.sleep(0)

            self.left = asyncio.create_task(spin())
            return await super().turn(text)

    run = probe(Leaking).run()
    assert [finding.key[:7] for finding in run.findings] == ["QUIESCE"]
    assert run.unresolved.startswith("instant_limit, ")


def test_a_close_that_reaches_a_limit_is_unresolved_and_no_finding():
    class Closing(MendedHandLoop):
        async def close(self):
            for _ in count():
                await asyncio.sleep(0)

    run = probe(Closing).run()
    assert "agent" not in {finding.key.partition(":")[0] for finding in run.findings}
    assert run.unresolved.startswith("instant_limit, ")


def test_a_run_that_leaves_the_simulation_is_a_finding_and_its_own_only_one():
    class Leaving(MendedHandLoop):
        async def turn(self, text):
            await asyncio.sleep(1)
            await asyncio.get_running_loop().create_connection(asyncio.Protocol, "a.example", 80)

    for shots in ((), (Shot("1", 0, "start", "turn"),)):
        run = shoot(Leaving, *shots)
        [finding] = run.findings
        assert finding.key.startswith("NO-NET: ")
        assert run.unresolved is None


def test_a_shot_at_a_task_cancels_that_task_only():
    run = shoot(MendedHandLoop, Shot("1.1", 1, "late", "task"))
    assert [landing.came_to for landing in run.landings] == ["delivered"]


def test_a_shot_that_comes_to_nothing_says_so():
    far = shoot(MendedHandLoop, Shot("1.9", 1, "early", "turn"))
    assert [landing.came_to for landing in far.landings] == [NOT_REACHED]
    case = Scenario("case", turns=(ASKS, Turn("Hi.", (Reply(say="Hello."),))), tools=TOOLS)
    twice = (Shot("1", 1, "early", "turn"), Shot("1", 2, "early", "turn"))
    landings = shoot(MendedHandLoop, *twice, case=case).landings
    assert [landing.came_to for landing in landings] == ["cancelled", NOT_REACHED]


def test_a_shot_at_a_task_that_outlives_its_turn_finds_no_turn_to_tell():
    class Leaking(MendedHandLoop):
        async def run_tools(self, calls):
            self.left = asyncio.ensure_future(asyncio.sleep(10))
            return await super().run_tools(calls)

    shot = Shot("1.1", 1, "late", "turn")
    assert [landing.came_to for landing in shoot(Leaking, shot).landings] == [REFUSED]
    [task] = shoot(Leaking, Shot("1.1", 1, "late", "task")).landings
    assert task.came_to == "delivered"


def test_what_is_left_is_known_of_one_cancel_of_a_turn():
    shot = Shot("1.1", 1, "early", "turn")
    run = probe(MendedHandLoop, keep_lines=True).run(shots=(shot,))
    asked, going_on = "'Go.' of the user", "'Continue.' of the user"
    assert run.kept.items == (asked, "the call call_1_1_1", "the call call_1_1_2", going_on)
    assert "request_sent        2.1 main" in run.lines[run.kept.line]
    assert shoot(MendedHandLoop).kept is None
    assert shoot(MendedHandLoop, replace(shot, whom="task")).kept is None
    assert shoot(MendedHandLoop, shot, Shot("1.2", 1, "early", "turn")).kept is None
    assert shoot(MendedHandLoop, replace(shot, path="1.9")).kept is None


def test_what_is_left_of_a_turn_that_its_scenario_has_cut_is_not_the_cancels_doing():
    cut = replace(ASKS, replies=ASKS.replies[:1], cancel=Cancel(after="tool_started"))
    case = Scenario("case", turns=(cut,), tools=TOOLS)
    before, after = Shot("1", 1, "early", "turn"), Shot("1.1", 1, "early", "turn")
    assert shoot(MendedHandLoop, before, case=case).kept is not None
    run = shoot(MendedHandLoop, after, case=case)
    assert [landing.came_to for landing in run.landings] == ["cancelled"]
    assert run.kept is None


def test_who_can_be_told_is_known_from_any_run():
    built = []

    def build(env):
        built.append(1)
        return MendedHandLoop(env)

    once = probe(build)
    once.run()
    assert (once.whom, len(built)) == (("turn", "task"), 1)


def test_equal_traces_are_judged_once(monkeypatch):
    judged = []

    def counting(*arguments):
        judged.append(1)
        return judge_trace(*arguments)

    monkeypatch.setattr("harness.runner.probe.judge_trace", counting)
    monkeypatch.setattr("harness.runner.probe._VERDICTS_MAX", 2)
    one = probe(HandLoop)
    shot = Shot("1.1", 1, "early", "turn")
    first = [one.run(), one.run(shots=(shot,))]
    assert [one.run(), one.run(shots=(shot,))] == first
    assert len(judged) == 2
    one.run((Draw("latency", "quick call_1_1_2", 4, 5),))
    assert one.run() == first[0]
    assert len(judged) == 4


def test_what_a_scenario_expects_is_not_looked_at(monkeypatch):
    monkeypatch.setattr("harness.runner.run.check", None)
    assert probe(MendedHandLoop).run().findings == ()


def test_a_script_that_ends_at_the_scenarios_own_cancel_is_no_finding():
    cut = Turn("Go.", ASKS.replies[:1], Cancel(after="tool_ended", name="quick"))
    case = Scenario("case", turns=(cut,), tools=TOOLS)
    run = AgentProbe(case, loop_subject(LOOPS[0], case)).run(
        shots=(Shot("1.3", 0, "start", "task"),)
    )
    assert [landing.came_to for landing in run.landings] == ["delivered"]
    assert run.findings == ()


def test_lines_are_kept_on_demand():
    assert probe(MendedHandLoop).run().lines == ()
    assert "turn_ended" in probe(MendedHandLoop, keep_lines=True).run().lines[-1]


def test_the_mended_loop_is_clean_at_every_point_and_the_other_is_not():
    mended = sweep(probe(MendedHandLoop), whom=["turn"])
    assert (mended.status, mended.incomplete) == ("PASS", ())
    broken = sweep(probe(HandLoop), whom=["turn"])
    assert broken.status == "FAIL"
    assert {group.key.partition(":")[0] for group in broken.failed} == {"RESUME"}


def test_one_call_without_a_result_and_several_are_the_same_finding():
    one = Reply(calls=(ScriptedCall("slow"),))
    steps = replace(ASKS, replies=(ASKS.replies[0], one, Reply(say="Gone.")))
    report = sweep(probe(HandLoop, replace(CASE, turns=(steps,))), whom=["turn"])
    said = {
        finding.message.rpartition("follows for ")[2]
        for shots in report.failed[0].points
        for finding in shoot(HandLoop, *shots, case=replace(CASE, turns=(steps,))).findings
    }
    assert {"the calls call_1_1_1, call_1_1_2", "the call call_1_2_1"} <= said
    assert len(report.failed) == 1


def test_a_cancel_of_a_tools_own_task_is_taken_for_a_cancel_of_the_turn_by_a_naive_loop():
    report = sweep(probe(MendedHandLoop), whom=["task"])
    assert "TERMINAL-TRUTH" in {group.key.partition(":")[0] for group in report.failed}
    assert sweep(AgentProbe(CASE, loop_subject(LOOPS[0], CASE))).status == "PASS"


class Threaded:
    """Does its work in a thread, which it waits for."""

    def __init__(self, env):
        self.env = env

    def turn(self, text):
        worker = threading.Thread(target=self.work)
        worker.start()
        worker.join()

    def work(self):
        list(self.env.model_sync.generate(ModelRequest("m", "", (user("Hi."),))))
        self.env.clock.wait(MS)


def test_a_thread_itself_is_never_cancelled():
    case = Scenario("case", turns=(Turn("Hi.", (Reply(say="Hello.", takes=MS),)),))
    report = sweep(probe(Threaded, case))
    shots = {shot for point in report.points for shot in point.shots}
    assert {shot.whom for shot in shots if shot.path == "1.1"} == {"turn"}
    assert "it is a thread" in {absent.why for absent in report.absent}
    refused = shoot(Threaded, Shot("1.1", 1, "early", "task"), case=case)
    assert [landing.came_to for landing in refused.landings] == [REFUSED]
