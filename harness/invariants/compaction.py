"""That replacing a conversation by a summary comes to an end, and loses nothing unseen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.core.events import (
    Compacted,
    ReplyEnded,
    RequestHead,
    RequestSent,
    Salvaged,
    Trimmed,
    TurnEnded,
    TurnStarted,
)
from harness.core.messages import Message
from harness.core.outcome import Completed
from harness.core.wording import plural
from harness.invariants.conversation import in_quotes, said
from harness.invariants.invariant import Facts, Fold
from harness.invariants.reader import Here, on
from harness.invariants.requests import RequestFold, Sent
from harness.invariants.step_reader import Offers

MOST = 3
"""How many compactions in a row may help a little each, and how often a summary may be asked for
again in the same words."""
TRIES = 10
"""How many compactions in a row may be tried, whatever comes of them."""


class CompactProgress(Fold):
    """Compacting ends: with no other reply in between, at most 3 compactions follow one another,
    each later one makes the conversation smaller, and at most 10 are tried.

    Of a loop that reports none the requests outside the main conversation are judged, those that
    offer no tools and do not go on from the one before: with no main request in between, an answer
    is asked for in the same words at most 3 times, and at most 10 are asked for, beside one for
    each call of the last main reply, which may be a sub-agent's. What failed may be tried again.
    More than 10 are shown only where they are about different things: neither in the words of an
    earlier one, nor about the answer before.
    """

    id = "COMPACT-PROGRESS"
    needs = (Compacted,)

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.compactions = _Compactions()
        self.asides = _Asides()
        self.reported = False

    @on(TurnStarted)
    def begin(self, _event: TurnStarted) -> None:
        """Count anew."""
        self.compactions.count_anew()
        self.asides.count_anew(0)

    @on(RequestSent)
    def requested(self, event: RequestSent) -> None:
        """Judge what is asked for beside the main conversation, by a loop that reports nothing."""
        again, same = self.asides.ask(event)
        if self.reported or not again:
            return
        self.judged = True
        free = self.asides.calls
        if again == TRIES + free:
            spread = self.asides.are_spread(event.conversation)
            what = f"{event.conversation} was asked {again + 1} times in a row"
            self.report_here(what, "soft" if spread else None)
        elif same == MOST + free:
            what = f"{event.conversation} was asked the same {same + 1} times in a row"
            self.report_here(f"{what}, and had answered each time", "soft")

    @on(ReplyEnded)
    def replied(self, event: ReplyEnded) -> None:
        """Take in what was answered whole."""
        if event.end == "complete" and event.message is not None:
            name = self.asides.answer(event.reply, event.message)
            self.compactions.heard(name)

    @on(Compacted)
    def compacted(self, event: Compacted) -> None:
        """Judge a compaction by those before it."""
        self.reported = True
        wrong = self.compactions.take(event)
        if wrong:
            self.report_here(f"the conversation was compacted {wrong}")


class _Compactions:
    """Those that the loop reports, in a row: with no reply in between but those that sum up."""

    def __init__(self) -> None:
        self._summing: set[str] = set()
        """The conversations that summaries come from."""
        self._latest = "main"
        """Where the last whole reply came from."""
        self.count_anew()

    def count_anew(self) -> None:
        """There is something new in the conversation."""
        self._tries = self._done = 0
        self._told = False

    def heard(self, name: str) -> None:
        """A whole reply came."""
        self._latest = name
        if name not in self._summing:
            self.count_anew()

    def take(self, event: Compacted) -> str | None:
        """What is wrong with the next compaction; of one row only the first is told."""
        if event.failed is None and self._latest != "main":
            self._summing.add(self._latest)
        self._tries += 1
        self._done += event.failed is None
        wrong = None
        if self._done > 1 and event.failed is None and event.after >= event.before:
            size = f"~{event.before} tokens before and ~{event.after} now"
            wrong = f"again with no reply in between, and is no smaller: {size}"
        elif self._done > MOST or self._tries > TRIES:
            wrong = f"{self._tries} times in a row, with no reply in between"
        if wrong is None or self._told:
            return None
        self._told = True
        return wrong


class _Asides:
    """What is asked for beside the main conversation, once each, since the last main request."""

    def __init__(self) -> None:
        self._places: dict[str, RequestSent] = {}
        """The requests, by their replies."""
        self._lengths: dict[str, int] = {}
        self._offers = Offers()
        self.count_anew(0)

    def count_anew(self, calls: int) -> None:
        """The main conversation goes on; its last reply has so many calls."""
        self.calls = calls
        self._answers: Counter[str] = Counter()
        self._same: Counter[tuple[str, str]] = Counter()
        self._said: dict[str, str] = {}
        """The last answers, by their conversations."""
        self._spread: set[str] = set()

    def ask(self, event: RequestSent) -> tuple[int, int]:
        """Take in a request: how many of its conversation were answered before it, in a row, and
        how many of those were the same as this one.
        """
        name = event.conversation
        before, self._lengths[name] = self._lengths.get(name, 0), event.kept + len(event.added)
        self._places[event.reply] = event
        works = bool(self._offers.take(event))
        if name == "main":
            self.count_anew(self.calls)
        if works or (event.added and 0 < before == event.kept):
            return 0, 0
        same = self._same[name, event.digest]
        if name in self._said and not same and not _holds(event.added, self._said[name]):
            self._spread.add(name)
        return self._answers[name], same

    def are_spread(self, name: str) -> bool:
        """Whether some request of the row had nothing to do with those before it."""
        return name in self._spread

    def answer(self, reply: str, message: Message) -> str:
        """Take in a whole reply; gives the conversation that it belongs to."""
        asked = self._places.pop(reply, None)
        name = "main" if asked is None else asked.conversation
        if name == "main":
            self.count_anew(len(message.calls))
        elif asked is not None and said(message):
            self._answers[name] += 1
            self._same[name, asked.digest] += 1
            self._said[name] = said(message)
        return name


class CompactHonest(RequestFold):
    """A failed compaction changes nothing, and a successful one says what it put there: the next
    request has the summary as it was given, what the user said last, and the settings as before.

    What a request offers and its system prompt PINNED judges, and what the user said TASK-KEPT
    where there is no summary. Of a loop that reports nothing: messages that stood in a request
    beside the main conversation are not gone from it when that request failed (shown only, for the
    loop may have cut them for a reason of its own).
    """

    id = "COMPACT-HONEST"

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.head: RequestHead | None = None
        """That of the main conversation's last request."""
        self.pending: Compacted | None = None
        """The last compaction, which no main request has followed."""
        self.reported = False
        self.excused = False
        """Whether messages may be gone for another reason."""
        self.standing: str | None = None
        """The summary of the last compaction that succeeded, where a model gave it."""
        self.asides: dict[str, RequestSent] = {}
        """Requests beside the main conversation that offer no tools, by their replies."""
        self.offers = Offers()
        self.summing: set[str] = set()
        """The conversations that summaries came from."""
        self.latest: tuple[str, str] | None = None
        """The conversation of the last answer to such a request, and what it says."""
        self.failed: str | None = None
        """What the last such request held, where nothing came of it."""

    @on(Salvaged, Trimmed)
    def cut(self, _event: Salvaged | Trimmed) -> None:
        """Messages are left out, and the loop says so."""
        self.excused = True

    @on(TurnEnded)
    def turn_ended(self, event: TurnEnded) -> None:
        """What a turn leaves that was broken off, it may take back."""
        self.excused = self.excused or not isinstance(event.outcome, Completed)

    @on(ReplyEnded)
    def replied(self, event: ReplyEnded) -> None:
        """Remember what was said beside the main conversation, and what came to nothing."""
        asked = self.asides.pop(event.reply, None)
        if asked is None:
            return
        message = event.message if event.end == "complete" else None
        said_nothing = message is None or not said(message)
        self.failed = "\n".join(map(said, asked.added)) if said_nothing else None
        if message is not None:
            self.latest = asked.conversation, said(message)

    @on(Compacted)
    def compacted(self, event: Compacted) -> None:
        """Note a compaction for the next request; one that failed has left its size alone."""
        self.reported = self.judged = True
        if event.failed is None:
            self.pending, self.standing = event, None
            if self.latest is not None:
                where, self.standing = self.latest
                self.summing.add(where)
        elif self.pending is None:
            self.pending = event
        if event.failed is not None and event.after != event.before:
            size = f"from ~{event.before} to ~{event.after} tokens"
            self.report_here(f"a compaction failed and yet took the conversation {size}")

    def request(self, sent: Sent) -> None:
        """Hold a request against what was compacted before it."""
        if not sent.main:
            self.beside(sent)
            return
        pending, before = self.pending, self.head
        self.head = sent.event.head or self.head
        if pending is None:
            self.look_from_outside(sent)
        else:
            self.look_at_settings(sent, before)
            if pending.failed is None:
                self.look_for_summary(sent)
            else:
                self.look_for_losses(sent)
        self.pending = self.latest = self.failed = None
        self.excused = False

    def beside(self, sent: Sent) -> None:
        """Take in a request beside the main conversation."""
        event, summary = sent.event, self.standing
        if not self.offers.take(event):
            self.asides[event.reply] = event
        if summary and event.conversation not in self.summing and _holds(event.added, summary):
            self.pending = None  # it was that conversation which was compacted

    def look_at_settings(self, sent: Sent, before: RequestHead | None) -> None:
        """The head of the request has what it had before."""
        now = self.head
        if before is None or now is None:
            return
        for name in ("model", "max_tokens", "temperature"):
            was, is_now = getattr(before, name), getattr(now, name)
            if was != is_now:
                self.tell(sent, f"was compacted, and its {name} went from {was} to {is_now}")

    def look_for_summary(self, sent: Sent) -> None:
        """What was put in the conversation's place is what the summary said."""
        summary = self.standing
        if summary is None:
            return
        if not summary:
            self.tell(sent, "was compacted, and the summary says nothing")
        elif not (
            _holds(sent.conversation.messages, summary)
            or (self.head is not None and summary in self.head.system)
        ):
            self.tell(sent, f"was compacted, and does not have the summary {in_quotes(summary)}")
        elif sent.missing:
            text = in_quotes(sent.live.text)
            self.tell(sent, f"was compacted, and has lost what the user said: {text}")

    def look_for_losses(self, sent: Sent) -> None:
        """After a compaction that failed all is there that was there."""
        lost = _lost(sent)
        if lost and not self.excused:
            what = f"{len(lost)} {plural('message', len(lost))}"
            self.tell(sent, f"has lost {what}, by a compaction that failed")

    def look_from_outside(self, sent: Sent) -> None:
        """What a request held that came to nothing is still there."""
        if self.failed is None or self.reported or self.excused:
            return
        self.judged = True
        lost = [text for text in map(said, _lost(sent)) if text]
        at = 0
        for text in lost:
            at = self.failed.find(text, at)
            if at < 0:
                return
            at += len(text)
        if len(lost) > 1:
            what = f"has lost {len(lost)} messages that were to be summed up, which failed"
            self.report(f"{sent.name} {what}", sent.index, sent.turn, "soft")


def _holds(messages: Sequence[Message], text: str) -> bool:
    """Whether some message has `text`, with more around it."""
    return any(text in said(message) for message in messages)


def _lost(sent: Sent) -> list[Message]:
    """The messages of the request before that this one does not have."""
    conversation = sent.conversation
    there = Counter(map(_key, conversation.added))
    lost = []
    for message in conversation.removed:
        key = _key(message)
        there[key] -= 1
        if there[key] < 0:
            lost.append(message)
    return lost


def _key(message: Message) -> tuple[str, ...]:
    """What a message is known by, wherever it stands."""
    return message.role, message.text, *[call.id for call in message.calls]
