"""The places where a run can be cancelled, and how they are written."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from harness.core.errors import UsageError, unknown

Mode: TypeAlias = Literal["start", "early", "late"]
"""``start``: before the task's first step, so that its body is never entered. ``early``: right
after a suspension. ``late``: when what the suspension waits for is done, before the task goes on,
so that a careless task loses it."""

MODES: tuple[Mode, ...] = get_args(Mode)

_SPELLED = re.compile(r"([^#\s]+)#(\d+)/(\w+)")


class Point(Struct, frozen=True, order=True):
    """A place where a run can be cancelled: the `k`-th suspension of the task `path`, and how.

    `k` counts from 1 in each task; it is 0 for the mode ``start`` and for no other.
    """

    path: str
    k: int
    mode: Mode

    @classmethod
    def parse(cls, text: str) -> Point:
        """Read what `str` writes, such as ``1.2#3/late``; UsageError says what is wrong.

        >>> Point.parse("1.2#3/late")
        Point(path='1.2', k=3, mode='late')
        """
        found = _SPELLED.fullmatch(text.strip())
        if found is None:
            raise UsageError(
                f"{text!r} is not a point; write <task path>#<suspension>/<mode>, "
                "such as 1.2#3/late, 1#1/early or 1.2#0/start"
            )
        path, k, name = found[1], int(found[2]), found[3]
        mode = next((m for m in MODES if m == name), None)
        if mode is None:
            raise UsageError(f"{text!r} is not a point: {unknown('mode', name, MODES)}")
        if (k == 0) != (mode == "start"):
            raise UsageError(
                f"{text!r} is not a point: suspensions count from 1, and 0 goes with the mode "
                f"start only; write {path}#0/start or {path}#{max(k, 1)}/early"
            )
        return cls(path, k, mode)

    def __str__(self) -> str:
        return f"{self.path}#{self.k}/{self.mode}"
