"""The session that a cassette holds: its conversation in turns and steps, and what else was asked.

A conversation goes on where a request shows what the one before it showed, or the reply to it; the
system prompt is the same then, or nearly so where all of both is shown. The main conversation is
the one that declares tools and began first; a title or a summary quotes its texts, and a sub-agent
begins while its calls wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from harness.core.json_text import dumps
from harness.core.messages import Image, Message, ModelRequest, Text, ToolCall
from harness.core.trace import common_prefix
from harness.loops.fsm.prompts import TEXTS as FSM_TEXTS
from harness.loops.turn.config import TEXTS as TURN_TEXTS
from harness.runner.cassettes.heard import Heard, Unheard, cancelled, hear
from harness.transport.cassettes.form import Cassette
from harness.transport.cassettes.likeness import likeness, profile

_CUT_SHORT = re.compile(r"(Error: )?(cancell?ed|interrupted|aborted|skipped)[.!]?", re.IGNORECASE)
_NEARLY = 0.5
"""How alike the system prompts of one conversation are, at least."""
_IN_TAGS = re.compile(r"\s*<([A-Za-z][\w-]*)>.*</\1>\s*", re.DOTALL)
_STOPS = re.compile(r"cancel|interrupt|abort|skip|stop|(?<!s)kill", re.IGNORECASE)
_LOOPS_WORDS = (
    FSM_TEXTS.given_up,
    FSM_TEXTS.skipped_by_cancel,
    f"Error: {TURN_TEXTS.interrupted}",
    f"Error: {TURN_TEXTS.cancelled_before_execution}",
)
"""What agents say of tools that a cancel has stopped; the second is what the reference loops do."""


class Step(Struct, frozen=True):
    """A reply, and every request that asked for it; the last of them got furthest.

    A step from before the recording has no requests, only the message that the first request shows.
    `results` are what the following request shows of its calls, in the order of the calls: None
    where it shows nothing; `lost` says that it does not even show the reply.
    """

    attempts: tuple[Heard, ...]
    message: Message
    results: tuple[Message | None, ...] = ()
    lost: bool = False

    @property
    def last(self) -> Heard | None:
        """The last request for it."""
        return self.attempts[-1] if self.attempts else None

    @property
    def first(self) -> Heard | None:
        """The first request for it."""
        return self.attempts[0] if self.attempts else None

    @property
    def whole(self) -> bool:
        """Whether the reply came whole."""
        return self.last is None or self.last.answer is not None

    @property
    def ended(self) -> bool:
        """Whether the model had said all, and something."""
        answer = None if self.last is None else self.last.answer
        return answer is not None and answer.stopped == "end" and bool(self.message.text)


class Told(Struct, frozen=True):
    """A turn; `user` is None for a resume. `earlier` says that it was before the recording."""

    user: str | None
    steps: tuple[Step, ...] = ()
    earlier: bool = False
    pictures: int = 0


class Session(Struct, frozen=True):
    """All that a cassette holds: the turns of the main conversation, other conversations with the
    requests of each, and what nobody could read.
    """

    turns: tuple[Told, ...]
    asides: tuple[tuple[Heard, ...], ...]
    unheard: tuple[Unheard, ...]

    @property
    def requests(self) -> tuple[Heard, ...]:
        """The requests of the main conversation."""
        return tuple([each for turn in self.turns for step in turn.steps for each in step.attempts])


def session(cassette: Cassette) -> Session:
    """What a cassette holds, sorted out."""
    heard = hear(cassette)
    threads = _threads([each for each in heard if isinstance(each, Heard)])
    unheard = tuple([each for each in heard if isinstance(each, Unheard)])
    if not threads:
        return Session((), (), unheard)
    main = _main(threads)
    asides = [tuple(each) for each in threads if each is not main]
    went_on, branches = _branches(main)
    return Session(turns_of(went_on), (*asides, *branches), unheard)


def _threads(heard: Iterable[Heard]) -> list[list[Heard]]:
    """The conversations, each as its requests."""
    threads: list[list[Heard]] = []
    for each in heard:
        fits = [(_kinship(thread[-1], each), thread) for thread in threads]
        kin, nearest = max(fits, key=lambda pair: pair[0], default=(0, []))
        if kin:
            nearest.append(each)
        else:
            threads.append([each])
    return threads


def _kinship(before: Heard, now: Heard) -> int:
    """How much of `before` a later request shows; 0 where it is of another conversation."""
    if before.codec is not now.codec:
        return 0
    kept = common_prefix(before.request.messages, now.request.messages)
    if before.request.system != now.request.system:
        return 1 + kept if _goes_on(before, now, kept) else 0
    if kept:
        return 1 + kept
    if _shows(now.request.messages, before.message) >= 0:
        return 1
    waits = before.answer is not None and bool(before.answer.message.calls)
    alike = before.request.tools == now.request.tools and before.request.model == now.request.model
    return int(alike and not waits and not _overlap(before, now))


def _goes_on(before: Heard, now: Heard, kept: int) -> bool:
    """Whether a request goes on behind all of another and its reply, and the system prompt says
    nearly the same, as one does that tells the time.
    """
    whole = kept == len(before.request.messages) < len(now.request.messages)
    if not whole or (
        before.answer is not None and _shows(now.request.messages[kept:], before.message) < 0
    ):
        return False
    return likeness(profile(before.request.system), profile(now.request.system)) >= _NEARLY


def _overlap(before: Heard, now: Heard) -> bool:
    """Whether a request went out before the answer to another was over."""
    given = before.interaction
    return now.interaction.begun < given.begun + given.ended_at


def _main(threads: Sequence[list[Heard]]) -> list[Heard]:
    """The conversation between the user and the agent."""
    with_tools = [each for each in threads if any(one.request.tools for one in each)]
    left = with_tools or list(threads)
    quoted = [
        each
        for each in left
        if any(_quotes(other[0].request, each[0].request) for other in threads if other is not each)
    ]
    if quoted and not with_tools:
        left = quoted
    return left[0]


def _quotes(one: ModelRequest, other: ModelRequest) -> bool:
    """Whether a request holds the first text of another's user, with words around it."""
    text = next((each.text for each in other.messages if each.role == "user"), "")
    said = "\n".join([each.text for each in one.messages if each.role == "user"])
    return bool(text) and text in said and text != said


