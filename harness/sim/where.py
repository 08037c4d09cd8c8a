"""Lines of code, named so that they read the same on every machine: `agent.py:12 in fetch`."""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Generator, Iterator
from enum import Enum
from functools import cache
from pathlib import Path, PurePath
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeAlias

_bootstrap: Any = importlib._bootstrap

Line: TypeAlias = tuple[CodeType, int]
"""Some code, and the offset of an instruction in it (-1: not begun); cheap to take."""

UNKNOWN = "an unknown place"

_STDLIB = str(Path(os.__file__).parent) + os.sep
_ASYNCIO = str(Path(asyncio.__file__).parent) + os.sep
_PACKAGES = ("site-packages", "dist-packages")
_HARNESS = Path(__file__).parent.parent
_OURS = tuple(f"{_HARNESS / part}{os.sep}" for part in ("sim", "fakes", "runner", "transport"))
"""Our own folders that stand between a loop and what it waits for."""

_WRAPPED = (Awaitable, AsyncGenerator, Generator)
_MOST_LINKS = 1_000
"""Longest chain of awaits that is followed."""
_SHOWN = 5
"""How many lines of a stack are shown."""
_SHOWN_MAX = 10_000
"""How many lines are kept as they are shown: a task that spins is asked for one of them often."""
_DEBUGGERS = ("pydevd", "debugpy", f"{os.sep}bdb.py", f"{os.sep}pdb.py")
"""What the files of debuggers are called."""
_IMPORT = "<frozen importlib._bootstrap>"
_LOADING: Any = _bootstrap._module_locks
"""Empty where no thread loads a module."""
_LOCKS_MODULE: CodeType = _bootstrap._ModuleLock.acquire.__code__
_BEGINS = ("_run_batch", "_close_task", "carry", "_play_turn")
"""Our functions that call a task, a callback, a thread or a synchronous agent; what is above them
is no part of it."""
_ATTRIBUTES = (("cr_frame", "cr_await"), ("ag_frame", "ag_await"), ("gi_frame", "gi_yieldfrom"))


class _Kind(Enum):
    PLUMBING = 0
    """asyncio's, and ours: it says nothing to anybody."""
    LIBRARY = 1
    USERS = 2


@cache
def _kind(filename: str) -> _Kind:
    if filename.startswith((_ASYNCIO, *_OURS, "<frozen")):
        return _Kind.PLUMBING
    library = _installed(filename) or filename.startswith(_STDLIB)
    return _Kind.LIBRARY if library else _Kind.USERS


@cache
def _installed(filename: str) -> bool:
    return any(f"{os.sep}{name}{os.sep}" in filename for name in _PACKAGES)


_shown: dict[tuple[str, str, int, bytes, int, str], str] = {}

_USERS, _LIBRARY = _Kind.USERS, _Kind.LIBRARY  # looked up for every task that is made


def show(line: Line) -> str:
    """Write a line as ``file:line in function``.

    The file is named from the working directory if it is below it, from the folder of installed
    packages if it is there, and else by its last two parts.
    """
    code, offset = line
    # Not by the code itself: codes of two files are equal where their texts are.
    key = (
        code.co_filename,
        code.co_qualname,
        code.co_firstlineno,
        code.co_linetable,
        offset,
        os.getcwd(),  # noqa: PTH109 - a path of it is made only for a line that is new
    )
    shown = _shown.get(key)
    if shown is None:
        if len(_shown) >= _SHOWN_MAX:
            _shown.clear()
        place = f"{_show_file(code.co_filename)}:{_number(code, offset)}"
        shown = _shown[key] = f"{place} in {_show_name(code)}"
    return shown


def _show_file(filename: str) -> str:
    return shown_file(Path(filename), Path.cwd())


def shown_file(path: PurePath, here: PurePath) -> str:
    """How a file of code is named by somebody who works in the folder `here`."""
    for name in _PACKAGES:
        if name in path.parts:
            at = len(path.parts) - 1 - path.parts[::-1].index(name)
            return "/".join(path.parts[at + 1 :])
    if path.is_relative_to(here):
        return path.relative_to(here).as_posix()
    return "/".join(path.relative_to(path.anchor).parts[-2:])


def _show_name(code: CodeType) -> str:
    return code.co_qualname.rpartition("<locals>.")[2]


def _number(code: CodeType, offset: int) -> int:
    for start, end, number in code.co_lines():
        if start <= offset < end and number is not None:
            return number
    return code.co_firstlineno


def calling(above: int) -> Line | None:
    """The line that led here: the nearest of the user's, else of a library's; None without one.

    `above` is how many callers to pass over, 1 being the one that asks. The walk ends where the
    kernel called the task that runs.
    """
    # Not by `step_frames`, since it runs for every task that is made.
    nearest = None
    frame: FrameType | None = sys._getframe(above)
    while frame is not None:
        code = frame.f_code
        kind = _kind(code.co_filename)
        if kind is _USERS:
            return code, frame.f_lasti
        if kind is _LIBRARY:
            nearest = nearest or (code, frame.f_lasti)
        elif code.co_name in _BEGINS:
            break
        frame = frame.f_back
    return nearest


