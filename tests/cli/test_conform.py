"""`harness conform`: a line a failure, the lenient ones apart, the count alone on the last line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

VECTORS = Path(__file__).parents[1] / "vectors"
GOOD = {"signal": "none", "work": "resolved", "expected": {"outcome": "ok", "value": 7}}
BAD = {**GOOD, "expected": {"outcome": "ok", "value": 8}, "name": "odd\x1b one"}
LOOSE = {**GOOD, "name": "loose", "tags": ["repo", "race"]}
LOOSE_BAD = {**BAD, "name": "loose too", "tags": ["ambiguous"]}


def write(folder: Path, *vectors: object) -> str:
    text = "".join([f"{json.dumps(vector)}\n" for vector in vectors])
    (folder / "race.jsonl").write_text(text, encoding="utf-8")
    return "race.jsonl"


def test_vectors_that_hold_are_counted(cli: Cli, folder: Path) -> None:
    done = cli("conform", "race", write(folder, GOOD, GOOD))
    assert done == (0, "2 passed, 0 failed\n", "")


def test_failures_and_lenient_ones_stand_apart_and_the_count_is_last(
    cli: Cli, folder: Path
) -> None:
    done = cli("conform", "race", write(folder, BAD, GOOD, LOOSE, LOOSE_BAD))
    first, *lenient, last = done.out.splitlines()
    assert done.code == 1
    assert first.startswith(r"FAIL odd\u001b one: ")
    assert lenient[0] == "lenient loose (repo, race): agrees"
    assert lenient[1].startswith("lenient loose too (ambiguous): differs, ")
    assert last == "1 passed, 1 failed"


def test_only_lenient_differences_are_no_failure(cli: Cli, folder: Path) -> None:
    assert cli("conform", "race", write(folder, LOOSE_BAD)).code == 0


def test_the_texts_are_those_that_the_vectors_were_recorded_with(cli: Cli, folder: Path) -> None:
    shutil.copy(VECTORS / "derive_vectors.jsonl", folder / "derive.jsonl")
    without = cli("conform", "derive", "derive.jsonl")
    shutil.copy(VECTORS / "texts.json", folder / "texts.json")
    with_texts = cli("conform", "derive", "derive.jsonl")
    assert without.code == 1
    assert without.out.splitlines()[-1] != with_texts.out.splitlines()[-1]
    assert (with_texts.code, with_texts.out) == (0, "200 passed, 0 failed\n")


@pytest.mark.parametrize(
    ("texts", "arguments"),
    [("texts.json", []), ("other.json", ["--texts", "other.json"])],
)
def test_texts_are_taken_from_beside_or_from_the_option(
    cli: Cli, folder: Path, texts: str, arguments: list[str]
) -> None:
    (folder / texts).write_text("[]", encoding="utf-8")
    done = cli("conform", "race", write(folder, GOOD), *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"{texts}: is not a JSON object of texts by name\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["conform", "race", "none.jsonl"], "none.jsonl cannot be read: No such file"),
        (["conform", "race", "."], ". cannot be read: Is a directory"),
        (["conform", "race", "latin.jsonl"], "latin.jsonl is not UTF-8 text, at byte 1"),
        (["conform", "race", "words.jsonl"], "words.jsonl: line 2 is not a race vector"),
        (["conform", "race", "race.jsonl", "--texts", "latin.jsonl"], "latin.jsonl is not UTF-8"),
        (["conform", "race", "race.jsonl", "--texts", "words.jsonl"], "words.jsonl: is not JSON"),
        (["conform", "rcae", "race.jsonl"], "'rcae' is not one of"),
    ],
)
def test_a_mistake_is_told(cli: Cli, folder: Path, arguments: list[str], message: str) -> None:
    write(folder, GOOD)
    (folder / "latin.jsonl").write_bytes(b"a\xff")
    (folder / "words.jsonl").write_text(f"{json.dumps(GOOD)}\nnot json\n", encoding="utf-8")
    done = cli(*arguments)
    assert done.code == 2
    assert message in done.err
    assert done.out == ""


def test_other_line_ends_inside_a_text_do_not_end_a_vector(cli: Cli, folder: Path) -> None:
    text = json.dumps({**GOOD, "name": "a\u2028b\x85c"}, ensure_ascii=False)
    (folder / "race.jsonl").write_text(text, encoding="utf-8")
    assert cli("conform", "race", "race.jsonl") == (0, "1 passed, 0 failed\n", "")
