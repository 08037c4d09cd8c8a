"""What holds in every test: nothing is asked of the network but of this machine itself."""

from __future__ import annotations

import sys
from typing import Any

LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def _no_network(event: str, args: tuple[Any, ...]) -> None:
    if event == "socket.connect" and isinstance(args[1], tuple):
        host = args[1][0]
    elif event == "socket.getaddrinfo":
        host = args[0]
    else:
        return
    if host not in LOOPBACK:
        raise RuntimeError(f"a test reached for {host!r}; only loopback is allowed in tests")


sys.addaudithook(_no_network)
