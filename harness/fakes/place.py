"""Which reply of the script answers a request: a function of the request, not a counter.

A place is a conversation, a turn and a step. An `also` entry whose condition holds comes before
the main script; two such entries are an error. Any other request belongs to the turn that is
played, and must hold the turn's user text, unless the turn is a resume or the history was cut.

Its step follows the last reply that the history shows. So a request that is sent again, after a
reply that broke off or was thrown away, gets the same reply again; a fault happens as often as the
script says (once), and then the reply comes whole. The history is cut where the turn's text is
gone, or a reply that a request has shown before, or whose tool has run: then the step follows the
last reply that was given whole. So it does for a reply with no text and no call, which no history
can show.

An `also` entry gives its replies in order, one a request, and again the one that broke off.
With order ``calls`` nothing is looked at but the number of requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from harness.core.errors import NoPlace, ScriptError, ScriptExhausted, TwoPlaces
from harness.core.events import FaultInjected, Mismatch, ReplyEnded
from harness.core.json_text import Json
from harness.core.messages import Message, ModelRequest, Usage
from harness.core.trace import Recorder
from harness.fakes.history import History, Reading
from harness.fakes.issued import IssuedCall, IssuedCalls
from harness.fakes.line import MAIN, Given, Line, describe, fault_name, shorten
from harness.fakes.script import Also, AlsoWhen, Fault, Reply
from harness.fakes.wire_faults import Http


class Placed(Struct, frozen=True):
    """The reply that answers a request.

    `label` is ``<turn>.<step>`` or ``<also name>.<n>``, from the second time on with ``~2``, so
    that no two replies of a run have the same. `fault` is what is still to go wrong with it.
    """

    conversation: str
    label: str
    reply: Reply
    step: int
    given: Given
    fault: Fault | None = None


class Stage:
    """The state of one run's script; the runner says which turn is played.

    `also` are the replies beside the turns. With `by_place`, a reply is found by what the request's
    history shows; without, each request is given the next one.
    """

    def __init__(self, also: Sequence[Also], recorder: Recorder, *, by_place: bool = True) -> None:
        self._by_place = by_place
        self._recorder = recorder
        self._history = History()
        self._calls = IssuedCalls()
        self._also = [(entry, Line(entry.name, entry.name, entry.replies)) for entry in also]
        self._turn: Line | None = None
        self._turn_text: str | None = None
        self._any_cut = False
        self._open: dict[str, Callable[[], None]] = {}

    # --- for the runner

    def start_turn(self, turn: int, text: str | None, replies: tuple[Reply, ...]) -> None:
        """From here on, requests are answered from `replies`, the turn's."""
        self._turn = Line(MAIN, str(turn), replies)
        self._turn_text = text
        self._history.start_turn(self._turn, text)

    def end_turn(self, *, cut: bool) -> list[str]:
        """Close the replies that nobody reads any more; name the turn's unused replies.

        None is unused where the turn was `cut`, nor where a reply is optional.
        """
        for abandon in list(self._open.values()):
            abandon()
        turn, self._turn = self._turn, None
        self._any_cut = self._any_cut or cut
        return [] if cut or turn is None else turn.unused()

    def unused_also(self) -> list[str]:
        """The replies of `also` entries that no request got; none where any turn was cut."""
        return (
            [] if self._any_cut else [name for _entry, line in self._also for name in line.unused()]
        )

    # --- for the fakes

    def locate(self, request: ModelRequest) -> Placed:
        """Find the reply that answers `request` and give it.

        NoPlace, TwoPlaces and ScriptExhausted are recorded too, so that an agent which swallows
        them cannot hide them.
        """
        line = self._also_line(request)
        if line is not None:
            step = line.first_left() if self._by_place else len(line.given) + 1
        else:
            line = self._turn
            if line is None:
                raise self.mismatch(
                    NoPlace(f"no place in the script: no turn is played; {self._hint(request)}")
                )
            step = self._main_step(request, line) if self._by_place else len(line.given) + 1
        if step > len(line.replies):
            raise self.mismatch(ScriptExhausted(_exhausted(line, step)))
        given = line.give(step)
        self._history.gave(given)
        label = given.place if given.times == 1 else f"{given.place}~{given.times}"
        return Placed(line.conversation, label, given.reply, step, given, given.fault())

    def opened(self, placed: Placed, abandon: Callable[[], None]) -> None:
        """Call `abandon` at the end of the turn, unless the reply has ended by then."""
        self._open[placed.label] = abandon

    def closed(self, placed: Placed) -> None:
        """Nothing of the reply is open any more."""
        self._open.pop(placed.label, None)

    def inject(self, placed: Placed) -> None:
        """Record that the reply's fault happens now."""
        assert placed.fault is not None
        placed.given.faults += 1
        name = fault_name(placed.fault)
        match placed.fault:
            case Http(status=status, retry_after=retry_after, should_retry=should_retry):
                told = FaultInjected(name, placed.label, status, retry_after, should_retry)
            case _:
                told = FaultInjected(name, placed.label)
        self._recorder.record(told)

    def delivered(self, placed: Placed) -> None:
        """The agent has got the reply's whole message: its tools may run."""
        given = placed.given
        given.complete = True
        given.line.finished = max(given.line.finished, given.step)
        self._calls.issue(given, given.message.calls)

    def ended(
        self,
        placed: Placed,
        end: Literal["complete", "failed", "torn", "closed", "abandoned", "refused"],
        message: Message | None = None,
        usage: Usage | None = None,
        error: str | None = None,
    ) -> None:
        """Record that the model's side of the reply is over."""
        self.closed(placed)
        placed.given.open -= 1
        self._recorder.record(ReplyEnded(placed.label, end, message, usage, error))

    def asked(self, name: str, call_id: str | None) -> bool:
        """Whether the model has asked for a tool of this name (in the call `call_id`)."""
        return self._calls.asked(name, call_id)

    def claim(
        self, name: str, args: Json, call_id: str | None, defaults: dict[str, Json]
    ) -> IssuedCall:
        """Find the call that a run of a tool answers to; UnrequestedTool is recorded too."""
        try:
            issued = self._calls.claim(name, args, call_id, defaults)
        except ScriptError as error:
            raise self.mismatch(error) from None
        line = issued.given.line
        line.seen = max(line.seen, issued.given.step)
        return issued

    def mismatch(self, error: ScriptError) -> ScriptError:
        """Record that agent and scenario do not fit; gives the error back, to be raised."""
        self._recorder.record(Mismatch(type(error).__name__, str(error)))
        return error

    # --- places

    def _main_step(self, request: ModelRequest, line: Line) -> int:
        reading = self._history.read(request)
        if not reading.follows:
            raise self.mismatch(NoPlace(self._no_place(request, line, reading)))
        self._history.keep(reading)
        shown = reading.shown
        if shown < line.seen or (self._turn_text is not None and reading.text_at < 0):
            return max(line.seen, line.finished) + 1
        line.seen = shown
        while shown < len(line.given) and line.given[shown].complete and line.given[shown].blank:
            shown += 1
        return shown + 1

    def _also_line(self, request: ModelRequest) -> Line | None:
        found = [(entry, line) for entry, line in self._also if holds(entry.when, request)]
        if not found:
            return None
        if len(found) > 1:
            names = " and ".join(
                f"{entry.name!r} (wants {_wants(entry.when, request)})" for entry, _line in found
            )
            raise self.mismatch(
                TwoPlaces(
                    f"two places in the script for one request: the `also` entries {names} both "
                    "hold; make one `when` exclude the other"
                )
            )
        return found[0][1]

    def _no_place(self, request: ModelRequest, line: Line, reading: Reading) -> str:
        texts = [message.text for message in request.messages if message.role == "user"]
        last = (
            f"its last user message is {shorten(texts[-1])}" if texts else "it has no user message"
        )
        if self._turn_text is not None and reading.text_at < 0:
            what = f"no user message holds the text of turn {line.name}, {shorten(self._turn_text)}"
        else:
            what = f"the request does not go on with the conversation of turn {line.name}"
        return f"no place in the script: {what}; {last}; {self._hint(request)}"

    def _hint(self, request: ModelRequest) -> str:
        if not self._also:
            return "for a title, a summary or a sub-agent add an `also` entry"
        wanting = [
            ([held for _words, held in _conditions(entry.when, request)].count(False), entry)
            for entry, _line in self._also
        ]
        entry = min(wanting, key=lambda pair: pair[0])[1]
        wants = _wants(entry.when, request)
        return f"the nearest `also` entry is {entry.name!r}, which wants {wants}"


