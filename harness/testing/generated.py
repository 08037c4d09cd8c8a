"""Holds generated scenarios against an agent; what fails is told so that it can be run again."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from harness.core.choices import Choices, Tape
from harness.core.ports import Build
from harness.runner.agents import Subject, at_level, find_loop, loop_subject, subject_of
from harness.runner.explored import OnAgent
from harness.runner.files.load import load_text
from harness.runner.files.spell import spell_text
from harness.runner.result import Result
from harness.runner.run import run
from harness.runner.scenario import Scenario
from harness.runner.token import Token, digest

FILE = "generated.yaml"
"""The file that a scenario without one is told to be saved as."""


class GeneratedFailure(AssertionError):
    """A generated scenario is not as it should be; its text is made when it is read, since a search
    for the smallest one throws away nearly all.
    """

    def __init__(
        self,
        why: str,
        scenario: Scenario,
        agent: Build | Subject | None,
        level: str = "model",
        tape: Tape = (),
    ) -> None:
        super().__init__(why, scenario, agent, level, tape)
        self._why = why
        self._scenario = scenario
        self._agent = agent
        self._level = level
        self._tape = tape

    def __str__(self) -> str:
        return f"{self._why}\n{told(self._scenario, self._agent, self._level, self._tape)}"


def check_generated(
    scenario: Scenario,
    agent: Build | Subject | None = None,
    *,
    level: str = "model",
    choices: Choices | None = None,
) -> Result:
    """Run `scenario` on `agent` (None: the first loop that it names), and give the result.

    `level` is where the agent meets its model, and `choices` decide what the scenario leaves open,
    both as for `harness.run`. GeneratedFailure where an invariant is broken or the scenario cannot
    be played; its text holds the whole report, the scenario as a file, and the line that runs it.
    """
    drawn = choices or Choices()
    result = run(scenario, subject_told(agent, scenario, level), drawn)
    if not result.ok:
        broken = [one.invariant for one in result.verdict.violations if one.severity == "hard"]
        broken += [one.kind for one in result.failures]
        why = ", ".join(dict.fromkeys(broken))
        raise GeneratedFailure(why, scenario, agent, level, drawn.tape())
    return result


@contextmanager
def telling(
    scenario: Scenario, agent: Build | Subject | None = None, *, level: str = "model"
) -> Iterator[None]:
    """Tell what a test of its own asserts within the block as `check_generated` does."""
    try:
        yield
    except AssertionError as error:
        raise GeneratedFailure(str(error), scenario, agent, level) from error


def told(
    scenario: Scenario,
    agent: Build | Subject | None = None,
    level: str = "model",
    tape: Tape = (),
) -> str:
    """What a run of `scenario` comes to, and the commands that save it as a file and run it."""
    file = scenario.source or FILE
    loaded = load_text(spell_text(scenario), file)  # so that the report names the lines of the file
    subject = subject_told(agent, loaded, level)
    result = run(loaded, subject, Choices(tape))
    again = result.rerun
    if tape:
        token = Token.of(digest(loaded), tape)
        again = OnAgent(loaded, subject).replay_line(str(token))
    return f"\n{result}\n{saved(scenario)}\n{again}"


def saved(scenario: Scenario) -> str:
    """The command that saves a scenario as the file that lines of commands name."""
    file = scenario.source or FILE
    return (
        f"The scenario; where a shell does not know <<, save the lines up to END as {file}:\n"
        f"cat > {shlex.quote(file)} <<'END'\n{spell_text(scenario)}END"
    )


def subject_told(
    agent: Build | Subject | None, scenario: Scenario, level: str = "model"
) -> Subject:
    """What to run `scenario` on, with a line that runs it again where a command can."""
    match agent:
        case None:
            subject = loop_subject(find_loop(scenario.loops[0]), scenario)
        case Subject():
            subject = agent
        case build:
            subject = replace(subject_of(build), options=_options(build))
    return at_level(subject, level)


def _options(build: Build) -> tuple[str, ...]:
    """The options of a command by which it finds an agent; none where it would find another, or
    nothing, as where a function made it, or the module has a name only while it is run.
    """
    module, name = (getattr(build, each, "") for each in ("__module__", "__qualname__"))
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    known = found is build and module != "__main__"
    return ("--agent", f"{module}:{name}") if known else ()
