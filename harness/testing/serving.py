"""Servers of scripts in tests."""

from __future__ import annotations

from harness.runner.served import Served, serve
from harness.testing.answering import Answering


class HarnessServer(Answering[Served]):
    """Makes the servers of one test; the value of the fixture `harness_server`."""

    opens = staticmethod(serve)
