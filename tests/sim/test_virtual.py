"""In a run clocks and chance are the run's own; outside of it, and for others, they are real."""
# ruff: noqa: TID251 - what is banned elsewhere is what is tested here

from __future__ import annotations

import asyncio
import copy
import datetime as dt
import json
import logging
import os
import pickle
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Coroutine
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

import pytest

from harness.core.choices import Choices, choices_from
from harness.sim import virtual
from harness.sim.kernel import Kernel
from harness.sim.virtual import BEGINNING

Play: TypeAlias = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]

START = 1_735_689_600
REAL = SimpleNamespace(time=time.time, localtime=time.localtime)
"""Nothing stands in for a function that an object holds."""


def played(look: Callable[[], Any], choices: Choices | None = None) -> Any:
    """What `look` gives in a run of its own."""
    kernel = Kernel(choices=choices)

    async def main() -> Any:
        return look()

    try:
        task = kernel.spawn(main(), "1")
        assert kernel.run_until(task.done).reason == "done"
        return task.result()
    finally:
        kernel.tear_down()


# --- clocks


def test_clocks_show_virtual_time(play: Play) -> None:
    assert BEGINNING == START * 10**9
    assert time.gmtime(START)[:6] == (2025, 1, 1, 0, 0, 0)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for passed in (0, 1_500_000_001):
            await asyncio.sleep(passed / 10**9)
            assert time.time_ns() == BEGINNING + passed
            assert time.time() == time.time_ns() / 10**9
            for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
                assert getattr(time, name)() == loop.time()
                assert getattr(time, f"{name}_ns")() == 1_000 * 10**9 + passed
            assert time.clock_gettime(time.CLOCK_REALTIME) == time.time()
            assert time.clock_gettime(time.CLOCK_MONOTONIC) == loop.time()
            assert time.clock_gettime_ns(time.CLOCK_REALTIME) == time.time_ns()
            assert time.clock_gettime_ns(time.CLOCK_MONOTONIC) == time.monotonic_ns()

    play(main)


def test_calendars_show_virtual_time_unless_they_are_told_another() -> None:
    def look() -> list[Any]:
        return [time.gmtime(), time.localtime(), time.ctime(), time.asctime(), time.strftime("%c")]

    then = REAL.localtime(START)
    assert played(look) == [
        time.gmtime(START),
        then,
        time.ctime(START),
        time.asctime(then),
        time.strftime("%c", then),
    ]

    def told() -> list[Any]:
        day = time.gmtime(86_400)
        return [day, time.localtime(0), time.ctime(0), time.asctime(day), time.strftime("%c", day)]

    assert played(told) == told()


def test_today_is_the_runs_day() -> None:
    today, now = played(lambda: (dt.date.today(), dt.datetime.today()))  # noqa: DTZ002, DTZ011
    assert today == dt.date.fromtimestamp(START)  # noqa: DTZ012
    assert now == dt.datetime.fromtimestamp(START)  # noqa: DTZ006


def test_log_records_are_made_in_virtual_time() -> None:
    record = played(lambda: logging.makeLogRecord({}))
    assert record.created == START


def test_outside_of_the_loop_all_is_real_while_a_run_lasts(kernel: Kernel) -> None:
    before = REAL.time()
    state = random.getstate()
    assert before <= time.time() <= REAL.time()
    assert time.clock_gettime(time.CLOCK_REALTIME) >= before
    assert time.localtime() >= REAL.localtime(before)
    assert time.strftime("%Y") == time.strftime("%Y", time.localtime())
    assert os.urandom(16) != os.urandom(16)
    assert secrets.token_bytes(16) != secrets.token_bytes(16)
    assert random.Random().random() != random.Random().random()
    assert uuid.uuid4() != uuid.uuid4()
    assert random.getstate() == state
    random.random()
    assert random.getstate() != state
    kernel.settle()


def test_another_thread_has_real_time_while_a_run_goes_on(kernel: Kernel) -> None:
    looked = threading.Lock()  # nothing stands before a lock, so the run can wait for it
    looked.acquire()
    go = threading.Event()
    seen: list[float] = []

    def foreign() -> None:
        go.wait(10)
        seen.extend([REAL.time(), time.time(), REAL.time()])
        looked.release()

    thread = threading.Thread(target=foreign)
    thread.start()

    async def main() -> bool:
        go.set()
        return looked.acquire(timeout=10)

    task = kernel.spawn(main(), "1")
    kernel.run_until(task.done)
    thread.join()
    assert task.result() is True
    assert seen == sorted(seen)


