"""What is wrong with a run of a function: findings, each of a class, by what it leaves behind."""

from __future__ import annotations

import re
from asyncio import CancelledError
from collections.abc import Callable, Collection, Iterator, Sequence

from harness.core.durations import format_duration
from harness.exploration.probe import Finding, Landing
from harness.runner.functions.kernel import ALL, CHECK, MAIN, ToldKernel, code_name
from harness.runner.functions.landing import (
    CONVERTED,
    DETACHED,
    INTERRUPTED,
    SWALLOWED,
    UNENDED,
    Fired,
)
from harness.runner.functions.play import PATIENCE, Play
from harness.runner.outcomes import describe
from harness.sim.stop import Stop
from harness.sim.tasks import TaskInfo
from harness.sim.where import raised

CLOSERS = "gen."
"""The beginning of the paths of tasks that close generators. Of these it is told that they were
abandoned; the rest is Python's, which forgets a cancel that comes before such a task begins.
"""

ORPHAN = "orphan child"
LEAKED = "leaked task"
DEADLOCK = "deadlock"
SPIN = "cancel spin"
LIVELOCK = "livelock"
SLOW = "slow"
ABANDONED = "abandoned generator"
UNSEEN = "unseen error"
ERROR = "error"
CHECKED = "check"

CLASSES = (
    SWALLOWED,
    CONVERTED,
    INTERRUPTED,
    DETACHED,
    ORPHAN,
    LEAKED,
    DEADLOCK,
    SPIN,
    LIVELOCK,
    SLOW,
    ABANDONED,
    UNSEEN,
    ERROR,
    CHECKED,
)
"""The classes of findings."""

TYPED = (CONVERTED, ERROR, CHECKED)
"""The classes of errors: a finding has the error's type behind a colon, as in ``error:OSError``."""

_NUMBER = re.compile(r"\d+")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_LISTED = re.compile(r"([\[{])[^][{}]*([\]}])")
_TEXT_MAX = 2_000
"""How many characters of an error's text are kept: half of them from its end, where its line is."""


class Judge:
    """Judges one run that is over, of which `landings` are what its cancels came to.

    Lines are of the `told` kernel, where there is one.
    """

    def __init__(
        self,
        play: Play,
        fired: Sequence[Fired],
        landings: Sequence[Landing],
        shielded: Collection[str],
        told: ToldKernel | None,
    ) -> None:
        self._play = play
        self._fired = fired
        self._words = {each.shot: each.came_to for each in landings}
        self._shielded = shielded
        self._told = told

    def unresolved(self) -> str | None:
        """Why nothing can be said of the run, None where something can."""
        stop = self._play.stop
        if stop.reason in ("step_limit", "time_limit") and not self._fired:
            return f"{stop.reason.replace('_', ' ')}: {stop.detail}"
        if stop.reason in ("out_of_simulation", "stuck", "time_limit"):
            return stop.detail
        return None

    def findings(self, by_design: Callable[[], Collection[str]]) -> Iterator[Finding]:
        """All that is wrong, in the order of causes; `by_design` gives the lines that make tasks
        which outlive the main task in the run that nobody cancels.
        """
        play = self._play
        yield from self._of_stop(play.stop)
        for fired in self._fired:
            yield from self._of_cancelled(fired, self._words[fired.shot])
        if play.exit is not None:
            kind = f"{ERROR}:{play.exit.partition(':')[0]}"
            yield self._found(kind, "", f"a task raised {play.exit}")
        elif play.over:
            yield from self._of_main()
            yield from self._of_left(by_design)
            yield from self._of_check()
        for message in play.unseen:
            yield self._found(UNSEEN, _alike(message), message)
        yield from self._of_generators()

    def _of_generators(self) -> Iterator[Finding]:
        """The async generators that nobody closed, also those of the tear-down."""
        for name in dict.fromkeys(self._play.abandoned):
            short = name.rpartition("<locals>.")[2]
            says = (
                f"{short} was left in the middle, so that its clean-up runs whenever it is "
                "collected; iterate it within `async with contextlib.aclosing(...)`"
            )
            yield self._found(ABANDONED, short, says)

    def _found(self, kind: str, detail: str, says: str, path: str | None = None) -> Finding:
        line = None if self._told is None or path is None else self._told.last_line(path)
        return Finding(f"{kind}: {detail}" if detail else kind, f"{kind}: {says}", line)

    def _of_stop(self, stop: Stop) -> Iterator[Finding]:
        fired = self._fired
        match stop.reason:
            case "deadlock" | "quiescent":
                waits = "; ".join(map(_waiting, self._play.left)) or "nothing will wake it"
                yield self._found(DEADLOCK, _place(self._play.left), waits, ALL)
            case "instant_limit" | "step_limit" if fired or stop.reason == "instant_limit":
                kind = SPIN if fired else LIVELOCK
                busy = "; ".join(stop.waits[:3])
                yield self._found(kind, _place(self._play.left), f"{stop.detail}: {busy}", MAIN)
            case "deadline":
                last = next(each for each in reversed(fired) if self._words[each.shot] == UNENDED)
                path = last.task.path
                where = next((each.where for each in self._play.left if each.path == path), "")
                says = (
                    f"task {path} goes on {format_duration(PATIENCE)} after its cancel "
                    f"{last.shot}; it waits at {where}"
                )
                yield self._found(SLOW, where, says, path)

    def _of_cancelled(self, fired: Fired, came_to: str) -> Iterator[Finding]:
        task = fired.task
        name = code_name(task)
        who = f"task {task.path}, {name}"
        if fired.plain is not None:
            who = f"{name}, in the main thread"
        counts = f"cancelled() is {task.cancelled()}, cancelling() is {task.cancelling()}"
        if came_to == SWALLOWED and not task.path.startswith(CLOSERS):
            says = f"{who}, was cancelled and returned as if it had not been; {counts}"
            if fired.plain is not None:
                says = f"{who}, got KeyboardInterrupt and returned as if it had not"
            yield self._found(SWALLOWED, name, says, task.path)
        elif came_to == INTERRUPTED:
            says = (
                f"{who}, was cleaning up after its first cancel when the second one ended it "
                "there; shield what must be done"
            )
            yield self._found(INTERRUPTED, name, says, task.path)
        elif came_to.startswith(CONVERTED):
            error = task.exception()
            assert error is not None, "it was converted to an error"
            says = f"{who}, was cancelled, and raised {_typed(error)} instead; {counts}"
            if fired.plain is not None:
                says = f"{who}, got KeyboardInterrupt, and raised {_typed(error)} instead"
            yield self._found(came_to, name, says, task.path)

    def _of_main(self) -> Iterator[Finding]:
        """What is wrong with how the main task ended, where its own cancel does not say it."""
        main = self._play.main
        assert main is not None, "the main task is over"
        targets = [each.task for each in self._fired]
        if main in targets:
            return
        if main.cancelled():
            if not targets:
                says = "the main task was cancelled, though nobody outside had cancelled it"
                yield self._found(f"{ERROR}:CancelledError", "", says, MAIN)
            return
        error = main.exception()
        if error is None:
            return
        if any(word.startswith(CONVERTED) for word in self._words.values()):
            return  # it is told of the task that was cancelled
        kind = CONVERTED if targets else ERROR
        says = f"the main task raised {_typed(error)}"
        yield self._found(f"{kind}:{type(error).__name__}", "", says, MAIN)

    def _of_left(self, by_design: Callable[[], Collection[str]]) -> Iterator[Finding]:
        """What outlives the main task of a cancelled run, and what lives at the end of any."""
        play, shielded = self._play, self._shielded
        excused = _waited_for(play.outlive, {*shielded, *play.ending})
        told = set()
        if self._fired:
            for info in play.outlive:
                if not _within(info.path, excused) and info.created not in by_design():
                    told.add(info.path)
                    says = f"{_who(info)}, outlives the main task"
                    yield self._found(ORPHAN, info.created, _where(says, info), info.path)
        for info in play.left:
            if info.path in told:
                continue
            if info.path in shielded:
                says = (
                    f"task {info.path}, created at {info.created}, was shielded from the cancel, "
                    f"and goes on {format_duration(PATIENCE)} after the main task has ended"
                )
                yield self._found(DETACHED, info.created, _where(says, info), info.path)
            else:
                says = f"{_who(info)}, never ends"
                yield self._found(LEAKED, info.created, _where(says, info), info.path)

    def _of_check(self) -> Iterator[Finding]:
        play = self._play
        if play.check_open is not None:
            yield self._found(CHECKED, "", f"it had not ended: {play.check_open}", CHECK)
        error = play.check_error
        if error is not None:
            kind = f"{CHECKED}:{type(error).__name__}"
            says = _text(error)
            yield self._found(kind, _alike(says), says, CHECK)


