"""Stand-ins for the functions that read clocks and chance: in a run both are the run's own.

They show the thread in which a simulated loop runs virtual time and the run's streams of numbers
(see `Entropy`), and the real ones to all others, and to a debugger that stops in a run.
"""

from __future__ import annotations

import os
import random
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from functools import update_wrapper
from types import ModuleType
from typing import Any, Final

from harness.core.durations import SECOND
from harness.sim import where
from harness.sim.boundary import simulation
from harness.sim.schedule import EPOCH, VirtualTime
from harness.sim.swaps import ModuleSwaps, Swap, Swaps, ready

BEGINNING: Final = 1_735_689_600 * SECOND
"""What `time.time_ns` shows when a run begins: 2025-01-01 00:00:00 UTC.

It is in the past, so that what was made before a run and ends at a later time has not ended yet.
"""

_MONITORING: Any = getattr(sys, "monitoring", None)


def _run(above: int = 3) -> VirtualTime | None:
    """The run that the caller of a stand-in is in; None where it is to get what is real.

    `above` is as for `where.calling`.
    """
    loop = simulation()
    if loop is None or (_traced() and where.in_a_debugger(above)):
        return None
    assert isinstance(loop, VirtualTime)
    return loop


def _drawing() -> VirtualTime | None:
    """The run that the caller of a stand-in draws from; None where it is to get what is real.

    A module gets that while it is loaded. It is loaded once in a process, so what it draws is no
    part of the run that happens to be the first.
    """
    run = _run(4)
    return None if run is None or where.loads(3) else run


def _traced() -> bool:
    """Whether a debugger may be at work; to look for one takes ten times as long as a clock."""
    return sys.gettrace() is not None or (
        _MONITORING is not None and _MONITORING.get_tool(_MONITORING.DEBUGGER_ID) is not None
    )


# --- time


def _wall_ns(run: VirtualTime) -> int:
    return BEGINNING + run.now()


def _wall(run: VirtualTime) -> float:
    return _wall_ns(run) / SECOND


def _passed_ns(run: VirtualTime) -> int:
    return EPOCH + run.now()


def _clock(real: Callable[[], Any], show: Callable[[VirtualTime], Any]) -> Callable[..., Any]:
    """A clock, which takes no argument."""

    def read() -> Any:
        run = _run()
        return real() if run is None else show(run)

    return read


def _clock_of(
    real: Callable[[int], Any],
    wall: Callable[[VirtualTime], Any],
    passed: Callable[[VirtualTime], Any],
) -> Callable[..., Any]:
    """One of the functions that are told which clock to read."""

    def read(clock: int, /) -> Any:
        run = _run()
        if run is None:
            return real(clock)
        return wall(run) if clock == time.CLOCK_REALTIME else passed(run)

    return read


def _instant(real: Callable[..., Any]) -> Callable[..., Any]:
    """A function of an instant, which is now where it is left out."""

    def shown(seconds: float | None = None, /) -> Any:
        run = _run() if seconds is None else None
        return real(seconds if run is None else _wall(run))

    return shown


def _calendar(real: Callable[..., Any], before: int) -> Callable[..., Any]:
    """A function of a calendar's time, which stands behind `before` others and is now without."""
    local = time.localtime

    def shown(*args: Any) -> Any:
        run = _run() if len(args) == before else None
        return real(*args) if run is None else real(*args, local(_wall(run)))

    return shown


def _of_time() -> dict[str, Callable[..., Any]]:
    # The clocks of work are among them: work takes no virtual time, so they show all that passed.
    passed = ("monotonic", "perf_counter", "process_time", "thread_time")
    clocks = {
        "time": _wall,
        "time_ns": _wall_ns,
        **dict.fromkeys(passed, VirtualTime.time),
        **dict.fromkeys([f"{name}_ns" for name in passed], _passed_ns),
    }
    clocks_of = {
        "clock_gettime": (_wall, VirtualTime.time),
        "clock_gettime_ns": (_wall_ns, _passed_ns),
    }
    calendars = {"strftime": 1, "asctime": 0}
    real = vars(time)
    return {
        **{name: _clock(real[name], show) for name, show in clocks.items() if name in real},
        **{name: _clock_of(real[name], *show) for name, show in clocks_of.items() if name in real},
        **{name: _instant(real[name]) for name in ("localtime", "gmtime", "ctime")},
        **{name: _calendar(real[name], before) for name, before in calendars.items()},
    }


