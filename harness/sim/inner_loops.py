"""The event loops that threads of a run make for themselves: all of them are the kernel.

A thread that runs a coroutine hands over until it is done; the kernel runs it as a task, beneath
the thread's own. So what the loops of several threads do is in one order, and in one virtual time.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from asyncio import events
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any

from harness.sim.actors import Actor, current
from harness.sim.swaps import ModuleSwaps, Swap, Swaps
from harness.sim.tasks import DTask

_KERNELS = (
    "call_at call_exception_handler call_later call_soon call_soon_threadsafe create_future "
    "create_task default_exception_handler get_debug get_exception_handler get_task_factory "
    "run_in_executor set_default_executor set_exception_handler set_task_factory "
    "shutdown_default_executor time"
)
"""What a loop of a thread leaves to the kernel."""


class InnerLoop(asyncio.AbstractEventLoop):
    """A loop that a thread of a run has made; another thread may use it too."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self._stopped: asyncio.Future[None] | None = None
        self._closed = False
        self._asked = False
        """Whether it was to stop before it began."""

    def run_until_complete(self, future: Any) -> Any:
        """Have the kernel run a coroutine, or what else can be awaited, and give its result."""
        return _begun(future, lambda: _awaited(self.kernel, future, contextvars.copy_context()))

    def run_forever(self) -> None:
        """Hand over until somebody calls `stop`."""
        self._stopped = self.kernel.create_future()
        if self._asked:
            self._asked = False
            self.kernel.call_in(0, self.stop)
        try:
            _call(self._until_stopped)
        finally:
            self._stopped = None

    def stop(self) -> None:
        """End `run_forever`; where it does not run, soon after it begins."""
        if self._stopped is None:
            self._asked = True
        elif not self._stopped.done():
            self._stopped.set_result(None)

    def is_running(self) -> bool:
        """Whether `run_forever` goes on."""
        return self._stopped is not None

    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def close(self) -> None:
        """Let go of it; the kernel goes on."""
        self._closed = True

    async def shutdown_asyncgens(self) -> None:
        """Do nothing: the generators are those of the whole run, which goes on."""

    def set_debug(self, enabled: bool) -> None:  # noqa: FBT001 - asyncio's own
        """Do nothing: debug mode puts what differs between machines into messages."""

    async def _until_stopped(self) -> None:
        assert self._stopped is not None, "it runs"
        await self._stopped


def _forward(name: str) -> Callable[..., Any]:
    def forward(self: InnerLoop, *args: Any, **options: Any) -> Any:
        return getattr(self.kernel, name)(*args, **options)

    return forward


for _name in _KERNELS.split():
    setattr(InnerLoop, _name, _forward(_name))


def _call(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    actor = current()
    assert actor is not None, "only a thread of a run has such a loop"
    return actor.call(work)


def _begun(future: Any, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Do what runs `future`; a coroutine that was kept from beginning is closed."""
    try:
        return _call(work)
    finally:
        if asyncio.iscoroutine(future) and getcoroutinestate(future) == CORO_CREATED:
            future.close()


async def _awaited(kernel: Any, future: Any, context: Context) -> Any:
    if not asyncio.iscoroutine(future):
        return await future
    return await kernel.create_task(future, context=context)


async def _run(kernel: Any, main: Any, context: Context) -> Any:
    """Run a coroutine, then end what it has left, as `asyncio.run` does."""
    task: DTask = kernel.create_task(main, context=context)
    try:
        return await task
    finally:
        below = f"{task.path}."
        left = [each for each in kernel.living() if each.path.startswith(below)]
        for each in left:
            each.cancel()
        if left:
            await asyncio.gather(*left, return_exceptions=True)


def _new_loop(real: Mapping[str, Any]) -> Any:
    def new_event_loop() -> Any:
        actor = current()
        if actor is None:
            return real["new_event_loop"]()
        make: Any = InnerLoop  # what it lacks raises NotImplementedError
        return make(actor.kernel)

    return new_event_loop


def _sets(real: Mapping[str, Any]) -> Any:
    """`asyncio.set_event_loop`: what a thread of a run sets is gone with it."""

    def set_event_loop(loop: asyncio.AbstractEventLoop | None) -> None:
        actor = current()
        if actor is None:
            real["set_event_loop"](loop)
        else:
            actor.loop, actor.loop_was_set = loop, True

    return set_event_loop


def _gets(real: Mapping[str, Any]) -> Any:
    """`asyncio.get_event_loop`, which makes a loop for the main thread, once, until Python 3.14."""

    def get_event_loop() -> Any:
        actor = current()
        if actor is None:
            return real["get_event_loop"]()
        thread = threading.current_thread()
        makes = thread is threading.main_thread() and sys.version_info < (3, 14)
        if makes and not actor.loop_was_set:
            events.set_event_loop(events.new_event_loop())
        if actor.loop is None:
            raise RuntimeError(f"There is no current event loop in thread {thread.name!r}.")
        return actor.loop

    return get_event_loop


class _Policy:
    """What a thread of a run is given as asyncio's policy: its loops are the run's."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def new_event_loop(self) -> Any:
        return events.new_event_loop()

    def set_event_loop(self, loop: asyncio.AbstractEventLoop | None) -> None:
        events.set_event_loop(loop)

    def get_event_loop(self) -> Any:
        return events.get_event_loop()


def _policies(real: Mapping[str, Any]) -> Any:
    def get_event_loop_policy() -> Any:
        policy = real["get_event_loop_policy"]()
        return policy if current() is None else _Policy(policy)

    return get_event_loop_policy


def _runs(real: Mapping[str, Any]) -> Any:
    def run(self: Any, coro: Any, *, context: Context | None = None) -> Any:
        actor = current()
        if actor is None:
            return real["run"](self, coro, context=context)
        if not asyncio.iscoroutine(coro):
            raise ValueError(f"a coroutine was expected, got {coro!r}")
        self._loop_factory = None  # a loop that another factory makes would run for real
        self._lazy_init()
        return _on(actor, coro, self._context if context is None else context)

    return run


def _on(actor: Actor, coro: Any, context: Context) -> Any:
    return _begun(coro, lambda: _run(actor.kernel, coro, context))


def _closes(real: Mapping[str, Any]) -> Any:
    def close(self: Any) -> None:
        if isinstance(self._loop, InnerLoop):
            self._loop.close()
            self._loop = None
            events.set_event_loop(None)
            self._state = type(self._state).CLOSED
        else:
            real["close"](self)

    return close


_OF_LOOPS = {
    "new_event_loop": _new_loop,
    "set_event_loop": _sets,
    "get_event_loop": _gets,
    "get_event_loop_policy": _policies,
}

ALWAYS: tuple[Swaps, ...] = (
    ModuleSwaps(vars(events), _OF_LOOPS),
    ModuleSwaps(vars(asyncio), _OF_LOOPS),
    Swap(asyncio.Runner, "run", _runs),
    Swap(asyncio.Runner, "close", _closes),
)
"""What is swapped in every run."""
