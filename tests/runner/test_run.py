"""A run, whole: turns, cancels, what the agent leaves behind, what the scenario expects."""

import asyncio
import contextlib
import re
import signal
import socket
import sys
from itertools import count
from pathlib import Path

import pytest

from harness.core.budget import Budget
from harness.core.errors import UsageError
from harness.core.events import ErrorUnseen
from harness.core.messages import ModelRequest, Usage, tool_result, user
from harness.core.outcome import CANCELLED, COMPLETED, Completed, Error, StepLimit
from harness.core.ports import ProviderFailed
from harness.fakes.script import (
    DoneTwice,
    GenerateFails,
    Hang,
    LateThinking,
    Reply,
    ScriptedCall,
    StreamFails,
)
from harness.fakes.tool_spec import Behaviour, Returns, ToolSpec
from harness.loops import LOOPS
from harness.runner.agents import Subject, loop_subject
from harness.runner.run import run
from harness.runner.scenario import Allow, Cancel, Expect, Scenario, Turn
from tests.subjects.hand_loop import HandLoop, MendedHandLoop

MS = 1_000_000
SLOW = ToolSpec("slow", Behaviour(Returns("ok"), takes=50 * MS))
ASKS = Turn("Go.", (Reply(calls=(ScriptedCall("slow"),)), Reply(say="Gone.")))
SAYS = Turn("Hi.", (Reply(say="Hello."),))


def scenario(*turns, tools=(SLOW,), **more):
    return Scenario("case", turns=turns, tools=tools, **more)


def cut(cancel, turn=ASKS, expect=None):
    return Turn(turn.user, turn.replies, cancel, expect)


def test_turns_are_played_in_order_on_one_agent():
    result = run(scenario(SAYS, ASKS), MendedHandLoop)
    assert result.ok
    assert result.outcomes == (COMPLETED, COMPLETED)
    assert result.trace.requests()[-1].messages[0] == user("Hi.")


def test_a_history_once_broken_is_refused_again_and_again():
    turns = (cut(Cancel(after="tool_started")), SAYS, SAYS)
    result = run(scenario(*turns), HandLoop)
    assert [type(outcome) for outcome in result.outcomes] == [type(CANCELLED), Error, Error, Error]
    assert [v.invariant for v in result.verdict.violations] == ["RESUME"]


def test_a_provider_that_is_not_strict_answers_a_broken_history():
    turns = (cut(Cancel(after="tool_started")), SAYS)
    result = run(scenario(*turns, strict=False), HandLoop)
    assert result.outcomes[-1] == COMPLETED
    assert [v.invariant for v in result.verdict.violations] == ["RESUME"]


def test_after_a_last_turn_that_was_cut_the_runner_adds_one():
    result = run(scenario(cut(Cancel(after="tool_started"))), MendedHandLoop)
    assert result.outcomes == (CANCELLED, COMPLETED)
    assert result.ok
    assert "RESUME" not in result.verdict.not_judged


def test_an_agent_that_asks_whether_it_is_done_is_told_so_in_the_runners_own_turn():
    class Doubts(MendedHandLoop):
        async def turn(self, text):
            await super().turn(text)
            return await super().turn("Are you sure?")

    last = Turn("Go.", (Reply(fault=GenerateFails()),))
    result = run(scenario(last), Doubts)
    assert [type(outcome) for outcome in result.outcomes] == [Error, Completed]
    assert result.ok


@pytest.mark.parametrize(
    "cancel",
    [
        Cancel(after="tool_started", name="slow"),
        Cancel(after="tool_started", mode="early"),
        Cancel(after="request_sent", mode="late"),
        Cancel(at=20 * MS),
        Cancel(point="1.1#1/early"),
        Cancel(point="1#1/late"),
    ],
    ids=str,
)
@pytest.mark.parametrize("by", ["task", None])
def test_a_cancel_acts_in_each_of_its_spellings(cancel, by):
    cancel = Cancel(cancel.after, cancel.name, cancel.nth, cancel.at, cancel.point, by, cancel.mode)
    result = run(scenario(cut(cancel)), MendedHandLoop)
    assert result.outcomes == (CANCELLED, COMPLETED)
    assert result.ok, result.failures


