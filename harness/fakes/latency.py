"""How long a fake takes: what the scenario says, or one of four ways to have it otherwise.

Fixed spans let things happen in one order only, and hide what another order would break.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.choices import Choices

LATENCIES = 5
"""0 as the scenario says, 1 none, 2 as the slowest beside it, 3 the reverse order, 4 ten times."""

_LEAST = 1_000_000
"""What is multiplied where the scenario gives no time, in nanoseconds: ten times 0 is 0."""


def latency(choices: Choices, label: str, spans: Sequence[int], index: int) -> int:
    """Choose how long the fake at `index` takes, where those beside it and it take `spans`.

    >>> from harness.core.choices import choices_from
    >>> [latency(choices_from({("latency", "t"): (k, 5)}), "t", (10, 30), 0) for k in range(4)]
    [10, 0, 30, 30]
    """
    match choices.choose("latency", label, LATENCIES):
        case 0:
            return spans[index]
        case 1:
            return 0
        case 2:
            return max(spans)
        case 3:
            return reversed_rank(spans, index)
        case _:
            return 10 * (spans[index] or _LEAST)


def reversed_rank(spans: Sequence[int], index: int) -> int:
    """The span that the fake at `index` takes where the quickest changes with the slowest, and so
    on; of equal ones, the first is the quicker.

    >>> [reversed_rank((10, 30, 20, 10), index) for index in range(4)]
    [30, 10, 10, 20]
    """
    order = sorted(range(len(spans)), key=spans.__getitem__)
    return spans[order[len(order) - 1 - order.index(index)]]
