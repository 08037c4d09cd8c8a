"""The public face: every name is there, is explained, is typed, and costs nothing until used."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import harness

REPOSITORY = Path(__file__).parents[1]
HEAVY = {"asyncio", "hypothesis", "msgspec", "pytest", "respx", "rich", "typer", "vcr", "yaml"}
LISTED = list(harness.__all__)


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter holds after running `code`."""
    program = f"import json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    return set(json.loads(done.stdout))


def docstring_of(home: str, name: str) -> str | None:
    """What a module's source says of a name: in its body, or as a string right below it."""
    path = importlib.import_module(home).__file__
    assert path is not None
    body = ast.parse(Path(path).read_text(encoding="utf-8")).body
    for node, below in zip(body, [*body[1:], None], strict=True):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef() if node.name == name:
                if said := ast.get_docstring(node):  # else it may be an overload
                    return said
            case ast.AnnAssign(target=ast.Name(id=target)) if target == name:
                match below:
                    case ast.Expr(ast.Constant(str() as text)):
                        return text
    return None


@pytest.mark.parametrize("name", LISTED)
def test_an_exported_name_is_there_and_explained(name: str) -> None:
    home = harness._HOMES[name]
    assert getattr(harness, name) is getattr(importlib.import_module(home), name)
    assert docstring_of(home, name), f"{home}.{name} has no docstring"


def test_the_names_are_sorted_and_the_three_lists_agree() -> None:
    tree = ast.parse(Path(harness.__file__).read_text(encoding="utf-8"))
    typed = {
        alias.asname: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if node.module and node.module.startswith("harness.")
    }
    assert sorted(LISTED) == LISTED
    assert typed == harness._HOMES
    assert set(LISTED) == set(typed)
    assert set(LISTED) <= set(dir(harness))


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import harness; harness.Tracce"],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
    )
    assert done.returncode == 1
    assert done.stderr.endswith(
        "AttributeError: module 'harness' has no attribute 'Tracce'. Did you mean: 'Trace'?\n"
    )


def test_importing_the_package_loads_nothing_heavy() -> None:
    bare = loaded_by("")
    new = loaded_by("import harness") - bare
    assert not new & HEAVY
    assert {name for name in new if name.startswith("harness")} == {"harness"}


def test_the_check_for_heavy_modules_sees_one() -> None:
    assert "msgspec" in loaded_by("import harness; harness.Trace")


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert harness.__version__ == project["version"]
    headings = re.findall(
        r"^## \[(.+?)\]", (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert headings[0] == "Unreleased"
    released = project["version"].split(".dev")[0]
    if released == project["version"]:
        assert headings[1] == released
    else:
        assert released not in headings
