"""Records what a command asks providers for: it is pointed to a proxy on this machine."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from harness.core import files
from harness.core.errors import HarnessError, UsageError, unknown
from harness.transport.cassettes.comparing import Comparison
from harness.transport.cassettes.keeping import MODES, Mode
from harness.transport.cassettes.upstream import Upstream, outgoing, proxied
from harness.transport.cassettes.use import cassette
from harness.transport.homes import Home
from harness.transport.journal import Journal
from harness.transport.rules import NO_RULES, Rules
from harness.transport.server import Server

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""By which a command is stopped, where this process is to stop."""
_NO_PROXY = ("no_proxy", "NO_PROXY")


class Recording(Struct, frozen=True, kw_only=True):
    """What came of a command: its exit code, as a shell shows it, and what is in the cassette.

    `said` tells what was done in a line. `missed` is what replay had nothing for, `unused` how many
    interactions it had that were not asked for, `troubles` what went wrong on the way to providers,
    `drift` how their answers differ from those recorded.
    """

    code: int
    said: str
    missed: tuple[HarnessError, ...] = ()
    unused: int = 0
    troubles: tuple[str, ...] = ()
    drift: Comparison | None = None

    @property
    def as_recorded(self) -> bool:
        """Whether the program asked for what was recorded, and got what was."""
        changed = self.drift is not None and bool(self.drift.changes)
        return not (self.missed or self.unused or changed)


def mode_of(text: str) -> Mode:
    """A mode by its name; UsageError where there is none such."""
    for mode in MODES:
        if mode == text:
            return mode
    raise UsageError(unknown("mode", text, MODES))


def record_command(
    words: Sequence[str],
    path: Path,
    mode: Mode,
    homes: Sequence[Home],
    environment: Mapping[str, str],
    rules: Rules = NO_RULES,
) -> Recording:
    """Run a command whose requests to the providers at `homes` are recorded in the cassette `path`,
    or played from it, as `mode` says, and wait for its end.

    It has this process's input and output, and the variables of `environment`, of which those that
    name addresses of providers name the proxy; its keys are its own. SIGINT, SIGTERM and SIGHUP go
    on to it. `rules` are kept in the cassette. UsageError where it cannot be started, or the
    cassette could not be written.
    """
    if mode != "replay":
        check_writable(path)
    troubles: list[str] = []
    with cassette(path, mode, rules=rules, allow_unused=True, source="harness record") as session:
        missed, code = asyncio.run(_recorded(words, homes, environment, troubles))
        session.missed.clear()  # they are told with the rest
    return Recording(
        code=code,
        said=session.said,
        missed=tuple(missed),
        unused=len(session.unused()) if mode == "replay" else 0,
        troubles=tuple(dict.fromkeys(troubles)),
        drift=session.drift,
    )


def check_writable(path: Path) -> None:
    """UsageError where no file can be written at `path`: better said before anything was asked."""
    if not files.writable(path):
        raise UsageError(
            f"{path.as_posix()} cannot be written; name a file in a folder that can, with -o"
        )


async def _recorded(
    words: Sequence[str],
    homes: Sequence[Home],
    environment: Mapping[str, str],
    troubles: list[str],
) -> tuple[list[HarnessError], int]:
    async with outgoing() as client:
        upstream = Upstream(client, homes, troubles.append)
        journal = Journal(lambda: 0)
        server = Server(upstream.answer, journal)
        await server.start()
        told = {**environment, **proxied(server.url, homes), **_past_proxies(environment)}
        try:
            code = await _command(words, told)
        finally:
            await server.close()
    if not journal.records:
        *others, last = [home.variable for home in homes]
        troubles.append(
            f"no request came: the program ended by itself, with exit code {code}"
            if code
            else "no request came: see that the program's client takes its address from "
            f"{', '.join(others)} or {last}"
        )
    return upstream.errors, code


async def _command(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command to its end; its exit code, as a shell shows it."""
    try:
        process = await asyncio.create_subprocess_exec(*words, env=environment)
    except (OSError, ValueError) as error:
        raise UsageError(f"the command {words[0]!r} cannot be started: {error}") from error
    loop = asyncio.get_running_loop()
    for number in _FORWARDED:
        loop.add_signal_handler(number, _forward, process, number)
    try:
        code = await process.wait()
    finally:
        for number in _FORWARDED:
            loop.remove_signal_handler(number)
    return code if code >= 0 else 128 - code


def _forward(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Send a signal on; Ctrl-C comes from a terminal to all who are in front of it."""
    if process.returncode is None and not (number == signal.SIGINT and _in_front()):
        process.send_signal(number)


def _in_front() -> bool:
    """Whether this process, and so the command too, is what a terminal sends Ctrl-C to."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _past_proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that keep clients from asking another proxy for this machine."""
    said = [environment[name] for name in _NO_PROXY if environment.get(name)]
    return dict.fromkeys(_NO_PROXY, ",".join([*said[:1], "127.0.0.1"]))
