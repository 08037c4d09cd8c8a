"""Who does what where several plugins could: async tests, patched clients, order, processes."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.testing.conftest import project, write

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(find_spec("pytest_asyncio") is None, reason="needs what `make beside` has"),
]

__all__ = ["project"]

SCENARIO = "about: x\\nloops: [turn]\\nturns: [{user: a, model: [{say: b}]}]\\n"
HEAD = f"""
import asyncio
import random

import httpx
import httpx2
import pytest

URL = "https://api.openai.com/v1/chat/completions"
ASKED = {{"model": "m", "messages": [{{"role": "user", "content": "Hello"}}]}}
SCENARIO = "{SCENARIO}"

def said(response):
    return response.json()["choices"][0]["message"]["content"]

def virtual():
    return not type(asyncio.get_running_loop()).__module__.startswith("asyncio")
"""


def run(project: pytest.Pytester, body: str, *arguments: str) -> pytest.RunResult:
    write(project.path / "test_it.py", HEAD + body)
    return project.runpytest("-p", "no:cacheprovider", *arguments)


def test_each_async_test_is_run_by_whoever_it_is_marked_for(project: pytest.Pytester) -> None:
    run(
        project,
        """
@pytest.mark.asyncio
async def test_asyncio(harness_run):
    assert not virtual()
    await asyncio.sleep(0)
    assert harness_run(SCENARIO).ok

@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_anyio(harness_run, anyio_backend):
    assert not virtual()
    assert harness_run(SCENARIO).ok

async def test_ours(harness_run):
    assert virtual()
    assert harness_run(SCENARIO).ok

@pytest.mark.harness
async def test_marked():
    assert virtual()

@pytest.mark.asyncio
@pytest.mark.harness(loops="all")
async def test_both(harness_run):
    assert not virtual()
    assert harness_run(SCENARIO).ok
""",
    ).assert_outcomes(passed=6)


def test_the_automatic_mode_takes_all(project: pytest.Pytester) -> None:
    run(
        project,
        """
async def test_taken(harness_run, harness_sweep, harness_explore):
    assert not virtual()
    assert harness_run(SCENARIO).ok
    assert harness_sweep(SCENARIO, modes=["early"]).ok
    assert harness_explore(SCENARIO, runs=3).ok

async def test_provided(harness_provider):
    harness_provider("- say: One.\\n")
    async with httpx2.AsyncClient() as client:
        assert said(await client.post(URL, json=ASKED)) == "One."

@pytest.fixture
async def number():
    await asyncio.sleep(0)
    return 1

async def test_async_fixtures_are_theirs(harness_run, number):
    assert number == 1
    assert harness_run(SCENARIO).ok
""",
        "--asyncio-mode=auto",
    ).assert_outcomes(passed=3)


def test_patched_clients_answer_first(project: pytest.Pytester) -> None:
    run(
        project,
        """
def test_httpx(harness_provider, httpx_mock):
    provider = harness_provider("- say: One.\\n", check=False)
    httpx_mock.add_response(json={"theirs": True})
    assert httpx.post(URL, json=ASKED).json() == {"theirs": True}
    assert provider.requests == ()

def test_httpx2(harness_provider, httpx2_mock):
    provider = harness_provider("- say: One.\\n")
    httpx2_mock.get("https://example.com/").respond(json={"theirs": True})
    assert httpx2.get("https://example.com/").json() == {"theirs": True}
    assert said(httpx2.post(URL, json=ASKED)) == "One."

def test_respx(harness_provider, respx_mock):
    provider = harness_provider("- say: One.\\n", check=False)
    respx_mock.post(URL).respond(json={"theirs": True})
    assert httpx.post(URL, json=ASKED).json() == {"theirs": True}
    assert provider.requests == ()
""",
    ).assert_outcomes(passed=3)


def test_runs_draw_the_same_whatever_the_order(project: pytest.Pytester) -> None:
    body = """
async def drawn():
    for number in range(5):
        await asyncio.sleep(random.random())

def test_one(harness_explore):
    print("token", harness_explore(drawn, runs=5).report.baseline.digest)

def test_two(harness_explore):
    print("token", harness_explore(drawn, runs=5).report.baseline.digest)
"""
    found = set()
    for seed in ("1", "2"):
        result = run(project, body, "-s", f"--randomly-seed={seed}")
        result.assert_outcomes(passed=2)
        found |= {line[line.index("token") :] for line in result.outlines if "token" in line}
    assert len(found) == 1


def test_a_vcr_test_beside_ours(project: pytest.Pytester) -> None:
    run(
        project,
        """
@pytest.mark.vcr
def test_vcr(harness_run):
    assert harness_run(SCENARIO).ok

@pytest.mark.block_network
def test_blocked(harness_provider):
    harness_provider("- say: One.\\n")
    assert said(httpx2.post(URL, json=ASKED)) == "One."
""",
    ).assert_outcomes(passed=2)
