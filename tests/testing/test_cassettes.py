"""Tests marked with cassette: recorded once, then replayed without a network, and loud where that
fails.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import vcr.patch  # noqa: F401  # with all libraries that it knows

import harness.testing.cassettes
import harness.testing.recording_plugin
from harness import serve
from harness.transport.libraries import library
from tests.testing.conftest import HELLO, ini, write

ASK = """
import os

import httpx2
import pytest

def ask(text, key="sk-abcdefghijklmnopqrstuvwx0123456789"):
    response = httpx2.post(
        os.environ["PROVIDER"] + "/v1/chat/completions",
        json={"model": "m", "messages": [{"role": "user", "content": text}]},
        headers={"authorization": f"Bearer {key}"},
    )
    return response.json()["choices"][0]["message"]["content"]
"""
ONE = f"""{ASK}
@pytest.mark.cassette
def test_asks():
    assert ask("Hello") == "One."
"""
RECORDED = "cassettes/test_one/test_asks.yaml: 0 of 0 played, 1 recorded"
NOWHERE = "http://127.0.0.1:9"

library("httpx2")  # loaded here, else each run of pytest in a test loads its own

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run pytest where no provider can be reached; or one that gives these replies, in order."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)

    def run(*arguments: str, replies: str = "") -> pytest.RunResult:
        arguments = ("-p", "no:cacheprovider", *arguments)
        monkeypatch.setenv("PROVIDER", NOWHERE)
        if not replies:
            return pytester.runpytest(*arguments)
        script = "".join([f"- say: {each}.\n" for each in replies.split()])
        with serve(script) as server:
            monkeypatch.setenv("PROVIDER", server.url)
            result = pytester.runpytest(*arguments)
        assert server.findings() == (), "the script was not asked for as it should be"
        return result

    return run


def files(pytester: pytest.Pytester) -> dict[str, bytes]:
    """All cassettes, by where they are."""
    return {
        path.relative_to(pytester.path).as_posix(): path.read_bytes()
        for path in sorted(pytester.path.rglob("cassettes/**/*"))
        if path.is_file()
    }


def said(result: pytest.RunResult) -> str:
    return result.stdout.str() + result.stderr.str()


# --- recording and replaying


def test_a_test_is_recorded_once_and_replayed_without_a_network(
    pytester: pytest.Pytester, run: Run
) -> None:
    pytester.makepyfile(test_one=ONE)
    result = run("--cassette-mode", "missing", replies="One")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([RECORDED])
    before = files(pytester)
    assert list(before) == ["cassettes/test_one/test_asks.yaml"]
    assert b"sk-abc" not in before["cassettes/test_one/test_asks.yaml"]
    result = run()
    result.assert_outcomes(passed=1)
    assert "cassettes ===" not in said(result)
    run("--cassette-mode=missing").assert_outcomes(passed=1)
    assert files(pytester) == before


@pytest.mark.parametrize("mode", ["replay", "drift"])
def test_a_cassette_that_is_not_there_fails_with_how_to_record_it(
    pytester: pytest.Pytester, run: Run, mode: str
) -> None:
    pytester.makepyfile(test_one=ONE)
    result = run(f"--cassette-mode={mode}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *there is no cassette cassettes/test_one/test_asks.yaml*",
            "E *pytest*test_one.py::test_asks --cassette-mode missing",
            "test_one.py:*: CassetteMiss",
        ]
    )
    assert "site-packages" not in said(result), "the way through the client is shown"
    assert files(pytester) == {}


def test_a_cassette_that_is_not_there_is_told_also_of_requests_whose_failure_is_caught(
    pytester: pytest.Pytester, run: Run
) -> None:
    text = ONE.replace('assert ask("Hello") == "One."', "ask_and_go_on()")
    caught = """
import requests

def ask_and_go_on():
    try:
        requests.post(os.environ["PROVIDER"] + "/v1/chat/completions", json={})
    except Exception:
        pass
