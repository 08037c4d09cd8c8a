"""Tells of an agent that begins a run with what was said in an earlier one."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

from harness.core.events import ReplyEnded, RequestSent
from harness.core.located import shortened
from harness.core.messages import Message
from harness.core.trace import Trace
from harness.runner.agents import Subject


class RunsNotApart(UserWarning):
    """A warning: an agent keeps its conversation where the next run finds it, as in a list of its
    module, so that no run is judged by itself.
    """


_said: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""What the model said in the last run of each agent, by what builds it."""


def warn_unless_apart(subject: Subject, trace: Trace) -> None:
    """Warn where the first request of a run holds what the model said in the run before it, and
    keep what it said in this one. What every run begins with, such as examples, is no such thing.
    """
    first = next((each.event for each in trace if type(each.event) is RequestSent), None)
    if first is None:
        return
    begun = {*_of_model(first.added)}
    replies = [each.event.message for each in trace if type(each.event) is ReplyEnded]
    said = {*_of_model([each for each in replies if each is not None])} - begun
    build = inspect.unwrap(subject.build)
    try:
        kept = sorted(_said.get(build, set()) & begun)
        _said[build] = said.union(kept)
    except TypeError:  # no weak reference to it can be made
        return
    if kept:
        warnings.warn(
            f"{subject.name} began a run with what the model had said in the run before it "
            f"({shortened(kept[0])}), so that no run is judged by itself; make what it remembers "
            "anew for each run, in what builds the agent, and keep it in no module",
            RunsNotApart,
            stacklevel=3,
        )


def _of_model(messages: list[Message] | tuple[Message, ...]) -> Iterator[str]:
    """What the model says in each of its messages: its words, and the ids of its calls."""
    for message in messages:
        if message.role == "assistant":
            yield " ".join([repr(message.text), *[call.id for call in message.calls]])
