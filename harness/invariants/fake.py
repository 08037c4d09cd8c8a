"""Whether the fakes keep their own promises: a test tool that lies makes verdicts worthless."""

from __future__ import annotations

from collections import defaultdict
from typing import ClassVar

from msgspec import Struct, field

from harness.core.events import (
    Delta,
    ReplyEnded,
    RequestSent,
    RunStopped,
    TaskLeaked,
    ToolEffect,
    ToolEnded,
    ToolStarted,
)
from harness.core.messages import Message, Thinking
from harness.invariants.invariant import Facts, Fold
from harness.invariants.reader import EventType, Here, on


class _Reply(Struct):
    """A reply so far; `index` is its request's entry."""

    index: int
    ended: bool = False
    text: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)


class Fake(Fold):
    """Each request gets one reply, in the order of the script, whose deltas make its message; each
    tool that starts was asked for, and takes effect, at most once, between its start and its end.

    A breach is a fault of the fakes, not of the agent. What comes too late, as a reply that a
    leaked task still reads when the run is over, is left open.
    """

    id = "FAKE"
    needs: ClassVar[tuple[EventType, ...]] = (RequestSent, ToolStarted)

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.replies: dict[str, _Reply] = {}
        self.given: dict[str, list[int]] = {}
        """How often each reply of a line of the script was given, in the script's order."""
        self.asked: set[tuple[str, str]] = set()
        self.unasked: list[tuple[int, ToolStarted]] = []
        self.running: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.effects: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.cut_short = False

    @on(RunStopped, TaskLeaked)
    def stopped(self, _event: RunStopped | TaskLeaked) -> None:
        """What is still open may stay open."""
        self.cut_short = True

    @on(Delta)
    def delta(self, event: Delta) -> None:
        """A piece of a reply."""
        reply = self.replies.get(event.reply)
        if reply is None or reply.ended:
            self.tell(f"a delta of reply {event.reply}, which is not being given")
        else:
            (reply.text if event.kind == "text" else reply.thinking).append(event.text)

    def tell(self, message: str) -> None:
        """Report what the entry that is being read shows."""
        self.report(message, self.here.index)

    @on(RequestSent)
    def request(self, event: RequestSent) -> None:
        """A request is answered from a place, ``<line>.<step>`` or that with ``~<n>``."""
        name = event.reply
        if name in self.replies:
            self.tell(f"reply {name} is given a second time under the same name")
        self.replies[name] = _Reply(self.here.index)
        place, _, again = name.partition("~")
        line, _, step = place.rpartition(".")
        if not step.isdecimal() or not (again or "2").isdecimal():
            return
        given = self.given.setdefault(line, [])
        at, nth = int(step) - 1, int(again or 1)
        if at == len(given):
            given.append(0)
        if not 0 <= at < len(given):
            self.tell(f"reply {name} is given, and {line}.{len(given) + 1} was passed over")
            return
        given[at] += 1
        if nth != given[at]:
            self.tell(f"reply {name} is given as number {given[at]} of its place")

    @on(ReplyEnded)
    def reply(self, ended: ReplyEnded) -> None:
        """A reply is over."""
        reply = self.replies.get(ended.reply)
        if reply is None or reply.ended:
            self.tell(f"reply {ended.reply} ended, and was not being given")
            return
        reply.ended = True
        message = ended.message
        if message is None:
            if ended.end == "complete":
                self.tell(f"reply {ended.reply} is complete without a message")
            return
        self.asked.update([(call.id, call.name) for call in message.calls])
        if "".join(reply.text) != message.text:
            self.tell(f"the deltas of reply {ended.reply} do not make up its text")
        # An afterthought may follow the whole message.
        if not "".join(reply.thinking).startswith(_thinking(message)):
            self.tell(f"the deltas of reply {ended.reply} do not make up its thinking")

    @on(ToolStarted)
    def started(self, event: ToolStarted) -> None:
        """A tool starts."""
        call = event.call_id, event.name
        self.running[call] += 1
        if call not in self.asked:
            self.unasked.append((self.here.index, event))

    @on(ToolEffect)
    def took_effect(self, event: ToolEffect) -> None:
        """A tool takes effect."""
        call = event.call_id, event.name
        self.effects[call] += 1
        if self.effects[call] > self.running[call]:
            self.tell(f"{event.name} took effect outside its run, or twice in it")

    @on(ToolEnded)
    def ended(self, event: ToolEnded) -> None:
        """A tool is over."""
        call = event.call_id, event.name
        if not self.running[call]:
            self.tell(f"{event.name} ended, and was not running")
            return
        self.running[call] -= 1
        if self.effects[call]:
            self.effects[call] -= 1

    def finish(self) -> None:
        """Find what never came: the ends of replies, and the calls of tools that ran."""
        still_open = [(name, reply) for name, reply in self.replies.items() if not reply.ended]
        if still_open and self.cut_short:
            return
        for name, reply in still_open:
            self.report(f"reply {name} never ended", reply.index)
        for index, event in self.unasked:
            if (event.call_id, event.name) not in self.asked:
                self.report(f"{event.name} ran for the call {event.call_id}, never made", index)


def _thinking(message: Message) -> str:
    return "".join([block.text for block in message.content if type(block) is Thinking])