"""
    pytester.makepyfile(test_one=text + caught)
    result = run()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["there is no cassette cassettes/test_one/test_asks.yaml*"])
    assert "Traceback" not in said(result)


def test_a_cassette_that_is_only_to_be_replayed_and_is_not_there_is_recorded_without_its_marker(
    pytester: pytest.Pytester, run: Run
) -> None:
    pytester.makepyfile(test_one=ONE.replace("mark.cassette", "mark.cassette(mode='replay')"))
    result = run("--cassette-mode=missing")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E *to record it, take mode='replay' off the test and run, where *"]
    )


@pytest.mark.parametrize(
    ("says", "outcome"), [("skip", "skipped"), ("xfail", "xfailed"), ("fail", "failed")]
)
def test_a_test_that_needs_no_cassette_is_not_told_that_there_is_none(
    pytester: pytest.Pytester, run: Run, says: str, outcome: str
) -> None:
    first = f"def test_asks():\n    pytest.{says}('not today')\n"
    pytester.makepyfile(test_one=ONE.replace("def test_asks():\n", first))
    for mode in ("replay", "missing", "all", "drift"):
        result = run(f"--cassette-mode={mode}")
        result.assert_outcomes(**{outcome: 1})
        assert "there is no cassette" not in said(result)
    assert files(pytester) == {}


def test_a_cassette_of_a_test_that_was_renamed_is_named(
    pytester: pytest.Pytester, run: Run
) -> None:
    pytester.makepyfile(test_one=ONE)
    run("--cassette-mode=all", replies="One")
    pytester.makepyfile(test_one=ONE.replace("test_asks", "test_asked"))
    run().stdout.fnmatch_lines(["*test_asked.yaml (did you mean 'test_asks.yaml'?)*"])


def test_all_records_anew(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(
        test_one=ONE.replace('"One."', "ONE").replace(
            "import os", "import os\nONE = os.environ.get('ONE', 'One.')"
        )
    )
    run("--cassette-mode=all", replies="One").assert_outcomes(passed=1)
    (before,) = files(pytester).values()
    pytester.makepyfile(test_one=ONE.replace("One.", "Two."))
    run("--cassette-mode=all", replies="Two").assert_outcomes(passed=1)
    (after,) = files(pytester).values()
    assert b"One." in before
    assert b"One." not in after
    assert b"Two." in after
    run().assert_outcomes(passed=1)


def test_what_is_missing_is_recorded_and_what_is_there_is_kept(
    pytester: pytest.Pytester, run: Run
) -> None:
    pytester.makepyfile(test_one=ONE)
    run("--cassette-mode=missing", replies="One").assert_outcomes(passed=1)
    pytester.makepyfile(test_one=f'{ONE}    assert ask("More") == "Two."\n')
    result = run("--cassette-mode=missing", replies="Two")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["cassettes/test_one/test_asks.yaml: 1 of 1 played, 1 recorded*"])
    run().assert_outcomes(passed=1)


def test_a_request_that_was_not_recorded_fails_the_test(
    pytester: pytest.Pytester, run: Run
) -> None:
    pytester.makepyfile(test_one=ONE)
    run("--cassette-mode=missing", replies="One")
    pytester.makepyfile(test_one=ONE.replace("Hello", "Hullo"))
    result = run("-rN")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E * messages[[]0].content: *Hullo*", "", "test_one.py:*: CassetteMiss"]
    )
    assert "site-packages" not in said(result), "the way through the client is shown"
    assert "site-packages" in said(run("--full-trace"))


def test_a_miss_that_the_code_under_test_has_caught_fails_the_test(
    pytester: pytest.Pytester, run: Run
) -> None:
    pytester.makepyfile(test_one=ONE)
    run("--cassette-mode=missing", replies="One")
    pytester.makepyfile(
        test_one=f"""{ONE}
    try:
        ask("More")
    except Exception:
        pass
"""
    )
    result = run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "More" in said(result)
    expecting = f"""{ONE.replace("test_asks()", "test_asks(harness_cassette)")}
    with pytest.raises(CassetteMiss):
        ask("More")
    harness_cassette.missed.clear()