@pytest.mark.parametrize(
    ("cancel", "says"),
    [
        (Cancel(at=51 * MS), "(at 51ms) could act"),
        (Cancel(after="tool_started", nth=2), "(number 2)) could act; that happened 1 time(s)"),
        (Cancel(point="1.9#1/early"), "(point 1.9#1/early) could act"),
    ],
)
def test_a_cancel_that_did_not_fire_fails_the_run(cancel, says):
    result = run(scenario(cut(cancel)), MendedHandLoop)
    [failure] = result.failures
    assert failure.kind == "cancel did not fire"
    assert says in failure.message


def test_an_agent_is_stopped_by_its_own_means_where_it_has_them():
    class Stoppable(MendedHandLoop):
        def cancel(self):
            self.task.cancel()

        async def turn(self, text):
            self.task = asyncio.current_task()
            await super().turn(text)

    result = run(scenario(cut(Cancel(after="tool_started"))), Stoppable)
    kinds = [(entry.event.by) for entry in result.trace if hasattr(entry.event, "by")]
    assert kinds == ["agent", "agent"]
    assert result.ok


def test_an_agent_may_stop_asynchronously():
    class StopsSlowly(MendedHandLoop):
        async def cancel(self):
            await asyncio.sleep(0.01)
            self.task.cancel()

        async def turn(self, text):
            self.task = asyncio.current_task()
            await super().turn(text)

    result = run(scenario(cut(Cancel(after="tool_started"))), StopsSlowly)
    assert result.outcomes == (CANCELLED, COMPLETED)
    assert result.ok


def test_an_agent_that_ignores_its_cancel_is_stopped_after_thirty_seconds():
    class Deaf(MendedHandLoop):
        def cancel(self):
            pass

        async def turn(self, text):
            for _second in range(3600):
                await asyncio.sleep(1)

    result = run(scenario(cut(Cancel(at=10 * MS))), Deaf)
    assert result.outcomes == ()
    assert result.trace.entries[-1].at == 30_010 * MS
    assert {v.invariant for v in result.verdict.violations} == {"CANCEL", "ONE-TERMINAL"}


def test_an_agent_that_waits_for_ever_is_told_where_it_waits():
    class Waits(MendedHandLoop):
        async def turn(self, text):
            await asyncio.get_running_loop().create_future()

    [violation] = run(scenario(SAYS), Waits).verdict.violations
    assert violation.invariant == "ONE-TERMINAL"
    assert "test_run.py" in violation.message


def test_what_a_turn_gives_back_is_its_outcome():
    class Says(MendedHandLoop):
        async def turn(self, text):
            return StepLimit()

    class Means(Says):
        async def turn(self, text):
            return 7

        def outcome(self, value):
            return Error("seven", str(value)) if value == 7 else Completed()

    assert run(scenario(Turn("Hi.")), Says).outcomes[0] == StepLimit()
    assert run(scenario(Turn("Hi.")), Means).outcomes[0] == Error("seven", "7")


def test_a_reply_nobody_asked_for_fails_a_completed_turn():
    class Lazy(MendedHandLoop):
        async def turn(self, text):
            self.messages.append(user(text or ""))
            await self.ask()

    result = run(scenario(Turn("Hi.", (*SAYS.replies, Reply(say="More."))), SAYS), Lazy)
    [failure] = result.failures
    assert (failure.kind, failure.turn) == ("unused reply", 1)
    assert "'More.'" in failure.message


def test_what_the_scenario_does_not_have_cannot_be_hidden():
    class Swallows(MendedHandLoop):
        async def turn(self, text):
            await super().turn(text)
            with contextlib.suppress(Exception):
                await self.env.tools.call("nosuch", {})

    result = run(scenario(SAYS), Swallows)
    [failure] = result.failures
    assert failure.kind == "mismatch"
    assert "UnknownFakeTool" in failure.message


def test_a_fault_excuses_the_replies_after_it():
    fails = Turn("Hi.", (Reply(say="x", fault=GenerateFails("down")), Reply(say="y")))
    assert run(scenario(fails, SAYS), MendedHandLoop).ok


