"""What exploring asks of whatever it explores: runs, each decided by a tape and some shots."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, get_args

from msgspec import Struct

from harness.core.choices import Picker, Tape

Role: TypeAlias = Literal["turn", "model", "tool", "thread", "other"]
"""What a task does: it plays the turn, reads the model, runs a tool, stands for a thread that does
none of that, or anything else."""

ROLES: tuple[Role, ...] = get_args(Role)

Mode: TypeAlias = Literal["start", "early", "late", "mid"]
"""When a cancel comes: before a task's first step; right after it suspends; when what it waits for
is done, before it resumes; after some other step while it waits."""

Whom: TypeAlias = Literal["agent", "turn", "task"]
"""Who is told: the agent by its own stop, the turn's task, or the very task of the site."""

ORDERING = frozenset({"ready", "tie"})
"""Sources that ask which of those that wait goes first. Value v is the v-th in the order in which
they came to wait; the others keep their order, and who comes later stands behind them."""

NOT_REACHED = "not reached"
REFUSED = "refused"
MISSED = frozenset({NOT_REACHED, REFUSED})
"""What a shot came to that has shown nothing: the run never got there, or nobody took it."""


class Site(Struct, frozen=True):
    """A place where a run can be cancelled: the k-th suspension of the task at `path` (0: before
    its first step). `where` is the line it stands at.

    Steps count from 1. The step `first` ends with the task waiting there (k 0: it made the task),
    and the step `last` is the task's next; `last` is None where there is none. `waits` says whether
    it waits for something, and does not only yield. `turn` is the turn that is played then, 0 for
    none. `thread` says that the task stands for a thread: nobody can cancel that itself.
    """

    path: str
    k: int
    role: Role
    where: str
    first: int
    last: int | None
    waits: bool = True
    turn: int = 0
    thread: bool = False


class Shot(Struct, frozen=True):
    """One cancel: where, when, whom; a ``mid`` one comes after the run's step number `step`."""

    path: str
    k: int
    mode: Mode
    whom: Whom
    step: int | None = None

    def __str__(self) -> str:
        at = f"@{self.step}" if self.step is not None else ""
        return f"{self.path}#{self.k}/{self.mode}{at}:{self.whom}"


class Landing(Struct, frozen=True):
    """What came of a shot, in one word, such as ``propagated`` or ``not reached``."""

    shot: Shot
    came_to: str


class Finding(Struct, frozen=True):
    """Something wrong with a run; equal `key`s are the same thing in two runs.

    `line` is the index of the line of `Run.lines` that shows it, None where the whole run does.
    """

    key: str
    message: str
    line: int | None = None


class Asked(Struct, frozen=True):
    """A choice that a run asked for, in order; `step` is the run's step by then."""

    source: str
    label: str
    bound: int
    value: int
    step: int = 0


class Waiting(Struct, frozen=True):
    """A task that waits for ever: where, and for which other tasks, as far as that is known."""

    path: str
    where: str
    awaits: tuple[str, ...] = ()


class Kept(Struct, frozen=True):
    """What the conversation still shows after a cancelled turn, in words; `line` is as for findings
    that of the request that shows it.
    """

    items: tuple[str, ...]
    line: int


class Run(Struct, frozen=True):
    """One run and what came of it. `digest` is equal for runs that went the same way.

    `sites` are in the order in which the run came to them, and `steps` is how many it took.
    `asked` are the choices with more than one value. `unresolved` says why nothing can be said of
    it, such as a limit that was reached. `reached` are the goals that it reached.
    """

    digest: str
    sites: tuple[Site, ...] = ()
    steps: int = 0
    asked: tuple[Asked, ...] = ()
    landings: tuple[Landing, ...] = ()
    findings: tuple[Finding, ...] = ()
    tolerated: tuple[Finding, ...] = ()
    unresolved: str | None = None
    reached: frozenset[str] = frozenset()
    lines: tuple[str, ...] = ()
    """The run as text, one line an event, where the probe keeps it."""
    left: tuple[Waiting, ...] = ()
    """Who waits for ever, where that is why the run stopped and the probe keeps it."""
    kept: Kept | None = None
    """Where its one cancel was told to the agent or a turn: what is left then, if that is known."""


class Probe(Protocol):
    """Something to explore. The same tape and shots give the same run."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    @property
    def whom(self) -> tuple[Whom, ...]:
        """Who can be told to stop."""
        ...

    def run(
        self, tape: Tape = (), shots: tuple[Shot, ...] = (), picker: Picker | None = None
    ) -> Run:
        """Run once: choices are what `tape` says, then what `picker` says, then 0."""
        ...
