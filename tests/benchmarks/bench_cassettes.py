"""What cassettes cost beside plain vcrpy: requests replayed a second through one client, opening
and closing for each, recording, and loading, and how that grows with what a cassette holds.

One process; its time on a core, but where a server answers to be recorded; the best of several
rounds, those to be compared taken in turn, so that a busy machine harms all alike. Compare the
ratios. Plain vcrpy matches by method and address alone, so that any request gets the next answer;
`with bodies` is what tells one prompt from another, as we do.

Run it by hand: ``python tests/benchmarks/bench_cassettes.py``.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import openai
import vcr
from vcr.request import Request as VcrRequest
from vcr.serialize import serialize
from vcr.serializers import yamlserializer

from harness.transport.cassettes import file
from harness.transport.cassettes.form import Cassette, Chunk, Interaction
from harness.transport.cassettes.use import cassette
from harness.wire.http import Request

ROUNDS, CALLS, MS = 4, 50, 1_000_000
URL = "https://api.openai.com/v1/chat/completions"
EVENTS = 13
HEADERS = {"content-type": "application/json", "user-agent": "a client", "accept": "*/*"}

Open = Callable[[Path], AbstractContextManager[Any]]
Client = Callable[[int, int], float]
"""Asks questions from the first to the last, and gives the seconds that took."""


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


# --- what is asked and answered


def asked(number: int, *, stream: bool) -> dict[str, Any]:
    """The body of a request."""
    messages = [
        {"role": "system", "content": "Be brief. " * 20},
        {"role": "user", "content": f"Question {number}"},
    ]
    return {"model": "gpt-x", "messages": messages, "stream": stream}


def answered(number: int, *, stream: bool) -> list[bytes]:
    """The body of its answer, in the pieces in which it comes."""
    base = {"id": f"chatcmpl-{number}", "created": 1, "model": "gpt-x"}
    if not stream:
        message = {"role": "assistant", "content": f"Answer {number}. " * 8}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return [json.dumps(base | {"object": "chat.completion", "choices": [choice]}).encode()]
    pieces = []
    for at in range(EVENTS - 1):
        last = at == EVENTS - 2
        delta = {} if last else {"content": f"piece {at} "}
        choice = {"index": 0, "delta": delta, "finish_reason": "stop" if last else None}
        told = base | {"object": "chat.completion.chunk", "choices": [choice]}
        pieces.append(b"data: " + json.dumps(told).encode() + b"\n\n")
    return [*pieces, b"data: [DONE]\n\n"]


def kind_of(stream: bool) -> str:
    """The content type of an answer."""
    return "text/event-stream" if stream else "application/json"


def plain_file(path: Path, count: int, *, stream: bool) -> Path:
    """A cassette as plain vcrpy writes it."""
    requests = [
        VcrRequest("POST", URL, json.dumps(asked(at, stream=stream)).encode(), HEADERS)
        for at in range(count)
    ]
    responses = [
        {
            "status": {"code": 200, "message": "OK"},
            "headers": {"content-type": [kind_of(stream)]},
            "body": {"string": b"".join(answered(at, stream=stream))},
        }
        for at in range(count)
    ]
    path.write_text(serialize({"requests": requests, "responses": responses}, yamlserializer))
    return path


def our_file(path: Path, count: int, *, stream: bool) -> Path:
    """The same as we write it."""
    interactions = [
        Interaction(
            request=Request(
                method="POST",
                url=URL,
                headers=tuple(HEADERS.items()),
                body=json.dumps(asked(at, stream=stream)).encode(),
            ),
            protocol="openai_chat",
            begun=at * 1000 * MS,
            status=200,
            reason="OK",
            headers=(("content-type", kind_of(stream)),),
            chunks=tuple(
                Chunk((20 + n) * MS, data) for n, data in enumerate(answered(at, stream=stream))
            ),
            head_at=20 * MS,
            ended_at=50 * MS,
        )
        for at in range(count)
    ]
    file.save(path, Cassette(interactions=tuple(interactions), source="a benchmark"))
    return path


# --- who asks


def raw(*, stream: bool) -> Client:
    """A client of httpx2."""
    made = httpx2.Client()

    def calls(start: int, stop: int) -> float:
        bodies = [json.dumps(asked(at, stream=stream)).encode() for at in range(start, stop)]
        begun = time.process_time()
        for body in bodies:
            with made.stream("POST", URL, content=body, headers=HEADERS) as response:
                assert response.status_code == 200
                for _ in response.iter_raw():
                    pass
        return time.process_time() - begun

    return calls


def raw_async(*, stream: bool) -> Client:
    """An asynchronous client of httpx2."""

    async def work(start: int, stop: int) -> float:
        bodies = [json.dumps(asked(at, stream=stream)).encode() for at in range(start, stop)]
        async with httpx2.AsyncClient() as made:
            begun = time.process_time()
            for body in bodies:
                async with made.stream("POST", URL, content=body, headers=HEADERS) as response:
                    assert response.status_code == 200
                    async for _ in response.aiter_raw():
                        pass
            return time.process_time() - begun

    return lambda start, stop: asyncio.run(work(start, stop))


def sdk(*, stream: bool) -> Client:
    """The library of OpenAI."""
    made = openai.OpenAI(api_key="k", max_retries=0)

    def calls(start: int, stop: int) -> float:
        begun = time.process_time()
        for at in range(start, stop):
            answer = made.chat.completions.create(**asked(at, stream=stream))
            assert sum(1 for _ in answer) if stream else answer.choices
        return time.process_time() - begun

    return calls


def sdk_async(*, stream: bool) -> Client:
    """The library of OpenAI, asynchronous."""

    async def work(start: int, stop: int) -> float:
        async with openai.AsyncOpenAI(api_key="k", max_retries=0) as made:
            begun = time.process_time()
            for at in range(start, stop):
                answer = await made.chat.completions.create(**asked(at, stream=stream))
                if stream:
                    async for _ in answer:
                        pass
            return time.process_time() - begun

    return lambda start, stop: asyncio.run(work(start, stop))


CLIENTS = {
    "httpx2": raw,
    "httpx2, async": raw_async,
    "openai": sdk,
    "openai, async": sdk_async,
}


# --- who replays


def plain(path: Path) -> AbstractContextManager[Any]:
    """Plain vcrpy."""
    return vcr.VCR(record_mode="none").use_cassette(path)


def with_bodies(path: Path) -> AbstractContextManager[Any]:
    """Plain vcrpy that matches bodies too."""
    return vcr.VCR(record_mode="none", match_on=("method", "uri", "body")).use_cassette(path)


WAYS: dict[str, tuple[Open, Callable[..., Path]]] = {
    "vcrpy": (plain, plain_file),
    "vcrpy, with bodies": (with_bodies, plain_file),
    "ours": (cassette, our_file),
}


def rounds(onces: dict[str, Callable[[], float]]) -> dict[str, float]:
    """The least seconds that each takes, of several rounds in turn."""
    found = dict.fromkeys(onces, float("inf"))
    for _round in range(ROUNDS):
        for name, once in onces.items():
            found[name] = min(found[name], once())
    return found


def told(found: dict[str, float], count: int, what: str) -> None:
    """A line for each way: how many a second, and the ratio to the first."""
    say(what)
    first = next(iter(found.values()))
    for name, seconds in found.items():
        say(f"  {name:22} {count / seconds:8.0f} a second   {first / seconds:5.2f} of the first")


def in_one(opens: Open, path: Path, calls: Client, count: int) -> Callable[[], float]:
    """Calls within one cassette that is open."""

    def once() -> float:
        with opens(path):
            return calls(0, count)

    return once


def each_by_itself(opens: Open, path: Path, calls: Client, times: int) -> Callable[[], float]:
    """A cassette with one interaction, opened and closed for each call."""

    def once() -> float:
        begun = time.process_time()
        for _ in range(times):
            with opens(path):
                calls(0, 1)
        return time.process_time() - begun

    return once


def measure_replays(folder: Path) -> None:
    """Replayed requests a second, by each client."""
    for stream in (True, False):
        shown = f"{EVENTS} events" if stream else "JSON"
        files = {
            name: make(folder / f"{at}-{stream}.yaml", CALLS, stream=stream)
            for at, (name, (_, make)) in enumerate(WAYS.items())
        }
        for client, makes in CLIENTS.items():
            calls = makes(stream=stream)
            found = rounds(
                {n: in_one(opens, files[n], calls, CALLS) for n, (opens, _) in WAYS.items()}
            )
            told(found, CALLS, f"{client}, {shown}: requests replayed, one cassette of {CALLS}")
    files = {
        name: make(folder / f"one-{at}.yaml", 1, stream=True)
        for at, (name, (_, make)) in enumerate(WAYS.items())
    }
    calls = sdk(stream=True)
    found = rounds(
        {n: each_by_itself(opens, files[n], calls, 20) for n, (opens, _) in WAYS.items()}
    )
    told(found, 20, f"openai, {EVENTS} events: a cassette opened and closed for each request")


def measure_growth(folder: Path) -> None:
    """Loading and replaying cassettes of more and more interactions."""
    for count in (200, 2000):
        for name, (opens, make) in WAYS.items():
            if count > 200 and name == "vcrpy, with bodies":
                continue  # it compares each with each
            path = make(folder / f"{name}-{count}.yaml", count, stream=True)
            size = path.stat().st_size / 1e6
            begun = time.process_time()
            with opens(path):
                loaded = time.process_time() - begun
                seconds = raw(stream=True)(0, count)
            say(
                f"{name:22} {count:5} interactions: {size:5.1f} MB opened in {loaded:6.2f} s, "
                f"{1000 * loaded / size:6.0f} ms a MB; {1e6 * seconds / count:7.0f} us a request"
            )


# --- recording


async def answering() -> None:
    """A server that writes the events one by one to whoever asks."""
    pieces = [b"%x\r\n%b\r\n" % (len(one), one) for one in answered(1, stream=True)]
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while asking := await reader.readuntil(b"\r\n\r\n"):
            length = asking.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
            writer.write(head)
            for piece in pieces:
                writer.write(piece)
                await asyncio.sleep(0)
            writer.write(b"0\r\n\r\n")

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    say(f"{server.sockets[0].getsockname()[1]}")
    await server.serve_forever()


@contextmanager
def serving() -> Iterator[str]:
    """The address of that server, in a process of its own."""
    command = [sys.executable, __file__, "answering"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1/chat/completions"
    finally:
        process.kill()
        process.communicate()


class Recorded:
    """Calls of a client on loopback while they are recorded: the seconds they take, and those that
    it takes to close the cassette.
    """

    def __init__(self, opens: Open | None, path: Path, url: str) -> None:
        self.opens, self.path, self.url = opens, path, url
        self.made = httpx2.Client()
        self.closing = float("inf")

    def __call__(self) -> float:
        self.path.unlink(missing_ok=True)
        with ExitStack() as stack:
            if self.opens is not None:
                stack.enter_context(self.opens(self.path))
            begun = time.perf_counter()
            for at in range(CALLS):
                body = asked(at, stream=True)
                with self.made.stream("POST", self.url, json=body) as response:
                    assert sum(1 for _ in response.iter_raw())
            ended = time.perf_counter()
        self.closing = min(self.closing, time.perf_counter() - ended)
        return ended - begun


def measure_recording(folder: Path) -> None:
    """Requests a second of a client on loopback, with and without a recorder."""
    path = folder / "recorded.yaml"
    with serving() as url:
        ways = {
            "no recorder": Recorded(None, path, url),
            "vcrpy": Recorded(lambda path: vcr.VCR().use_cassette(path), path, url),
            "ours": Recorded(lambda path: cassette(path, "all"), path, url),
        }
        found = rounds(dict(ways))
    told(found, CALLS, f"httpx2, {EVENTS} events: requests while they are recorded")
    for name, way in ways.items():
        say(f"  {name:22} {1e6 * way.closing / CALLS:8.0f} us a request to write the cassette")


def main() -> None:
    """Measure and print."""
    if sys.argv[1:] == ["answering"]:
        asyncio.run(answering())
        return
    with TemporaryDirectory() as name:
        folder = Path(name)
        measure_replays(folder)
        measure_recording(folder)
        measure_growth(folder)


if __name__ == "__main__":
    main()