@pytest.mark.parametrize(
    ("expect", "says"),
    [
        (Expect(outcome="cancelled"), "expected outcome cancelled, found completed"),
        (Expect(tools=("slow", "slow")), "expected tools [slow, slow], found [slow]"),
        (Expect(tools=()), "expected tools [], found [slow]"),
        (Expect(only=True), "expected tools [], found [slow]"),
        (Expect(synthesized=("slow",)), "expected synthesized [slow], found []"),
        (Expect(say="Bye now."), "expected say 'Bye now.', found Gone."),
        (Expect(requests=3), "expected requests 3, found 2"),
        (Expect(error="x"), "expected error x, found nothing"),
        (
            Expect(messages=("user", "tool sorry")),
            'expected messages [user, tool sorry], found [system "Be brief.", user "Go.", '
            'assistant call slow call_1_1_1 {}, tool call_1_1_1 "\\"ok\\""]',
        ),
        (Expect(messages=("user", "user")), "expected messages [user, user], found [system"),
        (Expect(messages=("user", "assistant", "tool"), only=True, tools=("slow",)), "messages"),
    ],
)
def test_an_expectation_that_fails_says_what_was_found(expect, says):
    [failure] = run(scenario(Turn("Go.", ASKS.replies, None, expect)), MendedHandLoop).failures
    assert says in failure.message


def test_what_an_agents_trace_cannot_show_is_not_judged():
    expect = Expect(rows=("turn_start",), trimmed=True, outcome="completed")
    result = run(scenario(Turn("Hi.", SAYS.replies, None, expect)), MendedHandLoop)
    assert result.ok
    assert result.verdict.not_judged[-2:] == ("expect rows of turn 1", "expect trimmed of turn 1")


def test_what_a_loop_tells_and_counts_is_compared():
    turn_loop = LOOPS[0]
    replies = (Reply(say="Hello.", usage=Usage(prompt_tokens=3)),)

    def failures(**expected):
        case = scenario(Turn("Hi.", replies, None, Expect(**expected)), Turn("Hi.", replies))
        return [each.message for each in run(case, loop_subject(turn_loop, case, "safe")).failures]

    assert failures(told=("text Hel", "turn_end"), usage=Usage(prompt_tokens=3)) == []
    assert failures(told=("text", "done", "turn_end completed"), only=True) == []
    assert failures(told=("done Hello", "text")) == [
        'turn 1: expected told [done Hello, text], found [text {"delta":"Hello."}, '
        'done {"text":"Hello.","tool_calls":[]}, turn_end {"error":null,"outcome":"completed"}]'
    ]
    assert failures(usage=Usage(prompt_tokens=6)) == [
        "turn 1: expected usage 6 + 0 = 0, found 3 + 0 = 0"
    ]


def test_what_the_last_request_shows_is_compared():
    result = run(
        scenario(
            ASKS,
            Turn(
                'Say "hi".',
                SAYS.replies,
                None,
                Expect(
                    messages=(
                        "system Be brief.",
                        "user Go.",
                        "assistant call slow",
                        "tool call_1_1_1",
                        "assistant Gone.",
                        'user Say "hi".',
                    ),
                    only=True,
                ),
            ),
        ),
        MendedHandLoop,
    )
    assert result.ok, result.failures


def test_a_result_made_up_for_a_cut_call_shows_in_the_next_request():
    expect = Expect(synthesized=("slow",), only=True, outcome="cancelled", tools=("slow",))
    result = run(scenario(cut(Cancel(after="tool_started"), expect=expect)), MendedHandLoop)
    assert result.ok, result.failures


class WithoutText(MendedHandLoop):
    async def turn(self):
        pass


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda env: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (lambda env: object(), "whose `turn` is missing"),
        (WithoutText, "`turn` cannot be called with the user's text .too many positional"),
        (lambda env: type("Odd", (), {"turn": 3})(), "whose `turn` is no function"),
    ],
)
def test_a_build_that_gives_no_agent_is_told_what_to_do(build, says):
    with pytest.raises(UsageError, match=says):
        run(scenario(SAYS), build)


def test_an_unknown_level_is_refused():
    with pytest.raises(UsageError, match="unknown level 'wire'; known: model"):
        run(scenario(SAYS), MendedHandLoop, level="wire")


def test_an_agent_is_closed_at_the_end():
    closed = []

    class Closes(MendedHandLoop):
        async def close(self):
            await asyncio.sleep(1)
            closed.append(True)

    assert run(scenario(SAYS), Closes).ok
    assert closed == [True]


def test_nothing_of_one_run_reaches_the_next():
    class Leaves(MendedHandLoop):
        async def turn(self, text):
            self.left = asyncio.ensure_future(asyncio.sleep(3600))
            self.gen = self.endless()
            await anext(self.gen)
            await super().turn(text)

        async def endless(self):
            while True:
                yield 1

    digests = {run(scenario(SAYS), Leaves).trace.digest for _ in range(5)}
    assert len(digests) == 1


