"""Running the calls of one reply: each is tried in the model's order, late results come last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

from msgspec import Struct

from harness.core import json_plain
from harness.core.json_text import Json
from harness.loops.fsm.messages import ToolCall
from harness.loops.fsm.pending import PendingToolResult, never_woken
from harness.loops.fsm.prompts import Texts
from harness.loops.fsm.registry import Running, Stamp
from harness.loops.fsm.session import Session


class Answer(Struct, frozen=True):
    """What a call came to."""

    text: str
    diff: str | None = None


Results: TypeAlias = dict[str | int, Answer]
"""What calls came to, by call id or by position, as the policy has it."""


class Tools:
    """Runs calls for one run, the main loop's or a sub-agent's.

    `cancelled` says whether the run should stop.
    """

    def __init__(
        self, session: Session, stamp: Stamp, cancelled: Callable[[], bool], *, top_level: bool
    ) -> None:
        self.excluded = frozenset() if top_level else session.settings.parent_only
        self.results: Results = {}
        """What the calls of this round have come to so far."""
        self._session = session
        self._stamp = stamp
        self._cancelled = cancelled
        self._top_level = top_level

    def run(self, calls: Sequence[ToolCall]) -> Results:
        """Run all calls; those that come after a cancel are skipped.

        What fails in a tool or on the way to it becomes that call's result. A notification that
        fails before a call, and what is no ordinary exception, is raised.
        """
        results = self.results = {}
        late: list[tuple[int, ToolCall, PendingToolResult, Running]] = []
        for index, call in enumerate(calls):
            running = Running(call.id, self._stamp)
            given = self.visit(call, running)
            if isinstance(given, PendingToolResult):
                late.append((index, call, given, running))
            else:
                results[self.key(index, call)] = Answer(given, running.diff)
        for index, call, handle, running in late:
            text = self._collect(call, handle)
            results[self.key(index, call)] = Answer(text, running.diff)
        return results

    def key(self, index: int, call: ToolCall) -> str | int:
        """Where the results hold that of the call at `index`."""
        return index if self._session.policy.results_per_call else call.id

    def visit(self, call: ToolCall, running: Running) -> str | PendingToolResult:
        """Run one call, unless the run is cancelled; its result, or who will bring it."""
        session, texts = self._session, self._session.texts
        if self._cancelled():
            return self._instead(call, texts.skipped_by_cancel)
        if self._top_level:
            session.notify("tool_running", call.name)
            if self._cancelled() and not session.policy.request_after_cancel:
                return self._instead(call, texts.skipped_by_cancel)
        begun = session.ports.clock.now()
        try:
            given = self._one(call, running)
            if isinstance(given, PendingToolResult):
                return given
            result = self._text(given)
        except Exception as error:
            result = self._instead(call, texts.crashed.format(name=call.name, error=error))
        call.elapsed = session.ports.clock.now() - begun
        return result

    def wait(self, handle: PendingToolResult) -> Any:
        """Wait for a late result; raises what the tool failed with."""
        with self._woken(handle.give_up):
            return handle.wait()

    def _one(self, call: ToolCall, running: Running) -> Any:
        session, texts = self._session, self._session.texts
        if call.name in self.excluded:
            return self._instead(call, texts.excluded.format(name=call.name))
        wrong = wrong_with(call, texts) if session.policy.refuse_bad_arguments else None
        if wrong is not None:
            return self._instead(call, wrong)
        arguments = arguments_of(call)
        tool = session.registry.get(call.name)
        missing = tool.missing(arguments) if tool else []
        if missing:
            names = ", ".join(missing)
            text = texts.missing_arguments.format(name=call.name, missing=names)
            return self._instead(call, text)
        if tool is not None and tool.interactive:
            return self._in_turn(call, arguments, running)
        return session.execute_tool(call.name, arguments, running)

    def _in_turn(self, call: ToolCall, arguments: dict[str, Json], running: Running) -> Any:
        """Run a tool that asks the user, and see it through before another one may ask."""
        session = self._session
        with session.turnstile.through(self._woken) as ours:
            stopped = session.policy.waits_end_with_cancel and self._cancelled()
            if stopped or not ours:
                return self._instead(call, session.texts.skipped_by_cancel)
            given = session.execute_tool(call.name, arguments, running)
            return self._late(call, given) if isinstance(given, PendingToolResult) else given

    def _collect(self, call: ToolCall, handle: PendingToolResult) -> str:
        session = self._session
        begun = session.ports.clock.now()
        try:
            result = self._text(self._late(call, handle))
        except Exception as error:
            return self._instead(call, session.texts.crashed.format(name=call.name, error=error))
        call.elapsed = session.ports.clock.now() - begun
        return result

    def _late(self, call: ToolCall, handle: PendingToolResult) -> Any:
        value = self.wait(handle)
        if handle.given_up:
            return self._instead(call, self._session.texts.given_up)
        return value or "" if self._session.policy.falsy_async_is_empty else value

    def _text(self, value: Any) -> str:
        """What a tool gave, as the model is told it."""
        text = sanitised(value, self._session.texts)
        if self._session.policy.name_empty_results and not text.strip():
            return self._session.texts.empty_result
        return text

    def _instead(self, call: ToolCall, text: str) -> str:
        return self._session.instead(call.id, call.name, text)

    def _woken(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        if self._session.policy.waits_end_with_cancel:
            return self._session.woken(self._stamp, wake)
        return never_woken(wake)


def arguments_of(call: ToolCall) -> dict[str, Json]:
    """The arguments as an object; what is none, or cannot be read, is an empty one.

    >>> arguments_of(ToolCall("1", "look", '{"at": 2}')), arguments_of(ToolCall("1", "look", "{"))
    ({'at': 2}, {})
    """
    try:
        arguments = _read(call)
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def wrong_with(call: ToolCall, texts: Texts) -> str | None:
    """Why a call cannot be run with the arguments that it has; None where it can.

    Null is no argument at all, and fine; an empty text is no JSON.
    """
    try:
        arguments = _read(call)
    except ValueError:
        return texts.arguments_not_json.format(name=call.name)
    if isinstance(arguments, dict | None):
        return None
    return texts.arguments_no_object.format(name=call.name)


def _read(call: ToolCall) -> Json:
    """The arguments; ValueError where they are a text that is no JSON."""
    written = call.arguments
    return json_plain.loads(written) if isinstance(written, str) else written


def sanitised(value: Any, texts: Texts) -> str:
    """What a tool gave, as a text; None says that there is nothing."""
    if value is None:
        return texts.no_result
    return value if isinstance(value, str) else str(value)
