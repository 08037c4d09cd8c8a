"""What holds in every test: no network but this machine itself, the same examples every time."""

from __future__ import annotations

import signal
import sys
from importlib.util import find_spec
from typing import Any

from hypothesis import settings

pytest_plugins = ["pytester"]

settings.register_profile("suite", derandomize=True, deadline=None)
settings.register_profile("deep", max_examples=2_000, deadline=None)
"""Other examples every time, and more of them: `pytest --hypothesis-profile deep`."""
settings.load_profile("suite")

if find_spec("python_agent_harness") is None:  # its tests say so, and how to get it
    collect_ignore_glob = ["published/subject.py", "subjects/published_*.py"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in what a shell runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests of Ctrl-C press it

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
