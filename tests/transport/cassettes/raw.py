"""A server by hand: what goes over each connection is written in the test, byte by byte."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

PATIENCE = 20
"""Seconds after which a wait is taken for a failure."""

Step: TypeAlias = bytes | threading.Event | Callable[[], object]


class Raw:
    """Serves one list of steps a connection: bytes are sent, events waited for, the rest called.

    `reset` and `hang` are steps; behind the last one the connection is closed. `asked` are the
    requests as they came.
    """

    def __init__(self, *connections: list[Step]) -> None:
        self.asked: list[bytes] = []
        self.problems: list[BaseException] = []
        self.over = threading.Event()
        self._connections = list(connections)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._threads: list[threading.Thread] = []

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self._socket.getsockname()[1]

    @property
    def url(self) -> str:
        return "http://{}:{}".format(*self.address)

    def _serve(self) -> None:
        for steps in self._connections:
            try:
                peer, _address = self._socket.accept()
            except OSError:
                return
            each = threading.Thread(target=self._answer, args=(peer, steps), daemon=True)
            each.start()
            self._threads.append(each)

    def _answer(self, peer: socket.socket, steps: list[Step]) -> None:
        with peer:
            try:
                self.asked.append(read(peer))
                for step in steps:
                    if step == "reset":
                        linger = struct.pack("ii", 1, 0)
                        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                        return
                    if isinstance(step, bytes):
                        peer.sendall(step)
                    elif isinstance(step, threading.Event):
                        assert step.wait(PATIENCE), "nobody set the event"
                    else:
                        step()
            except (BrokenPipeError, ConnectionResetError):
                pass
            except BaseException as error:
                self.problems.append(error)

    def close(self) -> None:
        self.over.set()
        self._socket.close()
        for each in self._threads:
            each.join(PATIENCE)


RESET: Step = "reset"  # type: ignore[assignment]


@contextmanager
def raw(*connections: list[Step]) -> Iterator[Raw]:
    """A server by hand while the block runs."""
    made = Raw(*connections)
    made._thread.start()
    try:
        yield made
    finally:
        made.close()
    if made.problems:
        raise made.problems[0]


def read(peer: socket.socket) -> bytes:
    """A request, its head and its body."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := peer.recv(65536)):
            return data
        data += more
    head, _mark, body = data.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    for line in lines:
        if line.startswith(b"content-length:"):
            while len(body) < int(line.split(b":")[1]):
                body += peer.recv(65536)
        if line == b"transfer-encoding: chunked":
            while not body.endswith(b"0\r\n\r\n"):
                body += peer.recv(65536)
    return head + b"\r\n\r\n" + body


def head(*lines: str, status: str = "200 OK") -> bytes:
    """The head of an answer."""
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


def whole(body: bytes, *lines: str, status: str = "200 OK") -> bytes:
    """An answer with the length of its body, after which the connection is closed."""
    return head(f"content-length: {len(body)}", "connection: close", *lines, status=status) + body


STREAMED = head("content-type: text/event-stream", "transfer-encoding: chunked")


def chunk(data: bytes) -> bytes:
    """A chunk of a body in chunks."""
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST = b"0\r\n\r\n"
