"""Threads under the simulator: hand-overs, starts, sweeps and searches, beside real threads.

Each figure stands beside that of real threads which do the same, measured in the same rounds, since
what a thread costs changes from machine to machine, and with what else the machine does. A real
search tries nothing: it makes the same run again and again, in the order that the system happens to
choose.
"""

from __future__ import annotations

import _thread
import queue
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench_exploring import again, rates, row, timed

from harness.core.choices import Choices
from harness.core.events import LoopEvent
from harness.core.json_text import Json
from harness.core.outcome import Completed
from harness.core.ports import Env
from harness.runner.agents import find_loop, loop_subject
from harness.runner.drive import Play
from harness.runner.exploring import explore, sweep
from harness.runner.files.load import load, load_text
from harness.runner.scenario import Scenario
from harness.sim.hold import kept

SCENARIOS = Path(__file__).parents[2] / "scenarios" / "fsm"
WITHOUT = ("tool_round", "title", "compaction", "plan_mode")
WITH = ("two_subagents", "two_subagents_at_once", "subagent_beside_a_background_tool")
TIMES = 1_000
"""Hand-overs, or threads, in one run."""
BUDGET = 300
"""Runs of a search."""
NOTHING: Scenario = load_text(
    "about: The agent does something of its own.\nturns: [{user: Go., model: [{say: Done.}]}]\n",
    "nothing.yaml",
)


class Plays:
    """An agent whose turn is one function, and tells what that gives."""

    def __init__(self, env: Env, work: Callable[[], Json]) -> None:
        self._env = env
        self._work = work

    def turn(self, _text: str | None) -> None:
        self._env.observe(LoopEvent("came", self._work()))


def simulated(work: Callable[[], Json]) -> None:
    """Run it as the turn of an agent."""

    def build(env: Env) -> Plays:
        return Plays(env, work)

    outcomes = Play(NOTHING, build, Choices()).play().outcomes
    assert isinstance(outcomes[0], Completed), outcomes


def ping_pong(allocate: Callable[[], threading.Lock]) -> None:
    """Two threads hand over to each other by two locks."""
    ping, pong = allocate(), allocate()
    ping.acquire()
    pong.acquire()

    def answers() -> None:
        for _ in range(TIMES // 2):
            ping.acquire()
            pong.release()

    other = threading.Thread(target=answers)
    other.start()
    for _ in range(TIMES // 2):
        ping.release()
        pong.acquire()
    other.join()


def starts() -> None:
    """Threads that do nothing, one after the other."""
    for _ in range(TIMES // 10):
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()


def pool() -> list[int]:
    """Four workers take from one queue, and give back by another one."""
    tasks: queue.Queue[int | None] = queue.Queue()
    done: queue.Queue[int] = queue.Queue()

    def work() -> None:
        while (task := tasks.get()) is not None:
            done.put(task * task)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for task in range(8):
        tasks.put(task)
    for _ in workers:
        tasks.put(None)
    for worker in workers:
        worker.join()
    return [done.get() for _ in range(8)]


def beside(name: str, times: int, ours: Callable[[], object], real: Callable[[], object]) -> None:
    """What one of so many costs us, and real threads."""
    measured = rates({"harness": (times, ours), "real threads": (times, real)})
    mine, theirs = [1e6 / rate for rate in measured.values()]
    print(f"{name:22} harness {mine:7.1f} µs   real threads {theirs:7.1f} µs x{theirs / mine:.2f}")


def sweeps(name: str, scenarios: tuple[str, ...]) -> None:
    kind = find_loop("fsm")
    loaded = [load(SCENARIOS / f"{each}.yaml") for each in scenarios]
    subjects = [(each, loop_subject(kind, each, "safe")) for each in loaded]
    runs = sum(sweep(each, subject).report.runs for each, subject in subjects)
    took = min(timed(lambda: [sweep(*each) for each in subjects]) for _ in range(3))
    print(f"{name:22} harness {runs / took:7,.0f}/s   {runs:,} runs of {len(loaded)} scenarios")


def main() -> None:
    print(sys.version.split()[0])
    locks = _thread.allocate_lock
    with kept():
        beside(
            "a hand-over",
            TIMES,
            partial(simulated, lambda: ping_pong(threading.Lock)),
            partial(ping_pong, locks),
        )
        beside("a start and a join", TIMES // 10, partial(simulated, starts), starts)
        found, real = again(50, partial(simulated, pool)), again(50, pool)
        row("four workers, a run", rates({"harness": found, "real threads": real}))
    search = partial(explore, NOTHING, lambda env: Plays(env, pool), runs=BUDGET, seconds=600.0)
    row("four workers, explored", rates({"harness": (BUDGET, search), "real threads": real}))
    report = search().report
    print(f"{'':22} {report.distinct:,} different orders in {report.runs:,} runs")
    sweeps("sweep, one thread", WITHOUT)
    sweeps("sweep, threads", WITH)


if __name__ == "__main__":
    main()
