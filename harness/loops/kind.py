"""What a reference loop has to offer, so that it can stand in `LOOPS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from harness.core.budget import Budget
from harness.core.json_text import Json
from harness.core.ports import Agent, Env


class BuildLoop(Protocol):
    """Builds the loop for one run."""

    def __call__(self, env: Env, config: Mapping[str, Json], policy: str) -> Agent:
        """Give the agent; `config` holds keys of the kind's `settings` only."""
        ...


class LoopBudget(Protocol):
    """Says what the loop may spend with its settings."""

    def __call__(self, config: Mapping[str, Json]) -> Budget:
        """Give the budget; `config` holds keys of the kind's `settings` only."""
        ...


def unlimited(config: Mapping[str, Json]) -> Budget:  # noqa: ARG001
    """The budget of a loop that has no limits of its own."""
    return Budget()


class LoopKind(Struct, frozen=True):
    """A reference loop: its name, its settings (name to default), its policies, default first."""

    name: str
    settings: Mapping[str, Json]
    policies: tuple[str, ...]
    build: BuildLoop
    budget: LoopBudget = unlimited
    events: tuple[str, ...] = ()
    """The names of the loop events that it reports; empty: not said."""
    states: tuple[str, ...] = ()
    """The names of the states that it enters; empty: not said."""
    known: Mapping[str, Mapping[str, str]] = {}
    """By policy, the invariants that some cancel at some moment breaks, each with the reason."""
