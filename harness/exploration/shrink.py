"""Makes a failing run simple: fewer cancels, fewer and smaller deviations, earlier cancels."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from harness.core.choices import Draw, Tape
from harness.exploration.attempts import decisions, lenient, tape_of
from harness.exploration.points import lacks, mid_steps
from harness.exploration.probe import Probe, Run, Shot
from harness.exploration.same import confirm

SHRINK_RUNS = 500
"""How many runs a failure may take to be made simple."""


class Shrunk(Struct, frozen=True):
    """A simple failing run: its choices other than 0, its cancels, and how many runs it took.

    `minimal` is False where the runs did not suffice to try all that is simpler by one change.
    """

    key: str
    tape: Tape
    shots: tuple[Shot, ...]
    run: Run
    runs: int
    minimal: bool


def shrink(
    probe: Probe,
    key: str,
    tape: Tape = (),
    shots: tuple[Shot, ...] = (),
    *,
    most: int = SHRINK_RUNS,
) -> Shrunk:
    """The simplest run that can be found from this one and still has the finding `key`.

    It uses no choice and no cancel that is not in the given run. AssertionError where that run
    does not have the finding; NotDeterministic where the result cannot be had again.
    """
    shrinker = _Shrinker(probe, key, most)
    assert shrinker.accept(tape, shots), f"{probe.name}: the run to shrink has no finding {key!r}"
    shrinker.shrink()
    confirm(probe, shrinker.run, shrinker.shots)
    found = tape_of(shrinker.run)
    return Shrunk(key, found, shrinker.shots, shrinker.run, shrinker.runs, not shrinker.cut)


class _Shrinker:
    """The simplest failing run so far, and what was tried in vain."""

    def __init__(self, probe: Probe, key: str, most: int) -> None:
        self.tape: Tape = ()
        """What the run decides other than 0, in the order in which it is asked."""
        self.shots: tuple[Shot, ...] = ()
        self.run = Run("")
        self.runs = 0
        self.cut = False
        """Whether something was not tried because the runs were spent."""
        self._probe = probe
        self._key = key
        self._most = most
        self._vain: set[tuple[Tape, tuple[Shot, ...]]] = set()

    def accept(self, tape: Tape, shots: tuple[Shot, ...]) -> bool:
        """Take the run with these choices and cancels in place of the last, if it fails alike."""
        if (tape, shots) in self._vain:
            return False
        if self.runs >= self._most:
            self.cut = True
            return False
        run = self._probe.run((), shots, lenient(tape))
        self.runs += 1
        if all(finding.key != self._key for finding in run.findings):
            self._vain.add((tape, shots))
            return False
        self.tape, self.shots, self.run = decisions(run), shots, run
        return True

    def shrink(self) -> None:
        """Simplify until no single change makes it simpler, or the runs are spent."""
        most = len(self.tape)
        before = None
        while before != (self.tape, self.shots):
            before = (self.tape, self.shots)
            self._drop_shots()
            self._drop_draws(most)
            self._lower_values()
            self._move_shots()
            most = 1

    def _drop_shots(self) -> None:
        for at in reversed(range(len(self.shots))):
            self.accept(self.tape, self.shots[:at] + self.shots[at + 1 :])

    def _drop_draws(self, size: int) -> None:
        """Zero runs of so many decisions, of half as many, ..., each one; the last ones first,
        since they change nothing that comes before them.
        """
        while size:
            end = len(self.tape)
            while end > 0:
                start = max(0, end - size)
                self.accept(self.tape[:start] + self.tape[end:], self.shots)
                end = min(start, len(self.tape))
            size //= 2

    def _lower_values(self) -> None:
        at = 0
        while at < len(self.tape):
            draw = self.tape[at]
            lower = [replace(draw, value=value) for value in _lower(draw)]
            if not any(self._put(at, simpler) for simpler in lower):
                at += 1

    def _put(self, at: int, draw: Draw) -> bool:
        return self.accept((*self.tape[:at], draw, *self.tape[at + 1 :]), self.shots)

    def _move_shots(self) -> None:
        at = 0
        while at < len(self.shots):
            before, after = self.shots[:at], self.shots[at + 1 :]
            moved = (
                self.accept(self.tape, (*before, shot, *after))
                for shot in _earlier(self.shots[at], self.run)
                if shot not in before and shot not in after
            )
            if not any(moved):
                at += 1


def _lower(draw: Draw) -> list[int]:
    """Lesser values of a decision, the least first: half, and one less."""
    return [value for value in dict.fromkeys([draw.value // 2, draw.value - 1]) if value]


def _earlier(shot: Shot, run: Run) -> Iterator[Shot]:
    """Simpler and earlier shots at the same task: of another mode, after an earlier step, at
    an earlier suspension.
    """
    sites = {site.k: site for site in run.sites if site.path == shot.path}
    here = sites.get(shot.k)
    if shot.step is not None and here is not None:
        yield replace(shot, mode="early", step=None)
        for step in dict.fromkeys([(here.first + shot.step) // 2, shot.step - 1]):
            if step in mid_steps(here, run.steps):
                yield replace(shot, step=step)
    for k in dict.fromkeys([shot.k // 2, shot.k - 1]):
        site = sites.get(k) if 0 < k < shot.k else None
        if site is not None and lacks(site, shot.mode, run.steps) is None:
            yield replace(shot, k=k, step=None if shot.step is None else site.first + 1)
