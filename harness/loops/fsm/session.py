"""What lives longer than a run: the mirror of the conversation, its file and title, and cancel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from harness.core.durations import NS_PER_UNIT
from harness.core.events import ResultSynthesized, Salvaged
from harness.core.json_text import Json
from harness.loops.fsm.client import Client, RequestOptions
from harness.loops.fsm.context import repair, unanswered
from harness.loops.fsm.messages import Message, user, wire
from harness.loops.fsm.pending import Turnstile
from harness.loops.fsm.plan_mode import PlanMode
from harness.loops.fsm.policy import SAFE, Policy
from harness.loops.fsm.ports import Ports
from harness.loops.fsm.prompts import TEXTS, Texts
from harness.loops.fsm.registry import Registry, Running, Stamp
from harness.loops.fsm.tokens import WINDOWS, Calibrator, Windows, payload_tokens, window_for
from harness.loops.fsm.transcript import clean_title, portable_title, saved_text

SAVE_AGAIN_AFTER = 200 * NS_PER_UNIT["ms"]
FIRST_USER_MIN = 3
FIRST_USER_MAX = 500


class Settings(Struct, frozen=True, kw_only=True):
    """A session's settings; a session may get others while it runs.

    `max_nudges` in a row; a context fuller than `context_trigger` is compacted; a calibration stays
    within `calibration`; a run has `max_rounds` requests, where the policy limits them, a sub-agent
    has `subagent_max_rounds` and no `parent_only` tools.
    """

    model: str = "example-model"
    main: RequestOptions = RequestOptions()
    subagent: RequestOptions = RequestOptions()
    system: str | None = None
    subagent_system: str | None = None
    windows: Windows = WINDOWS
    max_nudges: int = 2
    context_trigger: float = 0.7
    calibration: tuple[float, float] = (0.5, 3.0)
    max_rounds: int = 1_000
    subagent_max_rounds: int = 60
    parent_only: frozenset[str] = frozenset({"Agent", "Question", "PlanExit", "TodoWrite"})


class _SoFar(Struct, frozen=True):
    """The first `length` messages of a run's own list, to which it only adds."""

    messages: Sequence[Message]
    length: int


