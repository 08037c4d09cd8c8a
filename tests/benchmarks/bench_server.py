"""How many streamed replies of 50 chunks a second the server gives, beside others in the same run:
a bare asyncio server that knows nothing, and aimock, where `make rivals` has installed it.

Each server is a process of its own, and the client reads bytes only. Compare the ratios. Ours and
aimock hand all chunks of such a reply to the system together, the bare server each by itself; `in
one write` is ours with all of a reply in one chunk.

Run it by hand: ``python tests/benchmarks/bench_server.py``.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import serve
from harness.transport.framing import Framing

CHUNKS, SIZE, SECONDS = 50, 16, 3.0
TEXT = "A sentence here. " * (CHUNKS * SIZE // 17 + 1)
SCRIPT = f"""\
about: One long answer, given to whoever asks.
turns: [{{user: Go, model: [{{say: "{TEXT[: CHUNKS * SIZE]}", chunk: {SIZE}}}]}}]
"""
BODY = b'{"model":"gpt-x","stream":true,"messages":[{"role":"user","content":"Go"}]}'
REQUEST = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer k\r\n"
    b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(BODY) + BODY
)
END = b"0\r\n\r\n"
AIMOCK = Path(".venv-bench/node/node_modules/@copilotkit/aimock/dist/index.js").absolute()
RIVAL = f"""
import {{ LLMock }} from "{AIMOCK}";
const mock = new LLMock({{ port: 0, chunkSize: {SIZE}, latency: 0, logLevel: "silent" }});
mock.onMessage("Go", {{ content: "{TEXT[: CHUNKS * SIZE]}" }});
await mock.start();
console.log(`serving at ${{mock.url}}`);
"""


class Client(asyncio.Protocol):
    """Asks again and again, as long as there is time."""

    transport: asyncio.Transport

    def __init__(self, until: float, ended: asyncio.Future[int]) -> None:
        self.until = until
        self.ended = ended
        self.whole = 0
        self.tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        self.tail = (self.tail + data)[-len(END) :]
        if self.tail == END:
            self.whole += 1
            if time.perf_counter() < self.until:
                self.transport.write(REQUEST)
            else:
                self.transport.close()
                self.ended.set_result(self.whole)


async def measured(port: int, clients: int) -> float:
    """Replies a second."""
    loop = asyncio.get_running_loop()
    start = time.perf_counter()
    ends: list[asyncio.Future[int]] = []
    for _ in range(clients):
        ends.append(loop.create_future())
        await loop.create_connection(
            lambda end=ends[-1]: Client(start + SECONDS, end), "127.0.0.1", port
        )
    whole = sum(await asyncio.gather(*ends))
    return whole / (time.perf_counter() - start)


async def bare() -> None:
    """A server that writes the same to whoever says anything."""
    data = b'data: {"choices": [{"delta": {"content": "A sentence here"}}]}\n\n'
    chunk = b"%x\r\n%b\r\n" % (len(data), data)
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(100_000):
            writer.write(head)
            for _ in range(CHUNKS + 2):
                writer.write(chunk)
                await asyncio.sleep(0)
            writer.write(END)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    sys.stdout.write(f"serving at http://127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


def whole() -> None:
    """Our server, with each reply in one write."""
    with serve(SCRIPT, framing=Framing(None)) as server:
        sys.stdout.write(f"serving at {server.url}\n")
        sys.stdout.flush()
        threading.Event().wait()


@contextmanager
def serving(*command: str) -> Iterator[int]:
    """The port of a server, which says where it is in its first line."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        found = re.search(r"http://[\w.]+:(\d+)", process.stdout.readline())
        assert found is not None
        yield int(found[1])
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    """Print a line a server."""
    if sys.argv[1:] == ["bare"]:
        asyncio.run(bare())
        return
    if sys.argv[1:] == ["whole"]:
        whole()
        return
    with TemporaryDirectory() as folder:
        script = Path(folder, "script.yaml")
        script.write_text(SCRIPT)
        servers = {
            "harness serve": [sys.executable, "-m", "harness", "serve", str(script)],
            "in one write": [sys.executable, __file__, "whole"],
            "bare asyncio": [sys.executable, __file__, "bare"],
        }
        node = shutil.which("node")
        if node is not None and AIMOCK.exists():
            servers["aimock"] = [node, "--input-type=module", "-e", RIVAL]
        else:
            sys.stdout.write("aimock: skipped, it is not there (make rivals)\n")
        sys.stdout.write(f"streamed replies of {CHUNKS} chunks a second\n")
        ours: list[float] = []
        for name, command in servers.items():
            with serving(*command) as port:
                rates = [asyncio.run(measured(port, clients)) for clients in (1, 8)]
            ours = ours or rates
            one, eight = rates
            sys.stdout.write(
                f"{name:14} 1 client {one:6.0f} ({ours[0] / one:.2f} of ours to it)   "
                f"8 clients {eight:6.0f} ({ours[1] / eight:.2f})\n"
            )


if __name__ == "__main__":
    main()
