"""A scenario on an agent, as something to explore: every cancel, every choice, judged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec.structs import replace

from harness.core.choices import Choices, Picker, Tape
from harness.core.events import Delta, FaultInjected, RequestSent, ToolStarted
from harness.core.outcome import outcome_name
from harness.core.trace import Trace
from harness.core.verdict import Verdict, Violation
from harness.exploration.probe import (
    NOT_REACHED,
    REFUSED,
    Finding,
    Kept,
    Landing,
    Role,
    Run,
    Shot,
    Site,
    Waiting,
    Whom,
)
from harness.fakes.wire_faults import SEARCHED
from harness.invariants.relations import still_shown
from harness.report.text import lines
from harness.runner.agents import Subject
from harness.runner.consequences import without_consequences
from harness.runner.drive import Play
from harness.runner.goals import Goals
from harness.runner.result import Failure, Result
from harness.runner.run import judge_run, judge_trace
from harness.runner.scenario import Scenario
from harness.runner.shots import Notes, arm, site
from harness.sim.orders import Order
from harness.sim.sites import SiteKernel, Suspension
from harness.sim.stop import OVER, Reason, Stop
from harness.sim.tasks import DTask, TaskInfo

_NUMBER = re.compile(r"\d+")
_OURS = ("0", "close")
"""Tasks in which the harness calls the agent: they are not the agent's."""
_PLURAL = re.compile(r"(?<=\w\w\w)s\b")
_REPEATED = re.compile(r"(\S+)(?:, \1)+")
_COUNTED = ("agent", "run stopped", "mismatch")
"""The failures that count in a run that is cut."""
_LIMITS = OVER - {"out_of_simulation"}
"""The reasons to stop a run that leave open what it would have come to."""
_VERDICTS_MAX = 4_096
"""How many verdicts are kept."""


