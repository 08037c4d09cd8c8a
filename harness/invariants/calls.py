"""Single calls and what the model is told of them, whatever their ids, tools, arguments, results.

PAIR judges whether each call that a request shows has one answer; here it is what the answer says.
"""

from __future__ import annotations

from harness.core.events import ErrorUnseen, ReplyEnded, ToolEnded
from harness.core.json_text import dumps, well_formed
from harness.core.messages import ToolCall
from harness.invariants.conversation import said
from harness.invariants.invariant import Facts
from harness.invariants.reader import Here, on
from harness.invariants.requests import RequestFold, Sent
from harness.invariants.steps import EMPTY, Slot, Step, StepFold, is_blank, shows_failure, spellings


class _Calls(StepFold):
    """Judges calls one by one."""

    def tell_of(self, step: Step, message: str) -> None:
        """Report what a request shows of a reply."""
        self.report(f"reply {step.reply}: {message}", step.answered_at or step.at, step.turn)

    def judge_refused(self, step: Step, slot: Slot, why: str) -> None:
        """Judge a call that cannot be run: one error answers it, and the turn goes on."""
        error = step.broke
        if slot.answer is not None:
            if not shows_failure(slot.answer):
                self.tell_of(step, f"{slot.name} is answered as if it had run, though {why}")
        elif error is not None:
            self.report(
                f"the turn ended as error ({error.kind}: {error.message}) over {slot.name}; {why}",
                step.ended_at,
                step.turn,
            )
        elif slot.shown is None and step.went_on and step.structured:
            self.tell_of(step, f"{slot.name} was dropped without an answer; {why}")


class Slots(_Calls, RequestFold):
    """A call is known by its place, not by its id: one whose id is empty or used before runs and is
    answered like any other, and each answer is its own call's.

    Calls of one reply that nothing tells apart may have each other's answers, each once. A call
    that handed a text to a sub-agent is answered with what came of that text.
    """

    id = "SLOT"

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.asked: dict[str, str] = {}
        """How conversations beside the main one begin, by the replies that are awaited there."""
        self.helped: dict[str, set[str]] = {}
        """What was said in the conversations that began so."""

    def request(self, sent: Sent) -> None:
        """Note how a conversation beside the main one begins."""
        if not sent.main:
            at, messages = sent.conversation.systems, sent.conversation.messages
            self.asked[sent.event.reply] = said(messages[at]) if at < len(messages) else ""

    @on(ReplyEnded)
    def replied(self, event: ReplyEnded) -> None:
        """Note what is said there."""
        text = self.asked.pop(event.reply, None)
        if text and event.end == "complete" and event.message is not None:
            self.helped.setdefault(text, set()).update([event.message.text, said(event.message)])

    def take(self, step: Step) -> None:
        """Judge calls with shared ids, and results that stand at another call."""
        for slot in step.slots:
            if slot.shared and not slot.bad_arguments and not self.unknown(step, slot):
                self.judge_shared(step, slot)
        self.judge_values(step)

    def judge_shared(self, step: Step, slot: Slot) -> None:
        """Judge a call by whether it ran, or was refused."""
        self.judged = self.judged or step.shown is not None
        if slot.runs or step.disturbed:
            return  # where something kept a call from running, which one of those is not known
        if slot.answer is not None:
            if not shows_failure(slot.answer):
                self.tell_of(
                    step, f"{slot.name} is answered, but did not run; its id is not its own"
                )
        elif slot.shown is None and step.went_on and step.structured:
            self.tell_of(step, f"{slot.name} neither ran nor is answered; its id is not its own")

    def judge_values(self, step: Step) -> None:
        """Find answers that are word for word what another call's tool returned; at a call that no
        tool ran for, as one that the agent sees to itself, only where they are not there too.
        """
        spelled = [spellings(slot) or self.handed_out(slot) for slot in step.slots]
        if all(own == spelled[0] for own in spelled):
            return
        owners = {
            text: slot for slot, texts in zip(step.slots, spelled, strict=True) for text in texts
        }
        for slot, own in zip(step.slots, spelled, strict=True):
            if slot.answer is None or (slot.shared and step.disturbed):
                continue
            if not own and (slot.runs or not owners):
                continue
            self.judged = True
            text = slot.answer.text
            owner = owners.get(text)
            if owner is None or text in own:
                continue
            theirs = spelled[step.slots.index(owner)]
            if own or (owner.answer is not None and owner.answer.text not in theirs):
                self.tell_of(step, f"{slot.name} is answered with the result of {owner.name}")

    def handed_out(self, slot: Slot) -> set[str]:
        """What came of the texts that a call handed to a sub-agent."""
        args = slot.call.args
        if slot.runs or not self.helped or not isinstance(args, dict):
            return set()
        texts = [well_formed(each).strip() for each in args.values() if isinstance(each, str)]
        return {each for text in texts for each in self.helped.get(text, ()) if each}


