"""Holds generated scenarios against an agent; what fails is told so that it can be run again."""

from __future__ import annotations

import shlex
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
    file, text = scenario.source or FILE, spell_text(scenario)
    loaded = load_text(text, file)  # so that the report names the lines of the file
    subject = subject_told(agent, loaded, level)
    result = run(loaded, subject, Choices(tape))
    again = result.rerun
    if tape:
        token = Token.of(digest(loaded), tape)
        again = OnAgent(loaded, subject).replay_line(str(token))
    save = f"cat > {shlex.quote(file)} <<'END'\n{text}END"
    return f"\n{result}\nThe scenario:\n{save}\n{again}"


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
            name = getattr(build, "__qualname__", "<")
            options = () if "<" in name else ("--agent", f"{build.__module__}:{name}")
            subject = replace(subject_of(build), options=options)
    return at_level(subject, level)
