"""What asks the process to end: whether the code that is run does, or who sits in front of it."""

from __future__ import annotations

from opcode import opmap

_RAISE = opmap["RAISE_VARARGS"]


def asked_by(error: KeyboardInterrupt | SystemExit) -> bool:
    """Whether code asked for it, and not Ctrl-C, which comes between two instructions of it."""
    trace = error.__traceback__
    if isinstance(error, SystemExit) or trace is None:
        return True
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE
