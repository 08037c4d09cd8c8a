"""One run of the loop: its states, what leads from one to the next, and what each does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from harness.core.events import StateEntered
from harness.loops.fsm.client import Client, Usage, unsound
from harness.loops.fsm.compaction import compact, is_needed
from harness.loops.fsm.context import inject, repair, salvage
from harness.loops.fsm.machine import Handler, Machine, Transition
from harness.loops.fsm.messages import Message, ToolCall, user
from harness.loops.fsm.registry import Stamp
from harness.loops.fsm.session import Session
from harness.loops.fsm.supervisor import Supervisor
from harness.loops.fsm.tools import Answer, Results, Tools

WAIT, TOOL, TRET, SUPERVISE = "WAIT", "TOOL", "TRET", "SUPERVISE"
DONE, ERRS, ABRT = "DONE", "ERRS", "ABRT"
TERMINAL = (DONE, ERRS, ABRT)


class Info(Struct, kw_only=True):
    """What a round came to so far; `WAIT` begins a new one."""

    budget: bool = False
    compacted: bool = False
    error: str | None = None
    assistant: Message | None = None
    usage: Usage | None = None
    tool_calls: list[ToolCall] | None = None
    tool_result: Results | None = None
    nudged: bool = False
    stopped: bool = False


class Loop:
    """One run over `messages`, the caller's own list: it grows until a compaction replaces it.

    The main loop of a session (`top_level`), or a sub-agent with at most `max_rounds` requests.
    `system` and `max_rounds` None are the session's. A run that ends with its rounds used up has
    `info.budget` set. One that was asked for before it is built has the `stamp` of that moment. Use
    it once.

    `transitions` and `handlers` make the machine: a state is a row and a handler.
    """

    def __init__(
        self,
        session: Session,
        messages: list[Message],
        *,
        top_level: bool = True,
        system: str | None = None,
        max_rounds: int | None = None,
        client: Client | None = None,
        stamp: Stamp | None = None,
    ) -> None:
        settings = session.settings
        own = settings.system if top_level else settings.subagent_system
        rounds = settings.subagent_max_rounds if max_rounds is None else max_rounds
        self.session = session
        self.messages = messages
        self.top_level = top_level
        self.system = own if system is None else system
        self.max_rounds = settings.max_rounds if top_level else rounds
        self.stamp = stamp or session.stamp()
        self.info = Info()
        self.rounds = 0
        self.requests = 0
        self.pending: list[ToolCall] = []
        self.delivered = 0
        """How many of the pending calls the conversation has an answer to."""
        self.reminded = False
        """Whether this sub-agent was told of plan mode."""
        self.terminal_text: str | None = None
        self.result: str | None = None
        self.supervisor = Supervisor(session, top_level=top_level)
        self.tools = Tools(session, self.stamp, self.cancelled, top_level=top_level)
        self._client = client
        self._compactions = 0
        self._patience = 0.0
        """How full the context may be before the next compaction."""
        self._saved = 0
        """How many messages the file holds of those that are here."""
        self._seen_cancel = False
        self._leaving = False
        """Whether the process is told to end, as by Ctrl-C: nothing is asked for any more."""
        self.machine: Machine[Loop] = Machine(WAIT, self.transitions(), self.handlers(), TERMINAL)

    def transitions(self) -> Sequence[Transition[Loop]]:
        """What leads from state to state."""
        return TABLE

    def handlers(self) -> dict[str, Handler]:
        """What each state does."""
        return {
            WAIT: self.wait,
            TOOL: self.tool,
            TRET: self.tool_return,
            SUPERVISE: self.supervise,
            DONE: self.done,
            ERRS: self.errs,
            ABRT: self.abrt,
        }

    def run(self) -> str | None:
        """Run to the end and give the answer, an error's text, or None where there is no answer.

        Raises what a hook or a broken client raises; the session has its messages even then.
        """
        try:
            self._mend()
            self.machine.run(self, self.entered)
        except BaseException as error:
            if self.session.policy.answer_cancelled_rounds:
                self._settle()
            self._leaving = not isinstance(error, Exception)
            raise
        finally:
            self._commit()
        return self.result

    def entered(self, state: str) -> None:
        """A state begins."""
        self.session.ports.observe(StateEntered(state))

    def cancelled(self) -> bool:
        """Whether the run should stop: it was cancelled, or a newer one has replaced it."""
        now = self.session.cancelled(self.stamp)
        self._seen_cancel = now or (self._seen_cancel and self.session.policy.cancel_stays)
        return self._seen_cancel

    def wait(self) -> None:
        """Ask the model, after what has to be done before."""
        info = self.info = Info()
        if self._out_of_rounds():
            info.budget = True
            return
        self.rounds += 1
        if self.cancelled():
            return
        self._inject_prompts()
        if self.top_level and self._made_room():
            info.compacted = True
            return
        if self._asks_no_more():
            return
        try:
            message, usage = self._request()
        except Exception as error:
            if not self.cancelled():
                info.error = self._error_text(error)
                self.session.notify("error")
            return
        if not self.cancelled():
            self._accept(message, usage)

    def tool(self) -> None:
        """Run what the model asked for."""
        session = self.session
        self._begin_round()
        self.supervisor.reset()
        if self.top_level:
            session.mirror(self.messages, self.stamp)
            session.notify("tool_start", [call.name for call in self.pending])
        self.run_tools()

    def run_tools(self) -> None:
        """Run the pending calls; of a cancelled round nothing is left, or all of it is answered."""
        answered = self.session.policy.answer_cancelled_rounds
        if self.cancelled() and not answered:
            return
        results = self.tools.run(self.pending)
        if not self.cancelled():
            self.info.tool_result = results
            return
        if answered:
            self._deliver(results)
        self.pending = []

    def tool_return(self) -> None:
        """Tell the model what its calls came to, in its own order."""
        self._deliver(self.info.tool_result or {})
        self.pending = []

    def supervise(self) -> None:
        """Take the reply for the answer, or nudge the model to go on."""
        session, policy = self.session, self.session.policy
        text = self.info.assistant.text() if self.info.assistant else ""
        answered = bool((self.terminal_text or "").strip())
        if text.strip() or not (answered and policy.last_answer_counts):
            self.terminal_text = text
        if policy.supervise_sees_cancel and self.cancelled():
            self.info.stopped = True
        elif not self._out_of_rounds() and self.supervisor.wants_nudge():
            self.messages.append(user(session.texts.nudge, injected=True))
            self.info.nudged = True

    def done(self) -> None:
        """Give the answer; of a sub-agent out of rounds, its last words."""
        if self.top_level and self.info.budget:
            self.result = self.session.texts.rounds_exhausted
            return
        self.result = self.terminal_text
        if self.result is None:
            said = (m.text() for m in reversed(self.messages) if m.role == "assistant")
            self.result = next((text for text in said if text.strip()), None)
        if self.result is None and self.messages and self.messages[-1].role == "tool":
            self.result = self.session.texts.budget_exhausted

    def errs(self) -> None:
        """Give the error's text."""
        self.result = self.info.error

    def abrt(self) -> None:
        """Give nothing."""
        self.result = None

    def kept(self) -> list[Message]:
        """What the session keeps of the conversation: one that can go on."""
        if self.session.policy.repair_history:
            return repair(self.messages, self.session.texts.no_result)
        return salvage(self.messages)

    def append_result(self, call: ToolCall, answer: Answer) -> None:
        """Answer a call in the conversation, and note the answer on the call."""
        call.result, call.diff = answer.text, answer.diff
        self.messages.append(Message("tool", answer.text, tool_call_id=call.id, name=call.name))

    def _mend(self) -> None:
        """Answer the calls of rounds that broke off before this run; no provider takes them so."""
        if self.session.policy.repair_history:
            mended = self.kept()
            self.session.report_kept(self.messages, mended)
            self.messages[:] = mended

    def _out_of_rounds(self) -> bool:
        policy = self.session.policy
        limited = policy.limit_rounds or not self.top_level
        if not limited or self.requests < self.max_rounds:
            return False
        return not (policy.cancel_before_budget and self.cancelled())

    def _asks_no_more(self) -> bool:
        return self.cancelled() and not self.session.policy.request_after_cancel

    def _inject_prompts(self) -> None:
        session = self.session
        if self.top_level:
            inject(self.messages, session.take_prompts())
        elif session.plan.on and not self.reminded:
            self.reminded = True
            self.messages.append(user(session.plan.reminder(), injected=True))

    def _made_room(self) -> bool:
        """Measure the context and compact the conversation where it is needed."""
        session, limit = self.session, self.session.policy.max_compactions
        session.update_context(self.messages, self.system)
        needed = is_needed(session, self._patience)
        if self._compactions:
            self._be_patient()
        enough = limit is not None and self._compactions >= limit
        if enough or self._asks_no_more() or not needed:
            return False
        session.ports.log(f"compacting context {session.ratio or 0:.1%}")
        self._compactions += 1
        made = compact(session, self.messages, self.cancelled, self._replace)
        if not made:
            self._be_patient()
        return made

    def _be_patient(self) -> None:
        """A compaction was tried: where the context is too full even so, leave it room to work."""
        if self.session.policy.compaction_waits:
            full = is_needed(self.session)
            self._patience = ((self.session.ratio or 0.0) + 1) / 2 if full else 0.0

    def _replace(self, messages: list[Message]) -> None:
        self.messages, self._saved = list(messages), 0  # prompts come in between these
        if not self.cancelled():
            self.session.mirror(messages, self.stamp)
        self.supervisor.renew()

    def _request(self) -> tuple[Message, Usage]:
        self.requests += 1
        session, top_level = self.session, self.top_level
        settings = session.settings
        tools = session.registry.specs(self.tools.excluded) if session.tools_enabled else None
        client = session.client if top_level else (self._client or session.subagent_client)
        reply: Any = client.chat(
            self.messages,
            tools=tools,
            system=self.system,
            options=settings.main if top_level else settings.subagent,
            on_delta=self._delta if top_level else None,
            cancel_check=self.cancelled,
            on_retry=(lambda: session.notify("retry")) if top_level else None,
        )
        message, usage = reply
        found = unsound(message, usage) if session.policy.refuse_bad_replies else None
        if found is not None:
            raise TypeError(f"the client gave {found}; expected a Message and its Usage")
        return message, usage

    def _delta(self, text: str) -> None:
        if not self.cancelled():
            self.session.ports.delta(text)

    def _error_text(self, error: Exception) -> str:
        text = str(error)
        if self.session.policy.prefix_once and text.startswith("Error: "):
            return text
        return f"Error: {text}"

    def _accept(self, message: Message, usage: Usage) -> None:
        """Take in a reply; it counts once it is saved, and what fails before ends the run."""
        session = self.session
        self.messages.append(message)
        self._compactions = 0
        if message.text().strip() and self.top_level and not message.tool_calls:
            session.mirror(self.messages, self.stamp)
        if self.top_level:
            session.calibrator.update(usage.input_tokens, session.settings.calibration)
            session.remember_user_text(self.messages)
            session.auto_save(self.messages, self.system, self.stamp)
            self._saved = len(self.messages)
        self.info.assistant, self.info.usage = message, usage
        self.info.tool_calls = message.tool_calls or None
        if self.cancelled() and session.policy.answer_cancelled_rounds:  # else TOOL answers
            self._begin_round()
            self.run_tools()

    def _begin_round(self) -> None:
        self.pending = list(self.info.tool_calls or ())
        self.delivered = 0
        self.tools.results = {}

    def _deliver(self, results: Results) -> None:
        session = self.session
        for index, call in enumerate(self.pending):
            if self.cancelled() and not session.policy.answer_cancelled_rounds:
                return
            self.append_result(call, results[self.tools.key(index, call)])
            self.delivered += 1
            if self.top_level:
                if not self.cancelled():
                    session.mirror(self.messages, self.stamp)
                session.notify("tools")

    def _settle(self) -> None:
        """Answer the rest of a round that broke, with what its calls came to before it did."""
        session, results = self.session, self.tools.results
        for index, call in list(enumerate(self.pending))[self.delivered :]:
            answer = results.get(self.tools.key(index, call))
            if answer is None:
                answer = Answer(session.instead(call.id, call.name, session.texts.no_result))
            self.append_result(call, answer)

    def _commit(self) -> None:
        """Leave the session a conversation that can go on."""
        session = self.session
        if session.stale(self.stamp) or not self.top_level:
            return
        kept = self.kept()
        session.mirror(kept, self.stamp)
        session.report_kept(self.messages, kept)
        unsaved = session.policy.save_every_end and len(kept) != self._saved
        if self.cancelled() or unsaved:
            session.auto_save(kept, self.system, self.stamp)
        if not self.info.budget and (session.policy.title_after_cancel or not self._leaving):
            session.generate_title(self.stamp)


def _always(_run: Loop) -> bool:
    return True


TABLE: tuple[Transition[Loop], ...] = (
    Transition(WAIT, lambda run: run.info.budget, DONE),
    Transition(WAIT, Loop.cancelled, ABRT),
    Transition(WAIT, lambda run: run.info.compacted, WAIT),
    Transition(WAIT, lambda run: run.info.error is not None, ERRS),
    Transition(WAIT, lambda run: run.info.tool_calls is not None, TOOL),
    Transition(WAIT, _always, SUPERVISE),
    Transition(TOOL, Loop.cancelled, ABRT),
    Transition(TOOL, _always, TRET),
    Transition(TRET, Loop.cancelled, ABRT),
    Transition(TRET, _always, WAIT),
    Transition(SUPERVISE, lambda run: run.info.stopped, ABRT),
    Transition(SUPERVISE, lambda run: run.info.nudged, WAIT),
    Transition(SUPERVISE, _always, DONE),
)
"""Of the rows of a state, the first whose test holds."""