def libraries(above: int) -> str:
    """The installed libraries between the user's line and who asks, the outermost first, as in
    `` by openai > httpx2``; "" without any. `above` is as for `calling`.
    """
    found: dict[str, None] = {}
    frame: FrameType | None = sys._getframe(above)
    while frame is not None and not is_users(frame):
        if _installed(frame.f_code.co_filename):
            found[str(frame.f_globals.get("__name__")).partition(".")[0]] = None
        frame = frame.f_back
    return f" by {' > '.join(reversed(found))}" if found else ""


def step_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames of the step that `frame` is in, from there out to where the kernel began it."""
    while frame is not None:
        code = frame.f_code
        if code.co_name in _BEGINS and _kind(code.co_filename) is _Kind.PLUMBING:
            return
        yield frame
        frame = frame.f_back


def in_a_debugger(above: int) -> bool:
    """Whether a debugger is at work in the step that runs; `above` is as for `calling`.

    It may wait for its user, or for a thread of its own.
    """
    return debugged(sys._getframe(above))


def debugged(frame: FrameType | None) -> bool:
    """Whether a debugger is at work in the step that `frame` is in."""
    files = (each.f_code.co_filename for each in step_frames(frame))
    return any(name in file for file in files for name in _DEBUGGERS)


def importing(frame: FrameType | None) -> bool:
    """Whether the step that `frame` is in loads a module.

    A module whose loading plays the whole run does not count.
    """
    return any(each.f_code.co_filename == _IMPORT for each in step_frames(frame))


def loads(above: int) -> bool:
    """Whether the code that asks loads a module: only the first run in a process does.

    `above` is as for `calling`.
    """
    return bool(_LOADING) and importing(sys._getframe(above))


def waits_to_import(frame: FrameType | None) -> bool:
    """Whether a thread is at a module that another thread loads."""
    return frame is not None and frame.f_code is _LOCKS_MODULE


def stack(frame: FrameType) -> list[str]:
    """The lines that a step is in the middle of, the innermost first.

    They are the user's, else those of libraries, and the nearest few of them.
    """
    lines: dict[_Kind, list[str]] = {_Kind.USERS: [], _Kind.LIBRARY: [], _Kind.PLUMBING: []}
    for each in step_frames(frame):
        kind = _kind(each.f_code.co_filename)
        if len(lines[kind]) < _SHOWN:
            lines[kind].append(show((each.f_code, each.f_lasti)))
    return lines[_Kind.USERS] or lines[_Kind.LIBRARY]


def raised(error: BaseException) -> str | None:
    """Where an error comes from: the innermost line of the user's code that it passed."""
    found = raised_in(error)
    if found is None:
        return None
    code = found.tb_frame.f_code
    return f"{_show_file(code.co_filename)}:{found.tb_lineno} in {_show_name(code)}"


def raised_in(error: BaseException) -> TracebackType | None:
    """The same as an entry of its traceback; what the user's code called stands behind it."""
    found = None
    entry = error.__traceback__
    while entry is not None:
        if _kind(entry.tb_frame.f_code.co_filename) is _USERS:
            found = entry
        entry = entry.tb_next
    return found


def suspended(awaitable: Any) -> str:
    """Where a suspended coroutine or generator waits: its innermost line of the user's code.

    Without one it is the innermost line of a library, else of asyncio.
    """
    lines = list(_awaits(awaitable))
    for kind in (_Kind.USERS, _Kind.LIBRARY, _Kind.PLUMBING):
        for line in reversed(lines):
            if _kind(line[0].co_filename) is kind:
                return show(line)
    return UNKNOWN


def _awaits(awaitable: Any) -> Iterator[Line]:
    """The lines of a chain of awaits, the outermost first."""
    for each in chain(awaitable):
        frame = frame_of(each)
        if frame is not None:
            yield frame.f_code, frame.f_lasti


def chain(awaitable: Any) -> Iterator[Any]:
    """A coroutine or generator, what it awaits, what that awaits, and so on to the innermost."""
    for _ in range(_MOST_LINKS):
        if awaitable is None:
            return
        yield awaitable
        names = _names(awaitable)
        awaitable = getattr(awaitable, names[1], None) if names else _wrapped(awaitable)


def frame_of(awaitable: Any) -> FrameType | None:
    """The frame of a coroutine or generator that is not over; None for anything else."""
    names = _names(awaitable)
    return getattr(awaitable, names[0]) if names else None


def is_users(frame: FrameType) -> bool:
    """Whether a frame is of the user's own code, and not of a library, asyncio or ours."""
    return _kind(frame.f_code.co_filename) is _USERS


def _wrapped(awaitable: Any) -> Any:
    """What `anext` and its kin await, which they do not tell; the collector knows."""
    if isinstance(awaitable, asyncio.Future):
        return None
    referents = gc.get_referents(awaitable)
    return next((inner for inner in referents if isinstance(inner, _WRAPPED)), None)


def _names(awaitable: Any) -> tuple[str, str] | None:
    """The attributes that hold the frame and what is awaited, where there are such."""
    return next((names for names in _ATTRIBUTES if hasattr(awaitable, names[0])), None)
