"""A scenario: what is said, what model and tools do, where it is cut, what must come out."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from harness.core.budget import Budget
from harness.core.json_text import Json
from harness.core.messages import Usage
from harness.core.outcome import OutcomeName
from harness.fakes.script import Also, Reply
from harness.fakes.tool_spec import ToolSpec


class Cancel(Struct, frozen=True):
    """Where a turn is cut: after an event, at a time of the turn, or at a point.

    `after` is a kind of event, `name` its subject (None: any), `nth` which one in the turn. `at`
    counts virtual nanoseconds from the start of the turn. `point` is ``<task path>#<k>/<mode>``.
    `by` is None for the agent's own stop where it has one, else the turn's task. Modes: ``now``,
    when the event is recorded; ``early``, right after the event's task suspends next; ``late``,
    when what it then waits for is done, before it resumes.
    """

    after: str | None = None
    name: str | None = None
    nth: int = 1
    at: int | None = None
    point: str | None = None
    by: Literal["agent", "task"] | None = None
    mode: Literal["now", "early", "late"] = "now"
    line: int = 0


class Allow(Struct, frozen=True):
    """A finding that is known and accepted; one that is never found is an error.

    `policy` None is for whatever runs, else for reference loops under that policy only, or as in
    `fsm reference` for one of them.
    """

    invariant: str
    why: str
    policy: str | None = None
    line: int = 0


class Expect(Struct, frozen=True):
    """What must come out of a turn; None is not looked at.

    `synthesized` and `tools` are names in order; `rows` kinds of log rows in order; `say` the
    turn's last complete reply; `error` a part of the error's message; `requests` a number of
    model calls; `trimmed` whether the history was cut. `messages` is what the turn's last request
    shows the model, `told` what the loop tells its consumer, each in order: a role or an event's
    name, and where more follows a part of its text. `usage` is what the loop has counted since the
    run began.
    """

    outcome: OutcomeName | None = None
    synthesized: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    rows: tuple[str, ...] | None = None
    say: str | None = None
    error: str | None = None
    requests: int | None = None
    trimmed: bool | None = None
    messages: tuple[str, ...] | None = None
    told: tuple[str, ...] | None = None
    usage: Usage | None = None
    only: bool = False
    """Lists must match whole, and what is not named must not have happened."""
    under: dict[str, Expect] = field(default_factory=dict)
    """What else is expected under a policy: an entry replaces this one, whole."""
    line: int = 0


class Turn(Struct, frozen=True):
    """One user turn; `user` is None for a resume."""

    user: str | None
    replies: tuple[Reply, ...] = ()
    cancel: Cancel | None = None
    expect: Expect | None = None
    line: int = 0


class Scenario(Struct, frozen=True):
    """A whole scenario, as a file holds it.

    `name` is the file's path without its ending, `source` the file, for messages and replay.
    `config` holds the loop's settings: those of one loop under the loop's name, or shared ones.
    """

    name: str
    about: str = ""
    loops: tuple[str, ...] = ()
    config: dict[str, Json] = field(default_factory=dict)
    tools: tuple[ToolSpec, ...] = ()
    turns: tuple[Turn, ...] = ()
    also: tuple[Also, ...] = ()
    order: Literal["place", "calls"] = "place"
    budget: Budget = Budget()
    """What the agent may spend, beside what a loop's settings say."""
    allow: tuple[Allow, ...] = ()
    strict: bool = True
    """Whether the fake provider refuses a history that a real one would refuse."""
    source: str = ""
