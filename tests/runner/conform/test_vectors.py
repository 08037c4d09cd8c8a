from __future__ import annotations

from pathlib import Path

import pytest

from harness.core import json_text
from harness.core.errors import UsageError
from harness.runner.conform.common import difference
from harness.runner.conform.vectors import LENIENT, run_vectors

VECTORS = Path(__file__).parents[2] / "vectors"
TEXTS = json_text.loads((VECTORS / "texts.json").read_text(encoding="utf-8"))


def lines(kind: str) -> list[str]:
    file_name = f"{kind.replace('-units', '_unit')}_vectors.jsonl"
    with (VECTORS / file_name).open(encoding="utf-8") as file:
        return list(file)


@pytest.mark.parametrize(
    ("kind", "count", "open_ones"),
    [
        ("turn", 220, 16),
        ("trim", 300, 0),
        ("derive", 200, 0),
        ("race", 28, 0),
        ("fsm", 272, 11),
        ("fsm-units", 135, 0),
    ],
)
def test_every_vector_holds(kind: str, count: int, open_ones: int) -> None:
    report = run_vectors(kind, lines(kind), TEXTS)
    assert report.failed == ()
    assert report.passed == count
    assert len(report.lenient) == open_ones


@pytest.mark.parametrize("kind", ["turn", "fsm"])
def test_the_open_vectors_hold_too_and_are_told_apart(kind: str) -> None:
    report = run_vectors(kind, lines(kind), TEXTS)
    assert [(name, reason) for name, _, agrees, reason in report.lenient if not agrees] == []
    assert all(LENIENT.intersection(tags) for _, tags, _, _ in report.lenient)


def test_with_our_own_texts_only_vectors_that_show_a_text_fail() -> None:
    report = run_vectors("derive", lines("derive"))
    assert report.failed
    shows = TEXTS["turn"]["derive_unanswered"]
    failing = {name for name, _ in report.failed}
    for line in lines("derive"):
        vector = json_text.loads(line)
        shown = shows in json_text.dumps(vector["expected"])
        assert (vector["id"] in failing) == shown


def spoiled(kind: str, *path: str | int, value: object) -> str:
    """The first vector of a kind with one value replaced."""
    vector = json_text.loads(lines(kind)[0])
    place = vector
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json_text.dumps(vector)


def test_a_wrong_expectation_fails_with_its_place() -> None:
    line = spoiled("turn", "expected", "generate_calls", value=2)
    report = run_vectors("turn", [line], TEXTS)
    assert report.failed == (("plain_answer", ".generate_calls: expected 2, found 1"),)


def test_a_turn_that_never_ends_fails() -> None:
    line = spoiled("turn", "scenario", "llm", value=[[{"kind": "hang"}]])
    [(name, reason)] = run_vectors("turn", [line], TEXTS).failed
    assert name == "plain_answer"
    assert "deadlock" in reason


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is not a turn vector: "),
        ("[]", "line 2 is not a turn vector: "),
        ("{}", "line 2 is not a turn vector: it has no 'scenario'"),
        (
            spoiled("turn", "scenario", "llm", 0, 0, value={"kind": "song"}),
            "line 2 is not a turn vector: unknown stream item {'kind': 'song'}",
        ),
        (
            spoiled("turn", "scenario", "weather", value="fine"),
            "line 2 is not a turn vector: the scenario has the unknown key 'weather'",
        ),
        (
            spoiled("turn", "scenario", "cancel", value={"point": "soon"}),
            "line 2 is not a turn vector: unknown cancel point 'soon'",
        ),
        (
            spoiled("turn", "expected", "mood", value="good"),
            "line 2 is not a turn vector: what is expected has the unknown key 'mood'",
        ),
    ],
)
def test_a_line_of_another_form_is_an_error_with_its_number(line: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        run_vectors("turn", ["", line], TEXTS)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(("key", "value"), [("signal", "perhaps"), ("work", "rest")])
def test_an_unknown_race_is_an_error(key: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"line 1 is not a race vector: unknown {key} '{value}'"):
        run_vectors("race", [spoiled("race", key, value=value)])


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("input", "messages"), [{"role": "user", "content": [{"type": "smell"}]}], "block"),
        (("input", "messages"), ["hi"], "a message is not an object"),
        (("input", "mood"), 1, "the input has the unknown key 'mood'"),
    ],
)
def test_messages_of_another_form_are_an_error(
    path: tuple[str, ...], value: object, message: str
) -> None:
    with pytest.raises(UsageError, match=f"line 1 is not a trim vector: .*{message}"):
        run_vectors("trim", [spoiled("trim", *path, value=value)])


def test_a_threshold_that_is_no_number_is_spelled_null() -> None:
    line = spoiled("trim", "input", "threshold", value=None)
    assert run_vectors("trim", [line]).passed == 1


def test_an_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'trim'"):
        run_vectors("trims", [])


@pytest.mark.parametrize(
    ("expected", "found", "reason"),
    [
        ({"a": [1, 2]}, {"a": [1, 2]}, None),
        ({"a": 1}, {"a": 1.0}, None),
        ({"a": True}, {"a": 1}, ".a: expected true, found 1"),
        ({"a": 1}, {}, ".a is missing"),
        ({}, {"a": None}, ".a is there, and should not be: null"),
        ({"a": [1, 2]}, {"a": [1]}, ".a has 1 items, not 2; first: 2"),
        ([{"a": 1}], [{"a": {}}], "[0].a: expected 1, found {}"),
    ],
)
def test_a_difference_is_told_by_its_place(
    expected: object, found: object, reason: str | None
) -> None:
    assert difference(expected, found) == reason
