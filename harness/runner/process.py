"""Plays a scenario's turns on an agent that is a command, over HTTP and in real time.

The program is told where its model is by the variables that popular clients read. It keeps the
conversation, and runs its own tools. Where its words have `{turn}`, each turn runs it anew, with
the turn's text there, and its exit code says how the turn ended. Otherwise it is started once, and
each turn is a line of its standard input that it answers with a line of its standard output.

A cancel is SIGINT. From then on nothing more comes from the model, so that the program has seen
what came before, and no more, at whatever speed it runs.
"""

from __future__ import annotations

import asyncio
import signal
import time
from asyncio import FIRST_COMPLETED
from collections.abc import Iterator
from typing import Literal

from harness.core.choices import Choices
from harness.core.durations import SECOND
from harness.core.errors import UsageError
from harness.core.events import (
    CancelDelivered,
    CancelRequested,
    RunStopped,
    TurnEnded,
    TurnStarted,
    event_kind,
)
from harness.core.outcome import CANCELLED, COMPLETED, Completed, Error, Outcome
from harness.core.trace import Entry, Recorder
from harness.fakes.model import FakeModel
from harness.fakes.place import Stage
from harness.runner.agents import PLACEHOLDER, Command
from harness.runner.drive import DEFAULT_TURN, Played
from harness.runner.program import Program, ending_too
from harness.runner.result import Failure
from harness.runner.scenario import Cancel, Scenario, Turn
from harness.runner.serving import PROTOCOLS, variables
from harness.runner.trigger import moment
from harness.transport.exchange import Exchange
from harness.transport.journal import Journal
from harness.transport.provider import Provider
from harness.transport.server import Server
from harness.wire.http import Headers, Request


class ProcessPlay:
    """One run of one scenario on a command; use it once."""

    def __init__(self, scenario: Scenario, command: Command) -> None:
        for turn in scenario.turns:
            _check(turn, command)
        self._scenario = scenario
        self._command = command
        self._turn = 0
        self._began = time.monotonic_ns()
        self._recorder = Recorder(self._now, lambda: str(self._turn))
        self._stage = Stage(scenario.also, self._recorder, by_place=scenario.order == "place")
        self._provider = Provider(
            self._stage,
            FakeModel(self._stage, self._recorder, Choices()),
            lambda: time.time_ns() / SECOND,
            strict=scenario.strict,
        )
        self._server = Server(self._answer, Journal(self._now))
        self._program: Program | None = None
        self._cancel: _Cancelling | None = None
        self._begun = asyncio.Event()
        """Set while a turn has begun."""
        self._outcomes: list[Outcome] = []
        self._failures: list[Failure] = []

    def play(self) -> Played:
        """Play every turn, the default one too where it is due."""
        with ending_too(self._kill):
            asyncio.run(self._play())
        return Played(tuple(self._outcomes), self._recorder.trace(), tuple(self._failures))

    async def _play(self) -> None:
        await self._server.start()
        try:
            for number, turn in enumerate(self._turns(), 1):
                if not await self._play_turn(number, turn):
                    return
            self._finish()
            if self._program is not None:
                await self._program.end(self._command.cancel_limit)
        finally:
            if self._program is not None:
                await self._program.close()
            await self._server.close()

    def _kill(self) -> None:
        if self._program is not None:
            self._program.kill()

    def _turns(self) -> Iterator[Turn]:
        yield from self._scenario.turns
        if self._outcomes and not isinstance(self._outcomes[-1], Completed):
            yield DEFAULT_TURN

    async def _play_turn(self, number: int, turn: Turn) -> bool:
        """Play one turn; False where the run cannot go on."""
        self._turn = number
        self._begun.clear()
        program = await self._started(turn.user or "")
        self._stage.start_turn(number, turn.user, turn.replies)
        cancel = self._cancel = _Cancelling(turn.cancel, number, program, self._recorder)
        cancel.arm()
        self._recorder.record(TurnStarted(number, turn.user, turn is DEFAULT_TURN))
        self._begun.set()
        code = await self._ending(program, turn.user or "", cancel)
        await self._server.settle()
        cancel.disarm()
        if code == "stopped":
            return False
        outcome = self._outcome(code, program, cancelled=cancel.fired.is_set())
        self._outcomes.append(outcome)
        cut = not isinstance(outcome, Completed) or cancel.fired.is_set()
        for unused in self._stage.end_turn(cut=cut):
            message = f"{unused} was never asked for"
            self._failures.append(Failure("unused reply", message, number, turn.line))
        self._recorder.record(TurnEnded(number, outcome))
        self._failures += cancel.missed()
        cancel.go.set()
        return True

    async def _started(self, text: str) -> Program:
        """The program that plays the next turn: where one runs that can, it; else a new one."""
        if self._program is not None and self._program.alive:
            return self._program
        if self._program is not None:
            await self._program.close()
        words = [word.replace(PLACEHOLDER, text) for word in self._command.words]
        told = variables(self._server.url, PROTOCOLS[:-1])
        self._program = await Program.start(words, told)
        return self._program

    async def _ending(
        self, program: Program, text: str, cancel: _Cancelling
    ) -> int | Literal["answered", "stopped"]:
        """How the turn ends: the program has answered, or ended with a code, or was killed."""
        playing = asyncio.ensure_future(self._converse(program, text))
        fired = asyncio.ensure_future(cancel.fired.wait())
        limits = self._command
        await asyncio.wait({playing, fired}, timeout=limits.turn_limit, return_when=FIRST_COMPLETED)
        if fired.done():
            await asyncio.wait({playing}, timeout=limits.cancel_limit)
        fired.cancel()
        if playing.done():
            return await playing
        if cancel.fired.is_set():
            detail = f"it goes on {limits.cancel_limit:g} seconds after SIGINT"
            self._recorder.record(RunStopped("cancel_deadline", detail))
        else:
            detail = f"the turn has not ended in {limits.turn_limit:g} seconds"
            self._recorder.record(RunStopped("time_limit", detail))
        program.kill()
        await playing
        return "stopped"

    async def _converse(self, program: Program, text: str) -> int | Literal["answered"]:
        if not self._command.once_a_turn and await program.ask(text):
            return "answered"
        return await program.wait()

    def _outcome(
        self, code: int | Literal["answered", "stopped"], program: Program, *, cancelled: bool
    ) -> Outcome:
        """What the program's answer, or its exit code, says of the turn."""
        if code == "answered" or (code == 0 and self._command.once_a_turn):
            return COMPLETED
        interrupted = (0, -signal.SIGINT, 128 + signal.SIGINT)
        if cancelled and code in interrupted:
            return CANCELLED
        if code == 0:
            return Error("NoAnswer", "the program ended without an answer")
        said = f": {program.last_words}" if program.last_words else ""
        return Error("ExitCode", f"the program ended with exit code {code}{said}")

    def _finish(self) -> None:
        if all(isinstance(outcome, Completed) for outcome in self._outcomes):
            for unused in self._stage.unused_also():
                self._failures.append(Failure("unused reply", f"{unused} was never asked for"))

    async def _answer(self, request: Request) -> Exchange:
        await self._begun.wait()
        assert self._cancel is not None
        cancel = self._cancel
        exchange = await self._provider.answer(request)
        try:
            await cancel.go.wait()
        except asyncio.CancelledError:
            await exchange.aclose()
            raise
        return _Held(exchange, cancel.go)

    def _now(self) -> int:
        return time.monotonic_ns() - self._began


