"""A small world for FSM runs: a scripted client, real threads, and all that was told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from msgspec.structs import replace

from harness.core.events import InsideEvent
from harness.core.json_text import Json
from harness.loops.fsm.client import RequestOptions, Usage
from harness.loops.fsm.loop import Loop
from harness.loops.fsm.messages import Message, ToolCall, user, wire
from harness.loops.fsm.pending import PendingToolResult
from harness.loops.fsm.policy import REFERENCE, SAFE, Policy
from harness.loops.fsm.ports import Ports
from harness.loops.fsm.prompts import TEXTS
from harness.loops.fsm.registry import Running, Tool
from harness.loops.fsm.session import Session, Settings

SOON = 5.0
"""Seconds after which a test that waits is a test that fails."""


def only(flag: str) -> Policy:
    """The reference with one difference: that of `flag` is as in the safe policy."""
    return replace(REFERENCE, name=flag, **{flag: getattr(SAFE, flag)})


def call(call_id: str, name: str = "look", arguments: Json = "{}") -> ToolCall:
    return ToolCall(call_id, name, arguments)


def says(text: str, *calls: ToolCall) -> Message:
    """A reply."""
    return Message("assistant", text, list(calls) or None)


def result(call_id: str, text: str = "seen") -> Message:
    return Message("tool", text, tool_call_id=call_id, name="look")


class ScriptClient:
    """Gives its replies in turn; an exception among them is raised, a function is called."""

    def __init__(self, world: World, replies: Sequence[Any], short: Sequence[Any] = ()) -> None:
        self.world = world
        self.replies = list(replies)
        self.short = list(short)
        self.requests: list[list[Json]] = []
        self.options: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str, Any]] = []
        self.aborts = 0

    def chat(
        self, messages: Sequence[Message], *, options: RequestOptions, **given: Any
    ) -> tuple[Message, Usage]:
        self.requests.append([wire(message) for message in messages])
        self.options.append({"options": options, **given})
        reply = self._next(self.replies, says("done"))
        if given["on_delta"] is not None and isinstance(reply, Message):
            given["on_delta"](reply.text())
        return reply if isinstance(reply, tuple) else (reply, Usage(10, 1))

    def chat_sync(
        self,
        messages: Sequence[Message],
        *,
        system: str,
        temperature: float | None = None,
        cancel_check: Callable[[], bool] | None = None,
    ) -> Message:
        self.asked.append((system, messages[0].text(), cancel_check))
        return self._next(self.short, says("short"))

    def abort(self) -> None:
        self.aborts += 1

    @staticmethod
    def _next(script: list[Any], default: Any) -> Any:
        step = script.pop(0) if script else default
        if callable(step):
            step = step()
        if isinstance(step, BaseException):
            raise step
        return step


class RealThreads:
    """Real threads; those that were started are waited for by `join`."""

    def __init__(self) -> None:
        self.started: list[threading.Thread] = []

    def start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self.started.append(thread)
        thread.start()

    def event(self) -> RealEvent:
        return RealEvent()

    def lock(self) -> AbstractContextManager[Any]:
        return threading.RLock()

    def join(self) -> None:
        for thread in self.started:
            thread.join(SOON)
            assert not thread.is_alive()


class RealEvent(threading.Event):
    """An event whose wait does not last for ever."""

    def wait(self, timeout: float | None = SOON) -> bool:
        if not super().wait(timeout):
            raise TimeoutError("nobody came")
        return True


class Files:
    """Files in memory; `links` lead from path to path."""

    def __init__(self) -> None:
        self.written: dict[str, str] = {}
        self.links: dict[str, str] = {}

    def resolve(self, path: str) -> str:
        return self.links.get(path, path)

    def write(self, path: str, text: str) -> None:
        self.written[path] = text


class Clock:
    """A clock that only moves when somebody sleeps."""

    def __init__(self) -> None:
        self.time = 0

    def now(self) -> int:
        return self.time

    def sleep(self, nanoseconds: int) -> None:
        self.time += nanoseconds


class World:
    """A session with its ports, a client and what was told; `at` runs a function at a notice."""

    def __init__(
        self,
        *replies: Any,
        policy: Policy = SAFE,
        short: Sequence[Any] = (),
        settings: Settings | None = None,
        **more: Any,
    ) -> None:
        self.client = ScriptClient(self, replies, short)
        self.files = Files()
        self.clock = Clock()
        self.threads = RealThreads()
        self.saved: list[str] = []
        self.save_errors: list[Exception] = []
        self.notices: list[tuple[str, Json]] = []
        self.deltas: list[str] = []
        self.logs: list[str] = []
        self.observed: list[InsideEvent] = []
        self.at: dict[str, Callable[[], None]] = {}
        self.ran: list[str] = []
        self._tokens = iter(range(100))
        self.session = Session(
            self.client,
            self.ports(),
            policy=policy,
            settings=settings or Settings(max_nudges=0, system="SYS", subagent_system="SUB"),
            **more,
        )

    def ports(self) -> Ports:
        return Ports(
            clock=self.clock,
            threads=self.threads,
            files=self.files,
            token=lambda: f"t{next(self._tokens)}",
            save=self._save,
            notify=self._notify,
            delta=self.deltas.append,
            log=self.logs.append,
            observe=self.observed.append,
        )

    def _save(self, text: str, _system: str | None) -> None:
        if self.save_errors:
            raise self.save_errors.pop(0)
        self.saved.append(text)

    def _notify(self, kind: str, payload: Json) -> None:
        self.notices.append((kind, payload))
        if then := self.at.pop(kind, None):
            then()

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.notices]

    def tool(self, name: str = "look", give: Callable[[], Any] | Any = "seen", **more: Any) -> None:
        """Register a tool that gives a value, or what a function gives or raises."""

        def run(arguments: dict[str, Json], running: Running) -> Any:
            self.ran.append(name)
            return give() if callable(give) else give

        self.session.registry.register(Tool(name, run, **more))

    def late(self, name: str = "look", value: Any = "seen") -> PendingToolResult:
        """Register a tool whose one result is delivered at once; gives the handle."""
        handle = PendingToolResult(self.threads)
        handle.deliver(value)
        self.tool(name, lambda: handle)
        return handle

    def loop(self, *messages: Message, **more: Any) -> Loop:
        return Loop(self.session, list(messages) or [user("do the task")], **more)


def shape(messages: Sequence[Message]) -> list[str]:
    """A conversation in short: u, s, a:text, A[ids], t(id)=text."""
    spelled = []
    for message in messages:
        match message:
            case Message(role="assistant", tool_calls=[*calls]) if calls:
                spelled.append(f"A[{','.join([each.id for each in calls])}]")
            case Message(role="tool"):
                spelled.append(f"t({message.tool_call_id})={message.text()}")
            case _:
                spelled.append(f"{message.role[0]}:{message.text()}")
    return spelled


NO_RESULT, EMPTY = TEXTS.no_result, TEXTS.empty_result
SKIPPED, GIVEN_UP = TEXTS.skipped_by_cancel, TEXTS.given_up
