"""Planted bugs in what the state-machine loop keeps, sums up, answers and nudges."""

from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from harness.fakes.script import GenerateFails, Reply, ScriptedCall
from harness.fakes.tool_spec import Behaviour, Returns, ToolSpec
from harness.loops.fsm.client import RequestOptions
from harness.loops.fsm.loop import Loop
from harness.loops.fsm.messages import Message, user
from harness.loops.fsm.session import Session
from harness.loops.fsm.subagent import AGENT
from harness.loops.fsm.supervisor import Supervisor
from harness.runner.scenario import Cancel, Turn
from tests.bugs.planting import QUICK, SLOW, asks_for
from tests.bugs.planting_fsm import FsmPlanted, fsm_scenario, helpers, planted, summaries

# --- what is kept


class KeepsADanglingCall(Loop):
    """Leaves the conversation as it broke off, with calls that nobody has answered."""

    def kept(self) -> list[Message]:
        return list(self.messages)


class DropsTheLastAnswer(Loop):
    """Salvages one message too few: an answer goes as a round that was cut off would."""

    def kept(self) -> list[Message]:
        kept = super().kept()
        return kept[:-1] if kept and kept[-1].role == "assistant" else kept


class WritesLate(Loop):
    """A run that was stopped writes when the next one has ended, over what that one wrote."""

    late: ClassVar[WeakKeyDictionary[Session, list[Message]]] = WeakKeyDictionary()
    ends = False

    def _commit(self) -> None:
        self.ends = True
        super()._commit()

    def kept(self) -> list[Message]:
        kept = super().kept()
        if not self.ends:
            return kept
        if self.cancelled():
            self.late[self.session] = kept
            return kept
        return self.late.pop(self.session, kept)


# --- what takes the place of a conversation


class SumsUpForEver(Loop):
    """Compacts again while the conversation is too large, whether that has helped or not."""


class ClearsBeforeItAsks(Loop):
    """Makes room first and asks for a summary then; where none comes, what is gone is gone."""

    def _made_room(self) -> bool:
        tried, made = self._compactions, super()._made_room()
        if self._compactions > tried and not made:
            said = [at for at, message in enumerate(self.messages) if message.role == "user"]
            del self.messages[: said[-1]]
        return made


class KeepsTheUsersFirstWords(Loop):
    """Leaves out of a compacted conversation what the user has said last."""

    def _replace(self, messages: list[Message]) -> None:
        super()._replace(messages[:-1])


class LosesTheSummary(Loop):
    """Says that there was more, and has thrown away the text that says what."""

    def _replace(self, messages: list[Message]) -> None:
        super()._replace([user(self.session.texts.compact_header), *messages[1:]])


class ForgetsItsTemperature(Loop):
    """Goes on after a compaction with settings as a new session has them."""

    def _replace(self, messages: list[Message]) -> None:
        super()._replace(messages)
        settings = self.session.settings
        self.session.settings = replace(settings, main=RequestOptions(temperature=1.0))


class ForgetsItsSystemPrompt(Loop):
    """Takes the summary for all that the model has to know."""

    def _replace(self, messages: list[Message]) -> None:
        super()._replace(messages)
        self.system = None


# --- answers and nudges


class DeliversBackwards(Loop):
    """Delivers results from the last call to the first."""

    def tool_return(self) -> None:
        at = len(self.messages)
        super().tool_return()
        self.messages[at:] = reversed(self.messages[at:])


class MixesUpTheHelpersAnswer(Loop):
    """Gives results to calls in the order in which they come, and a helper's comes last."""

    def tool_return(self) -> None:
        results = self.info.tool_result or {}
        if self.top_level:
            self.info.tool_result = dict(zip(results, reversed(results.values()), strict=True))
        super().tool_return()


class SharesResultsById(Loop):
    """Knows results by the id of their call, which two calls may have."""


class _Patient(Supervisor):
    """Has no budget."""

    def wants_nudge(self) -> bool:
        self.nudges = 0
        return super().wants_nudge()


