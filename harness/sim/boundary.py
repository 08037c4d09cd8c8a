"""What the simulation does not control: reaching for it is an error that names the user's line."""

from __future__ import annotations

import threading
from asyncio import Handle, events
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context
from typing import Any, NoReturn, TypeVarTuple

from harness.core.choices import Choices
from harness.core.errors import OutOfSimulation
from harness.sim import where
from harness.sim.actors import current
from harness.sim.entropy import Entropy
from harness.sim.stock import StockLoop
from harness.sim.where import Line

_Args = TypeVarTuple("_Args")

NETWORK = (
    "nothing real can be reached in a run, so put a fake in its place; an agent has the env's "
    "model and tools, and for a provider's SDK env.http()"
)
PROCESS = "make the command a fake tool"
SIGNAL = "give the agent a cancel() method, which the harness calls where it would be interrupted"
THREAD = (
    "make the blocking call a fake tool, or call it without a thread; a thread that has nothing to "
    "do with the run is started before it, as where the agent's module is loaded"
)
WAIT = "await asyncio's Event, Queue or Future; other threads have no part in a run"
SLEEP = "await asyncio.sleep(), or the env's clock"
DESCRIPTOR = "give the agent what it reads through a fake tool"

_REFUSED = (
    (
        NETWORK,
        "getaddrinfo getnameinfo create_connection create_server create_unix_connection "
        "create_unix_server create_datagram_endpoint connect_accepted_socket start_tls sendfile "
        "sock_recv sock_recv_into sock_recvfrom sock_recvfrom_into sock_sendall sock_sendto "
        "sock_connect sock_accept sock_sendfile",
    ),
    (PROCESS, "subprocess_shell subprocess_exec"),
    (SIGNAL, "add_signal_handler"),
    (DESCRIPTOR, "add_reader add_writer connect_read_pipe connect_write_pipe"),
)
_NOTHING_TO_REMOVE = ("remove_reader", "remove_writer", "remove_signal_handler")


class Boundary(StockLoop):
    """An event loop that touches nothing outside its process and its thread.

    `escapes` keeps what was refused, since the code under test may swallow the error.
    """

    def __init__(self) -> None:
        super().__init__()
        self.choices: Choices | None = None
        """What decides all that the run leaves open; None where everything is ordinary."""
        self._entropy: Entropy | None = None
        self.routes: object | None = None
        """Where requests over HTTP go; None where nothing of the run takes them."""
        self.escapes: list[str] = []
        self.on_network: Callable[[str], None] | None = None
        """Hears of each attempt to reach the network."""
        self.alarmed = False
        """Whether there is something that stops the run."""
        self._foreign: list[tuple[Future[Any], str]] = []
        """Futures that are completed without the loop, and what to say of each."""
        self._home = threading.get_ident()
        self.job_line: Line | None = None
        """The line that asked for the job that runs now, in a pool."""

    @property
    def entropy(self) -> Entropy:
        """The random numbers of the run."""
        if self._entropy is None:
            self._entropy = Entropy(self.choices)
        return self._entropy

    def stop_choosing(self) -> None:
        """Have all that is still left open be ordinary: the run is over."""
        self.choices = None
        if self._entropy is not None:
            self._entropy.choices = None

    def refuse(self, what: str, instead: str) -> NoReturn:
        """Raise OutOfSimulation: the user's line, what it used, and what to do instead."""
        by = where.libraries(3) if instead is NETWORK else ""
        message = self._refusal(what + by, instead, 4)
        self.note_escape(message)
        if instead is NETWORK and self.on_network is not None:
            self.on_network(message)
        raise OutOfSimulation(message)

    def _refusal(self, what: str, instead: str, above: int) -> str:
        line = where.calling(above)
        if line is None and self.job_line is not None:
            line, what = self.job_line, f"{what} in a job"
        place = where.show(line) if line else where.UNKNOWN
        return f"{place} used {what}, which the simulation does not control; {instead}"

    def note_escape(self, message: str) -> None:
        """Keep what was refused, and have the run stop."""
        self.escapes.append(message)
        self.alarmed = True

    def note_foreign(self, source: Future[Any]) -> None:
        """Take note that somebody waits for a future of concurrent.futures.

        It may be completed in the run's own thread; whether it was is seen later.
        """
        if not source.done():
            what = "a future that another thread completes"
            self._foreign.append((source, self._refusal(what, WAIT, 5)))

    def foreign(self) -> str | None:
        """What to say of the first future that is waited for and that nobody has completed yet."""
        pending = [message for source, message in self._foreign if not source.done()]
        return pending[0] if pending else None

    def call_soon_threadsafe(
        self,
        callback: Callable[[*_Args], object],
        *args: *_Args,
        context: Context | None = None,
    ) -> Handle:
        """As `call_soon`, from the run's own thread only.

        A thread that completes a future which the run waits for is not told: its pool would print
        an error that it has no part in.
        """
        actor = current()
        if actor is not None and actor.kernel is self:
            return self.call_in(0, callback, *args, context=context)
        if threading.get_ident() != (self._thread_id or self._home):
            for source, message in self._foreign:
                if any(source is each for each in args):
                    self.note_escape(message)
                    return Handle(callback, args, self, context)
            if not self._closed:
                self.refuse("call_soon_threadsafe from another thread", THREAD)
        return self.call_soon(callback, *args, context=context)


def simulation() -> Boundary | None:
    """The simulated loop whose task, callback or thread is at work here; None without one.

    A loop of another kind that a thread runs is part of the thread.
    """
    loop: Any = events._get_running_loop()
    if not isinstance(loop, Boundary):
        actor = current()
        loop = None if actor is None else actor.kernel
    return loop  # type: ignore[no-any-return]


def _refused(name: str, instead: str) -> Callable[..., NoReturn]:
    def method(self: Boundary, *_args: Any, **_options: Any) -> NoReturn:
        self.refuse(f"loop.{name}()", instead)

    method.__name__ = name
    method.__doc__ = f"Refused: {instead}."
    return method


def _nothing_to_remove(_self: Boundary, _what: object) -> bool:
    """Say that there was nothing, as stock asyncio does; nothing can have been added."""
    return False


for _instead, _names in _REFUSED:
    for _name in _names.split():
        setattr(Boundary, _name, _refused(_name, _instead))
for _name in _NOTHING_TO_REMOVE:
    setattr(Boundary, _name, _nothing_to_remove)
