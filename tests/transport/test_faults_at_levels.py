"""A fault comes to the same whether it happens on the wire or in the model's own stream."""

from __future__ import annotations

import pytest

from harness.core.choices import Choices
from harness.core.json_text import Json
from harness.runner.agents import at_level, subject_for
from harness.runner.drive import Play
from harness.runner.files.fault_format import FAULT_NAMES
from harness.runner.files.load import load_text
from harness.wire import CODECS

LEVELS = [f"http:{codec.name}" for codec in CODECS] + ["server:openai_chat"]
CASE = """\
about: Something about one reply.
loops: [%s]
turns:
  - user: Go.
    model:
      - {think: Hm., %s, optional: true}
"""
UNSAID = {"done_twice", "late_thinking"}
"""What comes behind the end signal cannot be said over HTTP."""
COUNTED = {"cut_at"}
"""It counts bytes, of which there are none without HTTP."""
FAULTS = [name for name in FAULT_NAMES if name not in UNSAID | COUNTED]


def played(loop: str, reply: str, level: str) -> list[Json]:
    scenario = load_text(CASE % (loop, reply), "case.yaml")
    subject = at_level(subject_for(None, scenario), level)
    return Play(scenario, subject.build, Choices()).play().trace.neutral()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("loop", ["turn", "fsm"])
def test_a_fault(loop: str, fault: str) -> None:
    reply = f"say: A few words that come in parts., fault: {fault}"
    expected = played(loop, reply, "model")
    assert fault in str(expected)
    for level in LEVELS:
        assert played(loop, reply, level) == expected


@pytest.mark.parametrize(
    "fault", ["reset", "incomplete", "torn", "cut_line", "error_frame", "bad_json", "stall"]
)
@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_fault_between_parts(fault: str, after: int) -> None:
    reply = f"say: A few words that come in parts., fault: {{{fault}: {{after: {after}}}}}"
    expected = played("turn", reply, "model")
    for level in LEVELS:
        assert played("turn", reply, level) == expected


@pytest.mark.parametrize("stop", ["length", "filtered"])
@pytest.mark.parametrize("loop", ["turn", "fsm"])
def test_a_reply_that_is_cut_off(loop: str, stop: str) -> None:
    reply = f"say: Hello., stop: {stop}"
    expected = played(loop, reply, "model")
    assert "torn" in str(expected)
    for level in LEVELS:
        if (stop, level) != ("filtered", "http:anthropic"):  # it knows refusals only
            assert played(loop, reply, level) == expected


@pytest.mark.parametrize("stop", ["end", "refused", "paused"])
def test_a_reply_that_stops_for_another_reason(stop: str) -> None:
    reply = f"say: Hello., stop: {stop}"
    expected = played("turn", reply, "model")
    for level in LEVELS:
        assert played("turn", reply, level) == expected