class NudgesForEver(Loop):
    """Nudges a model that says it is done, and again, and again."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.supervisor = _Patient(self.session, top_level=self.top_level)


ON_SLOW = Cancel(after="tool_started", name="slow")
SAYS_MUCH = "The sea is wide and the sea is deep. " * 30
TELLS_MUCH = ToolSpec("look", Behaviour(Returns(SAYS_MUCH)))
SHORT = Reply(say="The sea was talked about.")
TIGHT: Any = {"window_tokens": 300, "system_prompt": "Be brief."}
"""Settings with room for one long text, but not for two."""


def said(*replies: Reply, text: str = "Go.") -> Turn:
    return Turn(text, replies)


SEA = said(Reply(say=SAYS_MUCH), text="Write about the sea.")
SHORTER = said(Reply(say="It is wide."), text="Shorter, please.")
SUMMED_UP = fsm_scenario(SEA, SHORTER, also=summaries(SHORT), **TIGHT)


def hands_out(task: str) -> ScriptedCall:
    words: Any = {"subagent_type": "general", "description": "a task", "prompt": task}
    return ScriptedCall(AGENT, words)


FSM_HISTORIES: tuple[FsmPlanted, ...] = (
    planted(
        "RESUME",
        KeepsADanglingCall,
        fsm_scenario(asks_for("quick", "slow", cancel=ON_SLOW), tools=(QUICK, SLOW)),
        answer_cancelled_rounds=False,
        repair_history=False,
    ),
    planted(
        "DURABLE",
        DropsTheLastAnswer,
        fsm_scenario(said(Reply(say="Gone.")), said(Reply(say="Again."), text="Again.")),
    ),
    planted(
        "DURABLE",
        WritesLate,
        fsm_scenario(
            asks_for("slow", cancel=ON_SLOW),
            said(Reply(say="Gone."), text="Now."),
            said(Reply(say="Again."), text="Again."),
            tools=(SLOW,),
        ),
    ),
    planted(
        "COMPACT-PROGRESS",
        SumsUpForEver,
        fsm_scenario(
            said(Reply(say="Fine."), text=SAYS_MUCH),
            also=summaries(*[SHORT] * 4, Reply(say="")),
            **TIGHT,
        ),
        max_compactions=None,
        compaction_must_shrink=False,
    ),
    planted(
        "COMPACT-HONEST",
        ClearsBeforeItAsks,
        fsm_scenario(
            said(Reply(say="Hello.")),
            said(Reply(calls=(ScriptedCall("look"),)), Reply(say="It is."), text="Is it wide?"),
            tools=(TELLS_MUCH,),
            also=summaries(Reply(fault=GenerateFails())),
            **TIGHT,
        ),
    ),
    planted("COMPACT-HONEST", KeepsTheUsersFirstWords, SUMMED_UP),
    planted("COMPACT-HONEST", LosesTheSummary, SUMMED_UP),
    planted("COMPACT-HONEST", ForgetsItsTemperature, SUMMED_UP),
    planted("PINNED", ForgetsItsSystemPrompt, SUMMED_UP),
    planted(
        "ORDER", DeliversBackwards, fsm_scenario(asks_for("quick", "slow"), tools=(QUICK, SLOW))
    ),
    planted(
        "SLOT",
        MixesUpTheHelpersAnswer,
        fsm_scenario(
            said(Reply(calls=(ScriptedCall("quick"), hands_out("Look."))), Reply(say="Gone.")),
            tools=(QUICK,),
            also=helpers(Reply(say="There is a bug in line 3.")),
            subagents=True,
        ),
    ),
    planted(
        "SLOT",
        MixesUpTheHelpersAnswer,
        fsm_scenario(
            said(Reply(calls=(hands_out("Look."), hands_out("Test."))), Reply(say="Gone.")),
            also=helpers(Reply(say="There is a bug in line 3."), Reply(say="Two tests fail.")),
            subagents=True,
        ),
    ),
    planted(
        "SLOT",
        SharesResultsById,
        fsm_scenario(
            said(
                Reply(calls=(ScriptedCall("quick", id="1"), ScriptedCall("look", id="1"))),
                Reply(say="Gone."),
            ),
            tools=(QUICK, TELLS_MUCH),
        ),
        results_per_call=False,
    ),
    planted(
        "LOOP-DETECT",
        NudgesForEver,
        fsm_scenario(
            said(*[Reply(say="Done.", optional=True)] * 12, Reply(fault=GenerateFails())),
            max_nudges=1,
        ),
        exotic="the same answer more than ten times in a row",
    ),
)