def _branches(main: Sequence[Heard]) -> tuple[list[Heard], list[tuple[Heard]]]:
    """The requests that a conversation went on with, and those that asked beside it with all of its
    history, as for a title: what they said and heard is never shown again.
    """
    on: list[Heard] = []
    beside: list[tuple[Heard]] = []
    for each, following in zip(main, [*main[1:], None], strict=True):
        (beside.append((each,)) if _left(on, each, following) else on.append(each))
    return on, beside


def _left(on: Sequence[Heard], each: Heard, following: Heard | None) -> bool:
    if not on or following is None or each.answer is None:
        return False
    messages, later = each.request.messages, following.request.messages
    kept = common_prefix(messages, later)
    before = len(on[-1].request.messages)
    return (
        before <= kept < len(messages)
        and messages[-1] not in later[kept:]
        and (_shows(later[kept:], each.message) < 0)
    )


def cut_short(call: ToolCall, result: Message) -> bool:
    """Whether an agent says in a tool's place that it did not see it through."""
    said = _CUT_SHORT.fullmatch(result.text.strip()) is not None
    return (said and not stops_something(call)) or result.text in _LOOPS_WORDS


def stops_something(call: ToolCall) -> bool:
    """Whether a tool is asked to cancel something, so that its result says so without any cut."""
    return _STOPS.search(f"{call.name} {dumps(call.args)}") is not None


def turns_of(main: Sequence[Heard]) -> tuple[Told, ...]:
    """The turns of a conversation."""
    gathering = _Gathering()
    for each in main:
        gathering.take(each)
    return gathering.turns()