def test_a_stream_that_is_not_awaited_is_told_with_what_to_write():
    class Iterates(MendedHandLoop):
        async def ask(self):
            asked = self.env.model.generate(self.request())
            try:
                async for part in asked:
                    return part
            finally:
                asked.close()

    [error, _] = run(scenario(SAYS), Iterates).outcomes
    assert "; await what is called, as in async for part in await env.model.gen" in error.message


def test_a_request_is_refused_by_rule_and_not_by_chance():
    class Forgets(MendedHandLoop):
        async def ask(self):
            request = ModelRequest("m", "", tuple(self.messages[-1:]))
            parts = [part async for part in await self.env.model.generate(request)]
            return parts[-1].message

    result = run(scenario(ASKS), Forgets)
    assert "which no call before it asked" in result.verdict.violations[0].message


LEAK = Allow("RESUME", "known since spring")


def test_a_known_finding_can_be_accepted():
    turns = (cut(Cancel(after="tool_started")),)
    result = run(scenario(*turns, allow=(LEAK,)), HandLoop)
    assert result.verdict.violations == ()
    assert [(each.violation.invariant, each.why) for each in result.verdict.accepted] == [
        ("RESUME", "known since spring")
    ]
    assert result.ok


def test_an_acceptance_that_nothing_came_of_fails_the_run():
    [failure] = run(scenario(SAYS, allow=(LEAK,)), MendedHandLoop).failures
    assert failure.kind == "unused allow"
    assert "RESUME is allowed (known since spring), but was not found" in failure.message


def test_an_acceptance_under_a_policy_is_for_that_policy_only():
    turns = (cut(Cancel(after="tool_started")),)
    known = scenario(*turns, allow=(Allow("RESUME", "as recorded", "reference"),))
    assert run(known, Subject("loop", HandLoop, policy="reference")).ok
    assert not run(known, Subject("loop", HandLoop, policy="safe")).ok
    assert not run(known, HandLoop).ok
    assert run(scenario(SAYS, allow=known.allow), MendedHandLoop).ok


def test_another_expectation_counts_under_a_policy():
    expect = Expect(say="Hello.", under={"reference": Expect(say="Bye.")})
    case = scenario(Turn("Hi.", SAYS.replies, None, expect))
    assert run(case, MendedHandLoop).ok
    [failure] = run(case, Subject("loop", MendedHandLoop, policy="reference")).failures
    assert "expected say Bye., found Hello." in failure.message


def test_a_policy_of_one_loop_is_meant_where_its_name_stands_with_it():
    own = {"reference": Expect(say="Bye."), "fsm reference": Expect(say="Hello.")}
    case = scenario(Turn("Hi.", SAYS.replies, None, Expect(say="Hello.", under=own)))
    fsm = Subject("loop", MendedHandLoop, policy="reference", loop="fsm")
    assert run(case, fsm).ok
    assert not run(case, Subject("loop", MendedHandLoop, policy="reference", loop="turn")).ok
    allowed = scenario(SAYS, allow=(Allow("RESUME", "as recorded", "turn reference"),))
    assert run(allowed, fsm).ok
    assert not run(allowed, Subject("loop", MendedHandLoop, policy="reference", loop="turn")).ok


def test_an_error_that_nobody_looks_at_is_recorded():
    class Careless(MendedHandLoop):
        async def turn(self, text):
            asyncio.ensure_future(self.fail())  # noqa: RUF006 - nobody keeps it, that is the bug
            await super().turn(text)

        async def fail(self):
            raise LookupError("lost")

    unseen = [e.event for e in run(scenario(SAYS), Careless).trace if type(e.event) is ErrorUnseen]
    assert [event.turn for event in unseen] == [1]
    assert "LookupError: lost" in unseen[0].message


def says(result, kind):
    return [failure.message for failure in result.failures if failure.kind == kind]


def test_an_error_of_the_agent_names_its_line():
    class Broken(MendedHandLoop):
        async def turn(self, text):
            await self.helper()

        async def helper(self):
            return self.nosuch

    [error, *_] = run(scenario(Turn("Hi.")), Broken).outcomes
    assert error.kind == "AttributeError"
    assert re.search(r"nosuch.* \(tests/runner/test_run\.py:\d+ in Broken\.helper\)", error.message)


