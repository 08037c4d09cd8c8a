"""A kernel for each test, and a way to play one coroutine on a kernel of its own."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from harness.sim.kernel import Kernel, Limits


@pytest.fixture
def make_kernel() -> Iterator[Callable[..., Kernel]]:
    made: list[Kernel] = []

    def make(**limits: int) -> Kernel:
        made.append(Kernel(Limits(**limits)))
        return made[-1]

    yield make
    for kernel in made:
        kernel.tear_down()


@pytest.fixture
def kernel(make_kernel: Callable[..., Kernel]) -> Iterator[Kernel]:
    made = make_kernel()
    yield made
    made.tear_down()
    assert made.callback_errors == []


@pytest.fixture
def play() -> Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]:
    def played(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        made = Kernel()
        try:
            task = made.spawn(main(), "1")
            stop = made.run_until(task.done)
            assert stop.reason == "done", stop
            return task.result()
        finally:
            made.tear_down()

    return played
