"""The scripted world that an FSM vector plays in: what happens when, and what was seen."""

from __future__ import annotations

import posixpath
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from harness.core.json_text import Json
from harness.loops.fsm.messages import Message, user
from harness.loops.fsm.ports import Event, Ports
from harness.loops.fsm.session import Session
from harness.runner.conform.common import only_keys

_REPLY = {
    "text", "reasoning", "content", "tool_calls", "usage", "error", "deltas", "retries", "bad",
    "cancel_during",
}  # fmt: skip
_BAD = {None, "none_usage", "none_message", "not_tuple", "keyboard"}
_MODES = {
    "cancel", "cancel+supersede", "supersede", "event", "clear", "kill", "compacting", "tools_off",
    "plan_on", "queue", "raise",
}  # fmt: skip
_SENTINEL = "NEW RUN"


class StepLimit(Exception):
    """A vector's run entered more states than it may."""


class Hang(BaseException):
    """Somebody waits for what never comes."""


class Late(Protocol):
    """A late result that is delivered when somebody waits for any."""

    rank: int

    def release(self) -> None:
        """Deliver it."""
        ...


class Seen:
    """What was seen, in order and by kind; names are those of the vectors."""

    def __init__(self) -> None:
        self.events: list[Json] = []
        self.requests: list[Json] = []
        self.notify: list[Json] = []
        self.deltas: list[str] = []
        self.logs: list[str] = []
        self.auto_saves: list[Json] = []
        self.saved_text: str | None = None
        self.title_calls = 0
        self.states: list[str] = []
        self.infos: list[Json] = []
        self.tool_runs: list[Json] = []
        self.round_results: list[Json] = []
        self.sub_results: list[Json] = []
        self.updates: list[Json] = []
        self.exhausted = False

    def event(self, *entry: Json) -> None:
        """Something happened."""
        self.events.append(list(entry))


class Triggers:
    """Does things to the session when a point is reached for the nth time."""

    session: Session

    def __init__(self, specs: Json, seen: Seen) -> None:
        listed = specs if isinstance(specs, list) else [specs] if specs else []
        self.fired: list[Json] = []
        self._left = [only_keys(spec, {"at", "mode", "supersede"}, "a cancel") for spec in listed]
        self._counts: dict[str, int] = {}
        self._seen = seen
        for spec in listed:
            _one_of(spec.get("mode", "cancel").partition(":")[0], _MODES, "mode")

    @property
    def unfired(self) -> list[str]:
        """The points that were not reached."""
        return [spec["at"] for spec in self._left]

    def hit(self, point: str) -> None:
        """Point `point` is reached."""
        self._counts[point] = count = self._counts.get(point, 0) + 1
        at = f"{point}:{count}"
        for spec in [spec for spec in self._left if spec["at"] == at]:
            self._left.remove(spec)
            mode = "cancel+supersede" if spec.get("supersede") else spec.get("mode", "cancel")
            self.fired.append([at, mode])
            self.act(mode)

    def act(self, mode: str) -> None:
        """Do what `mode` says."""
        session = self.session
        self._seen.event("trigger", mode)
        name, _, text = mode.partition(":")
        match name:
            case "cancel":
                session.cancel()
            case "cancel+supersede" | "supersede":
                if name != "supersede":
                    session.cancel()
                session.begin_run()
                session.last_messages = [user(_SENTINEL)]
            case "event" | "clear":
                session.cancel_event = name == "event"
            case "kill":
                session.alive = False
            case "compacting":
                session.compacting = True
            case "tools_off":
                session.tools_enabled = False
            case "plan_on":
                session.plan.on = True
            case "queue":
                session.pending_user_prompts.append(text)
            case _:
                raise RuntimeError(text)


