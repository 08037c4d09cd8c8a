"""Agents that use threads, each with one mistake that people make, and the same without it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from harness.core.messages import Message, ModelRequest, ToolCall, tool_result, user
from harness.core.ports import Aborted, Env, ToolFailed
from harness.core.reply import ReplyDone

SCENARIO = """
about: Three tools are used in one turn, then the user goes on.
budget: {parallel_tools: 3}
tools:
  clock: {returns: "14:05", takes: 1s}
  weather: {returns: sunny, takes: 1s}
  mail: {returns: sent, takes: 1s}
turns:
  - user: Mail them the time and the weather.
    model:
      - calls: [clock, weather, mail]
      - say: Done.
  - user: And now?
    model:
      - say: Nothing more.
"""
FAILING = SCENARIO.replace('returns: "14:05"', "error: no clock here")
STUBBORN = SCENARIO.replace('"14:05", takes: 1s', '"14:05", takes: 90s, on_cancel: ignore')
FAILING_ONE_BY_ONE = FAILING.replace("tools: 3", "tools: 1")


class Agent:
    """Asks, uses the tools, asks again; how they are used is for others to say."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self.messages: list[Message] = []
        self.results: dict[str, Message] = {}
        self.begun: set[str] = set()
        self.stop = threading.Event()

    def turn(self, text: str | None) -> None:
        self.begin()
        if text is not None:
            self.messages.append(user(text))
        while (reply := self.ask()).calls:
            self.results = {}
            try:
                self.use_tools(reply.calls)
            finally:
                self.messages += [self.result_of(call) for call in reply.calls]

    def begin(self) -> None:
        self.stop.clear()

    def ask(self) -> Message:
        request = ModelRequest("some-model", "Be brief.", tuple(self.messages))
        with closing(self.env.model_sync.generate(request)) as parts:
            while not self.stop.is_set():
                part = next(parts)
                if isinstance(part, ReplyDone):
                    self.messages.append(part.message)
                    return part.message
        raise KeyboardInterrupt

    def use_tools(self, calls: Sequence[ToolCall]) -> None:
        self.in_threads([lambda call=call: self.use_tool(call, self.stop) for call in calls])

    def in_threads(self, bodies: Sequence[Callable[[], object]]) -> None:
        """Run each in a thread, until all are through; an interrupt stops them."""
        threads = [threading.Thread(target=body) for body in bodies]
        try:
            for thread in threads:
                thread.start()
            self.meanwhile()
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            self.end()
            for thread in threads:
                if thread.is_alive():
                    thread.join()
            raise

    def meanwhile(self) -> None:
        """What the turn itself does while its threads are at work."""

    def end(self) -> None:
        """Have the threads come to an end."""
        self.stop.set()

    def use_tool(self, call: ToolCall, stop: threading.Event) -> None:
        if stop.is_set():
            return
        self.begun.add(call.id)
        try:
            value = self.env.tools.call_sync(call.name, call.args, call.id)
        except ToolFailed as error:
            self.results[call.id] = tool_result(call.id, str(error), is_error=True)
        except Aborted:
            pass
        else:
            self.results[call.id] = tool_result(call.id, str(value))

    def result_of(self, call: ToolCall) -> Message:
        why = "cut off" if call.id in self.begun else "not run"
        return self.results.get(call.id) or tool_result(call.id, why, is_error=True)


# --- a wake-up that comes before somebody waits for it


