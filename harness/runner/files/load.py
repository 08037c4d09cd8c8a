"""Scenario files: finding them, reading them, saying all that is wrong with one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

from harness.core import files, json_nodes, yaml_text
from harness.core.errors import FileError, NotAScenario, Problem, UsageError
from harness.core.json_text import Json
from harness.core.located import (
    Limits,
    ListNode,
    MapNode,
    Node,
    Problems,
    Scalar,
    describe,
    shortened,
)
from harness.fakes.script import Reply
from harness.loops.kind import LoopKind
from harness.runner.files.check import Checker
from harness.runner.files.scenario_format import SCENARIO, scenario_schema
from harness.runner.files.script_format import REPLIES
from harness.runner.files.shapes import Unreadable
from harness.runner.scenario import Scenario, Turn

ENDINGS = (".yaml", ".yml", ".json")
_CODE = re.compile(r"(\w+(?:\.\w+)*)([:.])(\w+)")
"""What is written for code: its module, and a name in it."""
TEXT = "<scenario>"
"""The file name that a scenario has in messages where its text was given."""
_LIMITS = Limits(characters=8_000_000, values=400_000)


def load(path: str | os.PathLike[str], loops: Sequence[LoopKind] | None = None) -> Scenario:
    """Read a scenario file, for the given loops (None: the reference loops).

    UsageError where there is no such file; FileError, with all its problems, where it is not a
    scenario, and of that NotAScenario where it does not even look like one.
    """
    path = Path(path)
    return load_text(_bytes(path), path.as_posix(), loops)


def load_text(text: str | bytes, source: str, loops: Sequence[LoopKind] | None = None) -> Scenario:
    """Read a scenario from the text of the file `source`, whose ending says whether it is JSON.

    FileError, with all its problems, where it is not a scenario.
    """
    root, problems = _root(text, source)
    return _scenario(root, source, _known(loops), problems)


def read_script(given: Scenario | Sequence[Reply] | str | os.PathLike[str]) -> Scenario:
    """What a provider is to say: a scenario as `read` takes it, or plain replies, in Python or as a
    file or text that is a list of them. Those are given in their order, one a request.
    """
    if isinstance(given, Scenario):
        return given
    if not isinstance(given, str | os.PathLike):
        return _plain(_replies(given), TEXT)
    if isinstance(given, str) and "\n" in given:
        root, problems = _root(given, TEXT)
    else:
        path = Path(given)
        root, problems = _root(_bytes(path), path.as_posix())
    if isinstance(root, ListNode):
        with suppress(Unreadable):
            replies = REPLIES.read(root, "the script", problems)
            problems.check()
            return _plain(replies, problems.file)
        raise problems.error()
    return _scenario(root, problems.file, _known(None), problems)


def _replies(given: Any) -> tuple[Reply, ...]:
    if isinstance(given, Sequence) and all(isinstance(one, Reply) for one in given):
        return tuple(given)
    raise UsageError(
        f"{shortened(repr(given))} is no script; expected a scenario, replies, a text of several "
        "lines, or a path"
    )


def _plain(replies: tuple[Reply, ...], source: str) -> Scenario:
    return Scenario(source, source=source, turns=(Turn(None, replies),), order="calls")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(_missing(path)) from None
    except OSError as error:
        problem = Problem(f"cannot be read: {error.strerror or error}")
        raise FileError(path.as_posix(), [problem]) from None


def _root(text: str | bytes, source: str) -> tuple[Node, Problems]:
    problems = Problems(source)
    read = json_nodes.read if source.endswith(".json") else yaml_text.read
    root = read(text, problems, _LIMITS)
    if root is None:
        raise problems.error()
    return root, problems


def read(given: Scenario | str | os.PathLike[str]) -> Scenario:
    """A scenario as callers give it: itself, the path of its file, or a text of several lines that
    is one. Errors as in `load`.
    """
    if isinstance(given, Scenario):
        return given
    if isinstance(given, str) and "\n" in given:
        return load_text(given, TEXT)
    return load(given)


def _scenario(root: Node, source: str, loops: Sequence[LoopKind], problems: Problems) -> Scenario:
    if not isinstance(root, MapNode):
        empty = isinstance(root, Scalar) and root.value is None
        what = "the file is empty" if empty else f"found {describe(root)}"
        problems.add(
            root,
            f"{what}; a scenario is a mapping with the keys about and turns, "
            "such as {about: It answers., turns: [{user: Hello, model: [{say: Hi.}]}]}",
        )
        raise problems.error()
    found = SCENARIO.read(root, "scenario", problems)
    Checker(found, loops).check()
    if not root.entries.keys() & {"about", "turns"}:
        raise NotAScenario(source, problems.error().problems)
    problems.check()
    name = source.removesuffix(PurePath(source).suffix)
    return Scenario(name=name, source=source, **found.values)


def find(paths: Iterable[Path]) -> list[Path]:
    """The scenario files that `paths` name: files as they are, folders with all below them, sorted.

    Hidden folders, installed packages and virtual environments are passed over.

    UsageError where a path is not there, is no scenario file, or is a folder without any.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            below = sorted(_below(path), key=PurePath.as_posix)
            if not below:
                raise UsageError(
                    f"no scenarios below {path.as_posix()}: expected files with the ending "
                    f"{' or '.join(ENDINGS)}"
                )
            found.update(dict.fromkeys(below))
        elif not path.exists():
            raise UsageError(_missing(path))
        elif path.suffix not in ENDINGS:
            raise UsageError(
                f"{path.as_posix()} is not a scenario file: expected the ending "
                f"{' or '.join(ENDINGS)}"
            )
        else:
            found[path] = None
    return list(found)


def schema(loops: Sequence[LoopKind] | None = None) -> dict[str, Json]:
    """The JSON Schema (draft 2020-12) of scenario files, for editors.

    It holds the form of a file; what its parts say of each other is checked by `load` only.
    """
    return scenario_schema(_known(loops))


def _known(loops: Sequence[LoopKind] | None) -> Sequence[LoopKind]:
    if loops is not None:
        return loops
    from harness.loops import LOOPS

    return LOOPS


def _below(folder: Path) -> Iterable[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _foreign(Path(parent, name))]
        for name in names:
            if name.endswith(ENDINGS) and not name.startswith("."):
                yield Path(parent, name)


def _foreign(folder: Path) -> bool:
    """Whether a folder holds what others made: tools' own files, packages, environments."""
    name = folder.name
    return (
        name.startswith(".")
        or name in ("__pycache__", "node_modules", "site-packages")
        or (folder / "pyvenv.cfg").exists()
    )


def _missing(path: Path) -> str:
    """Say that a path is not there, and which one was probably meant."""
    says = f"{files.missing(path)}; expected a scenario file or a folder of them"
    code = _CODE.fullmatch(str(path))
    if code is None or not (
        code[2] == ":" or Path(*code[1].split(".")).with_suffix(".py").exists()
    ):
        return says
    return f"{says}; a function is explored from Python: sweep({code[3]}), explore({code[3]})"