class _Cancelling:
    """The cancel of one turn, where it has any; the server's answers wait for `go`."""

    def __init__(
        self, cancel: Cancel | None, turn: int, program: Program, recorder: Recorder
    ) -> None:
        self.go = asyncio.Event()
        self.go.set()
        self.fired = asyncio.Event()
        self._cancel = cancel
        self._turn = turn
        self._program = program
        self._recorder = recorder
        self._timer: asyncio.TimerHandle | None = None
        self._seen = 0

    def arm(self) -> None:
        """Wait for the moment."""
        if self._cancel is None:
            return
        if self._cancel.at is not None:
            seconds = self._cancel.at / SECOND
            self._timer = asyncio.get_running_loop().call_later(seconds, self._fire, self._cancel)
        else:
            self._recorder.watch = self._watch

    def disarm(self) -> None:
        """Wait no more: the turn is over."""
        self._recorder.watch = None
        if self._timer is not None:
            self._timer.cancel()

    def missed(self) -> Iterator[Failure]:
        """That the moment did not come."""
        if self._cancel is not None and not self.fired.is_set():
            message = (
                f"turn {self._turn} was over before its cancel ({moment(self._cancel)}) could act"
            )
            yield Failure("cancel did not fire", message, self._turn, self._cancel.line)

    def _watch(self, entry: Entry) -> None:
        cancel, event = self._cancel, entry.event
        assert cancel is not None
        if event_kind(type(event)) != cancel.after or cancel.name not in (None, event.subject):
            return
        self._seen += 1
        if self._seen == cancel.nth:
            self._fire(cancel)

    def _fire(self, cancel: Cancel) -> None:
        self._recorder.watch = None
        self.fired.set()
        self.go.clear()
        self._recorder.record(CancelRequested(self._turn, "agent", moment(cancel)))
        self._program.interrupt()
        self._recorder.record(CancelDelivered(self._turn, "agent"))


class _Held:
    """An exchange whose chunks go on only while they may."""

    def __init__(self, exchange: Exchange, go: asyncio.Event) -> None:
        self.status: int = exchange.status
        self.headers: Headers = exchange.headers
        self.streamed: bool = exchange.streamed
        self.place: str = exchange.place
        self.rule: str = exchange.rule
        self._exchange = exchange
        self._go = go

    def __aiter__(self) -> _Held:
        return self

    async def __anext__(self) -> bytes:
        """The next chunk, when it comes and may go on."""
        chunk = await self._exchange.__anext__()
        await self._go.wait()
        return chunk

    def ready(self) -> None:
        """Each chunk asks whether it may go on."""

    async def aclose(self) -> None:
        """The client wants no more."""
        await self._exchange.aclose()


def _check(turn: Turn, command: Command) -> None:
    """UsageError where a command cannot play a turn."""
    cancel = turn.cancel
    if cancel is not None and (cancel.point is not None or cancel.mode != "now"):
        raise UsageError(
            f"a command cannot be cancelled {moment(cancel)}: its code is not seen; "
            "name an event of the model, such as {after: request_sent}, or a time"
        )
    if not command.once_a_turn and turn.user is not None and "\n" in turn.user:
        raise UsageError(
            "a turn of several lines cannot be told to a command that reads lines; "
            f"give it the text as an argument, {PLACEHOLDER}"
        )
