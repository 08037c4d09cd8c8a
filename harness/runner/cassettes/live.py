"""Records a scenario whose replies come from a real provider.

The run itself is as any other, under the kernel and in virtual time: it is played on what has been
recorded so far. Where it asks for what is not there yet, the provider is asked, outside of the run
and in real time, and the run is made once more from its beginning; so what is recorded in the end
plays without a miss. Its costs, real waiting aside, are as many runs as there are requests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from harness.core.errors import CassetteMiss, HarnessError, UsageError, unknown
from harness.core.ports import Agent
from harness.core.wording import counted
from harness.runner.agents import Subject
from harness.runner.cassettes.record import check_writable
from harness.runner.result import Result
from harness.runner.run import run
from harness.runner.scenario import Scenario
from harness.transport import redact, redact_bodies
from harness.transport.cassettes.differing import shortened
from harness.transport.cassettes.failures import KEY_REFUSED, failure, failures_told, unanswered
from harness.transport.cassettes.file import load, save
from harness.transport.cassettes.form import Cassette, Interaction
from harness.transport.cassettes.keeping import Mode
from harness.transport.cassettes.matching import Library
from harness.transport.cassettes.recording import recorded
from harness.transport.cassettes.upstream import Upstream, forwarded, outgoing
from harness.transport.exchange import Broken, Exchange, Whole
from harness.transport.homes import Home, home_of
from harness.transport.in_memory import Answer
from harness.transport.redact_bodies import interaction
from harness.transport.rules import NO_RULES, Rules, joined
from harness.wire import CODECS, codec_for
from harness.wire.codec import Codec, Failure
from harness.wire.http import Request, should_retry

_SAID = 300
"""How much is told of what a provider says."""


class RecordingStopped(HarnessError):
    """A recording came to a limit; what came before it is kept."""


class ProviderFailed(HarnessError):
    """A provider is not reached, takes no such key, or answers nothing; what came before stays."""


class Limits(Struct, frozen=True):
    """How many requests the provider gets, at most, and how many seconds an answer may take."""

    requests: int = 100
    seconds: float = 300


class Wanted(Struct, frozen=True):
    """The first request of a run that nothing was recorded for, and when, in virtual time."""

    request: Request
    at: int


class Live:
    """A cassette that a real provider fills, in the modes `missing` and `all`; use it once.

    `homes` is where the providers are, `environment` has the user's key, and `told` hears of what
    went wrong on the way; `rules` are kept in the cassette. UsageError where there is no key or no
    such protocol, or the cassette could not be written.
    """

    def __init__(
        self,
        path: Path,
        mode: Mode,
        protocol: str,
        homes: Sequence[Home],
        environment: Mapping[str, str],
        limits: Limits = Limits(),  # noqa: B008 - it is frozen
        told: Callable[[str], None] = lambda _message: None,
        rules: Rules = NO_RULES,
    ) -> None:
        if mode not in ("missing", "all"):
            raise UsageError(
                f"a scenario is recorded in the modes missing and all, and not in {mode}; "
                "play it with harness run --cassette"
            )
        codecs = {codec.name: codec for codec in CODECS}
        if protocol not in codecs:
            raise UsageError(unknown("provider", protocol, codecs))
        check_writable(path)
        self._home = home_of(protocol, homes)
        self._key = self._home.key_in(environment)
        self._path = path
        self._anew = mode == "all" or not path.exists()
        found = load(path) if path.exists() else Cassette(path=path.as_posix())
        kept = () if self._anew else _answered(found)
        self._cassette = replace(found, interactions=kept, rules=joined(found.rules, rules))
        self._recorded = 0
        self._codec = codecs[protocol]
        self._limits = limits
        self._told = told
        self._played = False

    def save(self) -> str:
        """Write what was recorded, and say so in a line. Where a recording anew came to no end, the
        cassette that was there stays, and what there is stands beside it.
        """
        given = self._cassette.interactions
        if not self._recorded or all(map(failure, given)):
            return f"nothing was recorded into {self._path.as_posix()}"
        path = self._path
        if self._anew and not self._played and path.exists():
            path = path.with_suffix(f".partial{path.suffix}")
        source = f"{self._codec.name} at {self._home.base}"
        save(path, replace(self._cassette, source=self._cassette.source or source))
        failed = failures_told(given, unanswered(given, self._cassette.rules))
        again = "; the mode missing asks again" if failed else ""
        recorded = f"{counted(self._recorded, 'request')} recorded into {path.as_posix()}"
        return f"{recorded}{failed}{again}"

    def play(self, scenario: Scenario, subject: Subject) -> Result:
        """Run a scenario until nothing is missing, and give the last run.

        RecordingStopped where that takes more requests, or an answer more time, than it may,
        ProviderFailed where the provider gives nothing to play, UsageError where the agent asks in
        another protocol.
        """
        while True:
            wanted: list[Wanted] = []
            noting = replace(subject, build=_noting(subject, self._cassette, wanted, self._codec))
            level = f"http:{self._codec.name}"
            result = run(scenario, noting, cassette=self._cassette, level=level)
            if not wanted:
                self._check_answered()
                self._played = True
                return result
            if self._recorded == self._limits.requests:
                raise RecordingStopped(
                    f"the run asks for more than {self._limits.requests} replies, which is the "
                    "limit; see what it does, or raise it with --max-requests"
                )
            given = asyncio.run(self._fetch(wanted[0]))
            self._recorded += 1
            # The agent hears what it will hear when the file is played, and no secret is told.
            safe = redact_bodies.interaction(given, self._cassette.rules)
            interactions = (*self._cassette.interactions, safe)
            self._cassette = replace(self._cassette, interactions=interactions)

    async def _fetch(self, wanted: Wanted) -> Interaction:
        """What becomes of a request to the provider, in real time."""
        self._check_protocol(wanted.request)
        sent = forwarded(self._signed(wanted.request), [self._home])
        assert sent is not None, "it is in a protocol"
        kept: list[Interaction] = []
        began = time.monotonic_ns()

        def now() -> int:
            """Whole microseconds, as a file has them: this run is the one that is played."""
            return (time.monotonic_ns() - began) // 1000 * 1000

        async with outgoing() as client:
            answer = recorded(
                Upstream(client, [self._home], self._told).send,
                kept.append,
                now,
            )
            try:
                async with asyncio.timeout(self._limits.seconds) as limit:
                    await _read(answer, sent)
            except TimeoutError:
                if limit.expired():
                    raise RecordingStopped(
                        f"an answer has not come whole in {self._limits.seconds:g} seconds, which "
                        "is the limit; raise it with --timeout"
                    ) from None
        given = replace(kept[0], begun=wanted.at)
        if given.ended == "refused":
            raise self._failed("cannot be reached", "see that it is there")
        if given.status in KEY_REFUSED:
            said = interaction(given, self._cassette.rules).body.decode("utf-8", "replace")
            keys = " or ".join(self._home.keys)
            why = f"answered {given.status}: {shortened(' '.join(said.split()), _SAID)}"
            raise self._failed(why, f"see the key in {keys}")
        return given

    def _check_protocol(self, request: Request) -> None:
        """Raise UsageError where an agent asks in another protocol than its provider's."""
        codec = codec_for(request)
        if codec is None:
            asked = f"{request.method} {redact.path(request)}"
            raise UsageError(f"the agent asks for {asked}, which is not in {self._codec.name}")
        if codec.name != self._codec.name:
            raise UsageError(f"the agent asks in {codec.name}; give --provider {codec.name}")

    def _check_answered(self) -> None:
        """Raise ProviderFailed where there was no answer to anything."""
        given = self._cassette.interactions
        if given and all(map(failure, given)):
            how = ", ".join(dict.fromkeys(map(failure, given)))
            raise self._failed(f"gave no answer to anything: {how}", "see that it is there")

    def _failed(self, what: str, see: str) -> ProviderFailed:
        home = self._home
        return ProviderFailed(
            f"{home.name} at {redact.text(home.base)} {what}\n{see}, or name another address, with "
            f"{home.variable} or --upstream {home.name}=URL"
        )

    def _signed(self, request: Request) -> Request:
        """A request with the user's key in the place of the run's own."""
        name, before = self._home.sign
        kept = [each for each in request.headers if each[0] not in self._codec.secrets.headers]
        return replace(request, headers=(*kept, (name, before + self._key)))