"""
    pytester.makepyfile(test_one=f"from harness import CassetteMiss\n{expecting}")
    run().assert_outcomes(passed=1)


def test_what_is_not_used_fails_the_test_unless_it_has_failed_already(
    pytester: pytest.Pytester, run: Run
) -> None:
    more = f'{ONE}    assert ask("More") == "Two."\n'
    pytester.makepyfile(test_one=more)
    run("--cassette-mode=missing", replies="One Two")
    pytester.makepyfile(test_one=ONE)
    result = run()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*nobody asked for number 2 (line *, POST /v1/chat/completions)*"])
    pytester.makepyfile(test_one=ONE.replace("== ", "!= "))
    run().assert_outcomes(failed=1)
    pytester.makepyfile(
        test_one=ONE.replace("def test_asks():", "def test_asks():\n    pytest.skip('x')")
    )
    run().assert_outcomes(skipped=1)
    pytester.makepyfile(test_one=ONE.replace("mark.cassette", "mark.cassette(allow_unused=True)"))
    run().assert_outcomes(passed=1)


def test_fixtures_of_the_test_are_part_of_it_and_shared_ones_are_not(
    pytester: pytest.Pytester, run: Run
) -> None:
    pytester.makepyfile(
        test_one=f"""{ASK}
@pytest.fixture
def greeted():
    assert ask("Hello") == "One."
    yield
    assert ask("Bye") == "Three."

@pytest.fixture(scope="module")
def shared(request):
    assert not request.config.pluginmanager.hasplugin("nothing")
    try:
        return ask("Shared")
    except httpx2.ConnectError as error:
        return error

@pytest.mark.cassette
def test_asks(greeted, shared, harness_cassette):
    assert isinstance(shared, httpx2.ConnectError) or shared == "Zero."
    assert ask("More") == "Two."
    assert len(harness_cassette.interactions) == 2
"""
    )
    run("--cassette-mode=missing", replies="Zero One Two Three").assert_outcomes(passed=1)
    run().assert_outcomes(passed=1)


def test_a_test_whose_fixture_fails_is_not_told_of_what_it_did_not_use(
    pytester: pytest.Pytester, run: Run
) -> None:
    pytester.makepyfile(test_one=ONE)
    run("--cassette-mode=missing", replies="One")
    broken = "@pytest.fixture\ndef broken():\n    raise ValueError('planted')\n"
    text = ONE.replace("def test_asks()", "def test_asks(broken)").replace(
        "@pytest.mark", f"{broken}\n@pytest.mark"
    )
    pytester.makepyfile(test_one=text)
    result = run()
    result.assert_outcomes(errors=1)
    assert "ValueError: planted" in said(result)


def test_asynchronous_tests_and_other_libraries(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(
        test_one=f"""{ASK}
import requests

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
@pytest.mark.cassette
async def test_async():
    async with httpx2.AsyncClient() as client:
        body = {{"model": "m", "messages": [{{"role": "user", "content": "Hello"}}]}}
        answer = await client.post(os.environ["PROVIDER"] + "/v1/chat/completions", json=body)
    assert answer.json()["choices"][0]["message"]["content"] == "One."

@pytest.mark.cassette
def test_requests():
    body = {{"model": "m", "messages": [{{"role": "user", "content": "Hello"}}]}}
    answer = requests.post(os.environ["PROVIDER"] + "/v1/chat/completions", json=body)
    assert answer.json()["choices"][0]["message"]["content"] == "Two."
"""
    )
    run("--cassette-mode=missing", replies="One Two").assert_outcomes(passed=2)
    run().assert_outcomes(passed=2)


# --- where


def test_names_are_of_the_test_its_class_and_its_parameters(
    pytester: pytest.Pytester, run: Run
) -> None:
    pytester.makepyfile(
        test_one=f"""{ASK}
import unittest

@pytest.mark.cassette
class TestModel:
    class TestInner:
        @pytest.mark.parametrize("text", ["a", "A", "a/b"])
        def test_asks(self, text):
            ask(text)

class TestOld(unittest.TestCase):
    @pytest.mark.cassette
    def test_asks(self):
        ask("Old")

@pytest.mark.parametrize("text", [pytest.param("c", marks=pytest.mark.cassette), "d"])
def test_some(text):
    if text == "c":
        ask("Some")
