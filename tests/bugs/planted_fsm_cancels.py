"""Planted bugs in what the state-machine loop still does when it has been told to stop."""

from typing import Any

from harness.fakes.script import Reply, ScriptedCall
from harness.fakes.tool_spec import Behaviour, Returns, ToolSpec
from harness.loops.fsm.loop import Loop
from harness.loops.fsm.messages import ToolCall
from harness.loops.fsm.tools import Answer, Tools
from harness.runner.scenario import Cancel, Turn
from tests.bugs.planting import MS, QUICK, SLOW, asks_for
from tests.bugs.planting_fsm import FsmPlanted, fsm_scenario, planted, titles


class WaitsForALateResult(Loop):
    """Waits for a tool in the background whatever happens, though it may never come back."""


class TakesACancelForAResult(Loop):
    """Answers a call whose tool was stopped as if the tool had come back."""

    def append_result(self, call: ToolCall, answer: Answer) -> None:
        super().append_result(call, Answer("ok") if self.cancelled() else answer)


class NamesWhatWasStopped(Loop):
    """Asks for a title at every end, also at one that the user wanted."""


class RunsTheRestToo(Loop):
    """Has tools that know of no cancel: those behind the one that was stopped run as well."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.tools = Tools(self.session, self.stamp, lambda: False, top_level=self.top_level)


class SendsWhatItHadPrepared(Loop):
    """Looks for a cancel before it prepares a request, and not before it sends it."""


ON_SLOW = Cancel(after="tool_started", name="slow")
STUCK = ToolSpec("stuck", Behaviour(Returns("ok"), takes=60_000 * MS))
TWO = fsm_scenario(asks_for("slow", "quick", cancel=ON_SLOW), tools=(QUICK, SLOW))

FSM_CANCELS: tuple[FsmPlanted, ...] = (
    planted(
        "CANCEL",
        WaitsForALateResult,
        fsm_scenario(
            asks_for("stuck", cancel=Cancel(at=20 * MS)), tools=(STUCK,), async_tools=["stuck"]
        ),
        too=frozenset({"ONE-TERMINAL"}),
        waits_end_with_cancel=False,
    ),
    planted("OUTCOME-TRUTH", TakesACancelForAResult, TWO),
    planted(
        "CANCEL",
        NamesWhatWasStopped,
        fsm_scenario(
            Turn("Go slowly.", (Reply(calls=(ScriptedCall("slow"),)),), ON_SLOW),
            tools=(SLOW,),
            also=titles(Reply(say="Going")),
            titles=True,
        ),
        title_after_cancel=True,
    ),
    planted("CANCEL", RunsTheRestToo, TWO, waits_end_with_cancel=False),
    planted(
        "CANCEL",
        SendsWhatItHadPrepared,
        fsm_scenario(
            Turn("Go.", (Reply(say="Gone."),), Cancel(after="loop_event", name="context"))
        ),
        request_after_cancel=True,
    ),
)
