"""`harness cassette`: what can be done with recorded traffic; one file a command."""

from __future__ import annotations

from collections.abc import Callable

from harness.cli.cassette.diff import diff
from harness.cli.cassette.lint import lint
from harness.cli.cassette.scrub import scrub
from harness.cli.cassette.show import show
from harness.cli.cassette.stats import stats
from harness.cli.cassette.to_scenario import to_scenario

CASSETTE: tuple[Callable[..., None], ...] = (show, diff, lint, scrub, stats, to_scenario)
"""The commands of the group."""

ABOUT = """\
Read, compare, check and convert cassettes: recorded traffic with providers, ours or vcrpy's.

\b
  harness cassette show a.yaml         a session, as a conversation
  harness cassette diff a.yaml b.yaml  what two sessions differ in by meaning
  harness cassette lint                secrets in cassettes/, which fail
  harness cassette scrub a.yaml        the same file without its secrets
  harness cassette stats cassettes     how much of what there is
  harness cassette to-scenario a.yaml  a scenario with the same requests
"""
