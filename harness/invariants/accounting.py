"""What the loop says that it has used."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from harness.core.events import ReplyEnded, RequestSent, UsageCounted
from harness.core.messages import Usage
from harness.invariants.invariant import Facts, Fold
from harness.invariants.reader import EventType, Here, on

NOTHING = Usage()


class _Claim(Struct):
    """A count of the loop, and what replies had reported by then; `open` had not ended, so that
    what they had reported is learned later.
    """

    index: int
    turn: int
    total: Usage
    main: Usage
    others: Usage
    open: set[str]


class UsageTotals(Fold):
    """What the loop has counted is the sum of what replies reported, cancelled and failed ones
    included.

    That nothing was reported and is counted as 0 is a soft finding: unknown is not zero. Requests
    beside the main conversation may be counted or not. Counts that a loop does not keep are 0;
    prompt and completion tokens must agree.
    """

    id = "USAGE"
    needs: ClassVar[tuple[EventType, ...]] = (UsageCounted,)

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.reported = False
        self.main = NOTHING
        self.others = NOTHING
        self.beside: set[str] = set()
        """Replies of other conversations."""
        self.open: set[str] = set()
        self.claims: list[_Claim] = []
        """Counts that were made while a reply had not ended."""

    @on(RequestSent)
    def requested(self, event: RequestSent) -> None:
        """A reply may report from here on."""
        self.open.add(event.reply)
        if event.conversation != "main":
            self.beside.add(event.reply)

    @on(UsageCounted)
    def counted(self, event: UsageCounted) -> None:
        """Hold the loop's count against what replies reported."""
        here, total = self.here, event.total
        claim = _Claim(here.index, here.turn, total, self.main, self.others, set(self.open))
        if claim.open:
            self.claims.append(claim)
        else:
            self.judge(claim)

    @on(ReplyEnded)
    def replied(self, event: ReplyEnded) -> None:
        """Add a reply's report, also to claims that were made while it was being read."""
        reply, usage = event.reply, event.usage or NOTHING
        self.open.discard(reply)
        beside = reply in self.beside
        if beside:
            self.others += usage
        else:
            self.main += usage
        for claim in self.claims:
            if reply in claim.open:
                claim.open.discard(reply)
                if beside:
                    claim.others += usage
                else:
                    claim.main += usage
        for claim in [claim for claim in self.claims if not claim.open]:
            self.claims.remove(claim)
            self.judge(claim)
        self.reported = self.reported or event.usage is not None

    def finish(self) -> None:
        """Judge the counts that were made while a reply was being read that never ended."""
        for claim in self.claims:
            self.judge(claim)

    def judge(self, claim: _Claim) -> None:
        """Judge one count."""
        if not self.reported and claim.total == NOTHING:
            self.report("what no reply reported is counted as 0", claim.index, claim.turn, "soft")
        elif not (
            _agree(claim.total, claim.main) or _agree(claim.total, claim.main + claim.others)
        ):
            self.report(
                f"{_spell(claim.total)} were counted, and the replies reported "
                f"{_spell(claim.main)}"
                + ("" if claim.others == NOTHING else " in the conversation"),
                claim.index,
                claim.turn,
            )


def _agree(counted: Usage, reported: Usage) -> bool:
    if (counted.prompt_tokens, counted.completion_tokens) != (
        reported.prompt_tokens,
        reported.completion_tokens,
    ):
        return False
    # A sum that the script leaves out, a provider adds up.
    total = max(reported.total_tokens, reported.prompt_tokens + reported.completion_tokens)
    return counted.total_tokens in (0, reported.total_tokens, total) and all(
        kept in (0, given)
        for kept, given in (
            (counted.cache_read, reported.cache_read),
            (counted.reasoning_tokens, reported.reasoning_tokens),
        )
    )


def _spell(usage: Usage) -> str:
    counts = ((name, getattr(usage, name)) for name in Usage.__struct_fields__)
    return ", ".join([f"{count} {name}" for name, count in counts if count]) or "0 tokens"
