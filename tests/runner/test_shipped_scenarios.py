"""The scenarios that come with the package load, fit the schema, and say what they are for."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from harness.core import yaml_text
from harness.core.located import Problems, plain
from harness.runner.files.load import find, load, load_text, schema
from harness.runner.files.spell import spell, spell_text
from tests.runner.scenarios import bare

FOLDER = Path(__file__).parents[2] / "scenarios"
FILES = find([FOLDER])
VALIDATOR = jsonschema.Draft202012Validator(schema())


def name(path: Path) -> str:
    return path.relative_to(FOLDER).as_posix()


@pytest.mark.parametrize("path", FILES, ids=name)
def test_it_says_what_it_protects_against_and_what_must_come_out(path: Path) -> None:
    scenario = load(path)
    assert scenario.about.endswith(".")
    assert scenario.loops
    assert scenario.turns[0].expect is not None
    assert scenario.turns[0].expect.outcome is not None


@pytest.mark.parametrize("path", FILES, ids=name)
def test_it_fits_the_schema_and_is_spelled_back(path: Path) -> None:
    problems = Problems(name(path))
    node = yaml_text.read(path.read_bytes(), problems)
    problems.check()
    assert node is not None
    VALIDATOR.validate(plain(node))
    scenario = bare(load(path))
    VALIDATOR.validate(spell(scenario))
    assert bare(load_text(spell_text(scenario), "spelled.yaml")) == scenario


def test_no_two_say_the_same() -> None:
    abouts = [load(path).about for path in FILES]
    assert len(set(abouts)) == len(abouts) >= 24
