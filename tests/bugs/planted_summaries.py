"""Planted bugs in summing up, by loops that report nothing of it."""

from contextlib import suppress

from msgspec.structs import replace

from harness.core.messages import Message, ModelRequest, assistant, user
from harness.core.ports import ProviderFailed
from harness.core.reply import ReplyDone
from harness.fakes.script import Also, AlsoWhen, GenerateFails, Reply
from harness.runner.scenario import Scenario, Turn
from tests.bugs.planting import Planted, scenario
from tests.subjects.hand_loop import MendedHandLoop

LARGE = 3
"""Messages from which on a conversation is summed up."""


def in_short(summary: str) -> list[Message]:
    """What stands for a conversation."""
    return [user(f"So far: {summary}"), assistant("I see.")]


class SumsUp(MendedHandLoop):
    """Sums up a conversation that is too large, once a turn, and keeps the user's last words."""

    async def turn(self, text: str | None) -> None:
        await self.make_room()
        await super().turn(text)

    async def make_room(self) -> None:
        if len(self.messages) >= LARGE:
            self.messages = in_short(await self.sum_up())

    async def sum_up(self) -> str:
        said = "\n".join([message.text for message in self.messages])
        async for part in await self.env.model.generate(
            ModelRequest("some-model", "Sum up.", (user(said),))
        ):
            if isinstance(part, ReplyDone):
                return part.message.text
        raise ConnectionError("the stream ended before the summary was whole")


class KeepsWhatItCannotSumUp(SumsUp):
    """Goes on as it was where there is no summary."""

    async def make_room(self) -> None:
        with suppress(ProviderFailed):
            await super().make_room()


class WantsAnotherSummary(SumsUp):
    """Measures what it wants to be rid of, where it should measure what it has; so that it asks
    until nothing comes any more.
    """

    async def make_room(self) -> None:
        if len(self.messages) >= LARGE:
            try:
                while True:
                    summary = await self.sum_up()
            except ProviderFailed:
                self.messages = in_short(summary)


class EmptiesBeforeItSumsUp(KeepsWhatItCannotSumUp):
    """Has room, whatever becomes of the summary."""

    async def sum_up(self) -> str:
        try:
            return await super().sum_up()
        finally:
            self.messages = self.messages[-2:]


def long_talk(*summaries: Reply) -> Scenario:
    """Three short turns, of which the third finds the conversation too large."""
    turns = [Turn(f"No. {n}?", (Reply(say=f"It is {n}."),)) for n in range(3)]
    answers = Also("summary", AlsoWhen(system_contains="Sum up."), summaries)
    return replace(scenario(*turns), also=(answers,))


SHORT = Reply(say="It was about numbers.")
FAILS = Reply(fault=GenerateFails(), optional=True)

SUMMARIES: tuple[Planted, ...] = (
    Planted(
        "COMPACT-PROGRESS",
        WantsAnotherSummary,
        long_talk(SHORT, *[replace(SHORT, optional=True)] * 11, FAILS),
        SumsUp,
        exotic="replies to requests of its own kind",
    ),
    Planted(
        "COMPACT-HONEST",
        EmptiesBeforeItSumsUp,
        long_talk(FAILS),
        KeepsWhatItCannotSumUp,
        exotic="replies to requests of its own kind",
        soft=True,
    ),
)
