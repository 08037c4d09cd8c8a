"""The state-machine loop's own client: chat completions over HTTP, asked again where that may help.

    client = ChatClient(
        "https://api.openai.com/v1", "gpt-x", lambda: os.environ["OPENAI_API_KEY"],
        clock=ports.clock, chance=random.random,
    )
    session = Session(client, ports)

Time comes from the clock and chance from the source that it is given, so that the same client runs
in virtual time: `agent` builds the loop on it in a run.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import httpx2

from harness.core.durations import SECOND
from harness.core.json_text import Json
from harness.core.ports import Aborted, Env
from harness.loops.fsm.agent import KIND, FsmAgent
from harness.loops.fsm.client import CancelCheck, RequestOptions, Usage
from harness.loops.fsm.messages import Message, wire
from harness.loops.fsm.policy import POLICIES
from harness.loops.fsm.ports import Clock
from harness.transport.fsm_reply import ApiError, Lines, Reply
from harness.transport.model import TIMEOUT
from harness.wire.reading import json_of
from harness.wire.writing import bytes_of

ATTEMPTS = 3
"""How often a request is sent at most, in all."""
BASE, CAP, JITTER = 1.0, 30.0, 0.3
"""Seconds before the second attempt, which double; the most of them; how much longer by chance."""
AFTER = 0.5
"""How many seconds longer than a provider says may be waited, by chance."""
POLL = 0.25
"""How often a wait looks whether the run is cancelled, in seconds."""
KEY_POLL, KEY_WAIT = 2.0, 30.0
"""How often, and how long, a new key is looked for where the old one is refused, in seconds."""
SHOWN = 500
"""How many characters of an error's body are told."""

Connect = Callable[[], httpx2.Client]


def usual() -> httpx2.Client:
    """A client of its own, which follows the settings of the environment."""
    return httpx2.Client(timeout=TIMEOUT)


def nothing() -> None:
    """Nobody needs to be told."""


class ChatClient:
    """A client of one model; implements `harness.loops.fsm.client.Client`.

    `base` is the address up to ``/chat/completions``; `key` reads the key anew for each attempt.
    `chance` gives numbers from 0 to 1. `connect` makes what requests are sent with; it is made
    anew after a connection has broken. `break_off` wakes who waits for a reply, beside the sockets
    that are shut down; `interrupted` hears of a Ctrl-C, which then breaks off the request only.
    """

    def __init__(
        self,
        base: str,
        model: str,
        key: Callable[[], str],
        *,
        clock: Clock,
        chance: Callable[[], float],
        connect: Connect = usual,
        break_off: Callable[[], None] = nothing,
        interrupted: Callable[[], None] | None = None,
    ) -> None:
        self._url = f"{base.rstrip('/')}/chat/completions"
        self._model = model
        self._key = key
        self._clock = clock
        self._chance = chance
        self._connect = connect
        self._break_off = break_off
        self._interrupted = interrupted
        self._pool = _Pool(connect)
        self._asking = self._aborted = False
        self.clone = partial(
            ChatClient,
            base,
            model,
            key,
            clock=clock,
            chance=chance,
            connect=connect,
            break_off=break_off,
            interrupted=interrupted,
        )
        """Makes another one for the same model, with connections of its own."""

    def __repr__(self) -> str:
        return f"<ChatClient {self._model} at {self._url}>"

    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Json] | None,
        system: str | None,
        options: RequestOptions,
        on_delta: Callable[[str], None] | None,
        cancel_check: CancelCheck,
        on_retry: Callable[[], None] | None,
    ) -> tuple[Message, Usage]:
        """Ask for the next reply; ApiError where none came, Aborted where it was broken off."""
        body: dict[str, Json] = self._body(messages, system)
        settings = {
            "tools": list(tools) if tools else None,
            "temperature": options.temperature,
            "max_tokens": options.max_tokens,
            "reasoning_effort": options.reasoning_effort,
        }
        body |= {name: value for name, value in settings.items() if value is not None}
        if options.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return self._ask(body, on_delta, cancel_check, on_retry)

    def chat_sync(
        self,
        messages: Sequence[Message],
        *,
        system: str,
        temperature: float | None = None,
        cancel_check: CancelCheck | None = None,
    ) -> Message:
        """Ask once, without tools and without streaming."""
        body = self._body(messages, system)
        if temperature is not None:
            body["temperature"] = temperature
        return self._ask(body, None, cancel_check or _never, None)[0]

    def abort(self) -> None:
        """Break off what is being asked, from any thread."""
        if self._asking:
            self._aborted = True
            old, self._pool = self._pool, _Pool(self._connect)
            old.shut()
            self._break_off()

    def close(self) -> None:
        """Close all connections."""
        self._pool.client.close()

    def _body(self, messages: Sequence[Message], system: str | None) -> dict[str, Json]:
        sent = [wire(message) for message in messages]
        if system:
            sent.insert(0, {"role": "system", "content": system})
        return {"model": self._model, "messages": sent}

    def _ask(
        self,
        body: Json,
        on_delta: Callable[[str], None] | None,
        cancel_check: CancelCheck,
        on_retry: Callable[[], None] | None,
    ) -> tuple[Message, Usage]:
        self._asking, self._aborted = True, False
        attempt, asked_for_key = 1, False
        try:
            while True:
                key = self._key()
                failed = self._once(body, key, on_delta)
                if isinstance(failed, Reply):
                    return failed.whole()
                if self._aborted:
                    raise Aborted("the request was broken off")
                if failed.status == 401 and not asked_for_key:
                    asked_for_key = True
                    if self._changed(key, cancel_check):
                        continue
                if not failed.passes or attempt == ATTEMPTS:
                    raise ApiError(failed.message.replace(key, "[key]") if key else failed.message)
                if failed.status is None:
                    self._pool = _Pool(self._connect)
                    if on_retry is not None:
                        on_retry()
                self._wait(failed.delay(attempt, self._chance()), cancel_check)
                attempt += 1
        except KeyboardInterrupt:
            if self._interrupted is None:
                raise
            self._interrupted()
            raise Aborted("the request was broken off") from None
        finally:
            self._asking = False

    def _once(
        self, body: Json, key: str, on_delta: Callable[[str], None] | None
    ) -> Reply | _Failed:
        """Send the request: what came, or why nothing did."""
        headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
        pool = self._pool
        more = {"trace": pool.note}
        try:
            with pool.client.stream(
                "POST", self._url, headers=headers, content=bytes_of(body), extensions=more
            ) as response:
                if response.status_code >= 400:
                    return _Failed.told(response)
                return self._read(response, on_delta)
        except (httpx2.TransportError, httpx2.StreamError, OSError) as error:
            pool.shut()
            return _Failed(f"network error: {str(error) or type(error).__name__}")

    def _read(self, response: httpx2.Response, on_delta: Callable[[str], None] | None) -> Reply:
        reply = Reply(on_delta)
        if response.headers.get("content-type", "").startswith("application/json"):
            try:
                body = json_of(response.read())
            except ValueError:
                raise ApiError("API error: the reply is no JSON") from None
            reply.read(body, "message")
            return reply
        lines = Lines()
        for data in response.iter_bytes():
            for told in lines.feed(data):
                if not reply.over and not self._aborted:
                    reply.take(told)
            if self._aborted:
                raise Aborted("the request was broken off")
        for told in lines.end():
            if not reply.over:
                reply.take(told)
        return reply

    def _changed(self, key: str, cancel_check: CancelCheck) -> bool:
        """Wait for another key, for a while; whether there is one."""
        waited = 0.0
        while waited < KEY_WAIT:
            self._wait(KEY_POLL, cancel_check)
            waited += KEY_POLL
            if self._key() != key:
                return True
        return False

    def _wait(self, seconds: float, cancel_check: CancelCheck) -> None:
        """Wait; Aborted where the run is cancelled, or the request broken off, meanwhile."""
        left = seconds
        while True:
            if cancel_check() or self._aborted:
                raise Aborted("the request was broken off")
            if left <= 0:
                return
            self._clock.sleep(round(min(left, POLL) * SECOND))
            left -= POLL


