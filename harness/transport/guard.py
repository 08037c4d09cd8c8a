"""Keeps what runs here from the network: reaching for another machine is an error of its line.

It is for code outside of runs; in a run everything real is refused, see docs/reference/boundary.md.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from harness.core.errors import HarnessError
from harness.sim import where

_HOSTS = {
    "socket.connect": lambda args: args[1],
    "socket.sendto": lambda args: args[1],
    "socket.sendmsg": lambda args: args[1],
    "socket.getaddrinfo": lambda args: args[:2],
    "socket.gethostbyname": lambda args: args,
    "socket.gethostbyaddr": lambda args: args,
    "socket.getnameinfo": lambda args: args[0],
}
"""What Python tells of before it happens, and where the host stands in that, as a pair or alone."""


_LOOK_UPS = {"socket.getaddrinfo", "socket.gethostbyname"}


class NetworkUsed(HarnessError):
    """Code reached for another machine where only this one is allowed."""


_open: list[list[str]] = []
"""What was refused to each that keeps the network closed now."""


@contextmanager
def no_network() -> Iterator[list[str]]:
    """Refuse in this process, in all its threads, to reach for any other machine.

    NetworkUsed is raised where that is tried, and at the end again, since it may be caught on its
    way there, as by SDKs that try again. It gives a list of what was refused; what is taken out of
    that is not told at the end.
    """
    _install()
    refused: list[str] = []
    _open.append(refused)
    try:
        yield refused
    finally:
        _open[:] = [each for each in _open if each is not refused]
    if refused:
        raise NetworkUsed(refused[0])


@cache
def _install() -> None:
    sys.addaudithook(_hear)  # there is no way to take it back
    for name in ("getaddrinfo", "getnameinfo"):
        setattr(asyncio.BaseEventLoop, name, _before(getattr(asyncio.BaseEventLoop, name)))


def _before(real: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """A look-up of an event loop that is refused where it is asked for: the thread that would make
    it knows nothing of who did.
    """

    @wraps(real)
    async def look_up(self: asyncio.BaseEventLoop, *args: Any, **options: Any) -> Any:
        _hear(f"socket.{real.__name__}", args)
        return await real(self, *args, **options)

    return look_up


def _hear(event: str, args: tuple[Any, ...]) -> None:
    """Refuse what leaves this machine."""
    if not _open or event not in _HOSTS:
        return
    address = _HOSTS[event](args)
    if not isinstance(address, tuple) or is_here(address[0]):
        return  # a path is of this machine
    if event in _LOOK_UPS and _address(str(address[0])) is not None:
        return  # an address is no name: nobody is asked
    message = _message(address)
    for refused in _open:
        refused.append(message)
    raise NetworkUsed(message)


def is_here(host: object) -> bool:
    """Whether a host, as a socket is given it, is this machine itself.

    >>> is_here("127.0.0.1"), is_here(b"LOCALHOST."), is_here(None), is_here("api.openai.com")
    (True, True, True, False)
    >>> is_here("::ffff:127.0.0.1"), is_here("127.1"), is_here("::ffff:192.0.2.1")
    (True, True, False)
    """
    if isinstance(host, bytes | bytearray):
        host = host.decode("ascii", "replace")
    if not isinstance(host, str):
        return True
    name = host.lower().removesuffix(".")
    if name in {"", "localhost", socket.gethostname().lower()} or name.endswith(".localhost"):
        return True
    address = _address(host)
    if address is None:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host is given as; None where it is a name."""
    with suppress(ValueError):
        return ip_address(host.partition("%")[0])
    with suppress(OSError):
        return IPv4Address(socket.inet_aton(host))  # in fewer numbers, as 127.1
    return None


def _message(address: tuple[Any, ...]) -> str:
    host, *rest = address
    name = host.decode("ascii", "replace") if isinstance(host, bytes | bytearray) else host
    port = f":{rest[0]}" if rest and rest[0] is not None else ""
    line = where.calling(3)
    place = where.show(line) if line else where.UNKNOWN
    by = where.libraries(3)
    return (
        f"{place} reached for {name}{port}{by}, and only this machine can be reached here; in a "
        "run use env.http(), else answer it from a script: in pytest by the fixture "
        "harness_provider, elsewhere by `harness serve`"
    )