class World:
    """What the loops of one vector meet, and what was seen of them."""

    def __init__(self, scenario: Json) -> None:
        self.scenario = scenario
        self.seen = Seen()
        self.triggers = Triggers(scenario.get("cancel"), self.seen)
        self.threads = SerialThreads()
        self.early: list[Late] = []
        self.title = scenario.get("title", {"text": "A Title"})
        self._loops: list[object] = []
        """The loops at work, the vector's own first."""
        self._main = deque(_replies(scenario["model"]))
        self._subs = {
            prompt: deque(_replies(replies))
            for prompt, replies in (scenario.get("subagents") or {}).items()
        }
        given = scenario.get("compaction")
        self._summaries = None if given is None else deque(_replies(given))
        self._asked = 0
        self._steps = 0
        _replies([self.title])

    @property
    def prefix(self) -> str:
        """What stands before the points of the loop at work."""
        return "sub_" if len(self._loops) > 1 else ""

    def hit(self, point: str) -> None:
        """A point of the loop at work is reached."""
        self.triggers.hit(f"{self.prefix}{point}")

    def ports(self) -> Ports:
        """The ports of a session in this world."""
        return Ports(
            clock=StoppedClock(),
            threads=self.threads,
            files=NoFiles(),
            token=lambda: "token",
            save=self._save,
            notify=self._notify,
            delta=self._delta,
            log=self._log,
        )

    def begins(self, loop: object) -> None:
        """A loop is at work from now on."""
        self._loops.append(loop)

    def ends(self) -> None:
        """The loop that began last is through."""
        self._loops.pop()

    def step(self) -> None:
        """A state is entered; StepLimit where that is one too many."""
        if self._steps == self.scenario.get("max_steps", 300):
            raise StepLimit("state step limit")
        self._steps += 1

    def request(self, kind: str, **fields: Json) -> None:
        """A request arrives."""
        number = len(self.seen.requests) + 1
        self.seen.requests.append({"n": number, "kind": kind, **fields})
        self.seen.event("request", kind, number)

    def release_early(self) -> None:
        """Somebody waits: deliver what waits for that, by rank."""
        early, self.early = sorted(self.early, key=lambda late: late.rank), []
        for late in early:
            late.release()

    def next_reply(self, messages: Sequence[Message]) -> Json:
        """What the loop at work is answered."""
        script = self._subs.get(messages[0].text()) if self.prefix else self._main
        if not script:
            raise self._exhausted()
        repeats = self.scenario.get("model_repeat") and len(script) == 1
        return script[0] if repeats else script.popleft()

    def next_summary(self) -> Json:
        """What a compaction is answered."""
        self._asked += 1
        if self._summaries is None:
            return {"text": f"S{self._asked}"}
        if not self._summaries:
            raise self._exhausted()
        return self._summaries.popleft()

    def ran(self, name: str, arguments: Json) -> None:
        """A tool's body is reached."""
        self.seen.tool_runs.append({"name": name, "args": arguments})
        self.seen.event("tool", name, arguments)
        self.hit("during_tool")

    def _exhausted(self) -> Exception:
        self.seen.exhausted = True
        return RuntimeError("script exhausted")

    def _save(self, _text: str, _system: str | None) -> None:
        if self.scenario.get("save_error"):
            raise OSError("disk full")

    def _notify(self, kind: str, payload: Json) -> None:
        self.seen.notify.append([kind, payload])
        self.seen.event("notify", kind, payload)
        self.hit(f"notify:{kind}")

    def _delta(self, text: str) -> None:
        self.seen.deltas.append(text)
        self.seen.event("delta", text)

    def _log(self, text: str) -> None:
        self.seen.logs.append(text)
        self.seen.event("log", text)


def _replies(items: Json) -> list[Json]:
    for item in items:
        only_keys(item, _REPLY, "a reply")
        _one_of(item.get("bad"), _BAD, "bad reply")
    return list(items)


def _one_of(value: Json, known: set[Any], what: str) -> None:
    if value not in known:
        raise ValueError(f"unknown {what} {value!r}")


class StoppedClock:
    """Time that stands still."""

    def now(self) -> int:
        """Always the same."""
        return 0

    def sleep(self, nanoseconds: int) -> None:
        """Over at once."""


class NoFiles:
    """A file system without links, of which nothing is read."""

    def resolve(self, path: str) -> str:
        """The path, made straight."""
        return posixpath.normpath(path)

    def write(self, path: str, text: str) -> None:
        """Goes nowhere."""


class SerialThreads:
    """Threads that begin, one after the other, when somebody waits for what they do."""

    def __init__(self) -> None:
        self.work: deque[Callable[[], None]] = deque()

    def start(self, work: Callable[[], None]) -> None:
        """Keep `work` for later."""
        self.work.append(work)

    def event(self) -> Event:
        """A flag; waiting for it does the work that was kept."""
        return _SerialEvent(self.work)

    def lock(self) -> AbstractContextManager[Any]:
        """Nothing needs to be locked."""
        return nullcontext()


class _SerialEvent:
    def __init__(self, work: deque[Callable[[], None]]) -> None:
        self._work = work
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def wait(self) -> None:
        while not self._is_set:
            if not self._work:
                raise Hang
            self._work.popleft()()
