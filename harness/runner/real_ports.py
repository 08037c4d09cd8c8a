"""The state-machine loop outside the simulator: real time, real threads, files in a folder."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from harness.core import files
from harness.core.durations import SECOND
from harness.core.events import InsideEvent
from harness.core.json_text import Json
from harness.loops.fsm.ports import Ports, no_one
from harness.loops.fsm.real_threads import RealThreads
from harness.loops.fsm.transcript import escape_headers

CONVERSATION = "conversation.md"
"""The file of the folder that holds the conversation."""


def real_ports(
    folder: Path | str,
    *,
    notify: Callable[[str, Json], None] = no_one,
    delta: Callable[[str], None] = no_one,
    log: Callable[[str], None] = no_one,
    observe: Callable[[InsideEvent], None] = no_one,
) -> Ports:
    """The ports of a session of the state-machine loop that runs for real.

    The conversation is saved as `conversation.md` in `folder`, which is made if need be; plans are
    written there too. `notify` hears what a user interface shows, `delta` the streamed text, `log`
    lines for people, `observe` what happens inside the loop; sub-agents call `notify`, `log` and
    `observe` from threads of their own.
    """
    inside = FolderFiles(Path(folder))
    return Ports(
        clock=RealClock(),
        threads=RealThreads(),
        files=inside,
        token=lambda: secrets.token_hex(4),
        save=inside.save,
        notify=notify,
        delta=delta,
        log=log,
        observe=observe,
    )


class RealClock:
    """The machine's clock."""

    def now(self) -> int:
        """Nanoseconds since an arbitrary point."""
        return time.monotonic_ns()

    def sleep(self, nanoseconds: int) -> None:
        """Wait."""
        time.sleep(nanoseconds / SECOND)


class FolderFiles:
    """The files of one folder. Paths are relative to it, and none leads out of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def resolve(self, path: str) -> str:
        """The absolute path, with links followed."""
        return os.path.realpath(self._folder / path)

    def write(self, path: str, text: str) -> None:
        """Replace what the file holds, at once or not at all: no reader sees half of it.

        PermissionError where the path leads out of the folder, OSError where writing fails.
        """
        target = Path(self.resolve(path))
        if not target.is_relative_to(self.resolve(".")):
            raise PermissionError(f"{path} leads out of the folder {self._folder}")
        files.replace(target, text.encode("utf-8", "surrogatepass"))

    def save(self, text: str, system: str | None) -> None:
        """Write the conversation, its system prompt first."""
        prompt = f"**system**: {escape_headers(system)}\n\n" if system else ""
        self.write(CONVERSATION, f"{prompt}{text}\n")
