"""The fixture harness_server: servers that end with their test, and fail it where a client did
wrong.
"""

from __future__ import annotations

import pytest

ASK = """
import json, urllib.request

def ask(server, text):
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(
        server.variables["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode()
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]["content"]
"""


def test_a_script_is_served_until_the_test_ends(project: pytest.Pytester) -> None:
    project.makepyfile(
        ASK
        + """
urls = []

def test_two(harness_server):
    one, two = harness_server("- say: One.\\n- say: Two.\\n"), harness_server("[{say: Three.}]\\n")
    assert [ask(one, "x"), ask(two, "x"), ask(one, "y")] == ["One.", "Three.", "Two."]
    assert [each.place for each in one.requests] == ["1.1", "1.2"]
    urls.append(one)

def test_after():
    try:
        ask(urls[0], "x")
    except OSError:
        return
    assert False, "it still serves"
"""
    )
    project.runpytest("-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_a_client_that_does_wrong_fails_the_test_unless_that_is_looked_at(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        ASK
        + """
def test_fails(harness_server):
    ask(harness_server("- say: One.\\n- say: Two.\\n"), "x")

def test_looks(harness_server):
    server = harness_server("- say: One.\\n- say: Two.\\n", check=False)
    assert [each.kind for each in server.findings()] == ["unused"] * 2
"""
    )
    result = project.runpytest("-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["the client did wrong:", "reply 2 of turn 1 (say: 'Two.') was never asked for"]
    )


def test_who_asks_for_it_and_does_not_use_it_is_told(project: pytest.Pytester) -> None:
    project.makepyfile("def test_unused(harness_server): pass")
    result = project.runpytest("-p", "no:cacheprovider", "-W", "default")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*HarnessNotUsed: the test asks for harness_server and never*"])
