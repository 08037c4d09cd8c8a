"""What became of the calls of each reply: how the tools ran, and what the model was told of them.

A step is a whole reply of the main conversation that asks for tools, with what the next request of
that conversation shows of it. It is read once a run, for all invariants that judge steps.
"""

from __future__ import annotations

import re

from msgspec import Struct, field

from harness.core.events import ToolEnded, ToolStarted
from harness.core.json_text import Json, dumps
from harness.core.messages import Image, Message, ToolCall
from harness.core.outcome import Error, Outcome
from harness.invariants.invariant import Fold


class Run(Struct, eq=False):
    """One run of a tool: its start, the task that ran it, and how it ended where it has."""

    started: ToolStarted
    task: str
    ended: ToolEnded | None = None
    ended_at: int = 0
    """When it ended, in virtual nanoseconds."""


class Slot(Struct, eq=False):
    """One call of a reply, known by its place in it.

    `shared` says that its id is empty, or not the only one: another call of the reply or an earlier
    reply has it too. `shown` is the place of the call, and `told` that of its answer, among those
    of the reply that the next request shows.
    """

    call: ToolCall
    number: int
    shared: bool
    runs: list[Run] = field(default_factory=list)
    shown: int | None = None
    told: int | None = None
    answer: Message | None = None

    @property
    def name(self) -> str:
        """The call in a few words."""
        return f"{self.call.name} ({self.call.id or f'call {self.number} of its reply'})"

    @property
    def bad_arguments(self) -> bool:
        """Whether its arguments are none: no JSON, or JSON that is no object.

        What the model left empty, and null, an agent may take for an empty object.
        """
        call = self.call
        if call.raw is not None:
            return bool(call.raw.strip())
        return not isinstance(call.args, dict | None)

    @property
    def ended(self) -> ToolEnded | None:
        """How its last run ended; None where there is none, or it goes on."""
        return self.runs[-1].ended if self.runs else None


class Step(Struct, eq=False):
    """A whole reply that asks for tools, and what became of it.

    `answered_at` is the entry of the next request, None where there was none; `outcome` and
    `ended_at` tell how the turn ended, where it did before that request. `shown` are the messages
    that the request has from the reply on: None where it cannot be told which those are, as in a
    history that was cut, or where the reply was thrown away and the model is asked again.
    """

    reply: str
    turn: int
    at: int
    message: Message
    slots: list[Slot]
    offered: frozenset[str]
    """The tools that the agent had told the model of."""
    disturbed: bool = False
    """Whether a cancel, a fault or what the script does not have came before the turn ended."""
    outcome: Outcome | None = None
    ended_at: int | None = None
    answered_at: int | None = None
    shown: tuple[Message, ...] | None = None

    @property
    def went_on(self) -> bool:
        """Whether the turn went on to another request that shows what became of this step."""
        return self.shown is not None and self.outcome is None

    @property
    def structured(self) -> bool:
        """Whether the next request shows any of the calls or an answer, in the form for that; some
        agents write both as plain text.
        """
        return any(slot.shown is not None or slot.answer is not None for slot in self.slots)

    @property
    def broke(self) -> Error | None:
        """The error that the turn ended with right after this reply, where neither a tool's failure
        nor anything from outside explains it.
        """
        if not isinstance(self.outcome, Error) or self.disturbed:
            return None
        for slot in self.slots:
            if slot.runs and (slot.ended is None or slot.ended.end != "returned"):
                return None
        return self.outcome


class StepFold(Fold):
    """An invariant that judges steps, each when all that can be known of it is known."""

    def take(self, step: Step) -> None:
        """Judge a step."""
        raise NotImplementedError

    def unknown(self, step: Step, slot: Slot) -> bool:
        """Whether a call is of a tool that there is not."""
        return self.facts.unknown(slot.call.name, step.offered)


EMPTY: tuple[Json, ...] = (None, "", [], {}, False, 0)
"""What a tool may well return, and a careless agent takes for nothing."""

FAILURE = re.compile(
    r"error|exception|fail|invalid|malformed|unknown|unavailable|unable|denied|refused|reject|"
    r"cancel|interrupt|abort|timed? ?out|cannot|can't|could not|couldn't|did not|didn't|"
    r"does not|doesn't|not (?:\w+ )?(?:a|an|available|found|known|valid|executed|run|allowed)\b|"
    r"no such|no tool|went wrong|not able|declin|block|sorry",
    re.IGNORECASE,
)
"""How a result says in words that it is none."""


def shows_failure(answer: Message, error: str | None = None) -> bool:
    """Whether an answer lets the model see that the call came to nothing: by its flag, in words, or
    by the text of the error.
    """
    if answer.is_error:
        return True
    text = answer.text
    return bool(error and error in text) or FAILURE.search(text) is not None


def spellings(slot: Slot) -> set[str]:
    """How an agent may write what the call's tool returned; none where that is too little to tell
    one call's result from another's.
    """
    ended = slot.ended
    if ended is None or ended.end != "returned" or ended.value in EMPTY:
        return set()
    return {dumps(ended.value), str(ended.value)}


def is_blank(message: Message) -> bool:
    """Whether a message holds neither text nor picture."""
    return not message.text and not any(type(block) is Image for block in message.content)