class LosesWakeUp(Agent):
    """Looks how many there are before it takes the lock under which they are told."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.changed = threading.Condition()

    def use_tools(self, calls: Sequence[ToolCall]) -> None:
        self.first, *others = calls
        self.in_threads([lambda call=call: self.work(call) for call in others])

    def work(self, call: ToolCall) -> None:
        self.use_tool(call, self.stop)
        with self.changed:
            self.changed.notify()

    def meanwhile(self) -> None:
        self.use_tool(self.first, self.stop)
        while len(self.results) < 3:
            with self.changed:
                self.changed.wait()


class KeepsWakeUp(LosesWakeUp):
    def meanwhile(self) -> None:
        self.use_tool(self.first, self.stop)
        with self.changed:
            while len(self.results) < 3:
                self.changed.wait()


# --- a tool that runs after Ctrl-C


class RunsOnAfterInterrupt(Agent):
    """An interrupt ends the wait for the thread, and not the thread."""

    def use_tools(self, calls: Sequence[ToolCall]) -> None:
        thread = threading.Thread(target=self.work, args=(calls,))
        thread.start()
        thread.join()

    def work(self, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            self.use_tool(call, self.stop)


class StopsAtInterrupt(RunsOnAfterInterrupt):
    def use_tools(self, calls: Sequence[ToolCall]) -> None:
        self.in_threads([lambda: self.work(calls)])


# --- a look at a shared list, and what others do between that and the act


class ChecksThenActs(Agent):
    """Two threads take calls from what all of them share; both may take the same one."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.lock = threading.Lock()
        self.taken: list[str] = []

    def use_tools(self, calls: Sequence[ToolCall]) -> None:
        self.in_threads([lambda: self.work(calls)] * 2)

    def work(self, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            if self.takes(call):
                self.use_tool(call, self.stop)

    def takes(self, call: ToolCall) -> bool:
        if call.id in self.taken or self.stop.is_set():
            return False
        self.taken.append(call.id)
        return True


class ChecksUnderLock(ChecksThenActs):
    def takes(self, call: ToolCall) -> bool:
        with self.lock:
            return super().takes(call)


# --- two locks, taken in two orders


class LocksCrosswise(Agent):
    """One thread takes the lock of the log first, the other that of the results."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.for_results = threading.Lock()
        self.for_log = threading.Lock()
        self.log: list[str] = []

    def use_tools(self, calls: Sequence[ToolCall]) -> None:
        self.in_threads([lambda: self.tell(calls[0]), lambda: self.keep(calls[1:])])

    def tell(self, call: ToolCall) -> None:
        self.use_tool(call, self.stop)
        with self.for_log, self.for_results:
            self.log.append(f"{len(self.results)} done")

    def keep(self, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            self.use_tool(call, self.stop)
            with self.for_results, self.for_log:
                self.log.append(call.name)


class LocksInOneOrder(LocksCrosswise):
    def keep(self, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            self.use_tool(call, self.stop)
            with self.for_log, self.for_results:
                self.log.append(call.name)


# --- a job that nobody waits for


class ForgetsJob(Agent):
    """What is handed to the pool goes on when the turn is over."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.pool = ThreadPoolExecutor(3)

    def use_tools(self, calls: Sequence[ToolCall]) -> None:
        *first, _last = [self.pool.submit(self.use_tool, call, self.stop) for call in calls]
        for job in first:
            job.result()


class AwaitsJobs(Agent):
    def use_tools(self, calls: Sequence[ToolCall]) -> None:
        with ThreadPoolExecutor(3) as pool:
            try:
                for job in [pool.submit(self.use_tool, call, self.stop) for call in calls]:
                    job.result()
            except KeyboardInterrupt:
                self.stop.set()
                raise


# --- a stop that the next turn takes back


class ClearsItsStop(Agent):
    """One flag for all turns: the next one clears it while a thread has not yet looked at it."""

    through: threading.Event | None = None

    def turn(self, text: str | None) -> None:
        super().turn(text)
        if self.stop.is_set():
            raise KeyboardInterrupt

    def ask(self) -> Message:
        try:
            return super().ask()
        except Aborted:
            raise KeyboardInterrupt from None

    def use_tools(self, calls: Sequence[ToolCall]) -> None:
        stop, through = self.stop, threading.Event()
        self.through = through
        try:
            threading.Thread(target=self.work, args=(calls, stop, through)).start()
            through.wait()
        except KeyboardInterrupt:
            self.cancel()
            raise
        if stop.is_set():
            raise KeyboardInterrupt

    def work(
        self, calls: Sequence[ToolCall], stop: threading.Event, through: threading.Event
    ) -> None:
        for call in calls:
            self.use_tool(call, stop)
        through.set()

    def cancel(self) -> None:
        self.stop.set()
        if self.through is not None:
            self.through.set()
        self.env.abort()


class HasAStopATurn(ClearsItsStop):
    def begin(self) -> None:
        self.stop = threading.Event()


# --- a consumer that dies


class LosesItsConsumer(Agent):
    """An error ends the thread that takes from the queue, and `join` waits for ever."""

    def use_tools(self, calls: Sequence[ToolCall]) -> None:
        todo: queue.Queue[ToolCall | None] = queue.Queue()
        for call in (*calls, None):
            todo.put(call)
        thread = threading.Thread(target=self.consume, args=(todo,))
        try:
            thread.start()
            todo.join()
        except KeyboardInterrupt:
            self.stop.set()
            raise
        finally:
            if thread.is_alive():
                thread.join()

    def consume(self, todo: queue.Queue[ToolCall | None]) -> None:
        while (call := todo.get()) is not None:
            if not self.stop.is_set():
                value = self.env.tools.call_sync(call.name, call.args, call.id)
                self.results[call.id] = tool_result(call.id, str(value))
            todo.task_done()
        todo.task_done()


class KeepsItsConsumer(LosesItsConsumer):
    def consume(self, todo: queue.Queue[ToolCall | None]) -> None:
        while (call := todo.get()) is not None:
            self.use_tool(call, self.stop)
            todo.task_done()
        todo.task_done()


# --- a timer that fires when nobody needs it any more


class LeavesItsTimer(Agent):
    """The reminder is called off where all goes well, and only there."""

    def use_tools(self, calls: Sequence[ToolCall]) -> None:
        timer = threading.Timer(30, self.results.clear)
        timer.start()
        super().use_tools(calls)
        timer.cancel()
        timer.join()


class EndsItsTimer(Agent):
    def use_tools(self, calls: Sequence[ToolCall]) -> None:
        timer = threading.Timer(30, self.results.clear)
        try:
            timer.start()
            super().use_tools(calls)
        finally:
            timer.cancel()
            if timer.is_alive():
                timer.join()


# --- a permit that is given back twice


class ReleasesTwice(Agent):
    """After an error there is a permit too many."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.permits = threading.Semaphore(1)

    def use_tool(self, call: ToolCall, stop: threading.Event) -> None:
        self.permits.acquire()
        try:
            super().use_tool(call, stop)
            if call.id in self.results and self.results[call.id].is_error:
                self.permits.release()
        finally:
            self.permits.release()


class ReleasesOnce(ReleasesTwice):
    def use_tool(self, call: ToolCall, stop: threading.Event) -> None:
        with self.permits:
            Agent.use_tool(self, call, stop)