def test_errors_of_a_group_are_opened():
    class Grouped(MendedHandLoop):
        async def turn(self, text):
            async with asyncio.TaskGroup() as group:
                group.create_task(self.fail())

        async def fail(self):
            raise LookupError("lost")

    [error, *_] = run(scenario(Turn("Hi.")), Grouped).outcomes
    assert error.kind == "ExceptionGroup"
    assert "LookupError: lost (tests/runner/test_run.py:" in error.message


@pytest.mark.parametrize("raises", [SystemExit, KeyboardInterrupt])
def test_a_turn_that_ends_the_process_only_ends_itself(raises):
    class Exits(MendedHandLoop):
        async def turn(self, text):
            await asyncio.sleep(0.1)
            if text == "Bye.":
                raise raises(3)
            await super().turn(text)

    first, second = run(scenario(Turn("Bye."), SAYS), Exits).outcomes
    assert first == (CANCELLED if raises is KeyboardInterrupt else first)
    assert raises is KeyboardInterrupt or first.kind == "SystemExit"
    assert second == COMPLETED


def test_a_bad_outcome_is_a_failure_of_the_run():
    class Vague(MendedHandLoop):
        def outcome(self, value):
            return "ok"

    class Breaks(MendedHandLoop):
        def outcome(self, value):
            raise KeyError(value)

    class Waits(MendedHandLoop):
        async def outcome(self, value):
            return Completed()

    text = says(run(scenario(SAYS), Vague), "agent")[0]
    assert text.startswith("outcome(None) returned 'ok'; return Completed(), Cancelled(), ")
    text = says(run(scenario(SAYS), Breaks), "agent")[0]
    assert text.startswith("outcome(None) raised KeyError: None (tests/runner/test_run.py:")
    text = says(run(scenario(SAYS), Waits), "agent")[0]
    assert "returned <coroutine object" in text


def test_a_close_that_breaks_or_hangs_is_a_failure_of_the_run():
    class Raises(MendedHandLoop):
        def close(self):
            raise RuntimeError("jammed")

    class RaisesLater(MendedHandLoop):
        async def close(self):
            await asyncio.sleep(1)
            raise RuntimeError("jammed")

    class Hangs(MendedHandLoop):
        async def close(self):
            await asyncio.Event().wait()

    class TakesAges(MendedHandLoop):
        async def close(self):
            await asyncio.sleep(31)

    for agent in (Raises, RaisesLater):
        [text] = says(run(scenario(SAYS), agent), "agent")
        assert text.startswith("close() raised RuntimeError: jammed (tests/runner/test_run.py:")
    assert says(run(scenario(SAYS), Hangs), "agent") == [
        "close() had not ended: nothing will ever wake it"
    ]
    assert says(run(scenario(SAYS), TakesAges), "agent") == [
        "close() had not ended: 30 virtual seconds had passed"
    ]


def test_a_cancel_that_goes_on_after_its_turn_is_told_with_what_it_waits_for():
    class Hangs(MendedHandLoop):
        async def turn(self, text):
            self.task = asyncio.current_task()
            await super().turn(text)

        async def cancel(self):
            self.task.cancel()
            await asyncio.Event().wait()

    class TakesAges(Hangs):
        async def cancel(self):
            self.task.cancel()
            await asyncio.sleep(31)

    turn = cut(Cancel(after="tool_started"))
    assert says(run(scenario(turn), Hangs), "agent") == [
        "cancel() had not ended: nothing will ever wake it"
    ]
    assert says(run(scenario(turn), TakesAges), "agent") == [
        "cancel() had not ended: 30 virtual seconds had passed"
    ]


def test_a_close_or_a_cancel_that_spins_until_the_limit_is_told_as_the_limit_only():
    class Spins(MendedHandLoop):
        async def turn(self, text):
            self.task = asyncio.current_task()
            await super().turn(text)

        async def cancel(self):
            self.task.cancel()
            await self.close()

        async def close(self):
            for _ in count():
                await asyncio.sleep(0)

    for turn in (SAYS, cut(Cancel(after="tool_started"))):
        [failure] = run(scenario(turn), Spins).failures
        assert failure.kind == "run stopped"
        assert "instant_limit" in failure.message


