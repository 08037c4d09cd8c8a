"""The reference of scenario files names every key, event, fault and setting that there is."""

from pathlib import Path

import pytest

from harness.loops import LOOPS
from harness.runner.files.load import schema
from harness.runner.files.turn_format import EVENT_KINDS

TEXT = (Path(__file__).parents[1] / "docs" / "reference" / "scenarios.md").read_text(
    encoding="utf-8"
)


def names() -> set[str]:
    form = schema()
    found = set(form["properties"]) | set(EVENT_KINDS)
    for part, each in form["$defs"].items():
        if part != "expect_under":
            found |= set(each.get("properties", {}))
    faults = form["$defs"]["reply"]["properties"]["fault"]["oneOf"]
    found |= set(faults[0]["enum"])
    return found | {setting for kind in LOOPS for setting in kind.settings}


@pytest.mark.parametrize("name", sorted(names()))
def test_the_reference_names_it(name: str) -> None:
    assert f"`{name}`" in TEXT or f"`{name}:" in TEXT or f"{name}:" in TEXT or f"{{{name}" in TEXT
