"""A recorded session as a scenario: a loop that made it makes the same requests there.

    from harness.runner.to_scenario import convert

    made = convert(load("cassettes/anthropic/two_calls.yaml"), "two_calls")
    Path("scenarios/two_calls.yaml").write_text(made.text)

From there it can be cut, faulted, swept and searched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from harness.core.durations import SECOND
from harness.core.errors import UsageError
from harness.core.json_text import Json
from harness.core.messages import Image, ModelRequest
from harness.core.outcome import OutcomeName
from harness.core.wording import counted
from harness.fakes.parts import cut
from harness.fakes.script import Also, Reply
from harness.report.values import printable
from harness.runner.cassettes.asides import condition, name_of
from harness.runner.cassettes.heard import Heard, cancelled
from harness.runner.cassettes.replies import reply_of, rounded
from harness.runner.cassettes.session import Session, Step, Told, session, turns_of
from harness.runner.cassettes.tooling import Run, runs_of, specs, spelling_of
from harness.runner.files.reach import too_far
from harness.runner.files.spell import spell_text
from harness.runner.scenario import Cancel, Expect, Scenario, Turn
from harness.transport.cassettes.form import Cassette
from harness.transport.redact_bodies import interaction as redacted
from harness.wire import refused_by


class Converted(Struct, frozen=True):
    """A scenario, the level at which its session was recorded, and what it could not take over.

    `asked_again` says that a client sent a request again that had failed.
    """

    scenario: Scenario
    level: str
    notes: tuple[str, ...]
    asked_again: bool = False

    @property
    def text(self) -> str:
        """The text of its file, in which the notes are comments."""
        head = [f"# {printable(note)}\n" for note in self.notes]
        return "".join(head) + spell_text(self.scenario)


def to_scenario(cassette: Cassette, name: str) -> Scenario:
    """The scenario alone, as `run` and `sweep` take it."""
    return convert(cassette, name).scenario


def convert(cassette: Cassette, name: str) -> Converted:
    """A session as a scenario, without secrets; UsageError where no request asks a model."""
    safe = [redacted(each, cassette.rules) for each in cassette.interactions]
    recorded = session(replace(cassette, interactions=tuple(safe)))
    if not recorded.turns:
        left = [f"; {unheard.place}: {unheard.why}" for unheard in recorded.unheard[:1]]
        raise UsageError(
            f"{cassette.path or 'the cassette'} holds no request to a model{''.join(left)}"
        )
    return _Converting(recorded, cassette).converted(name)


class _Converting:
    """One session on its way to become a scenario."""

    def __init__(self, recorded: Session, cassette: Cassette) -> None:
        self._session = recorded
        self._cassette = cassette
        self._notes: dict[str, None] = {}
        threads = [recorded.turns, *map(turns_of, recorded.asides)]
        steps = [step for turns in threads for turn in turns for step in turn.steps]
        ids = Counter(call.id for step in steps for call in step.message.calls)
        self._doubled = frozenset([each for each, count in ids.items() if count > 1])

    def converted(self, name: str) -> Converted:
        """The scenario and the notes."""
        requests = self._session.requests
        self._tell_of_what_is_left_out()
        turns = [self._turn(at, told) for at, told in enumerate(self._session.turns, 1)]
        also = tuple(self._also())
        runs = self._runs()
        spelling = spelling_of(runs, self._note)
        asides = [each for aside in self._session.asides for each in aside]
        declaring = sorted([*requests, *asides], key=_number)
        tools = specs(runs, declaring, spelling, self._note, self._own(runs))
        scenario = Scenario(
            name,
            self._about(),
            config=self._config(),
            tools=tools,
            turns=tuple(turns),
            also=also,
            strict=self._strict(),
        )
        protocol = requests[0].codec.name
        whole = not any(each.asked.stream for each in requests)
        again = any(len(s.attempts) > 1 for told in self._session.turns for s in told.steps)
        level = f"http:{protocol}{':whole' * whole}"
        return Converted(scenario, level, tuple(self._notes), again)

    def _note(self, note: str) -> None:
        self._notes[note] = None

    def _about(self) -> str:
        requests = self._session.requests
        asides = sum(map(len, self._session.asides))
        beside = f" and {asides} beside them" if asides else ""
        path = f", from {self._cassette.path}" if self._cassette.path else ""
        protocol = requests[0].codec.name
        return (
            f"A recorded session: {counted(len(requests), 'request')} in {protocol}{beside}{path}."
        )

    def _tell_of_what_is_left_out(self) -> None:
        for unheard in self._session.unheard:
            self._note(f"{unheard.place} is left out: {unheard.why}")
        requests = self._session.requests
        protocols = dict.fromkeys(each.codec.name for each in requests)
        for each in [each for aside in self._session.asides for each in aside]:
            if each.codec.name not in protocols:
                self._note(
                    f"{each.place}: it speaks {each.codec.name}; the conversation speaks "
                    f"{', '.join(protocols)}"
                )
        first = requests[0].request.messages if requests else ()
        if first and first[0].role == "assistant":
            self._note("the first request begins with a message of the model, which is left out")
        reworded = (each for each in requests if each.request.system != requests[0].request.system)
        for each in [*reworded][:1]:
            self._note(
                f"{each.place}: its system prompt is not that of the first request, which stands "
                "here; an agent that writes its own asks the same"
            )
        for each in requests:
            pictures = [
                block
                for message in each.request.messages
                for block in message.content
                if isinstance(block, Image)
            ]
            if pictures:
                self._note(
                    f"{each.place}: it shows {counted(len(pictures), 'picture')}; a scenario says "
                    "texts only, so the agent has to bring them by itself"
                )
                break

    # --- turns

    def _turn(self, at: int, told: Told) -> Turn:
        replies = self._replies(told.steps)
        cancel = self._cancel(at, told, replies)
        if told.earlier:
            self._note(
                f"turn {at} was before the recording: it is what the first request shows of it; "
                "leave it out where the agent brings that by itself"
            )
            return Turn(told.user, replies, cancel)
        last = told.steps[-1] if told.steps else None
        outcome: OutcomeName | None = None
        say: str | None = None
        if cancel is not None:
            outcome = "cancelled"
        elif last is not None and last.ended:
            outcome = "completed"
            say = None if self._asked_beside(at) else last.message.text
        requests = None
        if all(step.attempts for step in told.steps):
            requests = sum(len(step.attempts) for step in told.steps)
        return Turn(told.user, replies, cancel, Expect(outcome, say=say, requests=requests))

    def _asked_beside(self, at: int) -> bool:
        """Whether other requests went out before the next turn began."""
        turns = self._session.turns
        here = [each.number for step in turns[at - 1].steps for each in step.attempts]
        later = [s.first.number for turn in turns[at:] for s in turn.steps if s.first is not None]
        numbers = [each.number for aside in self._session.asides for each in aside]
        end = min(later, default=max([*here, *numbers]) + 1)
        return any(here[0] < each < end for each in numbers)

    def _replies(self, steps: Sequence[Step]) -> tuple[Reply, ...]:
        return tuple([_within(reply_of(step, self._doubled, self._note)) for step in steps])

    def _cancel(self, at: int, told: Told, replies: Sequence[Reply]) -> Cancel | None:
        """Where the recording shows that the turn was cut."""
        if not told.steps:
            self._note(f"turn {at} made no request: it was cut as it began, or the agent failed")
            return Cancel(after="turn_started")
        last = told.steps[-1].last
        if last is not None and cancelled(last):
            return _in_reply(at, replies, last, len(told.steps[-1].attempts))
        if not told.steps[-1].whole or not told.steps[-1].message.calls:
            return None
        if not any(run.cut for run in runs_of(told.steps, cut=True)):
            self._note(
                f"turn {at} ends behind its tools: where no limit of the agent's ends it, add what "
                "does, such as `cancel: {after: …}`"
            )
            return None
        return self._in_tools(at, told)

    def _in_tools(self, at: int, told: Told) -> Cancel:
        """The cancel while the tools of the last reply run, or before they do."""
        self._note(f"turn {at} ends while tools run: those without a result hang until the cancel")
        runs = runs_of(told.steps, cut=True)
        open_runs = [run for run in runs if run.cut]
        begun = [run for run in open_runs if not run.unbegun]
        if len(begun) == len(open_runs):
            return Cancel(at=self._end_of(at) + SECOND)
        if not begun:
            return Cancel(after="reply_ended", name="complete", nth=len(told.steps), mode="early")
        name = begun[-1].call.name
        before = runs[: runs.index(begun[-1]) + 1]
        nth = sum(run.call.name == name and not run.unbegun for run in before)
        return Cancel(after="tool_started", name=name, nth=nth, mode="early")

    def _end_of(self, at: int) -> int:
        """When a turn was over by all that was seen of it, since it began."""
        attempts = [each for step in self._session.turns[at - 1].steps for each in step.attempts]
        if not attempts:
            return 0
        last = attempts[-1].interaction
        over = last.begun + last.ended_at
        return rounded(over - attempts[0].interaction.begun)

    def _runs(self) -> list[Run]:
        """All calls of the session and what came of them."""
        runs: list[tuple[int, Run]] = []
        for turns in (self._session.turns, *map(turns_of, self._session.asides)):
            for turn in turns:
                for run in runs_of(turn.steps, cut=True):
                    last = turn.steps[0].last
                    runs.append((0 if last is None else last.number, run))
        return [run for _number_of_turn, run in sorted(runs, key=lambda pair: pair[0])]

    def _own(self, runs: Sequence[Run]) -> set[str]:
        """The tools for which the agent asks the model itself, as those that start a sub-agent."""
        own: set[str] = set()
        for aside in self._session.asides:
            task = next((m.text for m in aside[0].request.messages if m.role == "user"), "")
            for run in runs:
                given = run.call.args
                texts = given.values() if isinstance(given, dict) else ()
                if task and run.call.name not in own and task in texts:
                    own.add(run.call.name)
                    self._note(
                        f"{run.place}: the agent works on {run.call.name} itself, with the model's "
                        "help; it is none of the scenario's tools"
                    )
        return own

    # --- what stands beside the turns

    def _config(self) -> dict[str, Json]:
        """What the reference loops are set to, that they ask as it was asked; others need nothing
        of it.
        """
        first = self._session.requests[0].request
        config: dict[str, Json] = {"model": first.model}
        if first.system:
            config["system_prompt"] = first.system
        return config

    def _strict(self) -> bool:
        """Whether the rules of providers that we know refuse none of what this one took."""
        for each in self._session.requests:
            if each.answer is None:
                continue
            refused = refused_by(each.codec.name, each.interaction.request)
            if refused is not None:
                self._note(
                    f"{each.place}: the provider took what its rule {refused.rule.id} is known to "
                    "refuse, so the scenario is not strict"
                )
                return False
        return True

    def _also(self) -> Iterator[Also]:
        """The conversations beside the main one."""
        main = [each.request for each in self._session.requests]
        left = [list(each) for each in self._session.asides]
        names: list[str] = []
        told: list[ModelRequest] = []
        while left:
            own = left.pop(0)
            asked = [each.request for each in own]
            others = [each.request for one in left for each in one]
            when = condition(asked, [*main, *told, *others])
            if when is None and (alike := [one for one in left if _alike(one, own)]):
                left = [one for one in left if one not in alike]
                merged = sorted([*own, *[each for one in alike for each in one]], key=_number)
                left.insert(0, merged)
                continue
            if when is None:
                where = ", ".join([each.place for each in own])
                self._note(f"{where}: nothing tells this from other requests; it is left out")
                continue
            told += asked
            name = name_of(asked, names)
            names.append(name)
            steps = [step for turn in turns_of(own) for step in turn.steps if step.attempts]
            yield Also(name, when, self._replies(steps))


def _within(reply: Reply) -> Reply:
    """The reply; what failed may have come further than the one that then came whole."""
    most = too_far(reply)
    if reply.fault is None or most is None:
        return reply
    return replace(reply, fault=replace(reply.fault, after=most))


def _number(heard: Heard) -> int:
    return heard.number


def _alike(one: Sequence[Heard], other: Sequence[Heard]) -> bool:
    return one[0].request.system == other[0].request.system


def _in_reply(at: int, replies: Sequence[Reply], last: Heard, attempts: int) -> Cancel:
    """The cancel in the middle of the last reply, behind the last piece that came."""
    kind = last.pieces[-1].kind if last.pieces else None
    if kind is None:
        place = f"{at}.{len(replies)}" + (f"~{attempts}" if attempts > 1 else "")
        return Cancel(after="request_sent", name=place, mode="early")
    nth = sum(_deltas(reply, kind) for reply in replies)
    return Cancel(after="delta", name=kind, nth=nth, mode="early")


def _deltas(reply: Reply, kind: str) -> int:
    """How many deltas of a kind come of a reply, with those that came before it failed."""
    thoughts, texts = len(cut(reply.think, 0, reply.chunk)), len(cut(reply.say, 0, reply.chunk))
    after = getattr(reply.fault, "after", None) or 0
    times = reply.fault_times or 0
    if kind == "thinking":
        return thoughts + times * min(after, thoughts)
    return texts + times * min(max(after - thoughts, 0), texts)
