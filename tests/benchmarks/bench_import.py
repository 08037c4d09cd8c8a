"""What it costs to start: `import harness` and `harness --help`, above a bare Python.

Each is a fresh interpreter, isolated from the user's site; the median of many, taken in turn.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 21
REPOSITORY = Path(__file__).parents[2]
PROGRAMS = {
    "python": ["-c", "pass"],
    "import harness": ["-c", "import harness"],
    "import harness, first use": ["-c", "import harness; harness.Trace"],
    "harness --help": ["-m", "harness", "--help"],
}


def seconds(arguments: list[str]) -> float:
    """How long one fresh interpreter takes."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    taken: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _round in range(ROUNDS):
        for name, arguments in PROGRAMS.items():
            taken[name].append(seconds(arguments))
    bare = statistics.median(taken["python"])
    print(f"{'python':28} {1000 * bare:6.1f} ms")
    for name in list(PROGRAMS)[1:]:
        print(f"{name:28} {1000 * (statistics.median(taken[name]) - bare):+6.1f} ms")


if __name__ == "__main__":
    main()
