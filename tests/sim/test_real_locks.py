"""Locks that were made before a run are named where they are held, and others are not."""

from __future__ import annotations

import _thread
import queue
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from harness.sim import real_locks

NAME = "aaa_agent_with_locks"


class Store:
    """Has the locks that it is given."""

    def __init__(self, **locks: Any) -> None:
        vars(self).update(locks)


class Pretends:
    """Says to be whatever it is asked for, and breaks."""

    @property
    def __class__(self) -> type:
        raise RuntimeError("nothing is bound")


def locked(lock: Any) -> Any:
    lock.acquire()
    return lock


def with_inner(made: Any, *names: str) -> Any:
    inner = made
    for name in names:
        inner = getattr(inner, name)
    inner.acquire()
    return made


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    made = ModuleType(NAME)
    monkeypatch.setitem(sys.modules, NAME, made)
    yield made
    vars(made).clear()


def named() -> list[str]:
    return [name for name in real_locks.held() if name.startswith(NAME)]


@pytest.mark.parametrize(
    "held",
    [
        locked(threading.Lock()),
        locked(threading.RLock()),
        with_inner(threading.Condition(), "_lock"),
        with_inner(threading.Event(), "_cond", "_lock"),
        with_inner(threading.Semaphore(0), "_cond", "_lock"),
        with_inner(queue.Queue(), "mutex"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_held_lock_of_a_module_an_object_or_a_class_is_named(
    held: Any, module: ModuleType
) -> None:
    vars(module).update(LOCK=held)
    assert named() == [f"{NAME}.LOCK"]
    vars(module).update(LOCK=0, STORE=Store(_lock=held))
    assert named() == [f"{NAME}.STORE._lock"]
    vars(module).update(STORE=0, Own=type("Own", (), {"lock": held, "__module__": NAME}))
    assert named() == [f"{NAME}.Own.lock"]


def test_a_lock_that_nobody_holds_is_not_named(module: ModuleType) -> None:
    free = {"lock": threading.Lock(), "again": threading.RLock(), "event": threading.Event()}
    vars(module).update(free, STORE=Store(**free))
    assert named() == []


def test_a_lock_is_named_once_and_not_by_a_class_from_elsewhere(module: ModuleType) -> None:
    held = locked(_thread.allocate_lock())
    other = type("Other", (), {"lock": held, "__module__": "elsewhere"})
    vars(module).update(Other=other, sys=sys)
    assert named() == []
    vars(module).update(A=Store(a=held, b=held), B=held)
    assert named() == [f"{NAME}.A.a"]


def test_what_more_would_say_nothing_more_is_left_out(module: ModuleType) -> None:
    vars(module).update({f"L{number}": locked(threading.Lock()) for number in range(5)})
    assert named() == [f"{NAME}.L0", f"{NAME}.L1", f"{NAME}.L2"]


def test_an_object_that_is_touched_by_nobody_is_not_touched(module: ModuleType) -> None:
    vars(module).update(P=Pretends(), LOCK=locked(threading.Lock()))
    assert named() == [f"{NAME}.LOCK"]
