"""The state-machine loop, as recorded, with one thing gone wrong; what it reports is true all the
same.

Each is to be noticed by snapshots of a run in which the loop as it is does well.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest.mock import patch

from harness.core.json_text import Json
from harness.core.outcome import Outcome
from harness.core.ports import Env
from harness.loops.fsm import loop
from harness.loops.fsm.agent import KIND, FsmAgent
from harness.loops.fsm.context import salvage
from harness.loops.fsm.loop import Loop
from harness.loops.fsm.messages import Message
from harness.loops.fsm.policy import REFERENCE
from harness.loops.fsm.session import Session


class Sound(FsmAgent):
    """Nothing is wrong with it."""

    wrong: Callable[[], AbstractContextManager[Any]] = staticmethod(nullcontext)

    def __init__(self, env: Env) -> None:
        super().__init__(env, {**KIND.settings, "system_prompt": ""}, REFERENCE)

    def turn(self, text: str | None) -> Outcome:
        with self.wrong():
            return super().turn(text)


def _swapped(run: Loop, state: str) -> None:
    entered(run, {"TOOL": "TRET", "TRET": "TOOL"}.get(state, state))


def _quiet(session: Session, kind: str, payload: Json = None) -> None:
    if kind != "tools":
        notify(session, kind, payload)


def _one_more(messages: Sequence[Message]) -> list[Message]:
    kept = salvage(messages)
    return kept if len(kept) == len(messages) else kept[:-1]


entered, notify = Loop.entered, Session.notify


class SwapsTwoStates(Sound):
    """It goes through two states the other way round, as far as anybody sees."""

    wrong = staticmethod(lambda: patch.object(Loop, "entered", _swapped))


class ForgetsToTell(Sound):
    """It does not tell that a result is delivered."""

    wrong = staticmethod(lambda: patch.object(Session, "notify", _quiet))


class SalvagesOneTooFew(Sound):
    """It leaves one message more out than the round that was cut off."""

    wrong = staticmethod(lambda: patch.object(loop, "salvage", _one_more))
