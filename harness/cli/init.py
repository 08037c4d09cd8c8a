"""`harness init`: an example that passes, to be turned into tests of an agent of one's own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from harness.core import shell
from harness.core.errors import UsageError


class Starter(NamedTuple):
    """A file that is written, by its path, and what it is for."""

    path: str
    purpose: str

    @property
    def text(self) -> str:
        """What stands in it."""
        from importlib.resources import files

        resource = files("harness.cli") / "starter" / f"{Path(self.path).name}.txt"
        return resource.read_text(encoding="utf-8")


CI = Starter(".github/workflows/agent-loops.yml", "runs the tests on GitHub")
STARTERS = (
    Starter("example_agent.py", "an agent; put your own in its place"),
    Starter("scenarios/weather.yaml", "what user, model and tools do"),
    Starter("tests/test_example_agent.py", "runs and cancels it in each scenario"),
    CI,
)


def init(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="Where; it is made if it is not there.", show_default=False
        ),
    ] = Path(),
) -> None:
    """Write an example agent, a scenario, a test and a CI file.

    The tests pass as they are. A file that is there already is left as it is. Without FOLDER all
    is written into this one.

    \b
    Examples:
      harness init
      harness init my_project
    """
    from importlib.util import find_spec

    _make(folder)
    root = _repository_above(folder)
    wanted = [each for each in STARTERS if root is None or each != CI]
    for starter in wanted:  # before anything is written
        _make((folder / starter.path).parent)
    for starter in wanted:
        if _written(folder / starter.path, starter.text):
            _say(f"wrote {starter.path}: {starter.purpose}")
        else:
            _say(f"kept {starter.path}, which was there already")
    if root is not None:
        _say(f"left out {CI.path}, which GitHub reads in {root.as_posix()} only")
    target = folder.as_posix()
    steps = [] if folder == Path() else [["cd", f"./{target}" if target[0] == "-" else target]]
    if find_spec("pytest") is None:
        steps.append(["pip", "install", "agent-loop-harness[test]"])
    _say(f"next: {' && '.join(map(shell.join, [*steps, ['pytest']]))}")


def _make(folder: Path) -> None:
    """Make a folder, and those that it is in, where they are not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError(
            f"{folder.as_posix()} is a file; a folder of this name is needed"
        ) from None
    except OSError as error:
        raise UsageError(f"{folder.as_posix()} cannot be made: {error.strerror}") from error


def _written(file: Path, text: str) -> bool:
    """Write a file; False where there is one of its name."""
    try:
        with file.open("x", encoding="utf-8", newline="\n") as made:
            made.write(text)
    except FileExistsError:
        return False
    except OSError as error:
        raise UsageError(f"{file.as_posix()} cannot be written: {error.strerror}") from error
    return True


def _repository_above(folder: Path) -> Path | None:
    """The root of the repository that a folder is in, unless it is that folder itself."""
    here = folder.absolute()
    if (here / ".git").exists():
        return None
    return next((above for above in here.parents if (above / ".git").exists()), None)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
