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
from harness.core.trace import Entry
from harness.invariants.invariant import EventType, Facts, Fold


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
    reads: ClassVar[tuple[EventType, ...]] = (
        RequestSent,
        Delta,
        ReplyEnded,
        RunStopped,
        TaskLeaked,
        ToolStarted,
        ToolEffect,
        ToolEnded,
    )
    needs: ClassVar[tuple[EventType, ...]] = (RequestSent, ToolStarted)

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.replies: dict[str, _Reply] = {}
        self.given: dict[str, list[int]] = {}
        """How often each reply of a line of the script was given, in the script's order."""
        self.asked: set[tuple[str, str]] = set()
        self.unasked: list[tuple[int, ToolStarted]] = []
        self.running: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.effects: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.cut_short = False

    def step(self, index: int, entry: Entry) -> None:
        """Follow every reply and every tool."""
        event = entry.event
        if type(event) is Delta:
            reply = self.replies.get(event.reply)
            if reply is None or reply.ended:
                self.report(f"a delta of reply {event.reply}, which is not being given", index)
            else:
                (reply.text if event.kind == "text" else reply.thinking).append(event.text)
        elif type(event) is RequestSent:
            self.request(index, event.reply)
        elif type(event) is ReplyEnded:
            self.reply(index, event)
        elif isinstance(event, RunStopped | TaskLeaked):
            self.cut_short = True
        else:
            assert isinstance(event, ToolStarted | ToolEffect | ToolEnded)
            self.tool(index, event)

    def request(self, index: int, name: str) -> None:
        """A request is answered from the place `name`, ``<line>.<step>`` or that with ``~<n>``."""
        if name in self.replies:
            self.report(f"reply {name} is given a second time under the same name", index)
        self.replies[name] = _Reply(index)
        place, _, again = name.partition("~")
        line, _, step = place.rpartition(".")
        if not step.isdecimal() or not (again or "2").isdecimal():
            return
        given = self.given.setdefault(line, [])
        at, nth = int(step) - 1, int(again or 1)
        if at == len(given):
            given.append(0)
        if not 0 <= at < len(given):
            self.report(
                f"reply {name} is given, and {line}.{len(given) + 1} was passed over", index
            )
            return
        given[at] += 1
        if nth != given[at]:
            self.report(f"reply {name} is given as number {given[at]} of its place", index)

    def reply(self, index: int, ended: ReplyEnded) -> None:
        """A reply is over."""
        reply = self.replies.get(ended.reply)
        if reply is None or reply.ended:
            self.report(f"reply {ended.reply} ended, and was not being given", index)
            return
        reply.ended = True
        message = ended.message
        if message is None:
            if ended.end == "complete":
                self.report(f"reply {ended.reply} is complete without a message", index)
            return
        self.asked.update((call.id, call.name) for call in message.calls)
        if "".join(reply.text) != message.text:
            self.report(f"the deltas of reply {ended.reply} do not make up its text", index)
        # An afterthought may follow the whole message.
        if not "".join(reply.thinking).startswith(_thinking(message)):
            self.report(f"the deltas of reply {ended.reply} do not make up its thinking", index)

    def tool(self, index: int, event: ToolStarted | ToolEffect | ToolEnded) -> None:
        """A tool starts, takes effect or ends."""
        call = event.call_id, event.name
        if type(event) is ToolStarted:
            self.running[call] += 1
            if call not in self.asked:
                self.unasked.append((index, event))
        elif type(event) is ToolEffect:
            self.effects[call] += 1
            if self.effects[call] > self.running[call]:
                self.report(f"{event.name} took effect outside its run, or twice in it", index)
        elif not self.running[call]:
            self.report(f"{event.name} ended, and was not running", index)
        else:
            self.running[call] -= 1
            self.effects[call] = max(0, self.effects[call] - 1)

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