class Session:
    """One conversation with a user; any number of runs, of which the newest one counts.

    `ask` asks the user to approve a plan. `cancel` and `begin_run` may be called from any thread.
    """

    def __init__(
        self,
        client: Client,
        ports: Ports,
        *,
        subagent_client: Client | None = None,
        settings: Settings | None = None,
        policy: Policy = SAFE,
        texts: Texts = TEXTS,
        ask: Callable[[], bool] = lambda: True,
    ) -> None:
        self.client = client
        self.subagent_client: Client = subagent_client or client
        self.ports = ports
        self.settings = settings or Settings()
        self.policy = policy
        self.texts = texts
        self.registry = Registry()
        self.plan = PlanMode(
            ports.files,
            ports.token,
            self.registry,
            texts,
            policy,
            ask=ask,
            approved=self.queue_prompt,
        )
        self.turnstile = Turnstile(ports.threads)
        self.tools_enabled = True
        self.alive = True
        self.compacting = False
        self._last: list[Message] | _SoFar = []
        self.pending_user_prompts: list[str] = []
        self.title: str | None = None
        self.first_user: str | None = None
        self.calibrator = Calibrator()
        self.ratio: float | None = None
        """How full the context is, as a share of the window; None before the first estimate."""
        self.cancel_event = False
        self.cancel_generation = 0
        self.run_generation = 0
        self.helpers: list[Client] = []
        """The clients of sub-agents that are at work."""
        self._lock = ports.threads.lock()
        self._writing = ports.threads.lock()
        """Held while a run writes, so that a new one begins before that or after it."""
        self._waiting: list[Callable[[], None]] = []
        self._titling: Stamp | None = None
        """The run that is asking for a title."""

    def cancel(self) -> None:
        """Stop what runs: runs notice at their next test, requests are broken off."""
        with self._lock:
            self.cancel_event = True
            self.cancel_generation += 1
        clients = (self.client, self.subagent_client, *self.helpers)
        for client in {id(client): client for client in clients}.values():
            try:
                client.abort()
            except Exception as error:
                self.ports.log(f"a request could not be broken off: {error}")
        self._wake()

    def begin_run(self) -> None:
        """A new run begins; any that is still at work is stale from now on."""
        with self._writing, self._lock:
            self.last_messages = self.last_messages  # an older run's list is its own from now on
            self.run_generation += 1
            self.cancel_event = False
        self._wake()

    def stamp(self) -> Stamp:
        """What a run that begins now is known by."""
        return Stamp(self.cancel_generation, self.run_generation)

    def stale(self, stamp: Stamp) -> bool:
        """Whether a newer run has replaced that one."""
        return self.run_generation != stamp.runs

    def cancelled(self, stamp: Stamp) -> bool:
        """Whether that run should stop."""
        moved = self.cancel_generation != stamp.cancels
        return self.cancel_event or moved or self.stale(stamp)

    @contextmanager
    def woken(self, stamp: Stamp, wake: Callable[[], None]) -> Iterator[None]:
        """Call `wake` as soon as that run is cancelled, or at once; while the context is open."""
        with self._lock:
            self._waiting.append(wake)
        try:
            if self.cancelled(stamp):
                wake()
            yield
        finally:
            with self._lock:
                self._waiting.remove(wake)

    def _wake(self) -> None:
        with self._lock:
            waiting = list(self._waiting)
        for wake in waiting:
            wake()

    def queue_prompt(self, text: str) -> None:
        """Say something in the user's place with the next request of the main loop."""
        self.pending_user_prompts.append(text)

    def take_prompts(self) -> list[str]:
        """What is to be said in the user's place, plan mode's first; it is not given again."""
        with self._lock:
            taken: list[str] = []
            for queue in (self.plan.queue, self.pending_user_prompts):
                said = list(queue)
                del queue[: len(said)]  # and what another thread adds meanwhile stays
                taken += said
            return taken

    def notify(self, kind: str, payload: Json = None) -> None:
        """Tell the user interface."""
        self.ports.notify(kind, payload)

    def notify_done(self, kind: str) -> None:
        """Tell the user interface of what is done, and stays so even if telling fails."""
        try:
            self.notify(kind)
        except Exception as error:
            if not self.policy.untold_is_done:
                raise
            self.ports.log(f"telling of {kind!r} failed: {error}")

    def may_write(self, stamp: Stamp) -> bool:
        """Whether that run may still change what belongs to the newest one."""
        return self.policy.stale_writes or not self.stale(stamp)

    @property
    def last_messages(self) -> list[Message]:
        """The conversation as the next run begins with it."""
        last = self._last
        if isinstance(last, _SoFar):  # a new run may begin in the middle of a round
            return repair(last.messages[: last.length], self.texts.no_result)
        return last

    @last_messages.setter
    def last_messages(self, messages: list[Message]) -> None:
        self._last = messages

    def mirror(self, messages: Sequence[Message], stamp: Stamp) -> None:
        """Take over what a run has so far, so that the conversation can go on from there. The run
        may add to `messages` then, but must not change what is in it.
        """
        later = self.policy.repair_history  # and when it is asked for: few of all mirrors are
        with self._writing:
            if self.may_write(stamp):
                self._last = _SoFar(messages, len(messages)) if later else list(messages)

    def update_context(self, messages: Sequence[Message], system: str | None) -> None:
        """Estimate how full the context is, with all tools, whether they are sent or not."""
        raw = payload_tokens(system, [wire(m) for m in messages], self.registry.specs())
        window = window_for(self.settings.model, self.settings.windows)
        self.ratio = self.calibrator.corrected(raw) / window
        self.notify("context")

    def execute_tool(self, name: str, arguments: dict[str, Json], running: Running) -> Any:
        """Run a tool, unless plan mode forbids it; what it gives, or a text that says why not."""
        refusal = self.plan.refusal(name, arguments)
        if refusal is not None:
            return self.instead(running.call_id, name, refusal)
        tool = self.registry.get(name)
        result: Any
        if tool is None:
            result = self.instead(running.call_id, name, self.texts.unknown_tool.format(name=name))
        else:
            try:
                result = tool.run(arguments, running)
            except Exception as error:
                result = self.texts.tool_raised.format(name=name, error=error)
        self.notify_done("tool")
        return result

    def instead(self, call_id: str, name: str, text: str) -> str:
        """Tell that a call is answered in the tool's place; gives `text`."""
        self.ports.observe(ResultSynthesized(call_id, name, text))
        return text

    def report_kept(self, messages: Sequence[Message], kept: Sequence[Message]) -> None:
        """Report the round that is left out of what is kept, or each answer that is new in it."""
        if self.policy.repair_history:
            there = {id(message) for message in messages}
            for message in kept:
                if id(message) not in there:
                    self.instead(message.tool_call_id or "", message.name or "", message.text())
        elif len(kept) < len(messages):
            removed, ids = len(messages) - len(kept), unanswered(messages, len(kept))
            self.ports.observe(Salvaged(len(kept), removed, ids))

    def remember_user_text(self, messages: Sequence[Message]) -> None:
        """Keep the user's last words for the title, if there are none yet and they say anything."""
        if self.first_user is None:
            said = next((m.text().strip() for m in reversed(messages) if self._is_users(m)), "")
            self.first_user = said[:FIRST_USER_MAX] if len(said) > FIRST_USER_MIN else None

    def auto_save(self, messages: Sequence[Message], system: str | None, stamp: Stamp) -> None:
        """Write the conversation; what fails is tried once more, and then told."""
        text = saved_text(messages)
        try:
            self._save(text, system, stamp)
        except OSError:
            self.ports.clock.sleep(SAVE_AGAIN_AFTER)
            try:
                self._save(text, system, stamp)
            except OSError as error:
                self.ports.log(f"auto-save failed: {error}")
                self.notify("save-error")

    def generate_title(self, stamp: Stamp) -> None:
        """Ask for a title, once there is something to name and while there is no title."""
        with self._lock:
            asking = self._titling is not None and not self.stale(self._titling)
            if asking or self.title is not None or self.first_user is None:
                return
            self._titling = stamp
        try:
            self._ask_for_title(self.first_user, stamp)
        finally:
            with self._lock:
                if self._titling is stamp:
                    self._titling = None

    def _ask_for_title(self, said: str, stamp: Stamp) -> None:
        policy = self.policy
        if self.cancelled(stamp) and not policy.title_after_cancel:
            return
        try:
            reply = self.client.chat_sync(
                [user(said)],
                system=self.texts.title_prompt,
                temperature=self.settings.main.temperature,
                cancel_check=None if policy.title_after_cancel else lambda: self.cancelled(stamp),
            )
            clean = portable_title if policy.portable_titles else clean_title
            title = clean(reply.without_reasoning())
        except Exception as error:
            self.ports.log(f"title generation failed: {error}")
            return
        with self._writing:
            if not (title and self.may_write(stamp)):
                return
            self.title = title
        self.ports.log(f"session titled — {title}")

    def _save(self, text: str, system: str | None, stamp: Stamp) -> None:
        with self._writing:
            if self.may_write(stamp):
                self.ports.save(text, system)

    def _is_users(self, message: Message) -> bool:
        own = message.injected or message.text() == self.texts.nudge
        return message.role == "user" and not own