"""
    )
    run("--cassette-mode=missing", replies="A B C D E").assert_outcomes(passed=6)
    names = [name.removeprefix("cassettes/test_one/") for name in files(pytester)]
    assert "TestModel.TestInner.test_asks[a].yaml" in names
    assert "TestOld.test_asks.yaml" in names
    assert "test_some[c].yaml" in names
    assert len({name.casefold() for name in names}) == 5
    run().assert_outcomes(passed=6)


def test_a_name_or_a_path_may_be_given(pytester: pytest.Pytester, run: Run) -> None:
    text = f"""{ASK}
@pytest.mark.cassette("greeting")
def test_named():
    ask("Hello")

@pytest.mark.cassette("shared/hello.yaml")
def test_path():
    ask("Hello")
"""
    write(pytester.path / "tests/test_one.py", text)
    run("--cassette-mode=missing", replies="A B").assert_outcomes(passed=2)
    assert (pytester.path / "tests/cassettes/test_one/greeting.yaml").exists()
    beside = pytester.path / "tests/shared/hello.yaml"
    assert beside.exists()
    (pytester.path / "shared").mkdir()
    beside.rename(pytester.path / "shared/hello.yaml")
    run().assert_outcomes(passed=2)


SHARED = f"""{ASK}
pytestmark = pytest.mark.cassette("shared")

def test_one():
    ask("Hello")

def test_two():
    ask("Hello")
"""


def test_two_tests_do_not_record_into_one_cassette(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_one=SHARED)
    result = run("--cassette-mode=all", replies="A")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["cassettes/test_one/shared.yaml is the cassette of test_one.py::test_one; *"]
    )
    run().assert_outcomes(passed=2)


def test_two_tests_record_what_is_missing_into_one_cassette_only_where_both_may_leave_some(
    pytester: pytest.Pytester, run: Run
) -> None:
    """Else each would leave what the other has recorded, and fail when it is replayed."""
    text = SHARED.replace('two():\n    ask("Hello")', 'two():\n    ask("More")')
    pytester.makepyfile(test_one=text)
    result = run("--cassette-mode=missing", replies="A")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "cassettes/test_one/shared.yaml is the cassette of test_one.py::test_one; "
            "give each test one of its own, or mark both with allow_unused=True"
        ]
    )
    run("test_one.py::test_one").assert_outcomes(passed=1)
    pytester.makepyfile(test_one=text.replace('"shared"', '"shared", allow_unused=True'))
    run("--cassette-mode=missing", replies="B").assert_outcomes(passed=2)
    run().assert_outcomes(passed=2)


def test_who_only_plays_the_cassette_of_another_test_does_not_keep_that_from_recording(
    pytester: pytest.Pytester, run: Run
) -> None:
    text = ONE.replace("test_asks", "test_plays").replace(
        "mark.cassette", "mark.cassette('test_asks', mode='replay')"
    )
    pytester.makepyfile(test_one=ONE)
    run("--cassette-mode=all", replies="One").assert_outcomes(passed=1)
    pytester.makepyfile(test_one=text + ONE.removeprefix(ASK))
    for mode in ("missing", "all"):
        again = "One" if mode == "all" else ""
        run(f"--cassette-mode={mode}", replies=again).assert_outcomes(passed=2)


# --- modes


def test_what_the_command_line_says_goes_before_the_marker_and_that_before_the_setting(
    pytester: pytest.Pytester, run: Run
) -> None:
    pytester.makepyfile(test_one=ONE.replace("mark.cassette", "mark.cassette(mode='missing')"))
    run("--cassette-mode=replay").assert_outcomes(failed=1)
    run(replies="One").assert_outcomes(passed=1)
    pytester.makepyfile(test_two=ONE)
    ini(pytester, "harness_cassette_mode = missing")
    run("test_two.py", "--cassette-mode=replay").assert_outcomes(failed=1)
    run("test_two.py", replies="One").assert_outcomes(passed=1)


def test_a_cassette_that_is_only_to_be_replayed_is_never_recorded(
    pytester: pytest.Pytester, run: Run
) -> None:
    pytester.makepyfile(test_one=ONE)
    run("--cassette-mode=all", replies="One")
    before = files(pytester)
    pytester.makepyfile(test_one=ONE.replace("mark.cassette", "mark.cassette(mode='replay')"))
    run("--cassette-mode=all").assert_outcomes(passed=1)
    assert files(pytester) == before


def test_drift_asks_again_tells_what_has_changed_and_keeps_the_cassette(
    pytester: pytest.Pytester, run: Run
) -> None:
    pytester.makepyfile(test_one=ONE.replace('== "One."', 'in ("One.", "Two.")'))
    run("--cassette-mode=all", replies="One")
    before = files(pytester)
    result = run("--cassette-mode=drift", replies="Two")
    result.assert_outcomes(passed=1)
    beside = "cassettes/test_one/test_asks.drift.yaml"
    result.stdout.fnmatch_lines(
        [
            f"cassettes/test_one/test_asks.yaml: 0 of 1 played, 1 recorded into {beside}",
            '  interaction 1: reply: text: "[[]-One-]." was recorded, "{+Two+}." came',
        ]
    )
    after = files(pytester)
    assert set(after) - set(before) == {"cassettes/test_one/test_asks.drift.yaml"}
    assert {name: after[name] for name in before} == before


def test_what_is_no_mode_is_refused(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_one=ONE.replace("mark.cassette", "mark.cassette(mode='al')"))
    run().stdout.fnmatch_lines(["*unknown * 'al' (did you mean 'all'?)*"])
    assert run("--cassette-mode=al").ret == pytest.ExitCode.USAGE_ERROR
    ini(pytester, "harness_cassette_mode = al")
    result = run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unknown harness_cassette_mode 'al' (did you mean 'all'?)*"])


def test_the_network_is_closed_where_a_cassette_is_replayed_only(
    pytester: pytest.Pytester, run: Run, refused: list[str]
) -> None:
    """One source says the mode, for what is recorded and for what may be reached."""
    reach = """
    import contextlib, socket
    with contextlib.suppress(Exception):
        socket.gethostbyname("api.example.invalid")