class _Gathering:
    """Turns as they come together, a request at a time."""

    def __init__(self) -> None:
        self._turns: list[Told] = []
        self._steps: list[Step] = []
        self._before: Heard | None = None

    def turns(self) -> tuple[Told, ...]:
        """All turns."""
        self._close()
        return tuple(self._turns)

    def take(self, heard: Heard) -> None:
        """Take the next request."""
        messages = heard.request.messages
        if self._before is None:
            self._earlier(messages)
        elif messages == self._before.request.messages and self._again(self._before, heard):
            last = self._steps[-1]
            self._steps[-1] = Step((*last.attempts, heard), heard.message)
            self._before = heard
            return
        else:
            self._go_on(self._before, heard)
        self._steps.append(Step((heard,), heard.message))
        self._before = heard

    def _again(self, before: Heard, now: Heard) -> bool:
        """Whether an equal request asks for the same reply once more: one that came whole is
        followed by another, where that says something else or a history cannot show the first.
        """
        if before.answer is None:
            return not cancelled(before)
        said = now.answer is None or now.message == before.message
        return said and bool(before.message.calls or before.message.text.strip())

    def _go_on(self, before: Heard, heard: Heard) -> None:
        """Take what a request shows that the one before it did not."""
        messages = heard.request.messages
        new = _new(before, messages)
        last = self._steps[-1]
        lost = _shows(messages, last.message) < 0
        self._steps[-1] = replace(last, results=_results(last.message, messages), lost=lost)
        said = [each for at, each in enumerate(new) if _by_user(new, at) and each.content]
        for each in said:
            self._begin(each)
        if not said and (cancelled(before) or self._cut(messages == before.request.messages)):
            self._close()
            self._turns.append(Told(None))

    def _cut(self, same: bool) -> bool:  # noqa: FBT001
        """Whether the last reply's tools were not seen through, so that a turn goes on later:
        nothing is shown of it, or the agent says so.
        """
        last = self._steps[-1]
        if not last.whole or not (last.message.calls or last.message.text.strip()):
            return False
        results = zip(last.message.calls, last.results, strict=True)
        return same or any(given is not None and cut_short(call, given) for call, given in results)

    def _earlier(self, messages: Sequence[Message]) -> None:
        """Take what the first request shows: all but the last text of the user was before."""
        users = {at for at in range(len(messages)) if _by_user(messages, at)}
        last = max(users, default=-1)
        for at, each in enumerate(messages):
            if at in users:
                self._begin(each, earlier=at != last)
            elif each.role == "assistant" and self._turns:
                self._steps.append(Step((), each, _results(each, messages[at:])))

    def _begin(self, message: Message, *, earlier: bool = False) -> None:
        self._close()
        blocks = message.content
        pictures = sum(isinstance(block, Image) for block in blocks)
        self._turns.append(Told(message.text, (), earlier, pictures))

    def _close(self) -> None:
        """The turn is over."""
        if not self._turns:  # a conversation that no user began
            if self._steps:
                self._turns.append(Told(None, tuple(self._steps)))
        else:
            self._turns[-1] = replace(self._turns[-1], steps=tuple(self._steps))
        self._steps = []


def _new(before: Heard, messages: Sequence[Message]) -> list[Message]:
    """What a request shows behind what the one before it showed, also where the history was cut, or
    put together otherwise.
    """
    old = before.request.messages
    kept = common_prefix(old, messages)
    if kept == len(old):
        return list(messages[kept:])
    at = _shows(messages, before.message)
    if at < 0 and old:
        at = max([n for n, each in enumerate(messages) if each == old[-1]], default=-1)
    if at >= 0:
        return list(messages[at + 1 :])
    new = list(messages[kept:])
    if new and new[0].role == old[kept].role == "user" and new[0].text.startswith(old[kept].text):
        said = new[0].text[len(old[kept].text) :].strip()  # a client joined what the user said
        rest = [replace(new[0], content=(Text(said),))] if said else []
        return [*rest, *new[1:]]
    return new


def _by_user(messages: Sequence[Message], at: int) -> bool:
    """Whether a message is the user's: what stands in tags behind the results of tools, as a
    reminder does, is the agent's own.
    """
    each = messages[at]
    behind = at > 0 and messages[at - 1].role == "tool"
    return each.role == "user" and not (behind and _IN_TAGS.fullmatch(each.text))


def _shows(messages: Sequence[Message], reply: Message) -> int:
    """The last place where a history shows a reply; -1 where it does not."""
    ids = {call.id for call in reply.calls}
    said = reply.text.strip()
    for at in range(len(messages) - 1, -1, -1):
        each = messages[at]
        if each.role != "assistant":
            continue
        if ids & {call.id for call in each.calls} or (said and said == each.text.strip()):
            return at
    return -1


def _results(reply: Message, messages: Sequence[Message]) -> tuple[Message | None, ...]:
    """What a history shows of each call of a reply; ids may be others there, and come again."""
    asked = [(call.name, call.args, call.raw) for call in reply.calls]
    for at in range(len(messages) - 1, -1, -1):
        shown = messages[at].calls
        if asked and [(call.name, call.args, call.raw) for call in shown] == asked:
            found: dict[str | None, list[Message]] = {}
            for each in messages[at + 1 :]:
                if each.role != "tool":
                    break
                found.setdefault(each.tool_call_id, []).append(each)
            return tuple([found[call.id].pop(0) if found.get(call.id) else None for call in shown])
    return tuple([None] * len(asked))
