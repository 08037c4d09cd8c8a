"""Runs scenarios inside tests of pytest; what is wrong with a run is the test's failure."""

from __future__ import annotations

import sys
from collections.abc import Callable
from os.path import relpath
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest
from msgspec.structs import replace

from harness.core import shell
from harness.core.choices import Choices
from harness.core.errors import HarnessError, UsageError
from harness.core.located import shortened
from harness.core.outcome import outcome_name
from harness.core.ports import Build
from harness.loops.kind import LoopKind
from harness.report.not_run import Meant, NotRun
from harness.report.terminal import Report, failure_text
from harness.runner.agents import Subject, at_level, find_loop, loop_subject, subject_for
from harness.runner.cassettes.subject import on_cassette
from harness.runner.files.load import find, read
from harness.runner.result import Result
from harness.runner.run import run
from harness.runner.scenario import Scenario
from harness.testing.paths import found
from harness.testing.results import note, refuse
from harness.testing.subresults import SubResults
from harness.testing.variants import Variant
from harness.transport.cassettes.form import Cassette

T = TypeVar("T")


class OnScenarios:
    """Finds what a test runs, and what it runs it on; a base for the values of fixtures."""

    def __init__(
        self,
        request: pytest.FixtureRequest,
        build: Build | str | None,
        variant: Variant | None = None,
    ) -> None:
        self._node: pytest.Item = request.node
        self._build = build
        self._variant = variant or Variant()
        self._subresults = SubResults(request)
        self.used = False
        """Whether the test has called this."""

    def _read(self, scenario: str | Path | Scenario) -> Scenario:
        """The scenario; a path is looked for from pytest's root too."""
        self.used = True
        if isinstance(scenario, Scenario) or (isinstance(scenario, str) and "\n" in scenario):
            return read(scenario)
        expected = "the path of a scenario file, a text of several lines, or a Scenario"
        if not isinstance(scenario, str | Path):
            raise UsageError(f"{shortened(repr(scenario))} is not a scenario; expected {expected}")
        return read(found(scenario, self._node.config, expected))

    def _subject(
        self, agent: Build | Subject | str | None, scenario: Scenario, level: str | None
    ) -> Subject:
        named: str = self._node.config.getini("harness_agent")
        root = str(self._node.config.rootpath)
        if root not in sys.path:
            sys.path.append(root)
        if not agent and self._build is None:
            raise UsageError(
                "the fixture harness_build gave None; has it no `return`? Expected a function that "
                "builds the agent, its name as package.module:build, or '' to leave it to settings"
            )
        varied = self._variant
        _check_once("levels", varied.level, "level", level)
        if varied.loop is not None:
            _check_once("loops", varied.loop, "agent", agent)
        level = level or varied.level
        chosen = varied.loop or agent or self._build or named or self._only_loop(scenario)
        if varied.policy is None:
            subject = subject_for(chosen, scenario)
        else:
            subject = loop_subject(_loop(chosen), scenario, varied.policy)
        return subject if level is None else at_level(subject, level)

    def _only_loop(self, scenario: Scenario) -> str:
        if len(scenario.loops) == 1:
            return scenario.loops[0]
        several = f"several loops, {', '.join(scenario.loops)}" if scenario.loops else "no loops"
        raise UsageError(
            f"{scenario.source or 'the scenario'} names {several}; say what to run it on: "
            "give the fixture an agent, or define harness_build, or set harness_agent"
        )

    def _refuse(self, meant: Meant, problem: HarnessError, what: object) -> NoReturn:
        """Fail the test with what kept it from running, sweeping or searching this."""
        refuse(self._node, self._lost(meant, problem, what))

    def _lost(self, meant: Meant, problem: HarnessError, what: object) -> NotRun:
        name, source = self._node.name, ""
        if isinstance(what, Scenario):
            name, source = what.name, what.source
        elif isinstance(what, Path) or (isinstance(what, str) and "\n" not in what):
            name, source = "", Path(what).as_posix()
        elif callable(what):
            name = getattr(what, "__qualname__", name)
        return NotRun(meant, str(problem), name, source)

    def _each(
        self,
        folder: str | Path,
        agent: Build | Subject | str | None,
        one: Callable[[Scenario, Build | Subject | str | None], T],
    ) -> tuple[T, ...]:
        """What `one` gives for each scenario below a folder, as a sub-result each; where it names
        several loops and nothing else is said of what to run on, for each of them.
        """
        self.used = True
        problem: HarnessError | None = None
        try:
            at = found(folder, self._node.config, "a folder of scenario files")
            scenarios = [read(path) for path in find([at])]
        except HarnessError as error:
            problem = error
        if problem is not None:  # not while it is handled: it would be shown as the cause
            self._refuse("test", problem, folder)
        came: list[T] = []
        said = agent or self._build or self._node.config.getini("harness_agent")
        for scenario in scenarios:
            several = len(scenario.loops) > 1 and not (said or self._variant.loop)
            for loop in scenario.loops if several else (agent,):
                name = f"{scenario.name} on {loop}" if several else scenario.name
                with self._subresults.part(name):
                    came.append(one(scenario, loop))
        self._subresults.check()
        return tuple(came)


