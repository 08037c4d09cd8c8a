"""What is recorded of clients, without a file: for tests of the recorder alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from harness.transport.cassettes.clients import patches
from harness.transport.cassettes.form import Interaction
from harness.transport.cassettes.playing import Course
from harness.transport.cassettes.recording import Take
from harness.transport.libraries import CORES, library
from harness.wire.http import Request

MODULES: dict[str, Any] = {name: library(name).client for name in CORES}


class Tape:
    """Records all requests, in the order of their ends; plays `course` where there is one."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.kept: list[Interaction] = []
        self.takes: list[Take] = []
        self.course: Course | None = None
        self.ignored: set[str] = set()
        self.now = now

    def ignores(self, host: str) -> bool:
        return host in self.ignored

    def find(self, request: Request) -> Course | None:
        return self.course

    def begin(self, request: Request) -> Take:
        self.takes.append(Take(request, self.kept.append, self.now))
        return self.takes[-1]


class Ticking:
    """A clock that is a millisecond later each time that it is looked at."""

    def __init__(self) -> None:
        self.time = 0

    def __call__(self) -> int:
        self.time += 1_000_000
        return self.time


@contextmanager
def taped(now: Callable[[], int] | None = None) -> Iterator[Tape]:
    """Have all clients recorded while the block runs."""
    tape = Tape(now or Ticking())
    with ExitStack() as stack:
        for kind, name, ours in patches(tape):
            stack.enter_context(mock.patch.object(kind, name, ours))
        yield tape


class Heard:
    """What a client has had of an answer: its chunks, and how it ended for it."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.chunks: list[bytes] = []
        self.error: BaseException | None = None

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)


def ask(
    library: str,
    kind: str,
    url: str,
    *,
    method: str = "POST",
    on_chunk: Callable[[bytes], object] = lambda data: None,
    stop_after: int | None = None,
    timeout: float | None = 10,
    raw: bool = True,
    **options: Any,
) -> Heard:
    """Ask with a library, synchronously or not, and read chunk by chunk."""
    heard = Heard()
    module = MODULES[library]

    def take(data: bytes) -> bool:
        heard.chunks.append(data)
        on_chunk(data)
        return len(heard.chunks) == stop_after

    async def go() -> None:
        async with (
            module.AsyncClient(trust_env=False, verify=False, timeout=timeout) as client,
            client.stream(method, url, **options) as response,
        ):
            heard.status, heard.headers = response.status_code, response.headers.multi_items()
            async for data in response.aiter_raw() if raw else response.aiter_bytes():
                if take(data):
                    break

    try:
        if kind == "async":
            asyncio.run(go())
            return heard
        with (
            module.Client(trust_env=False, verify=False, timeout=timeout) as client,
            client.stream(method, url, **options) as response,
        ):
            heard.status, heard.headers = response.status_code, response.headers.multi_items()
            for data in response.iter_raw() if raw else response.iter_bytes():
                if take(data):
                    break
    except (module.HTTPError, OSError) as error:
        heard.error = error
    return heard


CLIENTS = [(library, kind) for library in MODULES for kind in ("sync", "async")]
