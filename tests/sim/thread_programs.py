"""Programs of threads that give one value, whoever goes first: in a run, and on real threads.

Times are in steps of `T` seconds; what is to happen in an order is held in it by handshakes.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import queue
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

T = 0.02
"""Long enough for a real thread to have come to where it waits."""

PROGRAMS: dict[str, Callable[[], Any]] = {}


def program(function: Callable[[], Any]) -> Callable[[], Any]:
    PROGRAMS[function.__name__] = function
    return function


def started(function: Callable[..., Any], *args: Any, **options: Any) -> threading.Thread:
    thread = threading.Thread(target=function, args=args, **options)
    thread.start()
    return thread


def error_of(function: Callable[..., Any], *args: Any, **options: Any) -> str:
    try:
        value = function(*args, **options)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return f"no error: {value}"


# --- Thread


@program
def a_subclass_with_run() -> Any:
    class Mine(threading.Thread):
        def __init__(self) -> None:
            super().__init__(name="mine", daemon=True)
            self.told: list[Any] = []

        def run(self) -> None:
            current = threading.current_thread()
            self.told += [current is self, current.name, current.daemon, self.is_alive()]
            self.told.append(current.ident == threading.get_ident())

    mine = Mine()
    before = [mine.is_alive(), mine.ident]
    mine.start()
    mine.join()
    return before, mine.told, mine.is_alive(), isinstance(mine.ident, int)


@program
def arguments_and_names() -> Any:
    told: list[Any] = []
    threads = [
        threading.Thread(target=lambda a, b=0: told.append((a, b)), args=(n,), kwargs={"b": -n})
        for n in range(3)
    ]
    for thread in threads:
        thread.start()
        thread.join()
    threads[0].name = "renamed"
    return told, threads[0].name, [thread.daemon for thread in threads]


@program
def a_thread_without_target() -> Any:
    thread = started(None)
    thread.join()
    return thread.is_alive()


@program
def started_twice() -> Any:
    thread = started(lambda: None)
    first = error_of(thread.start)
    thread.join()
    return first, error_of(thread.start)


@program
def joins_that_cannot_be() -> Any:
    told: list[str] = []
    unstarted = error_of(threading.Thread().join)
    itself = started(lambda: told.append(error_of(threading.current_thread().join)))
    itself.join()
    itself.join()
    return unstarted, told


@program
def join_with_a_timeout() -> Any:
    go = threading.Event()
    thread = started(go.wait)
    told = []
    for timeout in (0, -1, T):
        thread.join(timeout)
        told.append(thread.is_alive())
    go.set()
    thread.join(1000)
    return told, thread.is_alive(), thread.join(0)


@program
def alive_until_joined() -> Any:
    inside: list[bool] = []
    thread = threading.Thread(target=lambda: inside.append(thread.is_alive()))
    thread.start()
    thread.join()
    return inside, thread.is_alive()


@program
def joined_by_several() -> Any:
    go, told = threading.Event(), queue.Queue[int]()
    first = started(go.wait)

    def waits(number: int) -> None:
        first.join()
        told.put(number)

    waiting = [started(waits, number) for number in range(3)]
    go.set()
    for each in waiting:
        each.join()
    return sorted(told.get() for _ in range(3))


@program
def a_daemon_thread_starts_daemons() -> Any:
    told: list[bool] = []
    daemon = started(lambda: told.append(threading.Thread().daemon), daemon=True)
    daemon.join()
    return told, daemon.daemon, error_of(setattr, daemon, "daemon", False)


@program
def enumerate_and_count() -> Any:
    before, known = threading.active_count(), set(threading.enumerate())
    go = threading.Event()
    threads = [started(go.wait, name=f"t{n}") for n in range(3)]
    during = threading.active_count() - before
    names = [each.name for each in threading.enumerate() if each not in known]
    go.set()
    for each in threads:
        each.join()
    return during, names, threading.active_count() - before


@program
def the_main_thread_is_known() -> Any:
    told: list[bool] = []
    started(lambda: told.append(threading.current_thread() is threading.main_thread())).join()
    return told, threading.main_thread().name


@program
def locals_are_of_a_thread() -> Any:
    own = threading.local()
    own.value = "main"
    told: list[Any] = []

    def look(number: int) -> None:
        told.append(getattr(own, "value", None))
        own.value = number
        time.sleep(T)
        told.append(own.value)

    for n in range(2):
        started(look, n).join()
    return told, own.value


@program
def locals_of_a_subclass_are_made_anew() -> Any:
    class Own(threading.local):
        def __init__(self, start: list[int]) -> None:
            self.items = [*start]

    own = Own([1])
    own.items.append(2)
    told: list[Any] = []
    started(lambda: told.append(own.items)).join()
    return told, own.items


@program
def a_hook_hears_of_errors() -> Any:
    told: list[Any] = []

    def hook(args: Any) -> None:
        own = args.thread is threading.current_thread()
        told.append((args.exc_type.__name__, str(args.exc_value), own, args.thread.name))

    def fails() -> None:
        raise ValueError("no")

    def leaves() -> None:
        raise SystemExit(3)

    before, threading.excepthook = threading.excepthook, hook
    try:
        started(fails, name="fails").join()
        started(leaves, name="leaves").join()
    finally:
        threading.excepthook = before
    return told


@program
def contexts_are_of_a_thread() -> Any:
    var: contextvars.ContextVar[str] = contextvars.ContextVar("var", default="none")
    var.set("mine")
    told: list[str] = []
    started(lambda: (told.append(var.get()), var.set("theirs"))).join()
    context = contextvars.copy_context()
    started(context.run, lambda: (told.append(var.get()), var.set("inner"))).join()
    return told, var.get(), context[var]


@program
def threads_start_threads() -> Any:
    told: list[int] = []

    def nest(depth: int) -> None:
        if depth:
            inner = started(nest, depth - 1)
            inner.join()
        told.append(depth)

    started(nest, 4).join()
    return told


# --- Lock, RLock


@program
def a_lock() -> Any:
    lock = threading.Lock()
    told = [lock.locked(), lock.acquire(), lock.locked(), lock.acquire(False), lock.locked()]
    told += [lock.acquire(timeout=T), lock.acquire(blocking=False), lock.release()]
    told += [lock.locked(), error_of(lock.release), lock.acquire(True, -1), lock.acquire(True, 0)]
    told += [error_of(lock.acquire, False, 1), error_of(lock.acquire, True, -2)]
    with_result = threading.Lock().__enter__()
    return told, with_result


@program
def a_lock_is_released_by_another_thread() -> Any:
    lock = threading.Lock()
    lock.acquire()
    started(lock.release).join()
    return lock.acquire(timeout=T), lock.locked()


@program
def a_lock_is_handed_over() -> Any:
    lock, told = threading.Lock(), []
    lock.acquire()

    def takes() -> None:
        with lock:
            told.append("theirs")

    thread = started(takes)
    time.sleep(T)
    told.append("mine")
    lock.release()
    thread.join()
    return told, lock.locked()


@program
def counting_under_a_lock() -> Any:
    lock, count = threading.Lock(), [0]

    def add() -> None:
        for _ in range(20):
            with lock:
                before = count[0]
                time.sleep(0)
                count[0] = before + 1

    threads = [started(add) for _ in range(4)]
    for each in threads:
        each.join()
    return count


@program
def a_lock_of_errors_is_free_again() -> Any:
    lock = threading.Lock()

    def fails() -> None:
        with lock:
            raise ValueError

    return error_of(fails), lock.locked()


@program
def a_reentrant_lock() -> Any:
    lock = threading.RLock()
    told: list[Any] = [lock.acquire(), lock.acquire(), lock.acquire(blocking=False)]

    def other() -> None:
        told.append(lock.acquire(blocking=False))
        told.append(lock.acquire(timeout=T))
        told.append(error_of(lock.release))
        told.append(lock._is_owned())  # type: ignore[attr-defined]

    started(other).join()
    for _ in range(3):
        lock.release()
    told.append(error_of(lock.release))
    started(lambda: told.append(lock.acquire(timeout=T))).join()
    return told


@program
def a_reentrant_lock_is_waited_for() -> Any:
    lock, told = threading.RLock(), []

    def takes() -> None:
        with lock, lock:
            told.append("theirs")

    with lock:
        with lock:
            thread = started(takes)
            time.sleep(T)
        time.sleep(T)
        told.append("mine")
    thread.join()
    return told


# --- Condition


def _conditions() -> list[threading.Condition]:
    return [
        threading.Condition(),
        threading.Condition(threading.Lock()),
        threading.Condition(threading.RLock()),
    ]


@program
def conditions_wake_as_many_as_they_say() -> Any:
    told = []
    for condition in _conditions():
        ready: queue.Queue[int] = queue.Queue()
        woken: queue.Queue[int] = queue.Queue()

        def waits(number: int) -> None:
            with condition:  # noqa: B023
                ready.put(number)  # noqa: B023
                condition.wait()  # noqa: B023
                woken.put(number)  # noqa: B023

        threads = []
        for number in range(4):
            threads.append(started(waits, number))
            ready.get()
        with condition:
            condition.notify()
        told.append([woken.get()])
        with condition:
            condition.notify(2)
        told[-1] += sorted([woken.get(), woken.get()])
        time.sleep(T)
        told[-1].append(woken.qsize())
        with condition:
            condition.notify_all()
        for each in threads:
            each.join()
        told[-1].append(woken.get())
    return told


@program
def conditions_time_out() -> Any:
    told: list[Any] = []
    for condition in _conditions():
        with condition:
            told += [condition.wait(T), condition.wait(0), condition.wait_for(lambda: False, T)]
            told += [condition.wait_for(lambda: 7), condition.wait_for(lambda: 0, 0)]
            told.append(len(condition._waiters))  # type: ignore[attr-defined]
        told += [error_of(condition.wait), error_of(condition.notify)]
        told.append(error_of(condition.notify_all))
    return told


@program
def a_condition_keeps_a_reentrant_lock_as_it_was() -> Any:
    condition, told = threading.Condition(), []

    def tells() -> None:
        with condition:
            told.append("notified")
            condition.notify()

    with condition, condition:
        thread = started(tells)
        told.append(condition.wait(1000))
        told.append(condition._is_owned())  # type: ignore[attr-defined]
        condition.release()
        condition.acquire()
    thread.join()
    return told, error_of(condition.release)


@program
def waiting_for_a_predicate() -> Any:
    condition, items, told = threading.Condition(), [], []

    def takes() -> None:
        with condition:
            told.append(condition.wait_for(lambda: len(items) >= 3))

    thread = started(takes)
    for number in range(3):
        time.sleep(T)
        with condition:
            items.append(number)
            condition.notify_all()
    thread.join()
    return told, items


# --- Semaphore, Event, Barrier, Timer


@program
def semaphores() -> Any:
    told: list[Any] = []
    for made in (threading.Semaphore(2), threading.BoundedSemaphore(2)):
        told += [made.acquire(), made.acquire(), made.acquire(False), made.acquire(timeout=T)]
        made.release(2)
        told += [made.acquire(), made.acquire(blocking=False)]
        told.append(error_of(made.acquire, False, 1))
        told.append(error_of(made.release, 0))
        made.release()
        made.release()
        told.append(error_of(made.release))
        with made as entered:
            told.append(entered)
    told.append(error_of(threading.Semaphore, -1))
    return told


@program
def a_semaphore_lets_as_many_in() -> Any:
    limit, lock, inside, most = threading.Semaphore(2), threading.Lock(), [0], [0]

    def enters() -> None:
        with limit:
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            time.sleep(T)
            with lock:
                inside[0] -= 1

    threads = [started(enters) for _ in range(5)]
    for each in threads:
        each.join()
    return inside, most


@program
def an_event() -> Any:
    event = threading.Event()
    told: list[Any] = [event.is_set(), event.wait(0), event.wait(T)]
    threads = [started(lambda: told.append(event.wait())) for _ in range(3)]
    time.sleep(T)
    told.append(len(told))
    event.set()
    for each in threads:
        each.join()
    told += [event.is_set(), event.wait(), event.wait(T), event.clear(), event.is_set()]
    return told


@program
def a_barrier() -> Any:
    acted: list[str] = []
    barrier = threading.Barrier(3, action=lambda: acted.append("acted"))
    numbers: queue.Queue[int] = queue.Queue()
    for _ in range(2):
        threads = [started(lambda: numbers.put(barrier.wait())) for _ in range(3)]
        for each in threads:
            each.join()
    return sorted(numbers.get() for _ in range(6)), acted, barrier.parties, barrier.n_waiting


@program
def a_barrier_that_breaks() -> Any:
    told: queue.Queue[str] = queue.Queue()
    barrier = threading.Barrier(3)

    def meets(timeout: float | None) -> None:
        told.put(error_of(barrier.wait, timeout))

    threads = [started(meets, timeout) for timeout in (T, 1000)]
    for each in threads:
        each.join()
    seen = [told.get(), told.get(), str(barrier.broken), error_of(barrier.wait)]
    barrier.reset()
    seen.append(str(barrier.broken))
    thread = started(meets, None)
    while not barrier.n_waiting:
        time.sleep(T)
    barrier.reset()
    thread.join()
    seen.append(told.get())
    thread = started(meets, None)
    while not barrier.n_waiting:
        time.sleep(T)
    barrier.abort()
    thread.join()
    seen += [told.get(), str(barrier.broken)]

    def fails() -> None:
        raise ValueError("no")

    return seen, error_of(threading.Barrier(1, fails).wait)


@program
def timers() -> Any:
    told: list[Any] = []
    fires = threading.Timer(T, told.append, ["fired"])
    never = threading.Timer(1000, told.append, ["never"])
    keyed = threading.Timer(0, lambda *, key: told.append(key), kwargs={"key": "keyed"})
    for each in (keyed, fires, never):
        each.start()
    never.cancel()
    for each in (keyed, fires, never):
        each.join()
    never.cancel()
    return told, fires.finished.is_set(), never.is_alive()


# --- queues


@program
def queues_of_all_kinds() -> Any:
    told: list[Any] = []
    kinds = (queue.Queue, queue.LifoQueue, queue.PriorityQueue, queue.SimpleQueue)
    for at, kind in enumerate(kinds):
        made: Any = kind()
        for number in (2, 3, 1):
            made.put(number)
        told.append((at, made.qsize(), made.empty(), [made.get() for _ in range(3)]))
        told += [error_of(made.get, False), error_of(made.get, True, T), error_of(made.get_nowait)]
        told += [
            error_of(made.get, timeout=-1).partition(":")[0],
            made.empty(),
            made.put_nowait(1),
            made.get(False),
        ]
    return told


@program
def a_full_queue() -> Any:
    made: queue.Queue[int] = queue.Queue(1)
    told: list[Any] = [made.full(), made.put(1), made.full(), error_of(made.put, 2, False)]
    told += [error_of(made.put, 2, True, T), error_of(made.put_nowait, 2)]
    told.append(error_of(made.put, 2, timeout=-1))
    thread = started(made.put, 2)
    time.sleep(T)
    told += [made.qsize(), made.get()]
    thread.join()
    return told, made.get(), made.maxsize


@program
def a_queue_is_joined() -> Any:
    made: queue.Queue[int] = queue.Queue()
    done: list[int] = []

    def works() -> None:
        for _ in range(3):
            item = made.get()
            time.sleep(T)
            done.append(item)
            made.task_done()

    thread = started(works)
    for number in range(3):
        made.put(number)
    made.join()
    thread.join()
    return done, error_of(made.task_done)


@program
def producers_and_consumers() -> Any:
    made: queue.Queue[Any] = queue.Queue(2)
    got: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def puts(number: int) -> None:
        for n in range(5):
            made.put((number, n))

    def gets() -> None:
        while (item := made.get()) is not None:
            got.put(item)

    takers = [started(gets) for _ in range(2)]
    makers = [started(puts, number) for number in range(3)]
    for each in makers:
        each.join()
    for _ in takers:
        made.put(None)
    for each in takers:
        each.join()
    items = [got.get() for _ in range(got.qsize())]
    of = [[n for number, n in items if number == which] for which in range(3)]
    return [sorted(each) for each in of]


@program
def a_simple_queue_is_waited_for() -> Any:
    made: queue.SimpleQueue[int] = queue.SimpleQueue()
    told: list[int] = []
    thread = started(lambda: told.append(made.get()))
    time.sleep(T)
    made.put(7)
    thread.join()
    return told


# --- pools


@program
def pools_run_what_they_are_given() -> Any:
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(divmod, 7, n) for n in (2, 3, 0)]
        mapped = list(pool.map(lambda a, b: a * b, [1, 2, 3], [4, 5, 6, 7]))
    told = [error_of(each.result) for each in futures]
    told += [type(each.exception()).__name__ for each in futures]
    return told, mapped, [each.done() for each in futures], [each.running() for each in futures]


@program
def pools_wait_for_some() -> Any:
    go = threading.Event()

    def fails() -> None:
        raise ValueError("no")

    with ThreadPoolExecutor(4) as pool:
        slow, quick = pool.submit(go.wait), pool.submit(int, "7")
        wait = concurrent.futures.wait
        first = wait([slow, quick], return_when=concurrent.futures.FIRST_COMPLETED)
        late = wait([slow], timeout=T)
        failed = pool.submit(fails)
        found = wait([slow, failed], return_when=concurrent.futures.FIRST_EXCEPTION)
        ordered = concurrent.futures.as_completed([slow, quick], timeout=1000)
        before = next(ordered) is quick
        timed = error_of(list, concurrent.futures.as_completed([slow], timeout=T))
        go.set()
        after = next(ordered) is slow
        everything = wait([slow, quick, failed])
    shown = [[len(each.done), len(each.not_done)] for each in (first, late, found, everything)]
    return shown, before, timed, after


@program
def futures_time_out() -> Any:
    go = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(go.wait)
        told = [error_of(slow.result, T), error_of(slow.exception, T), error_of(slow.result, 0)]
        told.append(error_of(list, pool.map(go.wait, [1000], timeout=T)))
        go.set()
    return told, slow.result()


@program
def futures_are_cancelled_before_they_run() -> Any:
    go, ran, called = threading.Event(), [], []
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(go.wait)
        while not first.running():
            time.sleep(T)
        second = pool.submit(ran.append, 2)
        second.add_done_callback(lambda done: called.append(done.cancelled()))
        told = [first.cancel(), second.cancel(), second.cancel(), second.done(), second.running()]
        told += [error_of(second.result), first.cancelled()]
        go.set()
    return told, ran, called


@program
def futures_call_back() -> Any:
    called: list[Any] = []
    go = threading.Event()
    main = threading.get_ident()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(go.wait)
        future.add_done_callback(lambda each: called.append(threading.get_ident() == main))
        future.add_done_callback(lambda each: called.append(each is future))
        go.set()
    future.add_done_callback(lambda each: called.append(threading.get_ident() == main))
    return called


@program
def a_future_of_ones_own() -> Any:
    future: Future[int] = Future()
    told: list[Any] = []
    thread = started(lambda: told.append(future.result()))
    time.sleep(T)
    future.set_running_or_notify_cancel()
    future.set_result(7)
    thread.join()
    return told, error_of(future.set_result, 8).partition(":")[0]


@program
def pools_are_shut_down() -> Any:
    pool = ThreadPoolExecutor(1)
    go, ran = threading.Event(), []
    first = pool.submit(go.wait)
    while not first.running():
        time.sleep(T)
    waiting = [pool.submit(ran.append, n) for n in range(3)]
    pool.shutdown(wait=False)
    late = error_of(pool.submit, len, "")
    waiting[1].cancel()
    go.set()
    pool.shutdown()
    pool.shutdown()
    return late, ran, [each.cancelled() for each in waiting]


@program
def pools_cancel_what_waits() -> Any:
    pool = ThreadPoolExecutor(1)
    go, ran = threading.Event(), []
    first = pool.submit(go.wait)
    while not first.running():
        time.sleep(T)
    waiting = [pool.submit(ran.append, n) for n in range(3)]
    started(lambda: (time.sleep(T), go.set()))
    pool.shutdown(cancel_futures=True)
    return ran, [each.cancelled() for each in waiting], first.result()


@program
def pools_begin_their_workers() -> Any:
    begun: queue.SimpleQueue[str] = queue.SimpleQueue()
    own = threading.local()

    def begins(name: str) -> None:
        own.name = name
        begun.put(name)

    with ThreadPoolExecutor(1, initializer=begins, initargs=("worker",)) as pool:
        told = list(pool.map(lambda _n: own.name, range(3)))
    return told, begun.qsize()


@program
def pools_that_cannot_begin_are_broken() -> Any:
    import logging

    logging.getLogger("concurrent.futures").disabled = True
    pool = ThreadPoolExecutor(1, initializer=int, initargs=("x",))
    first = error_of(pool.submit(len, "").result)
    later = error_of(pool.submit, len, "")
    pool.shutdown()
    logging.getLogger("concurrent.futures").disabled = False
    return first, later


@program
def jobs_start_jobs() -> Any:
    with ThreadPoolExecutor(2) as pool:

        def outer() -> int:
            return pool.submit(lambda: 7).result() + 1

        return pool.submit(outer).result()


@program
def a_subclass_of_a_pool() -> Any:
    class Counting(ThreadPoolExecutor):
        submitted = 0

        def submit(self, fn: Any, /, *args: Any, **options: Any) -> Any:
            self.submitted += 1
            return super().submit(fn, *args, **options)

    with Counting(2) as pool:
        values = list(pool.map(str, range(3)))
        one = pool.submit(int, "7").result()
    return values, one, pool.submitted


@program
def a_job_of_a_pool_knows_its_worker() -> Any:
    with ThreadPoolExecutor(2, thread_name_prefix="mine") as pool:
        return pool.submit(lambda: threading.current_thread().name).result()


@program
def jobs_raise_whatever() -> Any:
    def raises(error: BaseException) -> None:
        raise error

    told = []
    with ThreadPoolExecutor(2) as pool:
        for error in (SystemExit(3), GeneratorExit("x"), StopIteration(1), KeyboardInterrupt("y")):
            future = pool.submit(raises, error)
            told.append(type(future.exception()).__name__)
    return told


# --- sleeping


@program
def sleeps_sort() -> Any:
    told: list[int] = []

    def sleeps(number: int) -> None:
        time.sleep(number * T)
        told.append(number)

    threads = [started(sleeps, number) for number in (3, 1, 2)]
    for each in threads:
        each.join()
    return told, error_of(time.sleep, -1), time.sleep(0), error_of(time.sleep, "x")


# --- asyncio in threads


@program
def asyncio_runs() -> Any:
    async def main() -> list[Any]:
        async def child(number: int) -> int:
            await asyncio.sleep(number * T)
            return number

        first = asyncio.create_task(child(2))
        told: list[Any] = [await asyncio.gather(child(3), first, child(1))]
        told.append(await asyncio.to_thread(lambda: threading.current_thread() is not None))
        try:
            async with asyncio.timeout(T):
                await asyncio.Event().wait()
        except TimeoutError:
            told.append("timeout")
        return told

    return asyncio.run(main()), error_of(asyncio.run, 7), error_of(asyncio.get_running_loop)


@program
def asyncio_raises() -> Any:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    async def leaves() -> None:
        asyncio.current_task().cancel()  # type: ignore[union-attr]
        await asyncio.sleep(0)

    return error_of(asyncio.run, fails()), error_of(asyncio.run, leaves()).partition(":")[0]


@program
def asyncio_ends_what_is_left() -> Any:
    told: list[str] = []

    async def left() -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            told.append("cancelled")
            await asyncio.sleep(T)
            told.append("cleaned up")
            raise

    async def main() -> str:
        main.task = asyncio.create_task(left())  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        return "over"

    return asyncio.run(main()), told


@program
def runners() -> Any:
    var: contextvars.ContextVar[int] = contextvars.ContextVar("var", default=0)

    async def adds() -> int:
        await asyncio.sleep(0)
        var.set(var.get() + 1)
        return var.get()

    with asyncio.Runner() as runner:
        told = [runner.run(adds()), runner.run(adds())]
        loop = runner.get_loop()
        told.append(loop.run_until_complete(adds()))
        told.append(loop.is_running())
    return told, var.get(), loop.is_closed(), error_of(runner.run, None)


@program
def a_loop_in_the_background() -> Any:
    loop = asyncio.new_event_loop()

    def serves() -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        loop.close()

    thread = started(serves)

    async def works(number: int) -> int:
        await asyncio.sleep(number * T)
        return number

    futures = [asyncio.run_coroutine_threadsafe(works(number), loop) for number in (2, 1)]
    told: list[Any] = [each.result(1000) for each in futures]

    async def fails() -> None:
        raise ValueError("no")

    told.append(error_of(asyncio.run_coroutine_threadsafe(fails(), loop).result))
    slow = asyncio.run_coroutine_threadsafe(works(10_000), loop)
    told += [error_of(slow.result, T), slow.cancel(), slow.cancelled()]
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    return told, loop.is_closed(), loop.is_running()


@program
def the_loop_of_a_thread() -> Any:
    told: list[Any] = []

    def body() -> None:
        told.append(error_of(asyncio.get_event_loop).partition(" in ")[0])
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        told.append(asyncio.get_event_loop() is loop)
        told.append(asyncio.get_event_loop().run_until_complete(asyncio.sleep(T, "slept")))
        loop.close()
        told.append(asyncio.get_event_loop().is_closed())
        asyncio.run(asyncio.sleep(T))
        told.append(error_of(asyncio.get_event_loop).partition(" in ")[0])

    started(body).join()
    return told


@program
def the_loop_of_the_policy() -> Any:
    told: list[Any] = []

    def body() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            policy = asyncio.get_event_loop_policy()
        told.append(error_of(policy.get_event_loop).partition(" in ")[0])
        loop = policy.new_event_loop()
        policy.set_event_loop(loop)
        told.append(policy.get_event_loop() is loop is asyncio.get_event_loop())
        told.append(loop.run_until_complete(asyncio.sleep(T, "slept")))
        told.append(hasattr(policy, "_loop_factory"))
        loop.close()

    started(body).join()
    return told


@program
def generators_after_another_loop_has_shut_down_its_own() -> Any:
    told: list[Any] = []

    async def counts() -> Any:
        yield 1

    async def counted() -> list[int]:
        return [number async for number in counts()]

    def body() -> None:
        for _ in range(2):
            loop = asyncio.new_event_loop()
            told.append(loop.run_until_complete(counted()))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    started(body).join()
    return told


@program
def a_loop_that_is_stopped_before_it_runs() -> Any:
    loop, told = asyncio.new_event_loop(), []
    loop.call_soon(told.append, 1)
    loop.stop()
    loop.run_forever()
    done = loop.create_future()
    loop.call_later(T, done.set_result, 2)
    told.append(loop.run_until_complete(done))
    loop.call_soon(loop.stop)
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    return told


@program
def queues_join_threads_and_loops() -> Any:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        made: asyncio.Queue[int] = asyncio.Queue()

        def puts() -> None:
            for number in range(3):
                loop.call_soon_threadsafe(made.put_nowait, number)
                time.sleep(T)

        thread = threading.Thread(target=puts)
        thread.start()
        items = [await made.get() for _ in range(3)]
        await asyncio.to_thread(thread.join)
        return items

    return asyncio.run(main())
