"""What it costs to start: the package, the command line, the plugin in an unrelated suite.

Each is a fresh process; shown is the median of the processor time of many, taken in turn, above
what it is held against. Processor time, since what else the machine does is no part of it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROUNDS = 21
REPOSITORY = Path(__file__).parents[2]
UNRELATED = "def test_unrelated():\n    assert True\n"
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "test_unrelated.py"]


class Program(NamedTuple):
    """What is started, what it is held against, and how many milliseconds more it may take."""

    name: str
    arguments: list[str]
    above: str = ""
    aim: float | None = None


PROGRAMS = (
    Program("python", ["-c", "pass"]),
    Program("pytest, no plugin", PYTEST, "python"),
    Program("import harness", ["-c", "import harness"], "python", 40),
    Program("the plugin, in an unrelated suite", [*PYTEST, "-p", "harness.testing.plugin"],
            "pytest, no plugin", 40),
    Program("harness --help", ["-m", "harness", "--help"], "python", 250),
    Program("import harness, first use", ["-c", "import harness; harness.Trace"], "python"),
    Program("a word completed", ["-m", "harness"], "python"),
)  # fmt: skip
VARIABLES = {
    "PYTHONPATH": str(REPOSITORY),
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}
COMPLETING = {
    "_HARNESS_COMPLETE": "complete_bash",
    "COMP_WORDS": "harness\nrun\n--loop\nt",
    "COMP_CWORD": "3",
}


def milliseconds(program: Program, folder: str) -> float:
    """The processor time of one fresh process."""
    more = COMPLETING if program.name == "a word completed" else {}
    process = subprocess.Popen(
        [sys.executable, *program.arguments],
        cwd=folder,
        env={**os.environ, **VARIABLES, **more},
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, program
    return 1000 * (used.ru_utime + used.ru_stime)


def main() -> None:
    """Measure and print."""
    taken: dict[str, list[float]] = {program.name: [] for program in PROGRAMS}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_unrelated.py").write_text(UNRELATED, encoding="utf-8")
        for _round in range(ROUNDS):
            for program in PROGRAMS:
                taken[program.name].append(milliseconds(program, folder))
    typical = {name: statistics.median(times) for name, times in taken.items()}
    for name, _, above, aim in PROGRAMS:
        cost = typical[name] - typical.get(above, 0)
        against = f" above {above}" if above else ""
        aimed = "" if aim is None else f" (aim {aim} ms{'' if cost <= aim else ': MISSED'})"
        print(f"{name:35} {cost:6.1f} ms{against}{aimed}")


if __name__ == "__main__":
    main()