"""
    text = ONE.replace("test_asks()", "test_asks(harness_run)")
    pytester.makepyfile(test_one=f"{text}    harness_run.used = True{reach}")
    run("--cassette-mode=missing", replies="One").assert_outcomes(passed=1)
    refused.clear()
    result = run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*reached for api.example.invalid, and only this machine*"])
    ini(pytester, "harness_network = true")
    run().assert_outcomes(passed=1)
    refused.clear()


# --- options


def test_options_of_the_project_the_module_and_the_test_add_up(
    pytester: pytest.Pytester, run: Run
) -> None:
    pytester.makeconftest(
        """
        import pytest
        from harness.transport.rules import Rules

        @pytest.fixture
        def harness_cassette_options():
            return {"rules": Rules(ignore=("model",)), "source": "a fake"}
        """
    )
    text = f"""{ASK}
pytestmark = pytest.mark.cassette(source="another fake")

@pytest.mark.cassette(ignore="user")
def test_asks():
    ask("Hello")
"""
    pytester.makepyfile(test_one=text)
    run("--cassette-mode=all", replies="One").assert_outcomes(passed=1)
    (written,) = files(pytester).values()
    assert b"another fake" in written
    pytester.makepyfile(test_one=text.replace('"m"', '"other", "user": "me"'))
    run().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("cassette(tmining='zero')", "unknown option * 'tmining' (did you mean 'timing'?)*"),
        ("cassette('a', 'b')", "*one name*"),
        ("cassette(3)", "@pytest.mark.cassette(3): expected one name*"),
        ("cassette('a/b')", "*'a/b'*.yaml*"),
        ("cassette(timing='fast')", "*'fast'*"),
        ("cassette(rules={})", "*rules*Rules*"),
        ("cassette(ignore=3)", "*ignore*3*"),
        ("cassette(mode='replya')", "unknown mode * 'replya' (did you mean 'replay'?)*"),
        ("cassette(mode='')", "unknown mode * ''*"),
        ("cassette(split=0)", "*split*0*"),
        ("cassette(faults={1: 'torn'})", "*'torn'*expected a fault*"),
        ("cassette(ignore_hosts='a.test')", "ignore_hosts='a.test': expected a list*"),
        ("cassette(ignore_hosts=3)", "ignore_hosts=3: expected a list*"),
        ("cassette(ignore_hosts=[3])", "ignore_hosts=[3]: expected a list*"),
        ("cassette(source=3)", "source=3: expected a str*"),
        ("cassette(allow_unused='no')", "allow_unused='no': expected a bool*"),
    ],
)
def test_a_marker_that_asks_for_what_there_is_not_is_told_whatever_is_done(
    pytester: pytest.Pytester, run: Run, marker: str, message: str
) -> None:
    pytester.makepyfile(test_one=ONE)
    run("--cassette-mode=all", replies="One")
    before = files(pytester)
    pytester.makepyfile(test_one=ONE.replace("mark.cassette", f"mark.{marker}"))
    for mode in ("replay", "all"):
        result = run(f"--cassette-mode={mode}")
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines([message.replace("[", "[[]")])
        assert "Traceback" not in said(result)
    assert files(pytester) == before


# --- with others


def test_a_marked_test_without_requests_is_told(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.cassette\ndef test_idle(): pass\n")
    for mode in ("replay", "missing", "all", "drift"):
        result = run(f"--cassette-mode={mode}")
        result.assert_outcomes(passed=1, errors=1)
        result.stdout.fnmatch_lines(["*no request; take the marker away"])
    assert files(pytester) == {}


def test_who_asks_for_the_cassette_and_has_no_marker_is_told(
    pytester: pytest.Pytester, run: Run
) -> None:
    pytester.makepyfile("def test_it(harness_cassette): pass\n")
    result = run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*@pytest.mark.cassette*"])


def test_only_functions_may_be_marked(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makeconftest(
        """
        import pytest

        class Theirs(pytest.File):
            def collect(self):
                item = TheirItem.from_parent(self, name="theirs")
                item.add_marker("cassette")
                yield item

        class TheirItem(pytest.Item):
            def runtest(self):
                pass

        def pytest_collect_file(file_path, parent):
            if file_path.suffix == ".theirs":
                return Theirs.from_parent(parent, path=file_path)
        """
    )
    write(pytester.path / "one.theirs", "")
    run("one.theirs").stdout.fnmatch_lines(["*@pytest.mark.cassette is for test functions*"])


def test_what_breaks_in_the_recorder_itself_is_shown_whole(
    pytester: pytest.Pytester, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object, **_options: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(harness.testing.cassettes, "cassette", broken)
    pytester.makepyfile(test_one=ONE)
    result = run("--cassette-mode=all")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["E * RuntimeError: planted"])


def test_one_recorder_a_test(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_one=ONE.replace("@pytest", "@pytest.mark.vcr\n@pytest", 1))
    run("--cassette-mode=all").stdout.fnmatch_lines(["*both cassette and vcr*"])


def test_a_run_of_a_scenario_inside_is_left_alone(pytester: pytest.Pytester, run: Run) -> None:
    inside = f"""
    assert harness_run({HELLO!r}, "turn", level="http").ok
    assert len(harness_cassette.interactions) == 1
"""
    text = ONE.replace("test_asks()", "test_asks(harness_run, harness_cassette)")
    pytester.makepyfile(test_one=text + inside)
    run("--cassette-mode=missing", replies="One").assert_outcomes(passed=1)
    run().assert_outcomes(passed=1)


def test_workers_tell_what_they_recorded(
    pytester: pytest.Pytester, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(test_one=ONE)
    result = run("-n", "1", "--cassette-mode=missing", replies="One")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([RECORDED])


def test_a_test_that_is_run_again_has_its_cassette_again(
    pytester: pytest.Pytester, run: Run
) -> None:
    pytester.makeconftest(
        """
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item, nextitem):
            for _ in range(2):
                item._initrequest()
                reports = runtestprotocol(item, nextitem=nextitem, log=False)
            for report in reports:
                item.ihook.pytest_runtest_logreport(report=report)
            return True
        """
    )
    pytester.makepyfile(test_one=ONE)
    run("--cassette-mode=all", replies="One One").assert_outcomes(passed=1)
    run().assert_outcomes(passed=1)