# --- chance


def _drawn(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the module `random`, which is a method of a generator that it has."""

    def draw(*args: Any, **options: Any) -> Any:
        run = _drawing()
        if run is None:
            return real(*args, **options)
        return getattr(run.entropy.stream("random"), name)(*args, **options)

    return draw


def _bytes_of(stream: str, real: Callable[..., bytes]) -> Callable[..., bytes]:
    """A source of random bytes; what it is told beside their number is about the real source."""

    def give(size: int, *others: Any, **options: Any) -> bytes:
        run = _drawing()
        if run is None:
            return real(size, *others, **options)
        return run.entropy.stream(stream).randbytes(size)

    return give


def _uuid(name: str, real: Callable[..., uuid.UUID], *, timed: bool) -> Callable[..., uuid.UUID]:
    def make(*args: Any, **options: Any) -> uuid.UUID:
        run = _drawing()
        if run is None:
            return real(*args, **options)
        now = (_wall_ns(run),) if timed else ()
        return getattr(run.entropy.uuids, name)(*now, *args, **options)  # type: ignore[no-any-return]

    return make


def _seeding(real: Mapping[str, Any]) -> Any:
    """`Random.seed`: without a seed, in a run, it is seeded from a stream.

    But for the generator of names of temporary files: it is kept from run to run, and the files of
    several processes must not have the same.
    """

    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        run = _drawing() if a is None else None
        if run is not None and sys._getframe(2).f_globals.get("__name__") != "tempfile":
            a = run.entropy.stream("random.Random").getrandbits(128)
        real["seed"](self, a, version)

    return seed


def _of_uuid() -> dict[str, Callable[..., Any]]:
    timed = {"uuid1": True, "uuid4": False, "uuid6": True, "uuid7": True}
    return {
        name: _uuid(name, getattr(uuid, name), timed=each)
        for name, each in timed.items()
        if hasattr(uuid, name)
    }


def _of_random() -> dict[str, Callable[..., Any]]:
    own: Any = random
    made: dict[str, Callable[..., Any]] = {
        name: _drawn(name, value)
        for name, value in vars(random).items()
        if getattr(value, "__self__", None) is own._inst
    }
    # By this work `random.SystemRandom` and `secrets`.
    made["_urandom"] = _bytes_of("secrets", own._urandom)
    return made


def _of_os() -> dict[str, Callable[..., Any]]:
    return {
        name: _bytes_of("os.urandom", getattr(os, name))
        for name in ("urandom", "getrandom")
        if hasattr(os, name)
    }


def _named(module: ModuleType, made: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    """The stand-ins of a module, called what they stand in for, so that they can be pickled."""
    for name, stand_in in made.items():
        update_wrapper(stand_in, getattr(module, name))
        # Where a run finds it; what it stands in for may say where it was made.
        stand_in.__module__, stand_in.__qualname__ = module.__name__, name
    return made


FUNCTIONS: tuple[tuple[ModuleType, dict[str, Any]], ...] = (
    (time, _named(time, _of_time())),
    (random, _named(random, _of_random())),
    (uuid, _named(uuid, _of_uuid())),
    (os, _named(os, _of_os())),
)
"""Stand-ins by their module and name; `os` comes after `random`, which has `os.urandom` too."""

ALWAYS: tuple[Swaps, ...] = (
    *[
        ModuleSwaps(
            vars(module),
            {name: ready(stand_in) for name, stand_in in functions.items()},
            patches=False,
        )
        for module, functions in FUNCTIONS
    ],
    Swap(random.Random, "seed", _seeding),
)
"""What is swapped in every run; a test's own patch of a function is left as it is."""