class HarnessRun(OnScenarios):
    """Runs scenarios for one test; the value of the fixture `harness_run`."""

    def __call__(
        self,
        scenario: str | Path | Scenario,
        agent: Build | Subject | str | None = None,
        *,
        check: bool = True,
        choices: Choices | None = None,
        level: str | None = None,
        cassette: str | Path | Cassette | None = None,
    ) -> Result:
        """Run `scenario` on `agent` and give the result.

        A text of several lines is a scenario itself, any other text a path: from the current
        folder, or else from pytest's root. `agent` may be a function that builds one, its name as
        `package.module:build`, or the name of a reference loop; None is what the fixture
        `harness_build` gives, the setting `harness_agent` names, or the one loop that the scenario
        names. `level` is where the agent meets its model, such as ``http:anthropic``.
        With a `cassette`, the model's replies are those that were recorded in it.

        With `check` the test fails where the result is not ok, and the last line of what it says
        runs the test again.
        """
        problem: HarnessError | None = None
        try:
            read = self._read(scenario)
            result = run(read, self._on(agent, read, level, cassette), choices)
        except HarnessError as error:
            problem = error
        if problem is not None:  # not while it is handled: it would be shown as the cause
            self._refuse("run", problem, scenario)
        report = replace(result.report(), rerun=rerun_line(self._node))
        note(self._node, report)
        if check and not result.ok:
            pytest.fail(_failure(result, report), pytrace=False)
        self._tell_open(result)
        return result

    def each(
        self,
        folder: str | Path,
        agent: Build | Subject | str | None = None,
        *,
        check: bool = True,
        level: str | None = None,
    ) -> tuple[Result, ...]:
        """Run each scenario below a folder, and give the results.

        Each is a sub-result of the test: one that fails does not keep the others from being run. A
        scenario that names several loops is run on each, where nothing else says what to run on.
        """
        return self._each(folder, agent, lambda each, on: self(each, on, check=check, level=level))

    def _on(
        self,
        agent: Build | Subject | str | None,
        scenario: Scenario,
        level: str | None,
        cassette: str | Path | Cassette | None,
    ) -> Subject:
        if cassette is None:
            return self._subject(agent, scenario, level)
        if not isinstance(cassette, Cassette):
            cassette = found(cassette, self._node.config, "the path of a cassette, or a Cassette")
        subject = self._subject(agent, scenario, None)
        return on_cassette(subject, cassette, level or "model")

    def _tell_open(self, result: Result) -> None:
        """Say what a run that passed leaves open, where pytest was asked to say more (-rP, -rA)."""
        if not {"P", "A"} & set(self._node.config.getoption("reportchars", "")):
            return
        verdict = result.verdict
        notes = [f"accepted: {one.violation.invariant}, {one.why}" for one in verdict.accepted]
        if verdict.not_judged:
            notes.append(f"not judged: {', '.join(verdict.not_judged)}")
        if notes:
            self._node.add_report_section("call", "harness", "\n".join(notes))


def _failure(result: Result, report: Report) -> str:
    """What is broken, in a line that pytest's summary shows; then all of it, and last the line that
    runs this test again.
    """
    broken = [one.invariant for one in report.hard] + [one.kind for one in result.failures]
    outcomes = ", ".join(map(outcome_name, result.outcomes)) or "no turn ended"
    return f"{', '.join(dict.fromkeys(broken))}; outcomes: {outcomes}\n{failure_text(report)}"


def _check_once(several: str, of: str | None, argument: str, given: object) -> None:
    """UsageError where the marker and a call both say what to run on."""
    if of is not None and given is not None:
        raise UsageError(
            f"the marker harness names {several}, and the test runs for {of} now; leave out "
            f"{argument}={shortened(repr(given))} here, or the {several} there"
        )


def _loop(chosen: object) -> LoopKind:
    """The reference loop that a policy is for."""
    if isinstance(chosen, str) and ":" not in chosen:
        return find_loop(chosen)
    shown = chosen if isinstance(chosen, str) else shortened(repr(chosen))
    raise UsageError(f"policies are those of reference loops, and this runs on {shown}")


def rerun_line(node: pytest.Item) -> str:
    """The command that runs this one test again, from the folder in which pytest was started."""
    config = node.config
    started: list[str] = getattr(config, "workerinput", {}).get("mainargv", sys.argv)  # by xdist
    program = ["python", "-m", "pytest"] if Path(started[0]).stem == "__main__" else ["pytest"]
    inside = str(node.nodeid).partition("::")[2]
    return shell.join([*program, *_options(config), f"{shown_path(node.path, config)}::{inside}"])


def _options(config: pytest.Config) -> list[str]:
    """The options given to pytest that decide what there is to run, and what it runs on."""
    given = config.invocation_params.args
    plugins = [
        one
        for one in config.getoption("plugins") or ()
        if one in given or f"-p{one}" in given  # others stand in settings
    ]
    options = {
        "-c": [config.getoption("inifilename")],
        "--rootdir": [config.getoption("rootdir")],
        "-p": plugins,
        "-o": config.getoption("override_ini") or (),
    }
    return [
        part for name, values in options.items() for one in values if one for part in (name, one)
    ]


def shown_path(path: Path, config: pytest.Config) -> str:
    """A file as a user names it from the folder in which pytest was started."""
    try:
        return Path(relpath(path, config.invocation_params.dir)).as_posix()
    except ValueError:  # another drive
        return path.as_posix()