@pytest.mark.parametrize("later", [False, True])
def test_a_cancel_that_breaks_is_a_failure_of_the_run(later):
    class Raises(MendedHandLoop):
        def cancel(self):
            if later:
                return self.fail()
            raise RuntimeError("jammed")

        async def fail(self):
            raise RuntimeError("jammed")

    [text] = says(run(scenario(cut(Cancel(after="tool_started"))), Raises), "agent")
    assert text.startswith("cancel() raised RuntimeError: jammed (tests/runner/test_run.py:")


def test_only_inside_events_can_be_reported():
    class Reports(MendedHandLoop):
        async def turn(self, text):
            self.env.observe("hello")

    [error, *_] = run(scenario(Turn("Hi.")), Reports).outcomes
    assert error.message.startswith("observe takes one of LogRow, LoopEvent, StateEntered")


def test_a_result_reads_as_its_report():
    result = run(scenario(cut(Cancel(after="tool_started"))), HandLoop)
    assert repr(result) == "<Result failed: case on HandLoop: cancelled, error>"
    assert "RESUME in turn 2: the request after a cancelled turn is not valid" in str(result)
    assert str(result).endswith("run it again:\nrun(case, HandLoop)")
    with pytest.raises(AssertionError, match="FAIL case on HandLoop"):
        result.check()


def test_a_result_that_is_ok_gives_itself():
    result = run(scenario(SAYS), MendedHandLoop)
    assert result.check() is result
    assert repr(result) == "<Result ok: case on MendedHandLoop: completed>"


def found(result):
    violations = result.verdict.violations
    return sorted({each.invariant for each in violations if each.severity == "hard"})


def test_an_agent_that_leaves_the_simulation_fails_even_if_it_hides_the_error():
    class Telemetry(MendedHandLoop):
        async def turn(self, text):
            await super().turn(text)
            with contextlib.suppress(Exception):
                socket.create_connection(("127.0.0.1", 9))

    result = run(scenario(SAYS, SAYS), Telemetry)
    [told] = [each for each in result.verdict.violations if each.invariant == "NO-NET"]
    assert "socket" in told.message
    assert "tests/runner/test_run.py" in told.message


@pytest.mark.parametrize("where", ["child", "callback", "close"])
def test_an_exit_of_the_agent_does_not_end_the_tests(where):
    class Exits(MendedHandLoop):
        async def turn(self, text):
            if where == "child":
                self.child = asyncio.ensure_future(self.leave())
                await asyncio.sleep(1)
            elif where == "callback":
                asyncio.get_running_loop().call_soon(sys.exit, 0)
                await asyncio.sleep(1)
            await super().turn(text)

        async def leave(self):
            sys.exit(0)

        def close(self):
            if where == "close":
                sys.exit(0)

    result = run(scenario(SAYS), Exits)
    assert not result.ok
    assert where == "close" or "SystemExit(0) was raised" in str(result)


def test_a_build_that_exits_gives_no_agent():
    with pytest.raises(UsageError, match="raised SystemExit: 3"):
        run(scenario(SAYS), lambda env: sys.exit(3))


def test_a_stop_that_waits_for_the_end_of_the_turn_is_fine():
    class Waits(MendedHandLoop):
        async def turn(self, text):
            self.task, self.done = asyncio.current_task(), asyncio.Event()
            try:
                await super().turn(text)
            finally:
                self.done.set()

        async def cancel(self):
            self.task.cancel()
            await self.done.wait()

    result = run(scenario(cut(Cancel(after="tool_started")), SAYS), Waits)
    assert result.outcomes == (CANCELLED, COMPLETED)
    assert result.ok, str(result)


def test_a_stop_that_only_waits_is_found_out():
    class Deaf(MendedHandLoop):
        async def turn(self, text):
            self.done = asyncio.Event()
            await super().turn(text)
            self.done.set()

        async def cancel(self):
            await self.done.wait()

    result = run(scenario(cut(Cancel(after="tool_started"))), Deaf)
    assert found(result) == ["CANCEL", "TERMINAL-TRUTH"]


def test_an_agent_deaf_to_its_cancel_is_found_out_within_one_instant():
    class Deaf(MendedHandLoop):
        def cancel(self):
            pass

    long = Turn("Hi.", (Reply(say="A long answer that takes many pieces to tell."),))
    result = run(scenario(cut(Cancel(after="delta"), long)), Deaf)
    assert found(result) == ["TERMINAL-TRUTH"]


