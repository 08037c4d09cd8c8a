"""What a provider refuses of a history: rules as data, each with the evidence for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias, TypeVar

from msgspec import Struct

from harness.core.json_text import Json
from harness.core.messages import Message, Thinking
from harness.wire.codec import Failure
from harness.wire.responses import Responses

T = TypeVar("T")

Evidence: TypeAlias = Literal["run", "source", "recorded", "documented", "reported", "known"]
"""Why a rule is believed: proven by running a provider's own library, read in its source, seen in
recorded traffic, in the vendor's documents, quoted in reports of errors, or common knowledge that
nobody has checked: such a rule judges only who asks for pedantry.
"""


class Issued:
    """The opaque values that a provider has signed its replies with, as it remembers them; and its
    `responses`, where it is one that keeps these.
    """

    def __init__(self) -> None:
        self.responses = Responses()
        self._given: dict[str, dict[tuple[Thinking, ...], None]] = {}

    def remember(self, message: Message) -> None:
        """Keep what is signed in a reply."""
        signed = tuple(
            [block for block in message.content if isinstance(block, Thinking) and block.signature]
        )
        for block in signed:
            self._given.setdefault(block.signature or "", {})[signed] = None

    def given(self, signature: str) -> Sequence[tuple[Thinking, ...]]:
        """All that is signed in a reply which this came with, in order: once for each such reply
        that is different, as scripts may sign alike; none for a stranger.
        """
        return tuple(self._given.get(signature, ()))


class Case(Struct, frozen=True, dict=True):
    """What a rule judges: the body of a request, which is an object, and what it depends on.

    `version` is the protocol's version that the client names ("" for none), `betas` are the trials
    that it takes part in. `issued` is what the provider remembers; None where it keeps no memory,
    and then nothing signed is judged.
    """

    body: dict[str, Json]
    version: str = ""
    issued: Issued | None = None
    betas: frozenset[str] = frozenset()

    @property
    def model(self) -> str:
        """The model that is asked for; "" where that is no text."""
        model = self.body.get("model")
        return model if isinstance(model, str) else ""

    def once(self, make: Callable[[Case], T]) -> T:
        """What a function makes of the request, made once for all rules."""
        kept, name = vars(self), f"{make.__module__}.{make.__qualname__}"
        if name not in kept:
            kept[name] = make(self)
        made: T = kept[name]
        return made


class Breach(Struct, frozen=True):
    """Where a request breaks a rule, in the provider's words; `param` is its name of the place."""

    message: str
    param: str | None = None


Check = Callable[[Case], Breach | None]


class Rule(Struct, frozen=True):
    """One thing that a provider refuses.

    `says` is what it wants, in one sentence. `applies` says for which models and versions; `check`
    gives the first breach. Both are pure. A breach is answered with `status`, `kind` (the
    provider's type of an error) and `code`.
    """

    id: str
    says: str
    evidence: Evidence
    check: Check
    code: str | None = None
    kind: str = "invalid_request_error"
    status: int = 400
    applies: Callable[[Case], bool] = lambda _case: True

    @property
    def pedantic(self) -> bool:
        """Whether it judges only who asks for it."""
        return self.evidence == "known"


class Refused(Struct, frozen=True):
    """A breach, the rule that it breaks, and what the provider answers."""

    rule: Rule
    failure: Failure


def refusal(case: Case, rules: Iterable[Rule], *, pedantic: bool = False) -> Refused | None:
    """The first breach, in the order of the rules; None where the provider accepts the request."""
    for rule in rules:
        if (pedantic or not rule.pedantic) and rule.applies(case):
            breach = rule.check(case)
            if breach is not None:
                told = Failure(rule.status, breach.message, rule.kind, rule.code, breach.param)
                return Refused(rule, told)
    return None
