"""Finds what is to be run: a reference loop by name, a user's agent as `package.module:build`."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from functools import wraps
from importlib import import_module
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from harness.core import shell
from harness.core.budget import Budget
from harness.core.errors import UsageError, hint, nearest, unknown
from harness.core.json_text import Json
from harness.core.ports import Agent, Build, Env
from harness.loops import LOOPS
from harness.loops.kind import LoopKind
from harness.runner.levels import MODEL, Level, level_of
from harness.runner.scenario import Scenario
from harness.transport.cassettes.form import Cassette

_IMPORTERS = (__file__, importlib.__file__)
_OURS = f"{Path(__file__).parents[1]}{os.sep}"
"""Where lines are that a user cannot mend."""


PLACEHOLDER = "{turn}"
"""Where a command takes a turn's text, if each turn runs it anew."""


class Command(Struct, frozen=True):
    """An agent's program and its arguments, and how many seconds a turn may take, and one that is
    cancelled from then on. harness/runner/process.py says how it is played.
    """

    words: tuple[str, ...]
    turn_limit: float = 60
    cancel_limit: float = 5

    @property
    def once_a_turn(self) -> bool:
        """Whether each turn runs it anew."""
        return any(PLACEHOLDER in word for word in self.words)


class Subject(Struct, frozen=True):
    """What a scenario is run on: the name that reports give it, how to build it, and the options
    of the command line that choose it again; of a reference loop also its policy, its budget, the
    invariants that it is known to break where it is cancelled, each with the reason, and its name.
    `level` is where it meets its model, and `faults` says that a search may make something go wrong
    with each reply. An agent that is a program is its `process`; it cannot be built. With a
    `cassette` it is run on the replies that were recorded there.
    """

    name: str
    build: Build
    options: tuple[str, ...] = ()
    policy: str | None = None
    budget: Budget = Budget()
    known: Mapping[str, str] = {}
    loop: str | None = None
    level: Level = MODEL
    process: Command | None = None
    faults: bool = False
    cassette: Cassette | None = None

    @property
    def policies(self) -> tuple[str, ...]:
        """What a scenario may call its policy, the most particular first: `fsm reference` is
        that of one loop, `reference` that of any.
        """
        if self.policy is None:
            return ()
        return (self.policy,) if self.loop is None else (f"{self.loop} {self.policy}", self.policy)

    def command(self, source: str, *words: str, flags: Sequence[str] = ()) -> str | None:
        """The command `harness <words>` for the scenario file `source` on this subject, with more
        `flags`, in a line that a shell takes; None where it has no options, or there is no file.
        """
        if not self.options or not source:
            return None
        return shell.join(["harness", *words, source, *self.options, *flags])


def find_loop(name: str) -> LoopKind:
    """The reference loop called `name`; UsageError where there is none."""
    for kind in LOOPS:
        if kind.name == name:
            return kind
    raise UsageError(unknown("loop", name, [kind.name for kind in LOOPS]))


def loop_subject(kind: LoopKind, scenario: Scenario, policy: str | None = None) -> Subject:
    """A reference loop, set up as `scenario` says; `policy` None is the loop's first.

    UsageError where the loop has no such policy.
    """
    chosen = kind.policies[0] if policy is None else policy
    if chosen not in kind.policies:
        raise UsageError(f"loop {kind.name}: {unknown('policy', chosen, kind.policies)}")
    config = loop_config(kind, scenario.config)

    def build(env: Env) -> Agent:
        return kind.build(env, config, chosen)

    asked = () if policy is None else ("--policy", policy)
    options = ("--loop", kind.name, *asked)
    known = kind.known.get(chosen, {})
    spelled, budget = f"{kind.name} ({chosen})", kind.budget(config)
    return Subject(spelled, build, options, chosen, budget, known, kind.name)


def loop_config(kind: LoopKind, config: Mapping[str, Json]) -> dict[str, Json]:
    """The settings of a scenario that are this loop's: shared ones, then those under its name."""
    shared = {key: value for key, value in config.items() if key in kind.settings}
    own = config.get(kind.name)
    return {**shared, **own} if isinstance(own, dict) else shared


def subject_for(agent: Build | Subject | str | None, scenario: Scenario) -> Subject:
    """What to run `scenario` on: a subject, the function that builds an agent, its name as
    `package.module:build`, a loop's name; None is the one loop that the scenario names.
    """
    if isinstance(agent, Subject):
        return agent
    if agent is None:
        if len(scenario.loops) != 1:
            named = f"the loops {', '.join(scenario.loops)}" if scenario.loops else "no loops"
            raise UsageError(
                f"{scenario.source or 'the scenario'} names {named}; say which agent to run it on: "
                "the function that builds one, its name as package.module:build, or a loop's name"
            )
        agent = scenario.loops[0]
    if not isinstance(agent, str):
        return subject_of(agent)
    return agent_subject(agent) if ":" in agent else loop_subject(find_loop(agent), scenario)