def test_a_job_has_the_runs_time_and_chance(play: Play) -> None:
    async def main() -> Any:
        await asyncio.sleep(5)
        return await asyncio.to_thread(lambda: (time.time(), random.random()))

    drawn = random.Random("random 0").random()
    assert play(main) == (START + 5, drawn)


@pytest.mark.parametrize("by", ["settrace", "monitoring"])
def test_a_debugger_that_stops_in_a_run_has_real_time(
    by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for its user by the clock; in a run's time it would wait for ever."""
    space: dict[str, Any] = {"time": time}
    exec(compile("def evaluate():\n  return time.time()", "/x/debugpy/a.py", "exec"), space)
    assert played(space["evaluate"]) == START or sys.gettrace() is not None
    before = sys.gettrace()
    if by == "settrace":
        sys.settrace(lambda *_event: None)
    else:
        tools = SimpleNamespace(DEBUGGER_ID=0, get_tool={0: "debugpy"}.get)
        monkeypatch.setattr(virtual, "_MONITORING", tools)
    try:
        assert played(space["evaluate"]) > START
        assert played(lambda: time.time()) == START  # noqa: PLW0108 - looked up in the run
    finally:
        sys.settrace(before)


# --- chance

ENTROPY: dict[str, Callable[[], Any]] = {
    "random": lambda: [
        random.random(),
        random.randint(0, 10**9),
        random.choice(range(10**9)),
        random.sample(range(10**9), k=2),
        random.gauss(0, 1),
        random.randbytes(4).hex(),
    ],
    "random.Random": lambda: [random.Random().random(), random.Random().random()],
    "secrets": lambda: [
        random.SystemRandom().random(),
        secrets.token_hex(),
        secrets.randbelow(10**9),
    ],
    "os.urandom": lambda: [os.urandom(8).hex(), os.getrandom(8, os.GRND_NONBLOCK).hex()],
    "uuid": lambda: [str(uuid.uuid4()), str(uuid.uuid1())],
}
"""By the names of the streams, calls that draw from each."""


@pytest.mark.parametrize("name", ENTROPY)
def test_chance_is_the_same_in_every_run_and_goes_on_within_one(name: str) -> None:
    look = ENTROPY[name]
    first, later = played(lambda: (look(), look()))
    assert first != later
    assert played(lambda: (look(), look())) == (first, later)


@pytest.mark.parametrize("name", ENTROPY)
def test_no_stream_shifts_another(name: str) -> None:
    alone = {other: played(look) for other, look in ENTROPY.items()}

    def look() -> dict[str, Any]:
        ENTROPY[name]()
        return {other: look() for other, look in ENTROPY.items() if other != name}

    del alone[name]
    assert played(look) == alone


def test_chance_is_the_same_in_every_process() -> None:
    program = """
import json
from tests.sim.test_virtual import ENTROPY, played
print(json.dumps({name: played(look) for name, look in ENTROPY.items()}))
"""
    here = {name: played(look) for name, look in ENTROPY.items()}
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert json.loads(done.stdout) == here


def test_a_seed_set_in_a_run_is_the_runs_alone() -> None:
    def look() -> list[float]:
        random.seed(7)
        return [random.random(), random.random()]

    state = random.getstate()
    own = random.Random(7)
    assert played(look) == [own.random(), own.random()]
    assert random.getstate() == state
    assert played(lambda: random.Random(7).random()) == random.Random(7).random()


def test_a_seed_left_out_in_a_run_is_one_of_the_run() -> None:
    def look() -> list[float]:
        random.seed(7)
        random.seed()
        return [random.random()]

    assert played(look) == played(look) != [random.Random(7).random()]


def test_names_of_temporary_files_stay_real() -> None:
    """The generator is kept from run to run, and several processes must not have the same names."""
    made: Any = tempfile
    assert len({played(lambda: next(made._RandomNameSequence())) for _ in range(5)}) == 5


def test_uuids_are_proper_ones_of_the_runs_time() -> None:
    first, second, third = played(lambda: (uuid.uuid1(), uuid.uuid1(node=5), uuid.uuid4()))
    assert (first.version, third.version) == (1, 4)
    assert (first.time - 0x01B2_1DD2_1381_4000) * 100 == BEGINNING
    assert (second.time, second.node) == (first.time + 1, 5)
    assert {first.variant, third.variant} == {uuid.RFC_4122}


# --- choices


@pytest.mark.parametrize("name", ENTROPY)
def test_a_choice_varies_a_stream_and_its_tape_gives_it_again(name: str) -> None:
    asked: list[tuple[str, str, int]] = []

    def pick(source: str, label: str, bound: int) -> int:
        asked.append((source, label, bound))
        return 3

    look = ENTROPY[name]
    varied = Choices(picker=pick)
    ordinary, found = played(look), played(lambda: (look(), look())[0], varied)
    assert asked == [("entropy", name, 8)], "once, and only for the stream that is used"
    assert found != ordinary
    assert played(look, Choices(varied.tape())) == found
    assert played(look, Choices()) == ordinary
    other = played(look, choices_from({("entropy", name): (4, 8)}))
    assert other not in (found, ordinary)


# --- patches, and names that modules hold


def test_a_tests_patch_wins_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    def look() -> Any:
        return time.time(), random.random(), time.monotonic()

    _, drawn, _ = played(look)
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: 1.0)
        patch.setattr(random, "random", lambda: 2.0)
        assert played(look) == (1.0, 2.0, 1_000.0)
        assert time.time() == 1.0

    def patches() -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: 1.0)
            return time.time(), look()[0]

    assert played(patches) == (1.0, 1.0)
    assert played(look) == (START, drawn, 1_000.0)
    assert time.time() > START


