"""Vectors of racing: a cancel signal against a piece of work."""

from __future__ import annotations

import asyncio
import re

from harness.core.cancel_signal import CancelSignal
from harness.core.json_text import Json
from harness.loops.turn.cancel import Aborted, Failed, Ok, Raced, race
from harness.loops.turn.failure import message_of
from harness.runner.conform.common import VectorTexts, difference, play


class Broken(Exception):
    """What the work of a vector raises."""


def check(vector: Json, _texts: VectorTexts) -> str | None:
    """Race the vector's work against its signal."""
    raced = play(lambda: _race(vector["signal"], vector["work"]))
    return difference(vector["expected"], _json(raced))


async def _race(signal_name: str, work_name: str) -> Raced[int]:
    signal = _signal(signal_name)
    return await race(_work(work_name), signal)


def _signal(name: str) -> CancelSignal | None:
    if name == "none":
        return None
    signal = CancelSignal()
    timed = re.fullmatch(r"abort_at_(\d+)ms", name)
    if timed:
        asyncio.get_running_loop().call_later(int(timed[1]) / 1000, signal.abort)
    elif name == "already_aborted":
        signal.abort()
    elif name != "never":
        raise ValueError(f"unknown signal {name!r}")
    return signal


async def _work(name: str) -> int:
    timed = re.fullmatch(r"(resolve|reject)_at_(\d+)ms", name)
    if timed:
        await asyncio.sleep(int(timed[2]) / 1000)
        if timed[1] == "reject":
            raise Broken("late")
        return 7
    match name:
        case "resolved":
            return 7
        case "rejected_error":
            raise Broken("boom")
        case "rejected_string":
            raise Broken("str")
        case "hang":
            await asyncio.get_running_loop().create_future()
    raise ValueError(f"unknown work {name!r}")


def _json(raced: Raced[int]) -> Json:
    match raced:
        case Ok(value=value):
            return {"outcome": "ok", "value": value}
        case Failed(error=ValueError() as error):
            raise error
        case Failed(error=error):
            return {"outcome": "failed", "message": message_of(error)}
        case Aborted():
            return {"outcome": "aborted"}
