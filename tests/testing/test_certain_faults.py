"""What is certain of a turn whose reply goes wrong on its way, or is cut off."""

from __future__ import annotations

import contextlib

import pytest

from harness.core.events import Event, event_kind
from harness.core.messages import user
from harness.core.ports import ProviderFailed
from harness.fakes.script import Fault, Reply
from harness.fakes.wire_faults import SEARCHED
from harness.testing.certain import Limits, certain
from tests.fakes.world import World, turn

SAID = Reply("abc", chunk=1)


def happened(reply: Reply) -> set[tuple[str, str | None]]:
    with World(turn("Go", reply)) as world:
        with contextlib.suppress(ProviderFailed):
            world.read(user("Go"))
        return {_counted(event) for event in world.events}


def _counted(event: Event) -> tuple[str, str | None]:
    return event_kind(type(event)), event.subject


@pytest.mark.parametrize("fault", SEARCHED, ids=str)
def test_what_is_certain_of_a_fault_happens(fault: Fault) -> None:
    reply = Reply(SAID.say, chunk=1, fault=fault)
    events = {*certain([reply], {}, Limits()).events}
    assert events - {("turn_started", None)} == happened(reply)


@pytest.mark.parametrize("stop", ["length", "filtered"])
def test_a_reply_that_is_cut_off_surely_ends_as_torn(stop: str) -> None:
    reply = Reply(SAID.say, chunk=1, stop=stop)  # type: ignore[arg-type]
    found = certain([reply], {}, Limits())
    assert not found.answered
    assert {*found.events} - {("turn_started", None)} == happened(reply)