def test_a_patch_that_outlasts_its_run_leaves_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    kernel = Kernel()
    monkeypatch.setattr(time, "time", lambda: 1.0)
    kernel.tear_down()
    assert time.time() == 1.0
    monkeypatch.undo()
    assert time.time() > START
    assert played(lambda: time.time()) == START  # noqa: PLW0108 - looked up in the run
    assert time.time is real


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Makes a module that holds functions by names of its own."""

    def load(name: str) -> ModuleType:
        made = ModuleType(name)
        vars(made).update(
            now=time.time,
            pick=random.choice,
            roll=random.random,
            fresh=uuid.uuid4,
            noise=os.urandom,
            Generator=random.Random,
        )
        monkeypatch.setitem(sys.modules, name, made)
        return made

    return load


def test_names_that_users_modules_hold_are_the_runs_too(
    held: Callable[[str], ModuleType],
) -> None:
    users = held("users")
    before = dict(vars(users))

    def by_alias() -> list[Any]:
        numbers = [users.pick(range(9**9)), users.roll(), users.Generator().random()]
        return [users.now(), *numbers, users.fresh(), users.noise(4)]

    def by_module() -> list[Any]:
        numbers = [random.choice(range(9**9)), random.random(), random.Random().random()]
        return [time.time(), *numbers, uuid.uuid4(), os.urandom(4)]

    assert played(by_alias) == played(by_module)
    assert vars(users) == before


def test_our_own_modules_keep_the_real_clock(held: Callable[[str], ModuleType]) -> None:
    ours = held("harness.ours")
    assert played(lambda: ours.now()) > START  # noqa: PLW0108 - looked up in the run


@pytest.mark.parametrize(
    ("module", "name"),
    [(module, name) for module, names in virtual.FUNCTIONS for name in names],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
def test_stand_ins_are_called_and_pickled_as_what_they_stand_in_for(
    module: ModuleType, name: str
) -> None:
    def look() -> Any:
        stand_in = getattr(module, name)
        assert copy.deepcopy(stand_in) is pickle.loads(pickle.dumps(stand_in)) is stand_in
        return stand_in.__name__, pickle.dumps(stand_in)

    real = getattr(module, name)
    called, pickled = played(look)
    assert called == real.__name__
    assert pickle.loads(pickled) == real


def test_functions_that_are_made_of_others_are_the_runs_wherever_they_are_held() -> None:
    held = [uuid.uuid4, secrets.token_hex, random.SystemRandom().random]

    def look() -> list[Any]:
        return [function() for function in held]

    assert played(look) == played(look)
