"""What anyio uses of the process is ordered and without threads, whenever anyio is loaded."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from importlib.util import module_from_spec
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
from anyio._core import _eventloop

from harness.sim.hold import kept

BACKEND = "anyio._backends._asyncio"


async def uses_anyio() -> list[Any]:
    cancelled: list[int] = []

    async def wait(n: int) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.append(n)

    async with anyio.create_task_group() as group:
        for n in range(8):
            group.start_soon(wait, n)
        length = await anyio.to_thread.run_sync(len, "ab")
        group.cancel_scope.cancel()
    return [cancelled, length]


@pytest.fixture
def not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process in which nobody has used anyio yet."""
    anyio.run(anyio.sleep, 0)
    monkeypatch.setattr(sys.modules["anyio._backends"], "_asyncio", None)
    monkeypatch.delitem(_eventloop.loaded_backends, "asyncio")
    monkeypatch.delitem(sys.modules, BACKEND)


@pytest.mark.usefixtures("not_loaded")
def test_the_run_that_loads_anyio_is_as_those_after_it(play: Callable[..., Any]) -> None:
    first = play(uses_anyio)
    assert "set" not in vars(sys.modules[BACKEND])
    assert first == play(uses_anyio) == [list(range(8)), 2]
    assert not any(type(finder).__module__.startswith("harness") for finder in sys.meta_path)


@pytest.mark.usefixtures("not_loaded")
def test_anyio_may_be_loaded_between_runs_that_follow_each_other(play: Callable[..., Any]) -> None:
    async def nothing() -> None: ...

    with kept():
        play(nothing)
        play(nothing)
        anyio.run(anyio.sleep, 0)
        assert play(uses_anyio) == play(uses_anyio) == [list(range(8)), 2]
    assert "set" not in vars(sys.modules[BACKEND])


def test_between_runs_anyio_has_threads_of_its_own(play: Callable[..., Any]) -> None:
    async def main() -> str:
        thread = await anyio.to_thread.run_sync(threading.current_thread)
        return thread.name.partition("_")[0]

    with kept():
        assert play(main) == "pool-1"
        assert anyio.run(main) == "AnyIO worker thread"
        assert play(main) == "pool-1"


@pytest.mark.usefixtures("not_loaded")
@pytest.mark.parametrize("finders", [[], None], ids=["others", "at the end of the process"])
def test_a_run_may_end_where_there_are_other_finders_or_none(
    play: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, finders: list[Any] | None
) -> None:
    async def main() -> None:
        monkeypatch.setattr(sys, "meta_path", finders)

    play(main)
    left = sys.meta_path
    monkeypatch.undo()
    assert left is finders


def test_a_process_may_do_without_anyio(
    play: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def tries() -> str:
        try:
            import anyio as loaded
        except ImportError:
            return "without"
        return loaded.__name__

    monkeypatch.setitem(sys.modules, "anyio", None)
    monkeypatch.delitem(sys.modules, BACKEND, raising=False)
    assert play(tries) == "without"


@pytest.mark.usefixtures("not_loaded")
def test_an_import_that_is_over_after_the_run_swaps_nothing(
    play: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def finds() -> Any:
        finder = next(each for each in sys.meta_path if getattr(each, "_name", "") == BACKEND)
        assert finder.find_spec("anyio.nothing", []) is None
        assert finder.find_spec(BACKEND, []) is None
        return finder.find_spec(BACKEND, sys.modules["anyio._backends"].__path__)

    spec = play(finds)
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, BACKEND, module)
    spec.loader.exec_module(module)
    assert "set" not in vars(module)


def test_a_job_knows_that_a_worker_of_anyio_runs_it(play: Callable[..., Any]) -> None:
    async def main() -> bool:
        await anyio.to_thread.run_sync(anyio.from_thread.check_cancelled)
        return True

    def around() -> Any:
        """In a real worker, which is known as one again after the run."""
        return play(main), anyio.from_thread.run_sync(len, "")

    async def in_a_worker() -> Any:
        return await anyio.to_thread.run_sync(around)

    assert play(main) is True
    with pytest.raises(RuntimeError, match="AnyIO worker thread"):
        anyio.from_thread.check_cancelled()
    assert anyio.run(in_a_worker) == (True, 0)


def test_a_job_may_wait_for_its_own_loop(play: Callable[..., Any]) -> None:
    async def main() -> tuple[int, str]:
        def asks() -> tuple[int, str]:
            return anyio.from_thread.run_sync(len, "abc"), anyio.from_thread.run(slowly)

        async def slowly() -> str:
            await anyio.sleep(5)
            return "late"

        return await anyio.to_thread.run_sync(asks)

    assert play(main) == (3, "late")
