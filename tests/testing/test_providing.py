"""The fixture harness_provider: it answers a test's clients, and fails it where one did wrong."""

from __future__ import annotations

import pytest

HEAD = """
import asyncio
import time

import httpx2
import pytest

ONE = "- say: One.\\n"
TWO = "- say: One.\\n- {say: Two., takes: 40s}\\n"
URL = "https://api.openai.com/v1/chat/completions"
ASKED = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}

def said(response):
    return response.json()["choices"][0]["message"]["content"]
"""


def run(project: pytest.Pytester, body: str, *arguments: str) -> pytest.RunResult:
    project.makepyfile(test_it=HEAD + body)
    return project.runpytest("-p", "no:cacheprovider", "-p", "no:syrupy", *arguments)


def test_it_answers_clients_until_the_test_ends(
    project: pytest.Pytester, refused: list[str]
) -> None:
    result = run(
        project,
        """
def test_it(harness_provider):
    provider = harness_provider(ONE)
    assert said(httpx2.post(URL, json=ASKED)) == "One."
    assert provider.used_up

async def test_in_virtual_time(harness_provider):
    harness_provider(TWO)
    began = time.monotonic()
    async with httpx2.AsyncClient(timeout=60) as client:
        assert said(await client.post(URL, json=ASKED)) == "One."
        assert said(await client.post(URL, json=ASKED)) == "Two."
    assert time.monotonic() - began >= 40

def test_elsewhere(harness_provider):
    harness_provider(TWO, check=False)
    httpx2.get("https://example.com/")
""",
    )
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*NetworkUsed*example.com*"])
    refused.clear()


def test_a_client_that_does_wrong_fails_the_test_unless_that_is_looked_at(
    project: pytest.Pytester,
) -> None:
    result = run(
        project,
        """
def test_fails(harness_provider):
    harness_provider(TWO)
    httpx2.post(URL, json=ASKED)

def test_looks(harness_provider):
    provider = harness_provider(TWO, check=False)
    assert [each.kind for each in provider.findings()] == ["unused"] * 2
""",
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["the client did wrong:", "reply 2 of turn 1 (say: 'Two.') was never asked for"]
    )


def test_a_mistake_fails_the_test_with_what_to_do(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
def test_twice(harness_provider):
    harness_provider(TWO, check=False)
    harness_provider(TWO)

async def test_twice_in_virtual_time(harness_provider):
    harness_provider(TWO, check=False)
    harness_provider(TWO)

def test_wrong(harness_provider):
    harness_provider(TWO.replace("say", "sya"))
""",
        "-rN",
    )
    result.assert_outcomes(failed=3)
    taken = "another script answers what is asked of a provider; put all replies into one"
    result.stdout.fnmatch_lines([taken, taken, "*a reply has no key 'sya' (did you mean 'say'?)*"])
