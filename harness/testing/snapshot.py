"""Pins what runs did in text files, a file for each test and view, by way of syrupy.

    def test_weather(harness_run, harness_snapshot):
        harness_snapshot(harness_run("scenarios/weather.yaml"))

compares with `__snapshots__/<file of the test>/test_weather[log].txt` and so on, one file for each
view of `harness.report.views` that has something to show in the run. A scenario file's folder has
its ending too, so x.yaml and x.json have one each. `pytest --snapshot-update` writes what is new;
a file that no test asks for any more fails the run and is named by syrupy.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation

from harness.core.errors import UsageError, unknown
from harness.core.located import shortened
from harness.core.trace import Trace
from harness.report.views import VIEWS, View
from harness.runner.result import Result

SHOWN_MAX = 40
"""How many lines of one view's difference a failure shows."""
NAME_MAX = 120
"""The longest file name made of a test's name, in characters, without view and ending."""

_UNSAFE = re.compile(r'[\x00-\x1f\x7f"%*/:<>?\\|]')


def file_name(test: str) -> str:
    """A test's name as a file name on any system; two names never become one.

    >>> file_name("test_it[a/b:c]")
    'test_it[a%2fb%3ac]'
    """
    safe = _UNSAFE.sub(lambda found: f"%{ord(found[0]):02x}", test)
    if len(safe) <= NAME_MAX:
        return safe
    digest = hashlib.sha256(safe.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{safe[: NAME_MAX - 9]}~{digest}"


class TextFiles(SingleFileSnapshotExtension):
    """Syrupy's extension for text: a readable difference, and file names that are safe anywhere."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        """The folder of a file's pins; only a Python file's has no ending."""
        folder, file = Path(super().dirname(test_location=test_location)), test_location.filepath
        return str(folder if file.endswith(".py") else folder.with_name(Path(file).name))

    @classmethod
    def discovery_dirname(cls, *, test_location: PyTestLocation) -> str:
        """The folder in which syrupy looks for pins that no test asks for any more."""
        return str(Path(cls.dirname(test_location=test_location)).parent)

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: str | int = 0) -> str:
        """The name of the file, without its ending."""
        suffix = f"[{index}]" if isinstance(index, str) else f".{index}" if index else ""
        return file_name(test_location.snapshot_name) + suffix

    @classmethod
    def matches_test_location(
        cls, *, test_location: PyTestLocation, snapshot_location: str
    ) -> bool:
        """Whether the file is one of this test's, whatever its name was made of."""
        path = Path(snapshot_location)
        if path.parent != Path(cls.dirname(test_location=test_location)):
            return False
        name = re.escape(file_name(test_location.snapshot_name))
        return bool(re.fullmatch(rf"{name}(?:\[[^\[\]]*\]|\.\d+)?", path.stem))

    def diff_lines(self, serialized_data: Any, snapshot_data: Any) -> Iterator[str]:
        """What is not as pinned, as a unified difference without its head."""
        found = difflib.unified_diff(
            str(snapshot_data).splitlines(), str(serialized_data).splitlines(), n=2, lineterm=""
        )
        yield from list(found)[2:]


class HarnessSnapshot:
    """Compares runs with what is pinned of them; the value of the fixture `harness_snapshot`."""

    def __init__(self, snapshot: object, root: Path) -> None:
        if not isinstance(snapshot, SnapshotAssertion):
            raise UsageError(
                f"the fixture snapshot is {snapshot!r}, not syrupy's, on which harness_snapshot "
                "builds; give the other one another name"
            )
        self._snapshot = snapshot.use_extension(TextFiles)
        self._root = root
        self._pinned: set[str] = set()
        self.used = False
        """Whether the test has called this."""

    def __call__(self, run: Result | Trace, *views: str, name: str = "") -> None:
        """Compare `run` in `views` (none: each that has something to show), all at once.

        The test fails with the difference in each view that is not as pinned. `name` tells several
        runs in one test apart. It fails at its own line where `run` is none, or a view is not
        known or is pinned already.
        """
        __tracebackhide__ = True
        self.used = True
        mistake = ""
        try:
            trace = _trace(run)
            differing = [
                found
                for view in _chosen(views)
                if (found := self._compare(view, trace, name, asked=bool(views)))
            ]
        except UsageError as error:
            mistake = str(error)
        if mistake:  # not while it is handled: it would be shown as the cause
            pytest.fail(mistake)
        if differing:
            names = ", ".join([view for view, _ in differing])
            blocks = [block for _, block in differing]
            close = "to accept what is new, run pytest with --snapshot-update"
            text = "\n".join([f"not as pinned: {names}", *blocks, close])
            pytest.fail(text, pytrace=False)

    def _compare(
        self, view: View, trace: Trace, name: str, *, asked: bool
    ) -> tuple[str, str] | None:
        """What is not as pinned in a view: its name, and what to say; None where all is."""
        index = f"{name}.{view.name}" if name else view.name
        if index in self._pinned:
            raise UsageError(f"{index} is pinned in this test already; give another name=...")
        self._pinned.add(index)
        location = self._snapshot.test_location
        file = Path(TextFiles.get_location(test_location=location, index=index))
        text, updating = view.text(trace), self._snapshot.update_snapshots
        if not text and (updating or not file.exists()):
            lines = ["this run has nothing to show here"]
            if not asked:
                return None  # an old file is one that syrupy names, or removes
        elif self._snapshot(name=index) == text:
            return None
        elif not file.exists():
            lines = ["not pinned yet"]
        else:
            lines = self._snapshot.get_assert_diff()
        if len(lines) > SHOWN_MAX:
            lines[SHOWN_MAX:] = [f"... and {len(lines) - SHOWN_MAX} more lines"]
        shown = file.relative_to(self._root) if file.is_relative_to(self._root) else file
        head = [f"--- {view.name}: {view.about}", f"--- {shown.as_posix()}"]
        return index, "\n".join([*head, *lines])


def _trace(run: object) -> Trace:
    match run:
        case Result(trace=trace) | (Trace() as trace):
            return trace
    shown = shortened(repr(run))
    raise UsageError(f"{shown} is not a run; expected what harness_run gives, or a Trace")


def _chosen(names: Sequence[str]) -> Sequence[View]:
    known = {view.name: view for view in VIEWS}
    for name in names:
        if name not in known:
            raise UsageError(unknown("view", name, known))
    return [known[name] for name in names] or VIEWS
