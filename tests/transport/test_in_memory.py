"""Clients that reach the scripted provider without a network, through the vendors' libraries."""

from __future__ import annotations

from typing import Any

import pytest

from harness.transport.framing import Framing
from harness.transport.in_memory import client
from tests.transport.sdks import ASYNC, FRAMINGS, FULL, SYNC, Heard, World, world

URL = "http://provider.test"


def make(made: World, name: str = "httpx2", *, sync: bool = False) -> Any:
    return client(name, made.provider.answer, URL, made.blocking.call if sync else None)


def check(heard: Heard, sdk: str) -> None:
    assert heard.text == FULL.say
    assert heard.calls == [("weather", {"city": "Rome"}), ("clock", {})]
    assert heard.usage == (10, 5)
    assert heard.thinking == (FULL.think if sdk == "anthropic" else "")


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
@pytest.mark.parametrize("sdk", ASYNC)
def test_an_asynchronous_sdk_hears_what_the_script_says(sdk: str, framing: Framing) -> None:
    with world(FULL, framing=framing) as made:
        check(made.run(ASYNC[sdk](make(made))), sdk)
        assert made.kinds()[-1] == "ReplyEnded"
        assert made.kernel.now() >= 2_500_000_000


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
@pytest.mark.parametrize("sdk", SYNC)
def test_a_synchronous_sdk_hears_what_the_script_says(sdk: str, framing: Framing) -> None:
    with world(FULL, framing=framing) as made:
        check(made.play(lambda: SYNC[sdk](make(made, sync=True))), sdk)
        assert made.kinds()[-1] == "ReplyEnded"
        assert made.kernel.now() >= 2_500_000_000