def _exhausted(line: Line, step: int) -> str:
    of = f"turn {line.name}" if line.conversation == MAIN else f"`also` entry {line.name!r}"
    if not line.replies:
        return f"the script has no reply for {of}; add one"
    last = f"reply {len(line.replies)} ({describe(line.replies[-1])})"
    return (
        f"the script has no reply {step} for {of}: it ends with {last}; "
        "add a reply, or see why the agent asks again"
    )


def _conditions(when: AlsoWhen, request: ModelRequest) -> list[tuple[str, bool]]:
    """What an entry wants, in words, and whether the request has it."""
    found = []
    if when.system_contains is not None:
        words = f"a system prompt with {shorten(when.system_contains)}"
        found.append((words, when.system_contains in _system(request)))
    if when.message_contains is not None:
        words = f"a last message with {shorten(when.message_contains)}"
        last = request.messages[-1].text if request.messages else ""
        found.append((words, when.message_contains in last))
    if when.user_contains is not None:
        words = f"a message of the user with {shorten(when.user_contains)}"
        users = [message.text for message in request.messages if message.role == "user"]
        found.append((words, any(when.user_contains in text for text in users)))
    if when.model is not None:
        found.append((f"the model {when.model!r}", when.model == request.model))
    return found


def holds(when: AlsoWhen, request: ModelRequest) -> bool:
    """Whether an entry of that condition answers a request."""
    return all(held for _words, held in _conditions(when, request))


def _wants(when: AlsoWhen, request: ModelRequest) -> str:
    return " and ".join(words for words, _held in _conditions(when, request)) or "any request"


def _system(request: ModelRequest) -> str:
    """The system prompt, also where it stands before the other messages."""
    first = request.messages[0] if request.messages else None
    return request.system + (first.text if first is not None and first.role == "system" else "")
