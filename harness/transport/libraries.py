"""The two libraries by which clients speak HTTP, as one; each is loaded when it is used.

`httpx2` follows `httpx`, and the names of all that is used here are the same in both.
"""

from __future__ import annotations

import platform
from importlib import import_module
from typing import Any, Final

from msgspec import Struct

from harness.core.errors import UsageError, unknown
from harness.sim.outside import outside
from harness.transport.exchange import Broken

CORES: Final = {"httpx": "httpcore", "httpx2": "httpcore2"}
"""The libraries, and what each makes its connections with."""

_ERRORS: Final = {
    "refused": ("ConnectError", "All connection attempts failed"),
    "dropped": ("RemoteProtocolError", "Server disconnected without sending a response."),
    "reset": ("ReadError", "Connection reset by peer"),
    "torn": (
        "RemoteProtocolError",
        "peer closed connection without sending complete message body (incomplete chunked read)",
    ),
}
"""What a client is told where its connection breaks: the name of the error, and its text."""


class Library(Struct, frozen=True):
    """One of the libraries: its name, the module of its clients, and that of its connections."""

    name: str
    client: Any
    core: Any


def library(name: str) -> Library:
    """A library by its name; UsageError where there is none such, or it is not installed."""
    if name not in CORES:
        raise UsageError(unknown("library for HTTP", name, CORES))
    try:
        return Library(name, import_module(name), import_module(CORES[name]))
    except ImportError as error:
        raise UsageError(
            f"{name} cannot be imported ({error}); install it: pip install {name}"
        ) from error


def know_machine() -> None:
    """Find out what SDKs tell of the machine with each request.

    `platform` starts a process for it the first time, which no run may, and keeps it.
    """
    with outside():
        platform.platform()


def error_of(broken: Broken, errors: Any) -> Exception:
    """What a client is told of a connection that breaks; `errors` has the library's errors."""
    name, text = _ERRORS[broken.how]
    error: Exception = getattr(errors, name)(text)
    return error
