"""Keeps what the runs of a search have shown, and makes what they found simple."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from harness.core.choices import Draw, Tape
from harness.exploration.attempts import Attempt, Many, decisions
from harness.exploration.budget import Meter
from harness.exploration.probe import Asked, Finding, Probe, Run
from harness.exploration.same import confirm
from harness.exploration.search_report import Found, Tolerated, Tried, Undecided
from harness.exploration.shrink import shrink


class Try(Struct, frozen=True):
    """An attempt, the strategy that it is of, and how many choices it has been decided for."""

    strategy: str
    attempt: Attempt
    decided: int = 0


class Campaign:
    """What a search has seen so far."""

    def __init__(self, probe: Probe, meter: Meter, many: Many, *, keep_going: bool) -> None:
        self.found: dict[str, Found] = {}
        self.digests: set[str] = set()
        self.reached: Counter[str] = Counter()
        self.tolerated: dict[str, Tolerated] = {}
        self.undecided = 0
        self.undecided_first: Undecided | None = None
        self._probe = probe
        self._meter = meter
        self._many = many
        self._keep_going = keep_going
        self._runs: Counter[str] = Counter()
        self._new: Counter[str] = Counter()

    def over(self) -> str | None:
        """Why no more runs are to be made, None where they are."""
        if self.found and not self._keep_going:
            return "the first finding ends the search"
        return self._meter.spent()

    def each(self, tries: Iterable[Try]) -> Iterator[tuple[Try, Run]]:
        """Make the runs of `tries`, until they or the search are over."""
        begun: deque[Try] = deque()

        def attempts() -> Iterator[Attempt]:
            for one in tries:
                begun.append(one)
                yield one.attempt

        runs = self._many(attempts())
        while self.over() is None:
            run = next(runs, None)
            if run is None:
                return
            one = begun.popleft()
            self.note(one.strategy, one.attempt, run)
            yield one, run

    def note(self, strategy: str, attempt: Attempt, run: Run) -> None:
        """Note a run; a finding that is new is made simple at once."""
        self._runs[strategy] += 1
        if run.digest not in self.digests:
            self.digests.add(run.digest)
            self._new[strategy] += 1
        if run.reached:
            self.reached.update(run.reached)
        for known in run.tolerated:
            seen = self.tolerated.get(known.key) or Tolerated(known.key, known.message, 0)
            self.tolerated[known.key] = replace(seen, count=seen.count + 1)
        if run.unresolved is not None and not run.findings:
            self.undecided += 1
            if self.undecided_first is None:
                self.undecided_first = Undecided(
                    run.unresolved, self._meter.runs + 1, decisions(run), attempt.shots
                )
        for finding in run.findings:
            self._note_finding(finding, strategy, attempt, run)
        self._meter.found = len(self.found)
        self._meter.doing = strategy
        self._meter.note_run()

    def tried(self) -> tuple[Tried, ...]:
        """The strategies, in the order of their first runs."""
        return tuple([Tried(name, runs, self._new[name]) for name, runs in self._runs.items()])

    def _note_finding(self, finding: Finding, strategy: str, attempt: Attempt, run: Run) -> None:
        seen = self.found.get(finding.key)
        if seen is not None:
            self.found[finding.key] = replace(seen, count=seen.count + 1)
            return
        confirm(self._probe, run, attempt.shots)
        tape = decisions(run)
        shrunk = shrink(self._probe, finding.key, tape, attempt.shots)
        message = next(each.message for each in shrunk.run.findings if each.key == finding.key)
        self.found[finding.key] = Found(message, strategy, self._meter.runs + 1, len(tape), shrunk)


class FewDeviations:
    """All runs with one choice that is not 0, then all with two, and so on."""

    def __init__(self, baseline: Run) -> None:
        self.level = 0
        """How many deviations were tried in every combination."""
        self._whole = True
        self._parents: list[tuple[Tape, tuple[Asked, ...], int]] = [((), baseline.asked, 0)]

    @property
    def width(self) -> int:
        """How many runs the next level has."""
        return sum(
            asked.bound - 1
            for _, all_asked, decided in self._parents
            for asked in all_asked[decided:]
        )

    @property
    def exhausted(self) -> bool:
        """Whether there is no schedule that was not tried."""
        return self._whole and not self.width

    def next_level(self, campaign: Campaign) -> None:
        """Make the runs with one deviation more, as far as the campaign lets them be made."""
        width = self.width
        self._parents = [
            (decisions(run), run.asked, one.decided) for one, run in campaign.each(self._tries())
        ]
        self._whole = len(self._parents) == width
        if self._whole:
            self.level += 1

    def _tries(self) -> Iterator[Try]:
        for tape, asked, decided in self._parents:
            for at in range(decided, len(asked)):
                choice = asked[at]
                for value in range(1, choice.bound):
                    draw = Draw(choice.source, choice.label, value, choice.bound)
                    yield Try("few", Attempt((*tape, draw)), at + 1)