def _answered(cassette: Cassette) -> tuple[Interaction, ...]:
    """What did not fail when a cassette was recorded; the rest is asked again."""
    failed = unanswered(cassette.interactions, cassette.rules)
    return tuple([each for at, each in enumerate(cassette.interactions) if at not in failed])


async def _read(answer: Answer, request: Request) -> None:
    """Read an answer to its end, however it ends."""
    exchange: Exchange | None = None
    try:
        exchange = await answer(request)
        async for _chunk in exchange:
            pass
    except Broken:
        pass
    finally:
        if exchange is not None:
            await exchange.aclose()


def _noting(
    subject: Subject, cassette: Cassette, wanted: list[Wanted], codec: Codec
) -> Callable[[Any], Agent]:
    """Builds the agent so that what its run asks for first, and the cassette does not have, is
    noted. That run counts for nothing, so behind it nothing more is looked up.
    """
    library = Library(cassette.interactions, cassette.rules)
    missing = Failure(400, "it is not recorded yet", headers=should_retry(flag=False))

    @wraps(subject.build)
    def build(env: Any) -> Agent:
        answer: Answer = env.answer

        async def noted(request: Request) -> Exchange:
            try:
                if not wanted:
                    library.take(request)
            except CassetteMiss:
                wanted.append(Wanted(request, env.clock.now()))
            return Whole(codec.failure(missing)) if wanted else await answer(request)

        env.answer = noted
        return subject.build(env)

    return build
