"""Files that mean harm, and files made by chance: a scenario or a FileError, and soon."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.errors import FileError
from tests.runner.files.loading import errors, read

MS = 1_000_000
SECOND = 1000 * MS


@pytest.mark.parametrize(
    "text",
    [
        "[" * 50_000,
        "{a: " * 50_000,
        "- " * 50_000,
        "a: &a [x]\nb: &b [" + "*a," * 9_000 + "]",
        "about: " + "x" * 9_000_000,
        "about: !!python/object/apply:os.system [ls]",
        "about:\tx\n\tturns: []",
        "about: x\x00",
        "about: 'x",
        "---\n---\n",
        "%TAG ! tag:x,2024:\n--- !y\n",
        "turns: " + "[" * 60 + "]" * 60,
        "turns: [[[clock]]]\ntools: [x]\nalso: {a: b}\nloops: 3\nconfig: []\norder: {}\nstrict: []",
        "turns: [{model: [{calls: [{}]}]}, 3, null, {model: {calls: x}}, {model: [[clock]]}]",
        "turns: [{user: u, model: [{say: x}], cancel: {point: '1#%s/late'}}]" % ("9" * 6000),
        "turns: [{user: u, model: [{say: x, takes: %sms}]}]" % ("9" * 6000),
        "about: x\nturns: [{user: u, cancel: {after: %s}}]" % ("tool_started " * 9000),
        "tools: {' ': {}, '': {}}",
        "{}",
        "null",
        "3",
    ],
)
def test_hostile_files_are_refused_in_time(text: str) -> None:
    began = time.process_time()
    for source in ("case.yaml", "case.json"):
        found = "\n".join(errors(text, source))
        assert len(found) < 40_000
    assert time.process_time() - began < 5


WORDS = (
    "about turns tools user model say calls cancel expect after at fault when returns resume nth "
    "torn hang tool_started clock 1 1.5 10ms true null ~ x"
)
SNIPPETS = st.sampled_from(WORDS.split(" ")) | st.text(max_size=3)
TREES = st.recursive(
    SNIPPETS | st.none() | st.booleans() | st.integers(-2, 3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SNIPPETS, inner, max_size=4),
    max_leaves=25,
)


TOP_KEYS = ("about", "loops", "config", "tools", "turns", "also", "order", "strict")


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(TOP_KEYS, TREES)))
@settings(deadline=None)
def test_any_tree_is_loaded_or_refused(tree: Any) -> None:
    with suppress(FileError):
        read(json.dumps(tree), "case.json")


@given(st.dictionaries(SNIPPETS, TREES, max_size=4), st.sampled_from(["reply", "turn", "tool"]))
@settings(deadline=None)
def test_any_part_is_loaded_or_refused(part: Any, place: str) -> None:
    turn = (
        part
        if place == "turn"
        else {"user": "u", "model": [part if place == "reply" else {"say": "x"}]}
    )
    tools = {"clock": part} if place == "tool" else {}
    with suppress(FileError):
        read(json.dumps({"about": "x", "tools": tools, "turns": [turn]}), "case.json")


def test_loading_is_quick() -> None:
    one = (
        "  - {user: u, model: [{say: x, calls: [{clock: {a: 1}}]}, {say: y}], "
        "expect: {outcome: completed}}\n"
    )
    text = "about: x\ntools: {clock: {returns: 1}}\nturns:\n" + one * 2_000
    began = time.process_time()
    assert len(read(text).turns) == 2_000
    assert time.process_time() - began < 5
