"""The table of docs/reference/boundary.md, row by row: each is executed, and is what it says."""

from __future__ import annotations

import gc
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness.core.durations import SECOND
from harness.core.errors import OutOfSimulation
from harness.runner.files.load import load_text
from harness.runner.run import run
from harness.sim.kernel import Kernel

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "boundary.md"
ROWS, IN_THREADS = (
    re.findall(r"^\| `(.+)` \| (.+) \|$", table, re.MULTILINE)
    for table in DOCUMENT.read_text(encoding="utf-8").split("| what a thread does | is |")
)
SCENARIO = """
about: The agent does what a row says.
turns:
  - user: Go.
    model:
      - say: Gone.
"""
MODULES = """
_thread anyio asyncio concurrent.futures contextlib datetime multiprocessing os queue random secrets
select selectors signal socket ssl subprocess tempfile threading time urllib.request uuid
"""


@pytest.fixture(scope="module")
def names() -> Iterator[dict[str, Any]]:
    """What rows may name: modules, and what the document says there is."""
    go = threading.Event()
    thread = threading.Thread(target=go.wait)
    thread.start()
    with ThreadPoolExecutor(1) as pool, socket.create_server(("127.0.0.1", 0)) as listening:
        pool.submit(int).result()
        own = {"thread": thread, "pool": pool, "event": threading.Event(), "held": [time.sleep]}
        own |= {"lock": threading.Lock(), "locks": [threading.Lock()]}
        own["listening"] = listening
        modules = {name.partition(".")[0]: __import__(name) for name in MODULES.split()}
        yield {**modules, **own, "sleep_by_another_name": time.sleep}
    go.set()
    thread.join()


def test_the_table_says_one_of_three_things() -> None:
    for rows, least in ((ROWS, 50), (IN_THREADS, 25)):
        assert {kind for _, kind in rows} == {"simulated", "refused", "out of control"}
        assert len(dict(rows)) == len(rows) > least


@pytest.mark.parametrize(("code", "kind"), ROWS, ids=[code for code, _ in ROWS])
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_row_is_true(
    code: str, kind: str, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if "os.fork" in code and not hasattr(os, "fork"):
        pytest.skip("there is no fork here")
    module = ModuleType("row")
    monkeypatch.setitem(sys.modules, "row", module)
    space = vars(module)
    space.update(names)
    exec(compile(f"async def main():\n {code}", "row.py", "exec"), space)
    kernel = Kernel()
    task = kernel.spawn(space["main"](), "1")
    began = time.perf_counter()
    stop = kernel.run_until(task.done, 10_000 * SECOND)
    assert time.perf_counter() - began < 5
    refused = stop.reason == "out_of_simulation"
    error = task.exception() if task.done() else None
    kernel.tear_down()
    assert refused == (kind == "refused")
    if refused:
        assert "row.py:2 in main used " in kernel.escapes[0]
        assert error is None or isinstance(error, OutOfSimulation)
    else:
        assert (stop.reason, error, kernel.escapes) == ("done", None, [])
    assert kernel.callback_errors == []
    space.clear()
    gc.collect()


class Synchronous:
    """Does what a row says, in its own code or in a thread that it starts."""

    def __init__(self, main: Callable[[], object], *, starts: bool) -> None:
        self.main = main
        self.starts = starts
        self.error: BaseException | None = None

    def turn(self, text: str | None) -> None:
        if self.starts:
            thread = threading.Thread(target=self.work)
            thread.start()
            thread.join()
        else:
            self.work()

    def work(self) -> None:
        try:
            self.main()
        except BaseException as error:
            self.error = error


@pytest.mark.parametrize("starts", [False, True], ids=["own code", "thread"])
@pytest.mark.parametrize(("code", "kind"), IN_THREADS, ids=[code for code, _ in IN_THREADS])
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_row_is_true_of_threads(
    code: str, kind: str, starts: bool, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("row")
    monkeypatch.setitem(sys.modules, "row", module)
    space = vars(module)
    space.update(names)
    exec(compile(f"def main():\n {code}", "row.py", "exec"), space)
    agent = Synchronous(space["main"], starts=starts)
    began = time.perf_counter()
    result = run(load_text(SCENARIO, "x.yaml"), lambda _env: agent)
    assert time.perf_counter() - began < 5
    if kind == "refused":
        assert result.trace.stop is not None
        stop = result.trace.stop[1]
        assert stop.reason == "out_of_simulation"
        assert stop.detail.startswith("row.py:2 in main used ")
        assert agent.error is not None
    else:
        assert (result.trace.stop, agent.error) == (None, None)
        waits = re.search(r"\b(3600|60)\b", code)
        took = result.trace.entries[-1].at
        expected = int(waits[1]) * SECOND if waits and "cancel" not in code else took
        assert took == expected
    space.clear()
    gc.collect()
