"""What holds in every test: no network but this machine itself, the same examples every time."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec

import pytest
from hypothesis import settings

from harness.testing import profiles
from harness.transport import guard
from harness.transport.guard import NetworkUsed, no_network

pytest_plugins = ["pytester"]

profiles.register(load=False)
settings.load_profile("ci")  # `make nightly` takes other examples every time, and more of them

if find_spec("python_agent_harness") is None:  # its tests say so, and how to get it
    collect_ignore_glob = ["published/python_agent_harness/subject.py", "subjects/published_*.py"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in what a shell runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests of Ctrl-C press it
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as under nohup; programs inherit it

guard._hear.__cantrace__ = True  # else the coverage of a hook is not measured
_NETWORK = ExitStack()
REFUSED = _NETWORK.enter_context(no_network())
"""What the tests reached for that is not on this machine."""


def pytest_collection_finish() -> None:
    """Leave the tests themselves out of every later search for garbage: they are many, and stay."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Open the network again."""
    _NETWORK.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Fail a test that reached for another machine and did not notice."""
    yield
    if REFUSED:
        message, *_more = REFUSED
        REFUSED.clear()
        raise NetworkUsed(message)


@pytest.fixture
def refused() -> list[str]:
    """What the test reached for; one that takes it out of the list may do so."""
    return REFUSED
