"""Imports point down, libraries have a home, plug-ins stand in their tuple, files stay small.

The rules are data at the top; the checker reads source text and never imports it, so that each rule
is also tried on a small tree with one planted fault.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]

RANKS = {
    "core": 0,
    "sim": 1,
    "loops": 1,
    "fakes": 1,
    "wire": 1,
    "invariants": 1,
    "exploration": 1,
    "transport": 2,
    "report": 2,
    "runner": 3,
    "testing": 4,
    "cli": 5,
}
"""A file imports its own folder and strictly lower ranks."""

LAZY_ROOTS = {"__init__.py", "__main__.py"}
"""Files at the top of the package: they hand out what the folders hold, at the time of use."""

HOMES = {
    "msgspec": tuple(RANKS),
    "json": ("core",),
    "yaml": ("core",),
    "httpx": ("transport",),
    "httpx2": ("transport",),
    "respx": ("transport",),
    "vcr": ("transport",),
    "rich": ("report", "cli"),
    "hypothesis": ("testing",),
    "pytest": ("testing",),
    "_pytest": (),
    "syrupy": ("testing",),
    "typer": ("cli",),
}
"""The folders in which a library may be named; what is not here is not a dependency."""

TEXT_OF_MSGSPEC = {"decode", "Decoder", "encode", "Encoder", "encode_lines", "format"}
"""msgspec's readers and writers of JSON and YAML: in `core` only, since text has one home."""

BANNED = {
    "core": {"asyncio", "datetime", "random", "socket", "subprocess", "time"},
    "exploration": {"asyncio", "random", "time"},
    "invariants": {"asyncio", "datetime", "random", "socket", "subprocess", "time"},
    "loops": {"random", "time"},
    "wire": {"asyncio", "datetime", "random", "socket", "subprocess", "time"},
}
"""Standard modules that a folder must do without, so that it stays a matter of data alone."""

TUPLES = {
    "wire": "CODECS",
    "loops": "LOOPS",
    "invariants": "INVARIANTS",
    "cli": "COMMANDS",
}
"""Folders of plug-ins, and the tuple in their `__init__.py` that names them all."""

LINES_MAX = 600


def check(root: Path) -> list[str]:
    """Every breach of the rules in the package at `root`, one line each, in a stable order."""
    problems: list[str] = []
    users: dict[str, set[str]] = defaultdict(set)
    for file in sorted(root.rglob("*.py")):
        place = file.relative_to(root)
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
        lines = text.count("\n")
        if lines > LINES_MAX:
            problems.append(f"{place}: {lines} lines; split it, {LINES_MAX} is the most")
        if len(place.parts) == 1:
            if place.name not in LAZY_ROOTS:
                problems.append(f"{place}: stands in no folder; move it to one of {list(RANKS)}")
            continue
        if place.parts[0] not in RANKS:
            problems.append(f"{place}: the folder {place.parts[0]} has no rank")
            continue
        own = f"{place.parts[0]}/{Path(place.parts[1]).stem}"
        for line, module, names in imports(tree):
            fault = import_fault(place, module, names)
            if fault:
                problems.append(f"{place}:{line}: {fault}")
            for part in parts_named(module, names):
                if part != own and place.name != "__init__.py":
                    users[part].add(str(place))
        if place.parts[0] != "core":
            problems += [f"{place}:{line}: {fault}" for line, fault in text_faults(tree)]
    for folder, name in TUPLES.items():
        problems += tuple_faults(root / folder, name, users)
    return problems


