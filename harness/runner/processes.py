"""Makes the runs of a search in several processes, and gives them in the order of the attempts."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from typing import TypeAlias

from harness.core.errors import UsageError
from harness.exploration.attempts import Attempt, Many
from harness.exploration.probe import Probe, Run
from harness.exploration.same import settle

_BATCH = 8
"""How many attempts go to a process at a time; a run takes about as long as sending one."""
_AHEAD = 2
"""How many batches a process has to do, so that it never waits for the next."""

Make: TypeAlias = Callable[[], Probe]
"""Makes a probe in another process, where it is sent to: a function of a module, or a partial of
one with arguments that can be sent.
"""

_PROBES: list[Probe | Make] = []
"""In a process that makes runs: its probes, and those that it has not made yet."""


@contextmanager
def processes(jobs: int, makes: Sequence[Make]) -> Iterator[Sequence[Many]]:
    """For each of `makes`, what makes the runs of its probe in `jobs` processes.

    The runs, and so what a search finds, are the same as in one process. A run that breaks raises
    its error where its turn comes; UsageError where it takes its process with it.
    """
    context = get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(tuple(makes),))
    try:
        yield [_many(pool, jobs, index) for index in range(len(makes))]
    finally:
        pool.shutdown(cancel_futures=True)


def _many(pool: ProcessPoolExecutor, jobs: int, index: int) -> Many:
    def many(attempts: Iterable[Attempt]) -> Iterator[Run]:
        left = iter(attempts)
        begun: deque[Future[list[Run]]] = deque()
        try:
            while True:
                while len(begun) < jobs * _AHEAD and (batch := list(islice(left, _BATCH))):
                    begun.append(pool.submit(_runs, index, batch))
                if not begun:
                    return
                yield from begun.popleft().result()
        except BrokenProcessPool:
            raise UsageError(
                "a process that made runs ended in the middle of one; an agent must leave its "
                "process running, so see with one process (--jobs 1) what it does"
            ) from None
        finally:
            for future in begun:
                future.cancel()

    return many


def ignore_interrupts() -> None:
    """Leave Ctrl-C, which a terminal sends to all processes, to the one that waits for this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _begin(makes: Sequence[Make]) -> None:
    ignore_interrupts()
    _PROBES[:] = makes


def _runs(index: int, attempts: Sequence[Attempt]) -> list[Run]:
    probe = _PROBES[index]
    if callable(probe):
        probe = _PROBES[index] = probe()
        settle(probe)
    return [attempt.run(probe) for attempt in attempts]
