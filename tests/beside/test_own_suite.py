"""The plugin's own tests, beside each of the plugins that people have, and beside all of them.

Each of these is switched off where it is not meant, in the process of the tests and in what they
start: what is tested is a project that has installed that one. Run by `make beside`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(find_spec("pytest_asyncio") is None, reason="needs what `make beside` has"),
]

REPOSITORY = Path(__file__).parents[2]
PLUGINS = ("anyio", "asyncio", "pytest_httpx", "pytest_httpx2", "randomly", "recording", "xdist")
"""How pytest calls them."""
SUITE = ("asynchronous", "plugin", "providing", "results", "variants")
"""What others could get in the way of."""
MORE = ("exploring", "functions", "options", "serving", "subresults", "sweeping")
"""The rest, which is run beside all of them."""
ASYNC = ("asynchronous", "providing")
"""What is about async tests that no other plugin takes."""
STARTING = (
    "test_a_pinned_failure_of_a_foreign_agent_can_be_run_again",
    "test_it_is_light_where_it_is_not_used",
)
"""What starts processes, and is run beside all of them only: it takes as long as all the others."""
_LOOPS = "asyncio_default_fixture_loop_scope=function"  # else its plugin warns


def passes(beside: tuple[str, ...], suite: tuple[str, ...], *inner: str) -> None:
    off = [part for name in PLUGINS if name not in beside for part in ("-p", f"no:{name}")]
    if "randomly" in beside:
        inner = (*inner, "--randomly-dont-reorganize")  # what is told in order is compared so
    outer = [*off, "-o", _LOOPS] if "asyncio" in beside else off
    asked = ["-m", "nightly or not nightly"] if "xdist" in beside else []
    if beside != PLUGINS:
        asked += [f"--deselect=tests/testing/test_plugin.py::{name}" for name in STARTING]
    files = [f"tests/testing/test_{name}.py" for name in suite]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *outer, *asked, *files],
        cwd=REPOSITORY,
        env={**os.environ, "HARNESS_BESIDE": " ".join([*off, *inner])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("name", PLUGINS)
def test_our_own_tests_pass_beside(name: str) -> None:
    passes((name,), SUITE)


def test_our_own_tests_pass_where_another_takes_all_async_tests() -> None:
    suite = tuple([name for name in SUITE if name not in ASYNC])
    passes(("asyncio",), suite, "--asyncio-mode=auto")


def test_our_own_tests_pass_beside_all() -> None:
    passes(PLUGINS, (*SUITE, *MORE))