class AgentProbe:
    """Runs one scenario on one subject again and again.

    `order` says which orders are choices, and `goals` what a run may reach. With `keep_lines`, the
    text of each run is kept for reports, and who waits for whom at its end. Lines of code are
    looked up then, and with `places` in runs without cancels: they cost half as much as a run.
    """

    def __init__(
        self,
        scenario: Scenario,
        subject: Subject,
        order: Order = "fifo",
        *,
        goals: Sequence[str] = (),
        places: bool = True,
        keep_lines: bool = False,
    ) -> None:
        self.scenario = scenario
        self.subject = subject
        self.order = order
        self.places = places
        self.keep_lines = keep_lines
        self._goals = Goals(goals)
        self._verdicts: dict[str, Verdict] = {}
        """By the fingerprint of the trace."""
        names = "|".join([re.escape(spec.name) for spec in scenario.tools])
        self._tool = re.compile(rf"\b(?:{names or '(?!)'})\b")
        self._whom: tuple[Whom, ...] | None = None

    @property
    def name(self) -> str:
        """The scenario and the subject."""
        return f"{self.scenario.name} on {self.subject.name}"

    @property
    def whom(self) -> tuple[Whom, ...]:
        """The agent, where it has a stop of its own; the turn's task; any task."""
        if self._whom is None:
            self.run()
        assert self._whom is not None
        return self._whom

    def run(
        self, tape: Tape = (), shots: tuple[Shot, ...] = (), picker: Picker | None = None
    ) -> Run:
        """Play the scenario once, with these choices and cancels."""
        return self.play(tape, shots, picker)[1]

    def play(
        self, tape: Tape = (), shots: tuple[Shot, ...] = (), picker: Picker | None = None
    ) -> tuple[Result, Run]:
        """What `run` gives, and the result behind it, with the failures that count."""
        notes = Notes(tape, picker)
        choices = Choices(tape, notes.pick)
        kernel = notes.kernel = (_Kernel if self.keep_lines else SiteKernel)(
            places=self.keep_lines or (self.places and not shots),
            label=lambda: play.playing,
            choices=choices,
            order=self.order,
        )
        search = SEARCHED if self.subject.faults else ()
        play = Play(self.scenario, self.subject.build, choices, kernel, search)
        landings = _Landings(play, kernel)
        for shot in shots:
            landings.arm(shot)
        try:
            played = play.play()
        finally:
            asked = notes.close()
            kernel.label = int
        choices.check_used()
        self._whom = self._whom or (
            ("agent", "turn", "task") if play.has_stop else ("turn", "task")
        )
        digest = played.trace.fingerprint
        found = self._judged(digest, played.trace)
        judged = judge_run(self.scenario, self.subject, played, found, expect=False)
        result = without_consequences(_counted(judged))
        run = Run(
            digest=digest,
            sites=tuple(_sites(kernel.suspensions, _roles(played.trace))),
            steps=kernel.steps,
            asked=asked,
            landings=landings.told(result),
            findings=tuple(self._findings(result)),
            tolerated=tuple(self._tolerated(result)),
            unresolved=_unresolved(played.trace),
            reached=self._goals.reached(played.trace, kernel.reached),
            lines=tuple(lines(played.trace)) if self.keep_lines else (),
            left=_left(kernel, played.trace),
            kept=_kept(played.trace, landings.stopped) if len(shots) == 1 else None,
        )
        return result, run

    def _judged(self, digest: str, trace: Trace) -> Verdict:
        """What the invariants find in a trace, which takes a third of a run: equal ones are judged
        once.
        """
        found = self._verdicts.get(digest)
        if found is None:
            if len(self._verdicts) >= _VERDICTS_MAX:
                self._verdicts.clear()
            found = self._verdicts[digest] = judge_trace(self.scenario, self.subject, trace)
        return found

    def _findings(self, result: Result) -> Iterator[Finding]:
        known = self.subject.known
        for violation in result.verdict.violations:
            if violation.severity == "hard" and violation.invariant not in known:
                yield self._found(violation)
        for failure in result.failures:
            yield Finding(self._key(failure.kind, failure.message), failure.message, failure.entry)

    def _tolerated(self, result: Result) -> Iterator[Finding]:
        known = self.subject.known
        for violation in result.verdict.violations:
            if violation.invariant in known:
                yield self._accepted(violation, known[violation.invariant])
            elif violation.severity == "soft":
                yield self._found(violation)
        for accepted in result.verdict.accepted:
            yield self._accepted(accepted.violation, accepted.why)

    def _accepted(self, violation: Violation, why: str) -> Finding:
        message = f"{violation.invariant}, {why}"
        return Finding(self._key(violation.invariant, violation.message), message, violation.entry)

    def _found(self, violation: Violation) -> Finding:
        message = f"{violation.invariant}: {violation.message}"
        return Finding(self._key(violation.invariant, violation.message), message, violation.entry)

    def _key(self, kind: str, message: str) -> str:
        """What two runs have in common that show the same: which tool, and which number, do not
        matter, nor how many in a row: one call or several calls.
        """
        alike = _PLURAL.sub("", _NUMBER.sub("#", self._tool.sub("<tool>", message)))
        return f"{kind}: " + _REPEATED.sub(r"\1", alike)


class _Kernel(SiteKernel):
    """Notes who waits for whom when nothing goes on; what is told of that lets go of its locks."""

    left: Sequence[TaskInfo] = ()

    def _stop(self, reason: Reason, detail: str) -> Stop:
        if reason == "deadlock":
            self.left = self.alive()
        return super()._stop(reason, detail)


def _left(kernel: SiteKernel, trace: Trace) -> tuple[Waiting, ...]:
    """The tasks that wait for ever, where that is why the run stopped."""
    if not isinstance(kernel, _Kernel) or trace.stop is None or trace.stop[1].reason != "deadlock":
        return ()
    return tuple([Waiting(task.path, task.where, task.awaits) for task in kernel.left])


def _kept(trace: Trace, turn: int | None) -> Kept | None:
    """What is left after a turn; None where there is no turn."""
    shown = None if turn is None else still_shown(trace, turn)
    return None if shown is None else Kept(shown.items, shown.entry)


