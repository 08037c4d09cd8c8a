"""The turn loop: built on a context or on services at hand, it plays one turn at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from msgspec import Struct

from harness.core.cancel_signal import CancelSignal
from harness.core.durations import SECOND
from harness.core.events import Estimated, Trimmed
from harness.core.messages import ModelRequest
from harness.core.outcome import Outcome
from harness.core.ports import Model, SessionLog
from harness.loops.turn.cancel import Cancellation
from harness.loops.turn.config import TEXTS, AgentConfig, Texts
from harness.loops.turn.context import Context, Plugin, Seams, Token, find_seams
from harness.loops.turn.journal import Journal, Observe, Sink
from harness.loops.turn.policy import SAFE, Policy
from harness.loops.turn.registry import Dispatcher
from harness.loops.turn.request import NextRequest, next_request
from harness.loops.turn.tokens import Estimate, message_tokens
from harness.loops.turn.trim import Trim, token_budget
from harness.loops.turn.turn import Turn
from harness.loops.turn.usage import UsageTracker


class Bindings(Struct, frozen=True, kw_only=True):
    """What a loop is tied to from outside, each optional.

    `signal` stops the turn; `sink` is told every event; `usage` counts tokens; `observe` is told
    what happens inside; `trim` cuts the history in place of the usual function; `estimate` sizes a
    message.
    """

    signal: CancelSignal | None = None
    sink: Sink | None = None
    usage: UsageTracker | None = None
    observe: Observe | None = None
    trim: Trim | None = None
    estimate: Estimate = message_tokens


class TurnLoop:
    """Plays turns; what it remembers is in the log, so a loop may be built anew for every turn.

    `find` gives the services when a turn starts.
    """

    def __init__(
        self,
        find: Callable[[], Seams],
        config: AgentConfig,
        bindings: Bindings,
        policy: Policy,
        texts: Texts,
    ) -> None:
        self._find = find
        self._config = config
        self._bindings = bindings
        self._policy = policy
        self._texts = texts
        self._estimate = bindings.estimate

    @property
    def config(self) -> AgentConfig:
        """The settings."""
        return self._config

    @property
    def usage(self) -> UsageTracker | None:
        """The tracker that counts tokens, if one is bound."""
        return self._bindings.usage

    async def run(self, text: str | None) -> Outcome:
        """Play one turn on a user's `text` (None resumes) and give its outcome.

        AgentError where a service is missing; then nothing was written or told.
        """
        seams = self._find()
        bindings, config = self._bindings, self._config
        turn = Turn(
            seams,
            Journal(seams.log, bindings.sink, bindings.observe),
            Cancellation(bindings.signal, config.cancel_grace / SECOND),
            bindings.usage,
            partial(self._request, seams),
            config,
            self._policy,
            self._texts,
        )
        return await turn.play(text)

    def snapshot(self) -> ModelRequest:
        """The request that would go out now; nothing is written, told or counted."""
        return self._build(self._find()).request

    @contextmanager
    def estimating(self, estimate: Estimate) -> Iterator[None]:
        """Size messages by `estimate` within the block, whatever way it is left."""
        before, self._estimate = self._estimate, estimate
        try:
            yield
        finally:
            self._estimate = before

    def _request(self, seams: Seams) -> ModelRequest:
        built = self._build(seams)
        observe = self._bindings.observe
        if observe is None:
            return built.request
        if built.cut.trimmed:
            config, cut = self._config, built.cut
            budget = token_budget(config.context_window_tokens, config.context_trim_threshold)
            kept = len(built.request.messages) - 1  # the note in the place of what was cut
            observe(Trimmed(cut.removed_messages, cut.removed_tokens, kept, budget))
        if built.tokens is not None:
            observe(Estimated(built.tokens))
        return built.request

    def _build(self, seams: Seams) -> NextRequest:
        return next_request(seams, self._config, self._texts, self._estimate, self._bindings.trim)


LOOP: Token[TurnLoop] = Token("AgentLoop service")


def create_loop(
    model: Model,
    log: SessionLog,
    tools: Dispatcher,
    config: AgentConfig | None = None,
    bindings: Bindings | None = None,
    policy: Policy = SAFE,
    texts: Texts = TEXTS,
) -> TurnLoop:
    """A turn loop on a model, a session log and tools that are at hand, without a context of
    plugins. `policy` and `texts` say how it behaves, and what it tells the model.
    """
    seams = Seams(model, log, tools)
    return TurnLoop(lambda: seams, config or AgentConfig(), bindings or Bindings(), policy, texts)


def loop_plugin(
    config: AgentConfig | None = None,
    bindings: Bindings | None = None,
    name: str = "turn-loop",
    policy: Policy = SAFE,
    texts: Texts = TEXTS,
) -> Plugin:
    """A plugin that provides a loop under `LOOP`; services mounted later still serve its turns."""

    def mount(context: Context) -> None:
        find = partial(find_seams, context)
        loop = TurnLoop(find, config or AgentConfig(), bindings or Bindings(), policy, texts)
        context.provide(LOOP, loop)

    return Plugin(name, mount)
