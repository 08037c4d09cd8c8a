"""Every error that is a user's to mend: the value found, what was expected, the next step."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from msgspec import Struct


class HarnessError(Exception):
    """The base of all errors that this package raises on purpose."""


class UsageError(HarnessError):
    """A function or a command was called with what it cannot take."""


class AgentError(HarnessError):
    """A loop cannot run a turn: one of the services it needs is missing, or broke its contract."""


class Problem(Struct, frozen=True):
    """One thing wrong with a file; `line` and `column` count from 1, 0 is unknown."""

    message: str
    line: int = 0
    column: int = 0


class FileError(HarnessError):
    """A file is not what it should be; holds every problem that was found, not only the first."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        super().__init__(
            "\n".join(
                f"{file}:{p.line}:{p.column}: {p.message}" if p.line else f"{file}: {p.message}"
                for p in self.problems
            )
        )


class NotAScenario(FileError):
    """A file is well-formed, but has nothing of a scenario: it was probably made for others."""


class FileInUse(FileError):
    """A file has a writer already, and takes no second one."""


class ScriptError(HarnessError):
    """The agent asked its model or a tool for what the scenario does not have."""


class NoPlace(ScriptError):
    """A request fits no place in the script."""


class TwoPlaces(ScriptError):
    """A request fits more than one entry of the script."""


class ScriptExhausted(ScriptError):
    """A request came after the turn's last scripted reply."""


class UnrequestedTool(ScriptError):
    """A tool was called that the model had not asked for."""


class UnknownFakeTool(ScriptError):
    """A tool was called that the scenario does not declare."""


class RequestRefused(HarnessError):
    """The fake provider refused a history that a real one would refuse too."""


class CassetteMiss(HarnessError):
    """A request is none of those that a cassette holds, or it has been made more often."""


class ReplayMismatch(HarnessError):
    """A recorded choice does not fit the run that is replayed."""


class NotDeterministic(HarnessError):
    """Two runs of the same thing, with the same choices, went different ways."""


class NoPoints(HarnessError):
    """There is no place to cancel at, so that a sweep would pass without having tried anything."""


class OutOfSimulation(HarnessError):
    """The code under test reached for something that the simulation does not control."""


def nearest(found: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `found` was most likely meant to be, or None.

    >>> nearest("wether", ["clock", "weather"])
    'weather'
    """
    close = difflib.get_close_matches(found, list(candidates), n=1, cutoff=0.6)
    return close[0] if close else None


def hint(guess: str | None) -> str:
    """The words, to stand behind a name that is not known, for the one that was probably meant.

    >>> hint("weather"), hint(None)
    (" (did you mean 'weather'?)", '')
    """
    return f" (did you mean {guess!r}?)" if guess else ""


def unknown(kind: str, found: str, candidates: Iterable[str]) -> str:
    """Say that a name is not known, which are, and which was probably meant.

    >>> unknown("tool", "wether", ["clock", "weather"])
    "unknown tool 'wether' (did you mean 'weather'?); known: clock, weather"
    """
    names = list(candidates)
    guess = hint(nearest(found, names))
    return f"unknown {kind} {found!r}{guess}; known: {', '.join(names) or 'none'}"
