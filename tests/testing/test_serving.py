"""The fixture harness_server: servers that end with their test, and fail it where a client did
wrong.
"""

from __future__ import annotations

import pytest

from tests.testing.conftest import write

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


def test_a_script_is_found_from_the_root_too(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        project.path / "tests/test_it.py",
        """
import pytest

@pytest.mark.parametrize("name", ["harness_server", "harness_provider"])
def test_it(name, request):
    request.getfixturevalue(name)("scenarios/weather.yaml", check=False)
""",
    )
    project.makeini("[pytest]")
    monkeypatch.chdir(project.path / "tests")
    project.runpytest("-p", "no:cacheprovider").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("'none.yaml'", "there is no none.yaml; expected a scenario file or a folder of them"),
        ("'a\\0b'", "'a?x00b' is not a path: embedded null byte; expected the path of a script, *"),
        ("'[{sya: Hi.}]\\n'", "*a reply has no key 'sya' (did you mean 'say'?)*"),
        ("5", "5 is no script; expected a scenario, replies, a text of several lines, or a path"),
        ("['Hi.']", "*'Hi.'] is no script; *"),
    ],
)
def test_a_mistake_fails_the_test_with_what_to_do(
    project: pytest.Pytester, script: str, says: str
) -> None:
    project.makepyfile(
        f"""
        def test_server(harness_server): harness_server({script})

        def test_provider(harness_provider): harness_provider({script})
        """
    )
    result = project.runpytest("-p", "no:cacheprovider", "-rN")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines([says, says])


def test_who_asks_for_it_and_does_not_use_it_is_told(project: pytest.Pytester) -> None:
    project.makepyfile("def test_unused(harness_server): pass")
    result = project.runpytest("-p", "no:cacheprovider", "-W", "default")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*HarnessNotUsed: the test asks for harness_server and never*"])
