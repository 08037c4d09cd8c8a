"""What a turn's script can bring about, so that a cancel that can never fire is found in the file.

Only what is certain is refused: an agent may ask again after a fault, stop early, or retry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from harness.fakes.script import (
    Fault,
    GenerateFails,
    Hang,
    LateThinking,
    Reply,
    StreamFails,
    Torn,
)

DEFAULT_CHUNK = 16
DELTA_KINDS = ("text", "thinking")


def deltas(reply: Reply, kind: str) -> int:
    """How many deltas of a kind a reply has, whatever its fault leaves of them."""
    text = {"text": reply.say, "thinking": reply.think}[kind]
    late = kind == "thinking" and isinstance(reply.fault, LateThinking)
    return -(-len(text) // (reply.chunk or DEFAULT_CHUNK)) + late


def parts(reply: Reply) -> int:
    """How many parts a reply has before its end signal."""
    return deltas(reply, "thinking") + deltas(reply, "text") + (reply.usage is not None)


def delivers(reply: Reply) -> bool:
    """Whether the reply's end signal, and so its calls, can come in spite of its fault."""
    match reply.fault:
        case GenerateFails() | Hang(after=None):
            return False
        case StreamFails(after=int(after)) | Torn(after=int(after)) | Hang(after=int(after)):
            return after > deltas(reply, "thinking") + deltas(reply, "text")
        case _:
            return True


def fault_name(fault: Fault) -> str:
    """The fault's name, as files and traces spell it."""
    return str(fault.__struct_config__.tag)


def too_far(reply: Reply) -> int | None:
    """The most parts after which the reply's fault can come, where it would come later."""
    most = parts(reply)
    match reply.fault:
        case Torn(after=after) if after > most:
            return most
        case StreamFails(after=int(after)) | Hang(after=int(after)) if after > most + 1:
            return most + 1
        case _:
            return None


class Reach(Struct, frozen=True):
    """How much may come of some replies: how many there are, and counts by name."""

    replies: int
    calls: Counter[str]
    """Calls that are delivered, by tool, in the order of the script."""
    deltas: Counter[str]
    faults: Counter[str]

    def __add__(self, other: Reach) -> Reach:
        return Reach(
            self.replies + other.replies,
            self.calls + other.calls,
            self.deltas + other.deltas,
            self.faults + other.faults,
        )


def reach(replies: Sequence[Reply]) -> Reach:
    """What these replies can bring about."""
    calls: Counter[str] = Counter()
    found: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for reply in replies:
        if delivers(reply):
            calls.update(call.tool for call in reply.calls)
        for kind in DELTA_KINDS:
            found[kind] += deltas(reply, kind)
        if reply.fault is not None:
            faults[fault_name(reply.fault)] += 1
    return Reach(len(replies), calls, found, faults)


def times(counts: Counter[str], name: str | None) -> int:
    """How often `name` counts, or all names together."""
    return counts.total() if name is None else counts[name]
