"""Files that a newcomer could write: every mistake is named, with its place and the way out.

`data/broken.txt` holds the exact text for each file in `data/broken/`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from harness.core import json_nodes, yaml_text
from harness.core.errors import FileError
from harness.core.located import Problems, plain
from harness.invariants import INVARIANTS
from harness.invariants.relations import RELATIONS
from harness.runner.files.load import load_text, schema
from tests.runner.files.loop_kinds import KINDS

DATA = Path(__file__).parent / "data"
FILES = sorted((DATA / "broken").iterdir())
VALIDATOR = jsonschema.Draft202012Validator(schema(KINDS))

NOT_IN_THE_FORM = {
    "allowed_twice.yaml",
    "also_names.yaml",
    "cancels_that_never_fire.yaml",
    "undeclared_tool.yaml",
}
"""Files whose mistakes are in what their parts say of each other, which no schema sees."""


def told(file: Path) -> str:
    with pytest.raises(FileError) as caught:
        load_text(file.read_bytes(), file.name, KINDS)
    return str(caught.value)


def test_every_mistake_is_told_as_pinned() -> None:
    found = "\n\n".join(told(file) for file in FILES) + "\n"
    known = [*[each.id for each in INVARIANTS], *[each.id for each in RELATIONS]]
    found = found.replace(", ".join(known), "(all invariants)")
    assert found == (DATA / "broken.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_mistake_has_its_place(file: Path) -> None:
    for line in told(file).splitlines():
        name, row, column, _message = line.split(":", 3)
        assert name == file.name
        assert int(row) >= 1
        assert int(column) >= 1


def parsed(file: Path) -> Any:
    """The file's value, or None where it is not even YAML or JSON."""
    problems = Problems(file.name)
    read = json_nodes.read if file.suffix == ".json" else yaml_text.read
    node = read(file.read_bytes(), problems)
    try:
        problems.check()
    except FileError:
        return None
    return plain(node) if node is not None else None


PARSED = {file.name: value for file in FILES if (value := parsed(file)) is not None}


@pytest.mark.parametrize("name", PARSED)
def test_the_schema_sees_what_is_wrong_with_the_form(name: str) -> None:
    assert VALIDATOR.is_valid(PARSED[name]) == (name in NOT_IN_THE_FORM)