def imports(tree: ast.Module) -> Iterator[tuple[int, str, list[str]]]:
    """Every import of a file, wherever it stands: line, module, the names taken from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, []
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield node.lineno, module, [alias.name for alias in node.names]


def parts_named(module: str, names: list[str]) -> Iterator[str]:
    """The parts of the package that an import names, as folder/part."""
    for name in names or [""]:
        path = f"{module}.{name}".split(".")
        if path[0] == "harness" and len(path) > 2:
            yield f"{path[1]}/{path[2]}"


def import_fault(place: Path, module: str, names: list[str]) -> str | None:
    """What is wrong with the file `place` importing from `module`; None where nothing is."""
    if module == "harness" and names == ["__version__"]:
        return None  # the one thing that stands there itself
    if module == "harness" and names and set(names) <= set(RANKS):
        module = f"harness.{names[0]}"
    folder = place.parts[0]
    top, *rest = module.split(".")
    if not top:
        return f"imports {module} by a relative path; write it whole"
    if top == "harness":
        if not rest:
            return "imports the package's root; name the module that holds it"
        if rest[0] not in RANKS:
            return f"imports {module}, whose folder has no rank"
        if rest[0] == folder:
            return sibling_fault(place, rest)
        if RANKS[rest[0]] >= RANKS[folder]:
            return f"imports {module}, which is not of a lower rank than {folder}"
        return None
    if top in BANNED.get(folder, ()):
        return f"imports {top}, which {folder} must do without"
    if top in HOMES:
        if folder not in HOMES[top]:
            return f"imports {top}, at home in {', '.join(HOMES[top]) or 'no folder'}"
        return None
    if top not in sys.stdlib_module_names:
        return f"imports {top}, which is not a dependency"
    return None


def sibling_fault(place: Path, module: list[str]) -> str | None:
    """Two folders inside one folder do not know each other: what they share stands above both."""
    if len(place.parts) < 3 or len(module) < 3 or module[1] == place.parts[1]:
        return None
    return f"imports harness.{'.'.join(module)} from the folder beside its own; lift it one up"


def text_faults(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Uses of msgspec's own readers and writers of text."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(
                attr=function,
                value=ast.Attribute(attr="json" | "yaml" as form, value=ast.Name("msgspec")),
            ) if function in TEXT_OF_MSGSPEC:
                yield node.lineno, f"msgspec.{form}.{function}: use core/{form}_text.py"
            case ast.ImportFrom(module="msgspec.json" | "msgspec.yaml" as module):
                yield node.lineno, f"{module}: use core/{module[8:]}_text.py"
            case ast.ImportFrom(module="msgspec", names=names):
                for alias in names:
                    if alias.name in ("json", "yaml"):
                        yield node.lineno, f"msgspec.{alias.name}: use core/{alias.name}_text.py"


def tuple_faults(folder: Path, name: str, users: dict[str, set[str]]) -> Iterator[str]:
    """Files and folders beside a tuple that it does not name and that no other file imports.

    `users` holds, for each part of the package, the files that import it.
    """
    start = folder / "__init__.py"
    parts = [
        part
        for part in (sorted(folder.iterdir()) if start.exists() else ())
        if (any(part.glob("*.py")) if part.is_dir() else part.suffix == ".py" and part != start)
    ]
    if not parts:
        return
    listed = tuple_modules(ast.parse(start.read_text(encoding="utf-8")), folder.name, name)
    if listed is None:
        yield f"{folder.name}/__init__.py: has no tuple {name}"
        return
    for part in parts:
        place = f"{folder.name}/{part.stem}"
        if part.stem not in listed and not users.get(place):
            yield f"{place}: stands not in {name}, and no other file imports it"


def tuple_modules(tree: ast.Module, folder: str, name: str) -> set[str] | None:
    """The parts of `folder` from which the names in the tuple `name` are imported, and those that
    the functions beside it use.
    """
    homes: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                path = [*node.module.split("."), alias.name]
                if path[:2] == ["harness", folder]:
                    homes[alias.asname or alias.name] = path[2]
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    used = {n.id for each in functions for n in ast.walk(each) if isinstance(n, ast.Name)}
    for node in tree.body:
        target = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign):
            target = node.targets[0]
        if isinstance(target, ast.Name) and target.id == name and node.value is not None:
            names = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
            return {homes[n] for n in names | used if n in homes}
    return None


def test_the_package_keeps_the_rules() -> None:
    assert check(REPOSITORY / "harness") == []


def test_every_dependency_has_a_home() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.split(r"[<>=!~\[ ]", spec)[0] for spec in project["dependencies"]}
    assert {{"PyYAML": "yaml", "vcrpy": "vcr"}.get(name, name) for name in names} <= set(HOMES)


def test_what_the_tests_import_is_declared() -> None:
    data = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    project, groups = data["project"], data["dependency-groups"]
    extra = project["optional-dependencies"]["dev"]
    agents = [spec for name in groups if name.startswith("agents-") for spec in groups[name]]
    specs = [*project["dependencies"], *extra, *groups["docs"], *agents]
    names = {re.split(r"[<>=!~\[ ]", spec)[0].lower().replace("-", "_") for spec in specs}
    imported_as = {
        "google_genai": "google",
        "griffelib": "griffe",
        "openai_agents": "agents",
        "pydantic_ai_slim": "pydantic_ai",
        "pyyaml": "yaml",
        "vcrpy": "vcr",
    }
    declared = {imported_as.get(name, name) for name in names} | {"docs", "harness", "tests"}
    for file in sorted((REPOSITORY / "tests").rglob("*.py")):
        if "benchmarks" not in file.parts:  # they skip a rival that is not there
            for line, module, _ in imports(ast.parse(file.read_text(encoding="utf-8"))):
                top = module.split(".")[0]
                assert top in declared or top in sys.stdlib_module_names, f"{file}:{line}: {top}"


def test_every_rule_is_about_a_folder_that_has_a_rank() -> None:
    named = set(TUPLES) | set(BANNED) | {folder for home in HOMES.values() for folder in home}
    assert named <= set(RANKS)


def plant(root: Path, files: dict[str, str]) -> list[str]:
    """Check a tree of `files`, a path and its source each."""
    for path, source in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source, encoding="utf-8")
    return check(root)


def test_a_sound_tree_has_no_fault(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from harness.core.messages import user\n",
        "core/messages.py": "import math\nimport msgspec\nmsgspec.json.encode(1)\n",
        "sim/kernel.py": "import asyncio\nfrom harness.core.messages import user\n",
        "loops/__init__.py": "from harness.loops.turn.agent import KIND\nLOOPS = (KIND,)\n",
        "loops/kind.py": "import msgspec\nmsgspec.json.schema(int)\n",
        "loops/turn/agent.py": "from harness.loops.kind import K",
        "loops/turn/step.py": "from harness.loops.turn import agent",
        "cli/run.py": "import typer\nfrom harness.runner.files.load import load\n",
        "cli/version.py": "def f():\n    from harness import __version__\n",
        "cli/__init__.py": "from harness.cli import run, version\nCOMMANDS = (run, version)\n",
    }
    assert plant(tmp_path, files) == []


@pytest.mark.parametrize(
    ("path", "source", "report"),
    [
        (
            "loops/simple.py",
            "from harness.sim.kernel import Kernel",
            "loops/simple.py:1: imports harness.sim.kernel, "
            "which is not of a lower rank than loops",
        ),
        (
            "wire/openai.py",
            "def f():\n    import harness.runner.run",
            "wire/openai.py:2: imports harness.runner.run, which is not of a lower rank than wire",
        ),
        (
            "sim/kernel.py",
            "if TYPE_CHECKING:\n    from harness import Trace",
            "sim/kernel.py:2: imports the package's root; name the module that holds it",
        ),
        (
            "sim/kernel.py",
            "from harness import runner",
            "sim/kernel.py:1: imports harness.runner, which is not of a lower rank than sim",
        ),
        (
            "sim/kernel.py",
            "from .clock import Clock",
            "sim/kernel.py:1: imports .clock by a relative path; write it whole",
        ),
        (
            "sim/kernel.py",
            "import harness.helpers",
            "sim/kernel.py:1: imports harness.helpers, whose folder has no rank",
        ),
        (
            "loops/turn/agent.py",
            "from harness.loops.fsm.tokens import count",
            "loops/turn/agent.py:1: imports harness.loops.fsm.tokens from the folder beside its "
            "own; lift it one up",
        ),
        (
            "core/trace.py",
            "import asyncio",
            "core/trace.py:1: imports asyncio, which core must do without",
        ),
        (
            "loops/simple.py",
            "import rich.table",
            "loops/simple.py:1: imports rich, at home in report, cli",
        ),
        ("report/text.py", "import yaml", "report/text.py:1: imports yaml, at home in core"),
        (
            "testing/plugin.py",
            "import _pytest",
            "testing/plugin.py:1: imports _pytest, at home in no folder",
        ),
        ("runner/run.py", "import httpx", "runner/run.py:1: imports httpx, at home in transport"),
        (
            "sim/kernel.py",
            "import numpy.random",
            "sim/kernel.py:1: imports numpy, which is not a dependency",
        ),
        (
            "runner/load.py",
            "import msgspec\nmsgspec.json.decode(b'')",
            "runner/load.py:2: msgspec.json.decode: use core/json_text.py",
        ),
        (
            "runner/load.py",
            "from msgspec import yaml",
            "runner/load.py:1: msgspec.yaml: use core/yaml_text.py",
        ),
        (
            "runner/load.py",
            "from msgspec.json import decode",
            "runner/load.py:1: msgspec.json: use core/json_text.py",
        ),
        ("helpers.py", "", f"helpers.py: stands in no folder; move it to one of {list(RANKS)}"),
        ("utils/text.py", "", "utils/text.py: the folder utils has no rank"),
        ("core/long.py", "\n" * 601, "core/long.py: 601 lines; split it, 600 is the most"),
    ],
)
def test_a_planted_fault_is_reported(tmp_path: Path, path: str, source: str, report: str) -> None:
    assert plant(tmp_path, {path: source}) == [report]


@pytest.mark.parametrize(
    ("files", "reports"),
    [
        (
            {"__init__.py": "INVARIANTS = ()\n", "pairing.py": ""},
            ["invariants/pairing: stands not in INVARIANTS, and no other file imports it"],
        ),
        (
            {
                "__init__.py": "from harness.invariants.pairing import P\nINVARIANTS: T = (P,)\n",
                "pairing.py": "from harness.invariants.fold import Invariant",
                "fold.py": "",
                "order.py": "from harness.invariants.fold import Invariant",
            },
            ["invariants/order: stands not in INVARIANTS, and no other file imports it"],
        ),
        (
            {
                "__init__.py": "from harness.invariants.pairing import Pair\nINVARIANTS = (1,)\n",
                "pairing.py": "",
            },
            ["invariants/pairing: stands not in INVARIANTS, and no other file imports it"],
        ),
        (
            {"__init__.py": "", "pairing.py": ""},
            ["invariants/__init__.py: has no tuple INVARIANTS"],
        ),
    ],
)
def test_a_forgotten_plug_in_is_reported(
    tmp_path: Path, files: dict[str, str], reports: list[str]
) -> None:
    planted = {f"invariants/{name}": source for name, source in files.items()}
    assert plant(tmp_path, planted) == reports


def test_a_whole_folder_is_a_plug_in_too(tmp_path: Path) -> None:
    files = {
        "loops/__init__.py": "from harness.loops.turn.agent import KIND as TURN\nLOOPS = (TURN,)\n",
        "loops/kind.py": "",
        "loops/turn/agent.py": "from harness.loops.kind import LoopKind",
        "loops/fsm/agent.py": "from harness.loops.kind import LoopKind",
    }
    assert plant(tmp_path, files) == [
        "loops/fsm: stands not in LOOPS, and no other file imports it"
    ]
