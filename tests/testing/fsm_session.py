"""A session of the state-machine loop as a state machine, whose runs may replace one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from msgspec.structs import replace

from harness.core.events import Compacted, StateEntered
from harness.core.messages import Message as Neutral
from harness.core.pairing import Breach, breaches
from harness.loops.fsm.env_client import to_neutral
from harness.loops.fsm.loop import DONE, SUPERVISE, TOOL, TRET, Loop
from harness.loops.fsm.messages import Message, user
from harness.loops.fsm.pending import PendingToolResult
from harness.loops.fsm.policy import SAFE, Policy
from harness.loops.fsm.session import Session, Settings
from tests.loops.fsm.world import ScriptClient, World, call, says
from tests.testing.session_machine import ROUNDS, SessionMachine

LONG = "x" * 2_000
"""What makes the context too full."""
SETTINGS = Settings(max_nudges=0, system="SYS", windows=(("", 600),))
UNSENT = ("context", "request")
"""Moments at which the reply has not come."""


class Broken(BaseException):
    """The process breaks."""


class StrictClient(ScriptClient):
    """A client that notes what a strict provider would refuse."""

    refused: tuple[Breach, ...] = ()

    def chat(self, messages: Sequence[Message], **given: Any) -> Any:
        self.refused += breaches(map(to_neutral, messages))
        return super().chat(messages, **given)


class Listener(list[Any]):
    """Hears what the loop reports, and does something then."""

    def __init__(self, heard: Callable[[Any], None]) -> None:
        super().__init__()
        self._heard = heard

    def append(self, event: Any) -> None:
        self._heard(event)


class FsmSession(SessionMachine):
    """The machine; `loop` and `policy` are what it runs."""

    moments = (
        *(*UNSENT, "tool_start", "tool_running", "look", "later", "tool", "tools"),
        *(TOOL, TRET, SUPERVISE, DONE),
    )
    loop: ClassVar[type[Loop]] = Loop
    policy: ClassVar[Policy] = SAFE

    def __init__(self) -> None:
        super().__init__()
        self.world = World(policy=self.policy, settings=SETTINGS)
        self.client = self.world.client = StrictClient(self.world, [])
        self.world.observed = Listener(self._heard)
        self.at = self.world.at
        """What happens at a moment, the next time."""
        self.world.session.last_messages = []
        self.reopen()

    def _heard(self, event: Any) -> None:
        match event:
            case Compacted(failed=None):
                self.held = [entry for entry in self.held if entry[0] == "user"]
            case StateEntered(state=state) if state in self.at:
                self.at.pop(state)()
            case _:
                pass

    # --- turns

    def play(self, text: str, rounds: Sequence[int], *, fails: bool, more: str = "") -> None:
        answer = self.word("answer", more)
        run = self._run(text, rounds, RuntimeError("broken") if fails else says(answer))
        assert (run.machine.state == DONE) != fails
        if not fails:
            self.held.append(("assistant", answer))

    def cut(self, text: str, rounds: Sequence[int], moment: str) -> None:
        answer = self.word("answer")

        def cancel() -> None:
            self.world.session.cancel()
            if moment in UNSENT:
                self.dropped.add(answer)

        self.at[moment] = cancel
        self._run(text, rounds, says(answer))

    def lose(self, text: str, rounds: Sequence[int], moment: str) -> None:
        def breaks() -> None:
            raise Broken

        self.at[moment] = breaks
        try:
            self._run(text, rounds, says(self.word("answer")))
        except Broken:
            self._forget_what_is_gone()
        self.reopen()

    def reopen(self) -> None:
        left = self.world.session.last_messages
        session = self.world.session = Session(
            self.client, self.world.ports(), settings=SETTINGS, policy=self.policy
        )
        session.title = "titled"
        session.last_messages = list(left)
        self.world.tool("look", self._look)
        self.world.tool("later", self._later)

    @rule(first=ROUNDS, second=ROUNDS, moment=st.sampled_from(moments))
    def replaced(self, first: list[int], second: list[int], moment: str) -> None:
        """A run begins while another one has not ended, which is stale from then on."""
        left: list[list[Message]] = []

        def supersede() -> None:
            self._forget_what_is_gone()
            rest = self.client.replies
            self.play(self.word("user"), second, fails=False)
            self.client.replies = rest
            left.append(self.world.session.last_messages)

        self.at[moment] = supersede
        self._run(self.word("user"), first, says(self.word("answer")))
        if left:
            assert self.world.session.last_messages == left[0]  # the old run has written nothing
            self._forget_what_is_gone()

    @rule()
    def long_turn(self) -> None:
        """The context is too full after this: the next turn begins with a summary."""
        self.play(self.word("user"), [], fails=False, more=LONG)

    @rule()
    def plan_mode(self) -> None:
        plan = self.world.session.plan
        if plan.on:
            plan.leave()
        else:
            plan.enter()

    @invariant()
    def a_provider_took_each_request(self) -> None:
        assert self.client.refused == ()

    def history(self) -> tuple[Neutral, ...]:
        return tuple(map(to_neutral, self.world.session.last_messages))

    def _run(self, text: str, rounds: Sequence[int], last: Any) -> Loop:
        """Play a turn whose replies make so many calls each, until the `last` one."""
        replies: list[Any] = []
        for count in rounds:
            ids = [self.word("call") for _ in range(count)]
            tools = ["later" if at == 1 else "look" for at in range(count)]
            replies.append(says(self.word("reply"), *map(call, ids, tools)))
        replies.append(last)
        first, then = replies[0], self.at.pop("request", None)
        if then is not None:
            replies[0] = lambda: (then(), first)[1]
        self.client.replies = replies
        self.held.append(("user", text))
        session = self.world.session
        session.begin_run()
        run = self.loop(session, [*session.last_messages, user(text)])
        try:
            run.run()
        finally:
            self.at.clear()
        return run

    def _look(self) -> str:
        if then := self.at.pop("look", None):
            then()
        value = self.word("result")
        self.held.append(("tool", value))
        return value

    def _later(self) -> PendingToolResult:
        if then := self.at.pop("later", None):
            then()
        handle = PendingToolResult(self.world.threads)
        value = self.word("result")
        handle.deliver(value)
        self.held.append(("tool", value))
        return handle

    def _forget_what_is_gone(self) -> None:
        """Hold no more than there is: a run that was broken off has kept nothing back."""
        there = [(message.role, message.text()) for message in self.world.session.last_messages]
        self.held = [entry for entry in self.held if entry in there]


def without(flag: str) -> Policy:
    """The safe policy but for one flag."""
    return replace(SAFE, **{flag: not getattr(SAFE, flag)})
