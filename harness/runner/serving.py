"""A script served over HTTP on this machine, to any client in any language."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from harness.core.choices import Choices
from harness.core.durations import SECOND
from harness.core.errors import UsageError, unknown
from harness.core.events import TurnStarted
from harness.core.json_text import Json
from harness.core.messages import Message, ModelRequest
from harness.core.trace import Recorder, Trace
from harness.fakes.line import Given
from harness.fakes.model import FakeModel
from harness.fakes.place import Placed, Stage
from harness.fakes.script import Reply
from harness.runner.files.load import read_script
from harness.runner.scenario import Scenario
from harness.transport.exchange import Exchange, Whole
from harness.transport.findings import Finding, find
from harness.transport.framing import PLAIN, Framing
from harness.transport.homes import HOMES
from harness.transport.journal import Journal, Record
from harness.transport.provider import Provider
from harness.transport.server import Server
from harness.wire import CODECS, codec_for
from harness.wire.http import Request, json_response, should_retry

ALL = "all"
PROTOCOLS = (*[codec.name for codec in CODECS], ALL)
"""What may be served: one protocol, or all of them."""
GRACE = 5.0
"""How many seconds the answers that are going out have to end, where the script is used up."""
KEY = "harness"
"""The key that clients are given; any other does as well."""


class Script(Stage):
    """The script of a scenario, whose turns the requests tell: one begins when its text appears.

    Its text has to stand behind that of the turn before. A turn without a text, a resume, begins
    with the first request after all replies of the turn before were given.
    """

    def __init__(self, scenario: Scenario, recorder: Recorder) -> None:
        super().__init__(scenario.also, recorder, by_place=scenario.order == "place")
        self._recorder = recorder
        self._turns = scenario.turns
        self._number = 0
        self._at = -1
        """Where in the history the text of the turn stood in its first request."""
        self._left: list[str] = []
        """Replies of turns that are over which nobody asked for."""
        if self._turns:
            self._begin(-1)

    def locate(self, request: ModelRequest) -> Placed:
        """Find the reply that answers `request`, in the turn that it is of."""
        if self._number < len(self._turns) and self._also_line(request) is None:
            at = self._next_at(request.messages)
            if at is not None:
                self._left += self.end_turn(cut=False)
                self._begin(at)
        return super().locate(request)

    @property
    def done(self) -> bool:
        """Whether every reply that must be asked for has been given as often as it can be."""
        if self.unused():
            return False
        lines = [line for _entry, line in self._also] + ([self._turn] if self._turn else [])
        return all(self._over(given) for line in lines for given in line.given)

    def _over(self, given: Given) -> bool:
        """Whether a reply was given whole, or never comes whole: where only the number of requests
        counts, none is given again.
        """
        always = given.reply.fault is not None and given.reply.fault_times is None
        return given.complete or ((always or not self._by_place) and not given.open)

    def unused(self) -> list[str]:
        """Every reply that nobody has asked for, and that may not be left out."""
        now = [] if self._turn is None else self._turn.unused()
        later = [f"all of turn {at}" for at in range(self._number + 1, len(self._turns) + 1)]
        return [*self._left, *now, *later, *self.unused_also()]

    def _begin(self, at: int) -> None:
        turn = self._turns[self._number]
        self._number += 1
        self._at = at
        self.start_turn(self._number, turn.user, turn.replies)
        self._recorder.record(TurnStarted(self._number, turn.user))

    def _next_at(self, messages: Sequence[Message]) -> int | None:
        """Where the text of the next turn stands; None where that does not begin."""
        text, now = self._turns[self._number].user, self._turns[self._number - 1].user
        here = -1 if now is None else _last(messages, now)
        if self._at < 0:
            self._at = here
        if text is None:
            assert self._turn is not None
            return self._at if len(self._turn.given) == len(self._turn.replies) else None
        before = self._at
        if now is not None and text not in now:
            before = min(before, here)  # a history that was cut has other places
        there = _last(messages, text)
        return there if there > before else None


def _says(message: Message, text: str) -> bool:
    return message.role == "user" and text in message.text


def _last(messages: Sequence[Message], text: str) -> int:
    return max([at for at, each in enumerate(messages) if _says(each, text)], default=-1)


def variables(url: str, protocols: Sequence[str]) -> dict[str, str]:
    """The variables of the environment that point clients of these protocols to an address."""
    return {
        name: value
        for home in HOMES
        if any(each.startswith(home.name) for each in protocols)
        for name, value in ((home.variable, url + home.under), (home.keys[0], KEY))
    }


class Scripted:
    """A script that answers requests, with all that came of it; for one event loop, use it once.

    `now` gives nanoseconds since it began, `clock` seconds since 1970, and `path` who asks.
    """

    def __init__(  # noqa: PLR0913 - what a script can be given
        self,
        script: Scenario | Sequence[Reply] | str | os.PathLike[str],
        now: Callable[[], int],
        clock: Callable[[], float],
        path: Callable[[], str],
        *,
        strict: bool | None = None,
        pedantic: bool = False,
        framing: Framing = PLAIN,
        provider: str = ALL,
        journal: TextIO | None = None,
    ) -> None:
        if provider not in PROTOCOLS:
            raise UsageError(unknown("provider", provider, PROTOCOLS))
        self.scenario = read_script(script)
        self._only = provider
        self._recorder = Recorder(now, path)
        self._script = Script(self.scenario, self._recorder)
        self._answering = Provider(
            self._script,
            FakeModel(self._script, self._recorder, Choices()),
            clock,
            strict=self.scenario.strict if strict is None else strict,
            pedantic=pedantic,
            framing=framing,
        )
        self.journal = Journal(now, journal)

    @property
    def requests(self) -> tuple[Record, ...]:
        """What has come so far, and what became of it."""
        return tuple(self.journal.records)

    @property
    def trace(self) -> Trace:
        """What has happened so far, in the words of traces."""
        return self._recorder.trace()

    @property
    def protocols(self) -> Sequence[str]:
        """What it speaks."""
        return PROTOCOLS[:-1] if self._only == ALL else (self._only,)

    @property
    def done(self) -> bool:
        """Whether all of the script was given."""
        return self._script.done

    def findings(self) -> tuple[Finding, ...]:
        """What the client has done wrong so far; what it may still do is found wanting too."""
        return find(self.requests, self.trace, self._script.unused())

    async def answer(self, request: Request) -> Exchange:
        """Answer a request; Broken where the connection breaks before there is an answer."""
        codec = codec_for(request)
        if codec is None or codec.name in self.protocols:
            return await self._answering.answer(request)
        message = f"{request.path} is of {codec.name}, and only {self._only} is served"
        error: Mapping[str, Json] = {"error": {"message": message}}
        return Whole(json_response(404, error, should_retry(flag=False)))


class Service(Scripted):
    """A script on its server; the options are those of `Scripted`."""

    def __init__(
        self, script: Scenario | Sequence[Reply] | str | os.PathLike[str], **options: Any
    ) -> None:
        began = time.monotonic_ns()
        super().__init__(
            script,
            lambda: time.monotonic_ns() - began,
            lambda: time.time_ns() / SECOND,
            lambda: "server",
            **options,
        )
        self.used_up = asyncio.Event()
        """Set when all of the script was given."""
        self.server = Server(self.answer, self.journal, ended=self._ended)

    @property
    def url(self) -> str:
        """Where it is, such as ``http://127.0.0.1:8080``."""
        return self.server.url

    @property
    def variables(self) -> dict[str, str]:
        """The variables of the environment that point clients here."""
        return variables(self.url, self.protocols)

    def _ended(self) -> None:
        if self.done:
            self.used_up.set()
