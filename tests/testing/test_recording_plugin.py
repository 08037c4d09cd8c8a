"""pytest-recording beside us: its marker reads and writes our cassettes, and ours reads those it
made.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.testing.test_cassettes import ASK, ONE, files, run, said

__all__ = ["run"]

Run = Callable[..., pytest.RunResult]
OURS = 'vcr(serializer="harness", match_on=["harness"])'
THEIRS = ONE.replace("mark.cassette", f"mark.{OURS}")
PLAIN = ONE.replace("mark.cassette", "mark.vcr")
FILE = "cassettes/test_one/test_asks.yaml"


def test_its_marker_replays_our_cassettes(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_one=ONE)
    run("--cassette-mode=missing", replies="One").assert_outcomes(passed=1)
    before = files(pytester)
    pytester.makepyfile(test_one=THEIRS)
    run().assert_outcomes(passed=1)
    pytester.makepyfile(test_one=THEIRS.replace("Hello", "Hullo"))
    run().assert_outcomes(failed=1)
    assert files(pytester) == before


def test_its_marker_without_ours_replays_our_cassettes(
    pytester: pytest.Pytester, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain vcrpy compares hosts and ports, so that the address must be the recorded one."""
    pytester.makepyfile(test_one=ONE)
    run("--cassette-mode=missing", replies="One").assert_outcomes(passed=1)
    (text,) = files(pytester).values()
    uri = next(line for line in text.decode().splitlines() if "uri: " in line)
    address = uri.partition("uri: ")[2].strip("'").removesuffix("/v1/chat/completions")
    pytester.makepyfile(test_one=PLAIN.replace('os.environ["PROVIDER"]', repr(address)))
    run().assert_outcomes(passed=1)


def test_its_marker_writes_our_cassettes(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_one=THEIRS)
    run("--record-mode=once", replies="One").assert_outcomes(passed=1)
    written = files(pytester)
    assert list(written) == [FILE]
    assert b"sk-abc" not in written[FILE]
    run().assert_outcomes(passed=1)
    pytester.makepyfile(test_one=THEIRS.replace("abcdefgh", "another-"))
    run().assert_outcomes(passed=1)
    pytester.makepyfile(test_one=ONE)
    run().assert_outcomes(passed=1)


def test_a_cassette_is_rewritten(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_one=THEIRS)
    run("--record-mode=once", replies="One").assert_outcomes(passed=1)
    pytester.makepyfile(test_one=THEIRS.replace("One.", "Two."))
    run("--record-mode=rewrite", replies="Two").assert_outcomes(passed=1)
    assert b"One." not in files(pytester)[FILE]
    run().assert_outcomes(passed=1)


def test_cassettes_that_its_marker_adds_are_read_too(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_one=THEIRS)
    run("--record-mode=once", replies="One").assert_outcomes(passed=1)
    more = THEIRS.replace("mark.vcr(", 'mark.vcr("test_asks.yaml", "none.yaml", ')
    pytester.makepyfile(test_one=more.replace("test_asks()", "test_more()"))
    run().assert_outcomes(passed=1)
    pytester.makepyfile(test_one=THEIRS.replace("test_asks", "test_nothing"))
    run().assert_outcomes(failed=1)


def test_a_damaged_cassette_is_told_and_kept(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_one=THEIRS)
    run("--record-mode=once", replies="One").assert_outcomes(passed=1)
    path = pytester.path / FILE
    path.write_bytes(path.read_bytes()[:200])
    before = files(pytester)
    result = run("--record-mode=new_episodes")
    result.assert_outcomes(errors=1)
    assert "test_asks.yaml" in said(result)
    assert files(pytester) == before


def test_what_it_does_with_its_own_serializers_is_left_alone(
    pytester: pytest.Pytester, run: Run
) -> None:
    pytester.makepyfile(test_one=PLAIN)
    run("--record-mode=once", replies="One").assert_outcomes(passed=1)
    assert b"sk-abc" in files(pytester)[FILE]
    assert b"harness:" not in files(pytester)[FILE]


def test_our_marker_replays_what_it_has_recorded(pytester: pytest.Pytester, run: Run) -> None:
    more = f"""{ASK}
@pytest.mark.vcr
class TestModel:
    @pytest.mark.parametrize("text", ["a", "b"])
    def test_asks(self, text):
        assert ask(text) == {{"a": "One.", "b": "Two."}}[text]
"""
    pytester.makepyfile(test_one=more)
    run("--record-mode=once", replies="One Two").assert_outcomes(passed=2)
    before = files(pytester)
    assert len(before) == 2
    pytester.makepyfile(test_one=more.replace("mark.vcr", "mark.cassette"))
    run().assert_outcomes(passed=2)
    assert files(pytester) == before


def test_it_is_not_needed(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_one=ONE)
    run("-p", "no:recording", "--cassette-mode=missing", replies="One").assert_outcomes(passed=1)
