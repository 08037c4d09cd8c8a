"""What a turn's script can bring about, so that a cancel that can never fire is found in the file.

Only what is certain is refused: after a fault an agent may ask again, and be given the whole
reply then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from harness.fakes.line import fault_name
from harness.fakes.neutral import neutral
from harness.fakes.parts import cut
from harness.fakes.script import GenerateFails, Hang, LateThinking, Reply, StreamFails, Torn
from harness.fakes.wire_faults import Stall

DELTA_KINDS = ("text", "thinking")


class Reach(Struct, frozen=True):
    """How much may come of some replies, by name.

    `again` says that some reply may be asked for again, so that requests and deltas have no most.
    """

    replies: int
    calls: Counter[str]
    """Calls by tool, in the order of the script."""
    deltas: Counter[str]
    faults: Counter[str]
    again: bool

    def __add__(self, other: Reach) -> Reach:
        return Reach(
            self.replies + other.replies,
            self.calls + other.calls,
            self.deltas + other.deltas,
            self.faults + other.faults,
            self.again or other.again,
        )


def reach(replies: Sequence[Reply]) -> Reach:
    """What these replies can bring about."""
    calls: Counter[str] = Counter()
    deltas: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for reply in replies:
        if _delivers(reply):
            calls.update(call.tool for call in reply.calls)
        for kind in DELTA_KINDS:
            deltas[kind] += _deltas(reply, kind)
        if reply.fault is not None:
            always = reply.fault_times is None
            faults[fault_name(reply.fault)] += _UNBOUNDED if always else reply.fault_times or 0
    return Reach(len(replies), calls, deltas, faults, bool(faults))


_UNBOUNDED = 10**9


def times(counts: Counter[str], name: str | None) -> int:
    """How often `name` counts, or all names together."""
    return counts.total() if name is None else counts[name]


def too_far(reply: Reply) -> int | None:
    """The most parts after which the reply's fault can come, where it would come later."""
    most = _parts(reply)
    match neutral(reply.fault):
        case Torn(after=after) | Stall(after=after) if after > most:
            return most
        case StreamFails(after=int(after)) | Hang(after=int(after)) if after > most + 1:
            return most + 1
        case _:
            return None


def _deltas(reply: Reply, kind: str) -> int:
    """How many deltas of a kind a reply has, whatever its fault leaves of them."""
    text = reply.say if kind == "text" else reply.think
    late = kind == "thinking" and isinstance(reply.fault, LateThinking)
    return len(cut(text, 0, reply.chunk)) + late


def _parts(reply: Reply) -> int:
    """How many parts a reply has before its end signal."""
    texts = cut(reply.think, 0, reply.chunk), cut(reply.say, 0, reply.chunk)
    return sum(map(len, texts)) + (reply.usage is not None)


def _delivers(reply: Reply) -> bool:
    """Whether the reply's end signal, and so its calls, can ever come."""
    if reply.fault_times is not None:
        return True
    match neutral(reply.fault):
        case GenerateFails() | Hang(after=None) | Torn():
            return False
        case StreamFails(after=int(after)) | Hang(after=int(after)):
            return after > _parts(reply)
        case _:
            return True
