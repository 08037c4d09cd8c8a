"""The table of docs/boundary.md, row by row: each is executed and must be what it says."""

from __future__ import annotations

import gc
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness.core.durations import SECOND
from harness.core.errors import OutOfSimulation
from harness.sim.kernel import Kernel

DOCUMENT = Path(__file__).parents[2] / "docs" / "boundary.md"
ROWS = re.findall(r"^\| `(.+)` \| (.+) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)

MODULES = """
_thread anyio asyncio concurrent.futures datetime multiprocessing os queue random secrets select
selectors signal socket ssl subprocess tempfile threading time urllib.request uuid
"""


@pytest.fixture(scope="module")
def names() -> Iterator[dict[str, Any]]:
    """What rows may name: modules, and what the document says there is."""
    go = threading.Event()
    thread = threading.Thread(target=go.wait)
    thread.start()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        own = {"thread": thread, "pool": pool, "event": threading.Event(), "held": [time.sleep]}
        modules = {name.partition(".")[0]: __import__(name) for name in MODULES.split()}
        yield {**modules, **own, "sleep_by_another_name": time.sleep}
    go.set()
    thread.join()


def test_the_table_says_one_of_three_things() -> None:
    assert {kind for _, kind in ROWS} == {"simulated", "refused", "out of control"}
    assert len(dict(ROWS)) == len(ROWS) > 50


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