class _Landings:
    """The shots of one run: fires each at its place, and tells what came of it."""

    def __init__(self, play: Play, kernel: SiteKernel) -> None:
        self._play = play
        self._kernel = kernel
        self._came_to: dict[Shot, str | int] = {}
        """What a shot came to, or the turn that it was fired in."""
        self.stopped: int | None = None
        """The turn that a shot told to stop, where its scenario had not cut it before."""

    def arm(self, shot: Shot) -> None:
        self._came_to[shot] = NOT_REACHED
        arm(self._kernel, shot, lambda: self._fire(shot))

    def _fire(self, shot: Shot) -> None:
        if shot.whom == "task":
            task = self._kernel.find(shot.path)
            hit = task is not None and not task.thread and self._cancel(task, shot)
            self._came_to[shot] = "delivered" if hit else REFUSED
            return
        stopper = self._play.stopper
        by: Literal["agent", "task"] = "agent" if shot.whom == "agent" else "task"
        uncut = self._play.playing
        if stopper is not None and stopper.stop(by, str(shot)):
            self._came_to[shot] = stopper.turn
            self.stopped = uncut or None
        else:
            self._came_to[shot] = REFUSED

    def _cancel(self, task: DTask, shot: Shot) -> bool:
        if not task.cancel():
            return False
        self._play.recorder.record(FaultInjected("task_cancelled", str(shot)))
        return True

    def told(self, result: Result) -> tuple[Landing, ...]:
        return tuple([Landing(shot, _word(at, result)) for shot, at in self._came_to.items()])


def _word(came_to: str | int, result: Result) -> str:
    """What a shot came to: for a turn that was told, how it ended."""
    if isinstance(came_to, str):
        return came_to
    ended = came_to <= len(result.outcomes)
    return outcome_name(result.outcomes[came_to - 1]) if ended else "never ended"


def _sites(suspensions: Iterable[Suspension], roles: dict[str, Role]) -> Iterator[Site]:
    for each in suspensions:
        if each.path in _OURS or each.path.startswith("cancel"):
            continue
        if each.path.isdigit() and not each.label:
            continue  # the scenario itself has cut this turn: another cancel would be its second
        role = roles.get(each.path) or _role(each)
        yield site(each, role)


def _role(each: Suspension) -> Role:
    """What a task does in which nothing was recorded."""
    if each.path == str(each.label):
        return "turn"
    return "thread" if each.thread else "other"


def _roles(trace: Trace) -> dict[str, Role]:
    """What each task does, by what was recorded in it; the turn's own task is the turn's."""
    roles: dict[str, Role] = {}
    for entry in trace.entries:
        path = entry.task
        if path.isdigit():
            roles[path] = "turn"
        elif isinstance(entry.event, RequestSent | Delta):
            roles.setdefault(path, "model")
        elif isinstance(entry.event, ToolStarted):
            roles.setdefault(path, "tool")
    return roles


def _counted(result: Result) -> Result:
    """The result with what counts: what a scenario expects is not expected of a run that is cut.

    A turn that its scenario cuts ends there: its script does, and so does what hangs in it. Where
    a shot keeps that cancel from coming, neither is the agent's.
    """
    uncut = {each.turn for each in result.failures if each.kind == "cancel did not fire"}
    counted = [
        failure
        for failure in result.failures
        if failure.kind in _COUNTED
        and not _is_limit(result.trace, failure)
        and not (failure.kind == "mismatch" and failure.turn in uncut)
    ]
    violations = [
        violation
        for violation in result.verdict.violations
        if not (violation.invariant == "ONE-TERMINAL" and violation.turn in uncut)
    ]
    verdict = replace(result.verdict, violations=tuple(violations))
    return replace(result, failures=tuple(counted), verdict=verdict)


def _is_limit(trace: Trace, failure: Failure) -> bool:
    """Whether a failure says no more than that the run came to a limit."""
    stop = trace.stop
    return stop is not None and stop[1].reason in _LIMITS and failure.entry == stop[0]


def _unresolved(trace: Trace) -> str | None:
    stop = trace.stop
    return stop[1].why if stop is not None and stop[1].reason in _LIMITS else None