def _text(error: BaseException) -> str:
    """What an error says, and the line of the user's that it comes from."""
    if isinstance(error, CancelledError):  # its text is of who cancelled
        place = raised(error)
        return "it was cancelled" + (f" ({place})" if place else "")
    text = _ADDRESS.sub("", describe(error)).strip()
    if len(text) > _TEXT_MAX:
        text = f"{text[: _TEXT_MAX // 2]} … {text[-_TEXT_MAX // 2 :]}"
    return text or type(error).__name__


def _typed(error: BaseException) -> str:
    """An error's type, and what it says."""
    kind, text = type(error).__name__, _text(error)
    return kind if text == kind else f"{kind}{'' if text.startswith('(') else ':'} {text}"


def _alike(says: str) -> str:
    """What two texts have in common that say the same of other values, or of more of them."""
    return _NUMBER.sub("#", _LISTED.sub(r"\1…\2", says.partition("\n")[0]))


def _waited_for(outlive: Sequence[TaskInfo], excused: Collection[str]) -> Collection[str]:
    """Those excused, those that they wait for, whom these wait for, and so on."""
    awaits = {info.path: info.awaits for info in outlive}
    found = dict.fromkeys(sorted(excused))
    todo = list(found)
    for path in todo:
        for each in awaits.get(path, ()):
            if each not in found:
                found[each] = None
                todo.append(each)
    return found


def _within(path: str, excused: Collection[str]) -> bool:
    """Whether a task is one of those excused, was made by one, or closes a generator."""
    if path.startswith(CLOSERS):
        return True
    while path and path not in excused:
        path = path.rpartition(".")[0]
    return bool(path)


def _waiting(info: TaskInfo) -> str:
    who = f" for {', '.join(info.awaits)}" if info.awaits else ""
    return f"{info.path} waits{who} at {info.where}"


def _who(info: TaskInfo) -> str:
    kind, begun = ("thread", "started") if info.thread else ("task", "created")
    return f"{kind} {info.path}, {begun} at {info.created}"


def _where(says: str, info: TaskInfo) -> str:
    return f"{says}; it waits at {info.where}"


def _place(left: Sequence[TaskInfo]) -> str:
    """Where those wait that wait for nobody: what the others hang on; all where they all do."""
    last = [each for each in left if not each.awaits] or left
    return ", ".join(dict.fromkeys([each.where for each in last]))