def test_a_worker_that_goes_on_with_a_cancelled_call_is_found_out():
    class Actor(MendedHandLoop):
        def __init__(self, env):
            super().__init__(env)
            self.queue = asyncio.Queue()
            self.worker = asyncio.ensure_future(self.work())

        async def work(self):
            while True:
                call, answer = await self.queue.get()
                result = await super().run_tool(call)
                if not answer.done():
                    answer.set_result(result)

        async def run_tool(self, call):
            answer = asyncio.get_running_loop().create_future()
            self.queue.put_nowait((call, answer))
            return await answer

    result = run(scenario(cut(Cancel(after="tool_started")), SAYS), Actor)
    assert found(result) == ["QUIESCE"]
    assert run(scenario(ASKS, SAYS), Actor).ok


def test_a_timer_that_starts_a_tool_later_is_found_out():
    class Later(MendedHandLoop):
        async def run_tools(self, calls):
            loop = asyncio.get_running_loop()
            loop.call_later(0.5, lambda: setattr(self, "late", loop.create_task(self.pay(calls))))
            return await super().run_tools(calls[:0])

        async def pay(self, calls):
            await self.env.tools.call(calls[0].name, calls[0].args, calls[0].id)

    assert "QUIESCE" in found(run(scenario(ASKS), Later))


def test_failing_for_no_reason_is_untrue():
    class Buggy(MendedHandLoop):
        async def run_tools(self, calls):
            await super().run_tools(calls)
            raise KeyError("bug")

    class Lazy(MendedHandLoop):
        async def turn(self, text):
            return StepLimit()

    assert found(run(scenario(ASKS), Buggy)) == ["RESUME", "TERMINAL-TRUTH"]
    assert "TERMINAL-TRUTH" in found(run(scenario(SAYS), Lazy))


def test_an_agent_may_call_a_spent_budget_an_error():
    class Limited(MendedHandLoop):
        async def run_tools(self, calls):
            self.messages += await super().run_tools(calls)
            raise RuntimeError("too many steps")

    assert run(scenario(ASKS, budget=Budget(steps=1)), Limited).ok


def test_paying_again_for_a_reply_that_was_asked_for_again_is_paying_twice():
    class AsksAgain(MendedHandLoop):
        async def run_tools(self, calls):
            await super().run_tools(calls)
            self.messages.pop()
            self.messages.append(await self.ask())
            return await super().run_tools(calls)

    assert "EFFECT-ONCE" in found(run(scenario(ASKS), AsksAgain))


def test_a_stream_left_open_is_left_open():
    class Leaves(MendedHandLoop):
        async def turn(self, text):
            self.messages.append(user(text or ""))
            request = ModelRequest("m", "", tuple(self.messages))
            self.stream = await self.env.model.generate(request)
            await anext(self.stream)
            raise ConnectionError("not today")

    assert "QUIESCE" in found(run(scenario(SAYS), Leaves))


@pytest.mark.parametrize("fault", [DoneTwice(), LateThinking(), StreamFails(2), Hang(2)], ids=str)
def test_an_agent_that_stops_reading_at_the_end_signal_is_not_blamed(fault):
    asks = Turn("Go.", (Reply(calls=(ScriptedCall("slow"),), fault=fault), Reply(say="Gone.")))
    says = Turn("Hi.", (Reply(say="Hello.", fault=fault),))
    assert found(run(scenario(asks, says), MendedHandLoop)) == []


def test_a_cancel_by_the_agent_needs_one():
    result = run(scenario(cut(Cancel(after="tool_started", by="agent"))), MendedHandLoop)
    assert says(result, "agent") == ["the scenario cancels by the agent, which has no cancel()"]


@pytest.mark.parametrize("name", ["cancel", "outcome", "close"])
def test_an_optional_method_must_be_one(name):
    agent = type("Odd", (MendedHandLoop,), {name: 5})
    with pytest.raises(UsageError, match=f"an agent whose `{name}` is no method"):
        run(scenario(SAYS), agent)


def test_a_build_that_is_a_coroutine_function_is_told_so():
    async def build(env):
        return MendedHandLoop(env)

    with pytest.raises(UsageError, match="write `def`, not `async def`"):
        run(scenario(SAYS), build)


