"""The replies of one turn or one `also` entry, in order, and what has become of each."""

from __future__ import annotations

from harness.core.messages import Message, Text, Thinking, ToolCall
from harness.fakes.script import Fault, Reply, ScriptedCall


class Given:
    """A reply that was given at least once."""

    __slots__ = ("complete", "faults", "line", "message", "open", "reply", "said", "step", "times")

    def __init__(self, line: Line, step: int) -> None:
        self.line = line
        self.step = step
        self.reply = line.replies[step - 1]
        self.message = whole_message(self.reply, line.name, step)
        self.said = self.reply.say.strip()
        self.times = 0
        self.open = 0
        self.faults = 0
        self.complete = False

    @property
    def place(self) -> str:
        """Where the reply stands in the script, as the trace names it."""
        return f"{self.line.name}.{self.step}"

    @property
    def blank(self) -> bool:
        """True where a history has nothing by which the reply could be recognised."""
        return not self.said and not self.reply.calls

    def fault(self) -> Fault | None:
        """The fault that is still to happen, if any."""
        times = self.reply.fault_times
        return self.reply.fault if times is None or self.faults < times else None


class Line:
    """Replies in their order; `name` is the turn's number or the entry's name.

    `seen` is the last step that the agent is known to have taken in: a request has shown it, or
    one of its tools has run. `finished` is the last step that was given whole.
    """

    __slots__ = ("conversation", "finished", "given", "name", "replies", "seen")

    def __init__(self, conversation: str, name: str, replies: tuple[Reply, ...]) -> None:
        self.conversation = conversation
        self.name = name
        self.replies = replies
        self.given: list[Given] = []
        self.seen = 0
        self.finished = 0

    def give(self, step: int) -> Given:
        """The reply at `step`, given once more."""
        if step > len(self.given):
            assert step == len(self.given) + 1, f"a step of {self.name} was passed over: {step}"
            self.given.append(Given(self, step))
        given = self.given[step - 1]
        given.times += 1
        given.open += 1
        return given

    def first_left(self) -> int:
        """The first step that was not given whole and is not being given now."""
        for given in self.given:
            if not given.complete and not given.open:
                return given.step
        return len(self.given) + 1

    def unused(self) -> list[str]:
        """Every reply that was never given and may not be left out."""
        of = f"turn {self.name}" if self.conversation == MAIN else f"`also` entry {self.name!r}"
        return [
            f"reply {step} of {of} ({describe(reply)})"
            for step, reply in enumerate(self.replies[len(self.given) :], len(self.given) + 1)
            if not reply.optional
        ]


MAIN = "main"
"""The name of the conversation between the user and the agent, in traces."""

_SHOWN = 40


def whole_message(reply: Reply, line: str, step: int) -> Message:
    """The message that `reply` makes at its place; shares the script's values, so never hand it
    out.
    """
    content: list[Text | Thinking | ToolCall] = []
    if reply.think or reply.signature is not None:
        content.append(Thinking(reply.think, reply.signature))
    if reply.say:
        content.append(Text(reply.say))
    for index, call in enumerate(reply.calls, 1):
        content.append(_tool_call(call, f"call_{line}_{step}_{index}"))
    return Message("assistant", tuple(content))


def _tool_call(call: ScriptedCall, default_id: str) -> ToolCall:
    call_id = default_id if call.id is None else call.id
    if call.raw is not None:
        return ToolCall(call_id, call.tool, None, call.raw)
    return ToolCall(call_id, call.tool, call.args)


def describe(reply: Reply) -> str:
    """A reply in a few words, for messages.

    >>> describe(Reply(say="Let me look.", calls=(ScriptedCall("weather"), ScriptedCall("clock"))))
    "say: 'Let me look.'; calls: weather, clock"
    """
    parts = []
    if reply.say:
        parts.append(f"say: {shorten(reply.say)}")
    if reply.calls:
        parts.append("calls: " + ", ".join(call.tool for call in reply.calls))
    if reply.refusal is not None:
        parts.append(f"refusal: {shorten(reply.refusal)}")
    if not parts:
        parts.append(f"think: {shorten(reply.think)}" if reply.think else "an empty message")
    if reply.stop is not None:
        parts.append(f"stop: {reply.stop}")
    if reply.fault is not None:
        parts.append(f"fault: {fault_name(reply.fault)}")
    return "; ".join(parts)


def fault_name(fault: Fault) -> str:
    """The fault's kind, as a scenario writes it."""
    return str(fault.__struct_config__.tag)


def shorten(text: str) -> str:
    """Quote `text`, cut where it is long."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
