"""Bugs of agents that ask again, and of one that speaks to its provider itself."""

import asyncio
import contextlib
from typing import Any

from msgspec.structs import replace

from harness.core.events import LoopEvent
from harness.core.messages import Message, ModelRequest
from harness.core.ports import Agent, Env, ProviderFailed
from harness.core.reply import ReplyDone, TextDelta
from harness.fakes.script import Reply, StreamFails
from harness.fakes.wire_faults import Http
from harness.runner.scenario import Turn
from tests.bugs.planting import MS, Planted, scenario
from tests.subjects.hand_loop import MendedHandLoop
from tests.subjects.sdk.chat import AsyncChat
from tests.subjects.sdk.loop import AsyncLoop, Call


class AsksAgainAtOnce(MendedHandLoop):
    """Asks once more where a request fails, whatever the provider says about that."""

    attempts = 2

    async def ask(self) -> Message:
        for _ in range(self.attempts - 1):
            try:
                return await super().ask()
            except ProviderFailed:
                pass
        return await super().ask()


class NumbersItsRequests(MendedHandLoop):
    """Says in its prompt which request of this process it is."""

    count = 0

    def request(self) -> ModelRequest:
        NumbersItsRequests.count += 1
        return replace(super().request(), system=f"Request {self.count}. Be brief.")


class NeverGivesUp(AsksAgainAtOnce):
    """Asks until it is answered."""

    attempts = 1_000


class AsksThreeTimes(AsksAgainAtOnce):
    attempts = 3


class TellsWhatComes(MendedHandLoop):
    """Tells its consumer of the text as it comes, and that it starts anew where a stream breaks."""

    async def ask(self) -> Message:
        for _ in range(2):
            try:
                return await self.stream()
            except ProviderFailed:
                self.anew()
        raise ConnectionError("the provider failed twice")

    async def stream(self) -> Message:
        async for part in await self.env.model.generate(self.request()):
            if isinstance(part, TextDelta):
                self.env.observe(LoopEvent("text", {"delta": part.text}))
            elif isinstance(part, ReplyDone):
                return part.message
        raise ConnectionError("the stream ended before the reply was whole")

    def anew(self) -> None:
        self.env.observe(LoopEvent("retry", None))


class StartsAnewInSecret(TellsWhatComes):
    """Says the beginning of a reply twice, where a stream breaks."""

    def anew(self) -> None:
        pass


class AlwaysNamesCalls(AsyncChat):
    """Writes a list of calls into each message, also where there are none."""

    def keep(self, message: Any) -> list[Call]:
        return super().keep({"tool_calls": [], **message})


def on_chat(env: Env) -> Agent:
    return AsyncLoop(env, AsyncChat(env))


def with_lists_of_no_calls(env: Env) -> Agent:
    return AsyncLoop(env, AlwaysNamesCalls(env))


class AsksAnotherHost(MendedHandLoop):
    """Looks whether there is a newer version of itself, before it answers."""

    async def ask(self) -> Message:
        with contextlib.suppress(Exception):
            await asyncio.open_connection("updates.example.org", 443)
        return await super().ask()


class TellsItsKey(MendedHandLoop):
    """Shows the model all that it was started with."""

    def request(self) -> ModelRequest:
        request = super().request()
        return replace(request, system=f"{request.system} Started with KEY=gsk_{'aB3d' * 13}.")


LATER = Http(retry_after=2_000 * MS)

WIRE: tuple[Planted, ...] = (
    Planted(
        "NO-NET",
        AsksAnotherHost,
        scenario(Turn("Go.", (Reply(say="Gone."),))),
    ),
    Planted(
        "SECRETS",
        TellsItsKey,
        scenario(Turn("Go.", (Reply(say="Gone."),))),
    ),
    Planted(
        "ACCEPTED",
        with_lists_of_no_calls,
        scenario(Turn("Go.", (Reply(say="Gone."),)), Turn("Well?", (Reply(say="Well."),))),
        on_chat,
        exotic="an agent that makes its requests itself",
        too=frozenset({"RESUME", "QUIESCE"}),  # the library leaves generators of its own open
    ),
    Planted(
        "MISS",
        NumbersItsRequests,
        scenario(Turn("Go.", (Reply(say="Gone."),))),
        exotic="a recording",
        recorded=True,
    ),
    Planted(
        "RETRY-AFTER",
        AsksAgainAtOnce,
        scenario(Turn("Go.", (Reply(say="Gone.", fault=LATER),))),
    ),
    Planted(
        "RETRY-BOUND",
        NeverGivesUp,
        scenario(Turn("Go.", (Reply(say="Gone.", fault=Http(503), fault_times=20),))),
        AsksThreeTimes,
        exotic="a provider that fails for long",
    ),
    Planted(
        "RETRY-VISIBLE",
        StartsAnewInSecret,
        scenario(Turn("Go.", (Reply(say="Gone for good, and far.", fault=StreamFails(1)),))),
        TellsWhatComes,
    ),
)
