"""Clients that an agent makes by itself, in a run: their requests come to the run's provider."""

from __future__ import annotations

from functools import partial

import pytest

from harness.sim.hold import swap_also
from harness.transport.framing import Framing
from harness.transport.router import Routes, swaps
from tests.transport.sdks import ASYNC, FRAMINGS, FULL, SYNC, Heard, World, world

swap_also(swaps)


def routed(made: World) -> Routes:
    call = partial(made.blocking.call, abortable=True)
    routes = Routes(lambda: made.provider.answer, call, "http://provider.test")
    made.kernel.routes = routes
    return routes


def check(heard: Heard, sdk: str) -> None:
    assert heard.text == FULL.say
    assert heard.calls == [("weather", {"city": "Rome"}), ("clock", {})]
    assert heard.usage == (10, 5)
    assert heard.thinking == (FULL.think if sdk == "anthropic" else "")


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
@pytest.mark.parametrize("sdk", ASYNC)
def test_an_asynchronous_sdk_hears_what_the_script_says(sdk: str, framing: Framing) -> None:
    with world(FULL, framing=framing) as made:
        routes = routed(made)
        check(made.run(ASYNC[sdk]()), sdk)
        assert made.kinds()[-1] == "ReplyEnded"
        assert made.kernel.now() >= 2_500_000_000
        assert routes.router["provider"].calls.call_count == 1


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
@pytest.mark.parametrize("sdk", SYNC)
def test_a_synchronous_sdk_hears_what_the_script_says(sdk: str, framing: Framing) -> None:
    with world(FULL, framing=framing) as made:
        routes = routed(made)
        check(made.play(SYNC[sdk]), sdk)
        assert made.kinds()[-1] == "ReplyEnded"
        assert made.kernel.now() >= 2_500_000_000
        assert routes.router["provider"].calls.call_count == 1
