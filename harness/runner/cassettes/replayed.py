"""A cassette in the place of a run's provider: its replies, and the events that tell of them.

What is recorded in the trace is what a scripted provider would record, so that every invariant
judges the run: requests as they are asked now, replies as they were recorded, at their times. What
failed then is told of as a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from harness.core.durations import SECOND
from harness.core.errors import CassetteMiss, ScriptError
from harness.core.events import InteractionUnused, Received, RequestMissed
from harness.core.trace import Recorder
from harness.runner.cassettes.heard import Heard, Unheard, cancelled, hear
from harness.runner.cassettes.replies import fault_of
from harness.runner.cassettes.reply import RecordedReply
from harness.runner.cassettes.stage import RecordedStage
from harness.runner.scenario import Scenario
from harness.transport import redact
from harness.transport.cassettes.form import Cassette, Ended
from harness.transport.cassettes.matching import Library
from harness.transport.cassettes.missing import IN_RUNS
from harness.transport.cassettes.playing import Course, Player, Playing
from harness.transport.exchange import Exchange, Whole
from harness.wire import codec_for, refused_by
from harness.wire.codec import Asked, Failure, Unreadable
from harness.wire.http import Request, json_response, should_retry

_INVALID: Final = (400, 422)
"""Statuses by which providers refuse a request for what it says."""


class Replayed:
    """The provider of one run, played from a cassette; use it once. `now` is virtual nanoseconds
    since 1970.
    """

    def __init__(
        self, cassette: Cassette, scenario: Scenario, recorder: Recorder, now: Callable[[], int]
    ) -> None:
        self.stage = RecordedStage(scenario.also, recorder)
        self._recorder = recorder
        name = cassette.path or "cassette"
        self._library = Library(cassette.interactions, cassette.rules, name, ways=IN_RUNS)
        self._player = Player(self._library, now=lambda: now() / SECOND)
        self._heard = hear(cassette)
        self._missed = False

    @property
    def goes_on(self) -> bool:
        """Whether the cassette has more for a turn of which the scenario says nothing."""
        return not self._missed and bool(self._library.unused())

    async def answer(self, request: Request) -> Exchange:
        """Answer a request; Broken where the recorded connection broke before an answer.

        What was never recorded is an error of the provider, which nobody asks again for.
        """
        try:
            course = self._player.course(request)
        except CassetteMiss as error:
            self._missed = True
            self._recorder.record(RequestMissed(str(error)))
            return _refused(request, str(error).partition("\n")[0])
        heard = self._heard[course.number - 1]
        if isinstance(heard, Unheard):
            silent = Playing(course)
            await silent.begin()
            return silent
        try:
            reply = self._begun(request, course, heard)
        except ScriptError as error:
            return _refused(request, str(error))
        await reply.begin()
        return reply

    def finish(self) -> None:
        """Tell of what was never asked for."""
        for each in self._library.unused():
            line = f" (line {each.line})" if each.line else ""
            what = f"{each.request.method} {redact.path(each.request)}{line}"
            number = self._library.index_of(each) + 1
            self._recorder.record(InteractionUnused(number, what))

    def _begun(self, request: Request, course: Course, heard: Heard) -> RecordedReply:
        asked = _asked(request, heard)
        placed = self.stage.locate(asked.request)
        broken = heard.answer is None or heard.interaction.ended in ("torn", "reset")
        if broken and not cancelled(heard):
            placed = replace(placed, fault=fault_of(heard, _unsaid))
        came = Received(placed.label, heard.codec.name, asked.stream)
        refused = ("", "")
        if heard.interaction.status in _INVALID:
            found = refused_by(heard.codec.name, request)
            if found is not None:
                refused = found.rule.id, found.failure.message
                came = replace(came, rule=refused[0], message=refused[1])
        self._recorder.record_request(placed.conversation, placed.label, asked.request)
        self._recorder.record(came)
        return RecordedReply(
            _to_the_end(course, heard), heard, placed, self.stage, self._recorder, refused
        )


def _to_the_end(course: Course, heard: Heard) -> Course:
    """A course that ends where the client went when it was recorded: well where it had all by then.
    One that goes on else gets no more, since nobody knows of more.
    """
    given = course.given
    if given.ended != "cancelled":
        return course
    if heard.answer is not None:
        return Course(replace(given, ended="complete"), number=course.number)
    ended: Ended = "dropped" if given.status is None else "torn"
    return Course(replace(given, ended=ended, ended_at=given.ended_at + 1), number=course.number)


def _asked(request: Request, heard: Heard) -> Asked:
    """What a request asks for; as it was recorded where this one says less, since it refers to
    what the provider remembers, or where the rules of the cassette leave out what is no more read.
    """
    try:
        alone = heard.codec.read(heard.interaction.request) == heard.asked
        return heard.codec.read(request) if alone else heard.asked
    except Unreadable:
        return heard.asked


def _refused(request: Request, message: str) -> Whole:
    """What tells a client that there is no answer, so that its library neither asks again nor
    takes it for a broken connection.
    """
    codec = codec_for(request)
    told = should_retry(flag=False)
    if codec is None:
        return Whole(json_response(400, {"error": {"message": message}}, told))
    return Whole(codec.failure(Failure(400, message, headers=told)))


def _unsaid(_note: str) -> None:
    """What a script could not say of a fault matters to nobody here: the bytes are played."""