def at_level(subject: Subject, level: str) -> Subject:
    """A subject that meets its model at `level`, as `harness.runner.levels.level_of` reads it; at
    ``model`` the subject itself.
    """
    chosen = level_of(level)
    if chosen == MODEL:
        return subject
    if subject.process is not None:
        raise UsageError(f"a command meets its model over HTTP, and never at the level {chosen}")
    import_module("harness.transport.loopback")  # outside of any run, since it takes long
    import_module("harness.transport.model")

    @wraps(subject.build)
    def build(env: Any) -> Agent:
        env.level = chosen
        return subject.build(env)

    options = (*subject.options, "--level", str(chosen)) if subject.options else ()
    name = f"{subject.name} at {chosen}"
    return replace(subject, name=name, build=build, options=options, level=chosen)


def scripted(subject: Subject) -> Subject:
    """A subject itself; UsageError where it is to be run on a cassette.

    A recording has one course of events, and a run that is cancelled, or varied, takes another.
    """
    if subject.cassette is None:
        return subject
    raise UsageError(
        f"{subject.name} can be run, but not swept, searched or held against other runs: those ask "
        "for what was not recorded; make a scenario of the recording with "
        "`harness cassette to-scenario`"
    )


def command_subject(line: str) -> Subject:
    """An agent that is a program, named as a shell takes it; UsageError where that names none.

    It runs in real time, so that it can only be run, and another run may be another.
    """
    try:
        words = tuple(shell.split(line))
    except ValueError as error:
        raise UsageError(f"the command {line!r} cannot be read: {error}") from error
    if not words:
        raise UsageError("the command is empty; name a program, such as 'node agent.mjs'")

    def build(_env: Env) -> Agent:
        raise UsageError(
            f"the command {line!r} runs in real time: it can be run, but not swept or searched"
        )

    name = f"{line} (in real time: a replay may differ)"
    return Subject(name, build, ("--command", line), process=Command(words))


def subject_of(agent: Build | Subject) -> Subject:
    """A subject itself, or the function that builds an agent as one."""
    if isinstance(agent, Subject):
        return agent
    return Subject(getattr(agent, "__qualname__", repr(agent)), agent)


def agent_subject(spec: str) -> Subject:
    """A user's agent, named as `package.module:build`, a subject or the function that builds one;
    the current folder is searched first.

    UsageError where the module or the name in it is missing, where the module breaks while it is
    loaded (with the line that broke), and where the name is not callable.
    """
    module_name, _, path = spec.partition(":")
    if not module_name or not path:
        raise UsageError(
            f"agent {spec!r} is not of the form package.module:build; "
            "write the module, a colon, and the function that builds the agent"
        )
    if module_name.endswith(".py"):
        raise UsageError(
            f"agent {spec!r} names a file; name its module, as it is imported: "
            f"write {_dotted(Path(module_name))}:{path}"
        )
    found: Any = _load(module_name)
    place = module_name
    for name in path.split("."):
        if not hasattr(found, name):
            raise UsageError(f"{place}: {unknown('name', name, _public(found))}")
        found = getattr(found, name)
        place = f"{place}.{name}"
    if isinstance(found, Subject):
        return replace(found, options=("--agent", spec))
    if not callable(found):
        raise UsageError(
            f"agent {spec!r} is {type(found).__name__}, which cannot be called; "
            "name a function that takes the env and returns the agent"
        )
    return Subject(spec, found, ("--agent", spec))


def _load(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise UsageError(_missing(name, error.name, here)) from error
        raise UsageError(_broken(name, error)) from error
    except Exception as error:
        raise UsageError(_broken(name, error)) from error


def _missing(name: str, part: str, here: str) -> str:
    beside = [path.stem for path in Path(here).glob("*.py")]
    beside += [path.parent.name for path in Path(here).glob("*/__init__.py")]
    guess = hint(nearest(part, beside)) if "." not in part else ""
    whole = "" if part == name else f" of {name!r}"
    return (
        f"there is no module {part!r}{whole}{guess}; searched were {here} and what is installed, "
        "so run from the folder that holds it, or install it"
    )


def _dotted(file: PurePath) -> str:
    """The name of the module in a file of the current folder; of another file its last part."""
    parts = file.with_suffix("").parts
    return file.stem if file.is_absolute() or ".." in parts else ".".join(parts)


def _broken(name: str, error: Exception) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{error.filename}:{error.lineno}"
    else:
        passed_over = (_OURS, "<") if isinstance(error, UsageError) else ("<",)
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if not frame.filename.startswith(passed_over) and frame.filename not in _IMPORTERS
        ]
        place = f"{frames[-1].filename}:{frames[-1].lineno}: {frames[-1].line}" if frames else name
    return f"module {name!r} broke while it was loaded: {type(error).__name__}: {error}\n  {place}"


def _public(found: object) -> list[str]:
    """The names that a user may have meant: for a module, what makes agents and is its own."""
    if not isinstance(found, ModuleType):
        return [name for name in dir(found) if not name.startswith("_")]
    return [
        name
        for name, value in vars(found).items()
        if (callable(value) or isinstance(value, Subject)) and not _imported(value, found)
    ]


def _imported(value: Any, module: ModuleType) -> bool:
    """Whether a module has a value from another one, where it has the same name."""
    home = sys.modules.get(getattr(value, "__module__", ""))
    return home is not module and getattr(home, getattr(value, "__name__", ""), None) is value
