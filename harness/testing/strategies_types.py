"""What Hypothesis is told of our types, as soon as it is imported: how values of them are drawn.

So `st.from_type(Scenario)`, `st.builds` and `@given(...)` by annotations know them. The entry point
`hypothesis` of the package calls `register`, so this file imports nothing but the types themselves;
a strategy is made when one is first drawn from.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from hypothesis.strategies import SearchStrategy, register_type_strategy

from harness.core.choices import Choices
from harness.core.messages import Message, ModelRequest, ToolCall, Usage
from harness.fakes.script import Reply, ScriptedCall
from harness.fakes.tool_spec import ToolSpec
from harness.runner.scenario import Scenario

STRATEGIES: dict[type[Any], str] = {
    Choices: "choices",
    Message: "messages",
    ModelRequest: "requests",
    Reply: "replies",
    Scenario: "scenarios",
    ScriptedCall: "scripted_calls",
    ToolCall: "calls",
    ToolSpec: "tools",
    Usage: "usages",
}
"""By type, the name of what draws it in `harness.testing.strategies`."""


def register() -> None:
    """Tell Hypothesis how values of our types are drawn."""
    for drawn, name in STRATEGIES.items():
        register_type_strategy(drawn, _drawing(name))


def _drawing(name: str) -> Callable[[type[Any]], SearchStrategy[Any]]:
    def strategy(_drawn: type[Any]) -> SearchStrategy[Any]:
        made: SearchStrategy[Any] = getattr(import_module("harness.testing.strategies"), name)()
        return made

    return strategy
