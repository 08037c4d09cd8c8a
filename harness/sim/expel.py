"""Drives code out of its frames that catches whatever it is told to end with.

Such code goes on for ever: `while True: try: wait() except BaseException: pass`. An exception that
comes up between two of its lines, not out of a call, comes up outside of that `try`, in its handler
say, and leaves the loop. Python's trace function can raise one there, once; it is set anew when
what was raised has been caught and forgotten, so that loops around the loop are left too.
"""

from __future__ import annotations

import sys
from opcode import opmap
from types import FrameType
from typing import Any

HANDLING = opmap["PUSH_EXC_INFO"]
"""Notes what a `with` handles. Were something raised in its place, which has a line of its own,
Python would take what is handled for what was handled before, and keep it for ever.
"""


class Expelled(BaseException):  # pragma: no cover - coverage cannot see what takes its place
    """Raised between two lines of code that is to end."""

    def __init__(self, expulsion: Expulsion) -> None:
        super().__init__("the run is over")
        self._expulsion = expulsion

    def __del__(self) -> None:
        self._expulsion.arm()


class Expulsion:
    """From `begin` to `end`, every next line of some frames of this thread raises `Expelled`.

    Code that keeps each one that it catches, in a loop around the loop, is not driven out.
    """

    def __init__(self) -> None:
        self._frames: list[FrameType] = []
        self._before: Any = None

    def begin(self, inner: FrameType | None, outer: FrameType) -> None:
        """Expel the code of `inner` and of what called it, up to `outer`, which stays."""
        if not self._frames:  # pragma: no branch - see above
            self._before = sys.gettrace()
        self._frames = []
        while inner is not None and inner is not outer:
            self._frames.append(inner)
            inner = inner.f_back
        self.arm()

    def arm(self) -> None:
        """Have the next line raise; nothing before `begin` and after `end`."""
        if self._frames:  # pragma: no branch - see above
            for frame in self._frames:
                frame.f_trace = self._trace
            sys.settrace(self._trace)

    def end(self) -> None:
        """Expel no longer: the code has ended."""
        if self._frames:  # pragma: no cover - see above
            self._frames = []
            sys.settrace(self._before)

    def _trace(  # pragma: no cover - see above
        self, frame: FrameType, event: str, _argument: Any
    ) -> Any:
        handles = frame.f_code.co_code[frame.f_lasti] == HANDLING
        if event == "line" and not handles and frame in self._frames:
            raise Expelled(self)
        if event == "call" and frame.f_back in self._frames and frame.f_globals is not globals():
            raise Expelled(self)
        return self._trace
