"""Server-sent events: frames written, and read from any pieces of bytes.

Reading keeps to the rules of the WHATWG standard, section "Interpreting an event stream", for what
providers send: `event` and `data` fields, comments, lines that end with LF, CR LF or CR. An event
that no empty line closes is not given.
"""

from __future__ import annotations

from msgspec import Struct

from harness.core.errors import HarnessError

LONGEST = 64 * 1024 * 1024
"""How many bytes a line may have, and how many characters the data of an event."""


class Event(Struct, frozen=True):
    """One event: its name ("" without one), and its data, the lines joined by LF."""

    name: str
    data: str


class TooLong(HarnessError):
    """A line or an event of a stream is longer than anybody would send."""


def frame(data: str, event: str | None = None, *, end: str = "\n") -> bytes:
    r"""One event as it is sent; `end` ends each line.

    >>> frame("{}"), frame("{}", "ping")
    (b'data: {}\n\n', b'event: ping\ndata: {}\n\n')
    """
    if event is None and end == "\n" and "\n" not in data:  # the usual one, thousands a second
        return f"data: {data}\n\n".encode()
    named = [] if event is None else [f"event: {event}"]
    lines = [*named, *[f"data: {line}" for line in data.split("\n")], ""]
    return end.join([*lines, ""]).encode()


def comment(text: str = "") -> bytes:
    r"""A line that means nothing, by which a connection is kept alive.

    >>> comment("keep-alive")
    b': keep-alive\n\n'
    """
    return f": {text}\n\n".encode()


class Reader:
    """Reads events from bytes, however they are cut.

    `errors` is how bytes that are no UTF-8 are treated, as `bytes.decode` has it.
    """

    def __init__(self, errors: str = "strict") -> None:
        self._errors = errors
        self._pieces: list[bytes] = []
        self._size = 0
        self._held = 0
        self._cr = False
        self._begun = False
        self._name = ""
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[Event]:
        """The events that end in these bytes.

        UnicodeDecodeError where a line is no UTF-8, TooLong where something does not end.
        """
        events: list[Event] = []
        for line in self._lines(data):
            event = self._take(line)
            if event is not None:
                events.append(event)
        return events

    @property
    def open(self) -> bool:
        """Whether something was read that no empty line has closed."""
        return bool(self._data or self._pieces)

    def _lines(self, data: bytes) -> list[bytes]:
        if self._cr and data:
            self._cr = False
            data = data.removeprefix(b"\n")
        if not data:
            return []
        self._cr = data.endswith(b"\r")
        parts = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        lines: list[bytes] = []
        for part in parts[:-1]:
            self._pieces.append(part)
            lines.append(b"".join(self._pieces))
            self._pieces, self._size = [], 0
        if parts[-1]:
            self._pieces.append(parts[-1])
            self._size += len(parts[-1])
            if self._size > LONGEST:
                raise TooLong(f"a line of the stream has more than {LONGEST} bytes")
        return lines

    def _take(self, raw: bytes) -> Event | None:
        line = raw.decode("utf-8", self._errors)
        if not self._begun:
            self._begun = True
            line = line.removeprefix("\ufeff")
        if not line:
            return self._end()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
            self._held += len(value)
            if self._held > LONGEST:
                raise TooLong(f"an event of the stream has more than {LONGEST} characters")
        elif field == "event":
            self._name = value
        return None

    def _end(self) -> Event | None:
        name, data = self._name, self._data
        self._name, self._data, self._held = "", [], 0
        return Event(name, "\n".join(data)) if data else None
