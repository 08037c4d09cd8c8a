"""Runs what a Markdown document shows, so that a reader can trust it.

Every fenced block says by its first line what it is:

    ```console              commands after `$ `, each followed by exactly what it prints
    ```console exit=1       the same, where the last command ends with this exit code
    ```console in=demo      the same, in this folder
    ```console not-run      shown only
    ```python               a program; a ```text block right after it is what it prints
    ```python in=demo       a program that runs in this folder
    ```python not-run       shown only
    ```yaml file=case.yaml  written to this file for the blocks below (any language)

All blocks of a document share one folder, which starts with the repository's scenarios and a copy
of its cassettes, and with the files of other documents where a line says so:

    <!-- files of ../tutorial.md -->

A line `...` in printed output stands for any lines, and `…` in a line for any text. Other blocks
are prose.

Run as a program (`python -m tests.doc_blocks README.md`), it writes what commands print now into
the documents, to be read before it is committed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
_FENCE = re.compile(r"^(`{3,}|~{3,})\s*(.*)$")
_FILES_OF = re.compile(r"^<!-- files of (\S+) -->$", re.MULTILINE)
_TIMEOUT = 120


@dataclass
class Block:
    """One fenced block; `line` is the document's line of its opening fence, from 1."""

    line: int
    language: str
    options: dict[str, str]
    lines: list[str] = field(default_factory=list)


class DocError(AssertionError):
    """A document does not do what it says; begins with `file:line`."""


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a document."""
    now: Block | None = None
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        found = _FENCE.match(line)
        if now is None:
            if found:
                fence = found[1]
                language, *words = found[2].split() or [""]
                options = dict(word.partition("=")[::2] for word in words)
                now = Block(number, language, options)
        elif found and found[1].startswith(fence) and not found[2]:
            yield now
            now = None
        else:
            now.lines.append(line)
    if now is not None:
        raise DocError(f"line {now.line}: the block is never closed")


def commands(block: Block) -> Iterator[tuple[int, str, list[str]]]:
    """The commands of a console block: line, command, printed lines. `> ` goes on a command."""
    command: list[str] = []
    printed: list[str] = []
    start = 0
    for number, line in enumerate(block.lines, block.line + 1):
        if line.startswith("$ "):
            if command:
                yield start, "\n".join(command), printed
            command, printed, start = [line[2:]], [], number
        elif line.startswith("> ") and command and not printed:
            command.append(line[2:])
        elif not command:
            raise DocError(f"line {number}: output without a command; begin one with `$ `")
        else:
            printed.append(line)
    if command:
        yield start, "\n".join(command), printed


@dataclass
class Step:
    """One program that ran: the document's line, what the document says it prints and where that
    begins (an index of lines), what it did print.
    """

    line: int
    said_at: int
    said: list[str]
    printed: list[str]

    def agrees(self) -> bool:
        """Whether it printed what the document says, but for what `...` and `…` stand for."""
        said = [
            "(?:.*\n)*" if line == "..." else re.escape(line).replace("…", ".*") + "\n"
            for line in self.said
        ]
        return bool(re.fullmatch("".join(said), "".join([f"{line}\n" for line in self.printed])))


def run_document(document: Path) -> int:
    """Run every block of a document and give the number of programs and commands that ran.

    DocError tells the first that printed something else or ended with another exit code.
    """
    ran = 0
    for step in steps(document):
        ran += 1
        if not step.agrees():
            shown = ["--- the document says", *step.said, "--- it prints", *step.printed]
            place = f"{document.name}:{step.line}"
            raise DocError("\n".join([f"{place}: what is printed is not what is said", *shown]))
    return ran


def rewrite(document: Path) -> None:
    """Put what is printed now into the document, in place of what it says."""
    changes = [step for step in steps(document) if not step.agrees()]
    lines = document.read_text(encoding="utf-8").splitlines()
    for step in reversed(changes):
        lines[step.said_at : step.said_at + len(step.said)] = step.printed
    document.write_text("\n".join(lines) + "\n", encoding="utf-8")


def steps(document: Path) -> Iterator[Step]:
    """Run a document's blocks in order, in a fresh folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "scenarios").symlink_to(REPOSITORY / "scenarios")
        shutil.copytree(REPOSITORY / "cassettes", folder / "cassettes")
        text = document.read_text(encoding="utf-8")
        for other in _FILES_OF.findall(text):
            for block in blocks((document.parent / other).read_text(encoding="utf-8")):
                if "file" in block.options:
                    _write(block, folder)
        for block, below in pairwise([*blocks(text), None]):
            if block is None or "not-run" in block.options:
                continue
            if "file" in block.options:
                _write(block, folder)
            elif block.language == "console":
                yield from _console(document, block, folder)
            elif block.language == "python":
                yield _program(document, block, below, folder)


def _write(block: Block, folder: Path) -> None:
    file = folder / block.options["file"]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(block.lines) + "\n", encoding="utf-8")


def _console(document: Path, block: Block, folder: Path) -> Iterator[Step]:
    every = list(commands(block))
    for number, (line, command, said) in enumerate(every, 1):
        code = int(block.options.get("exit", "0")) if number == len(every) else 0
        there = folder / block.options.get("in", ".")
        printed = _run(document, line, ["bash", "-c", command], there, code)
        yield Step(line, line + command.count("\n"), said, printed)


def _program(document: Path, block: Block, below: Block | None, folder: Path) -> Step:
    there = folder / block.options.get("in", ".")
    printed = _run(document, block.line, [sys.executable, "-c", "\n".join(block.lines)], there, 0)
    closed = block.line + len(block.lines) + 1
    if below is not None and below.language == "text" and below.line <= closed + 2:
        return Step(block.line, below.line, below.lines, printed)
    return Step(block.line, closed, [], printed)


def _run(document: Path, line: int, program: list[str], folder: Path, code: int) -> list[str]:
    """Run a program and give the lines it prints, on both streams as a terminal shows them."""
    env = {key: os.environ[key] for key in ("HOME", "LANG", "PATH", "TMPDIR") if key in os.environ}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', '')}"
    env |= {"NO_COLOR": "1", "PYTHONWARNINGS": "error", "PYTHONUTF8": "1"}
    done = subprocess.run(
        program,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    if done.returncode != code:
        raise DocError(
            f"{document.name}:{line}: exit code {done.returncode}, expected {code}\n{done.stdout}"
        )
    return done.stdout.replace(str(folder), "<folder>").splitlines()


if __name__ == "__main__":
    for path in sys.argv[1:]:
        rewrite(Path(path))