def test_a_tool_scheduled_before_the_cancel_may_begin_in_the_same_instant():
    class Stops(MendedHandLoop):
        def __init__(self, env):
            super().__init__(env)
            self.stop = asyncio.Event()

        def cancel(self):
            self.stop.set()

        async def run_tools(self, calls):
            stop = asyncio.ensure_future(self.stop.wait())
            tasks = [asyncio.ensure_future(self.run_tool(call)) for call in calls]
            everything = asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.wait([stop, everything], return_when=asyncio.FIRST_COMPLETED)
            if not self.stop.is_set():
                stop.cancel()
                return [task.result() for task in tasks]
            everything.cancel()
            self.messages += [tool_result(call.id, "Error: cancelled") for call in calls]
            raise asyncio.CancelledError

    calls = (ScriptedCall("slow", {"n": 1}), ScriptedCall("slow", {"n": 2}))
    turn = Turn("Go.", (Reply(calls=calls), Reply(say="Gone.")), Cancel(after="tool_started"))
    result = run(scenario(turn), Stops)
    assert found(result) == [], str(result)


@pytest.mark.parametrize("stubborn", ["ignore", "cleanup"])
def test_a_task_that_only_waits_for_a_stubborn_tool_is_not_blamed(stubborn):
    class Impatient(MendedHandLoop):
        async def run_tools(self, calls):
            work = asyncio.ensure_future(asyncio.gather(*[self.run_tool(call) for call in calls]))
            outer = asyncio.ensure_future(self.wait_for(work))
            try:
                return await asyncio.shield(outer)
            except asyncio.CancelledError:
                outer.cancel()
                self.messages += [tool_result(call.id, "Error: cancelled") for call in calls]
                raise

        async def wait_for(self, work):
            return await work

    tool = ToolSpec("slow", Behaviour(Returns(), 50 * MS, on_cancel=stubborn, cleanup=20 * MS))
    result = run(
        scenario(cut(Cancel(after="tool_started", mode="early")), tools=(tool,)), Impatient
    )
    assert found(result) == [], str(result)


def test_a_turn_may_end_with_a_tool():
    class Final(MendedHandLoop):
        async def turn(self, text):
            self.messages.append(user(text))
            reply = await self.ask()
            self.messages.append(reply)
            self.messages += await self.run_tools(reply.calls)

    final = Turn("Go.", (Reply(calls=(ScriptedCall("slow"),)),))
    assert found(run(scenario(final), Final)) == []


def test_a_request_that_is_sent_again_is_no_step_of_its_own():
    class TriesAgain(MendedHandLoop):
        async def ask(self):
            with contextlib.suppress(ProviderFailed):
                return await super().ask()
            return await super().ask()

    busy = Turn("Hi.", (Reply(say="Hello.", fault=GenerateFails("busy")),))
    result = run(scenario(busy, budget=Budget(steps=1)), TriesAgain)
    assert result.trace.requests()[1:]
    assert result.ok, str(result)


def test_an_agent_may_refuse_a_call_in_its_own_words():
    class Asks(MendedHandLoop):
        async def run_tool(self, call):
            return tool_result(call.id, "Somebody has to look at this first.")

    result = run(scenario(ASKS), Asks)
    assert found(result) == []
    assert [v.invariant for v in result.verdict.violations] == ["OUTCOME-TRUTH"]


def test_files_texts_and_names_are_taken_as_by_sweeps(tmp_path: Path) -> None:
    text = "about: A greeting.\nturns:\n  - {user: Hello., model: [{say: Hello.}]}\n"
    file = tmp_path / "hello.yaml"
    file.write_text(text, "utf-8")
    for scenario in (file, str(file), text):
        for agent in ("turn", "tests.subjects.hand_loop:HandLoop", HandLoop):
            assert run(scenario, agent).ok
    with pytest.raises(UsageError, match="names no loops; say which agent"):
        run(text)


def test_ctrl_c_in_a_turn_ends_the_run_and_is_no_outcome_of_it() -> None:
    class IsStopped(HandLoop):
        async def turn(self, text: str | None) -> None:
            await asyncio.sleep(1)
            signal.raise_signal(signal.SIGINT)

    # A process that was begun in the background of a shell ignores Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run("about: A turn.\nturns: [{user: Hello., model: [{say: Hello.}]}]\n", IsStopped)
    finally:
        signal.signal(signal.SIGINT, before)