class CallTruth(_Calls):
    """A call that a request shows is as the model wrote it, and its tool runs with those arguments.

    Calls without JSON arguments, and those that share an id, are judged by BAD-ARGS and SLOT. A
    tool that runs with other arguments is a soft finding: an agent may fill in what was left out.
    """

    id = "CALL-TRUTH"

    def take(self, step: Step) -> None:
        """Judge calls by what is shown of them and what their tools were given."""
        for slot in step.slots:
            if slot.bad_arguments or slot.shared:
                continue
            asked = slot.call
            shown = _shown(step, slot)
            if shown is not None:
                self.judged = True
                if (shown.args or {}) != (asked.args or {}):
                    self.tell_of(
                        step,
                        f"{slot.name} was asked for with {dumps(asked.args)}, and the request "
                        f"shows it with {dumps(shown.args)}",
                    )
            for run in slot.runs:
                self.judged = True
                if (run.started.args or {}) != (asked.args or {}):
                    self.report(
                        f"{slot.name} ran with {dumps(run.started.args)}, though it was asked for "
                        f"with {dumps(asked.args)}",
                        step.at,
                        step.turn,
                        "soft",
                    )


class UnknownTool(_Calls):
    """A call of a tool that there is not is answered with one error, and the turn goes on."""

    id = "UNKNOWN-TOOL"

    def take(self, step: Step) -> None:
        """Judge calls of tools that the agent does not have."""
        for slot in step.slots:
            if self.unknown(step, slot):
                self.judged = True
                self.judge_refused(step, slot, f"there is no tool {slot.call.name}")


class BadArguments(_Calls):
    """A call whose arguments are not a JSON object is not run and answered with one error, and the
    calls beside it are not refused with it.

    Empty text and null may be taken for an empty object.
    """

    id = "BAD-ARGS"

    def take(self, step: Step) -> None:
        """Judge calls with bad arguments, and those beside them."""
        bad = [slot for slot in step.slots if slot.bad_arguments]
        for slot in bad:
            self.judged = True
            if slot.runs:
                self.tell_of(step, f"{slot.name} ran, though its arguments are {_spell(slot)}")
            elif not self.unknown(step, slot):
                if step.broke and any(self.unknown(step, each) for each in step.slots):
                    continue
                self.judge_refused(step, slot, f"its arguments are {_spell(slot)}")
        if not step.went_on:
            return
        refusals = {slot.answer.text for slot in bad if slot.answer is not None and not slot.runs}
        for slot in step.slots:
            fine = isinstance(slot.call.args, dict) and not self.unknown(step, slot)
            if fine and not slot.runs and slot.answer and slot.answer.text in refusals:
                self.tell_of(step, f"{slot.name} was refused together with a call of bad arguments")


class ResultTotal(_Calls):
    """Every answer has some text, whatever the tool returned, and an empty result is no error."""

    id = "RESULT-TOTAL"

    def take(self, step: Step) -> None:
        """Judge answers by their text, and those of tools that returned little."""
        for slot in step.slots:
            if slot.answer is None:
                continue
            self.judged = True
            if is_blank(slot.answer):
                self.tell_of(step, f"the answer to {slot.name} is empty")
            elif (
                slot.answer.is_error
                and step.went_on
                and slot.ended is not None
                and slot.ended.end == "returned"
                and slot.ended.value in EMPTY
            ):
                self.tell_of(
                    step,
                    f"{slot.name} returned {dumps(slot.ended.value)}, and is answered with an "
                    f"error: {slot.answer.text}",
                )


class FailVisible(_Calls):
    """What fails is seen: the model can tell from the answer that a tool failed, and an exception
    reaches somebody.

    An answer shows a failure by its flag, in words, or with the text of the error. An exception
    that nobody retrieved is a soft finding, for a loop may have given up the work that raised it.
    """

    id = "FAIL-VISIBLE"
    needs = (ErrorUnseen,)

    @on(ErrorUnseen)
    def unseen(self, event: ErrorUnseen) -> None:
        """Tell of an exception that nobody saw."""
        self.report(f"nobody saw {event.message}", self.here.index, event.turn, "soft")

    def take(self, step: Step) -> None:
        """Judge answers of tools that failed."""
        for slot in step.slots:
            ended = slot.ended
            if slot.answer is None or ended is None or ended.end not in ("error", "raised"):
                continue
            self.judged = True
            if not shows_failure(slot.answer, ended.error):
                self.tell_of(
                    step,
                    f"{slot.name} {_failed(ended)}, and its answer does not show that: "
                    f"{dumps(slot.answer.text)}",
                )


def _shown(step: Step, slot: Slot) -> ToolCall | None:
    """The call as the next request shows it."""
    if step.shown is None or slot.shown is None:
        return None
    calls = [call for message in step.shown for call in message.calls]
    return next((call for call in calls if call.id == slot.call.id), None)


def _failed(ended: ToolEnded) -> str:
    how = "raised" if ended.end == "raised" else "answered with the error"
    return f"{how} {dumps(ended.error)}"


def _spell(slot: Slot) -> str:
    call = slot.call
    return f"not JSON ({call.raw})" if call.raw is not None else f"{dumps(call.args)}, no object"