class _Pool:
    """A client of the library, and the connections that it has made."""

    def __init__(self, connect: Connect) -> None:
        self.client = connect()
        self._streams: list[Any] = []

    def note(self, what: str, told: dict[str, Any]) -> None:
        """Keep a connection that was made, as the library tells of it."""
        if what == "connection.connect_tcp.complete":
            self._streams.append(told["return_value"])

    def shut(self) -> None:
        """End all connections, also those that another thread reads from."""
        for stream in self._streams:
            if isinstance(found := stream.get_extra_info("socket"), socket.socket):
                with contextlib.suppress(OSError):
                    found.shutdown(socket.SHUT_RDWR)
        self._streams.clear()
        self.client.close()


class _Failed:
    """Why an attempt came to nothing: by the provider's word, or by the connection's end."""

    def __init__(self, message: str, status: int | None = None, after: float | None = None) -> None:
        self.message = message
        self.status = status
        self._after = after

    @classmethod
    def told(cls, response: httpx2.Response) -> _Failed:
        """The provider says so."""
        body = response.read().decode("utf-8", "replace")
        after: float | None = None
        with contextlib.suppress(ValueError):
            after = min(max(float(response.headers.get("retry-after", "")), 0.0), CAP)
        status = response.status_code
        return cls(f"API error {status}: {body[:SHOWN]}", status, after)

    @property
    def passes(self) -> bool:
        """Whether another attempt may come to more."""
        return self.status is None or self.status == 429 or self.status >= 500

    def delay(self, attempt: int, chance: float) -> float:
        """How many seconds to wait before the next one."""
        if self._after is not None:
            return self._after + AFTER * chance
        return min(BASE * 2.0 ** (attempt - 1), CAP) * (1 + JITTER * chance)


def _never() -> bool:
    return False


def agent(env: Env) -> FsmAgent:
    """The state-machine loop, which asks the run's provider by this client of its own.

    ``harness run --agent harness.transport.fsm_client:agent`` plays a scenario on it.
    """
    import random

    def connect() -> httpx2.Client:
        client: httpx2.Client = env.http(sync=True)
        client.timeout = httpx2.Timeout(None)
        return client

    def ask(clock: Clock, cancel: Callable[[], None]) -> ChatClient:
        return ChatClient(
            f"{env.base_url}/v1",
            KIND.settings["model"],
            lambda: "key-of-the-run",
            clock=clock,
            chance=random.random,  # noqa: TID251 - in a run, it is the run's own
            connect=connect,
            break_off=env.abort,
            interrupted=cancel,
        )

    return FsmAgent(env, KIND.settings, POLICIES[0], ask=ask)
