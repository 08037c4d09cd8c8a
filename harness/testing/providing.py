"""Providers in the process of a test."""

from __future__ import annotations

from harness.runner.provided import Provided, provide
from harness.testing.answering import Answering


class HarnessProvider(Answering[Provided]):
    """Gives a test its provider; the value of the fixture `harness_provider`."""

    opens = staticmethod(provide)
