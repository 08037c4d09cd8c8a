"""What Gemini refuses of a history, by the numbers of dossier section 5.4.

Not refused, whatever is said of it: contents of one role that follow each other, since the vendor's
own library sends them. They are one turn.
"""

from __future__ import annotations

from functools import partial

from harness.wire.strict import gemini_checks as checks
from harness.wire.strict.rule import Rule

_rule = partial(Rule, kind="INVALID_ARGUMENT")

RULES: tuple[Rule, ...] = (
    _rule("G7", "There are contents, and they have parts.", "known", checks.nothing_said),
    _rule("G4", "Roles are user and model.", "reported", checks.wrong_role),
    _rule("G2", "A conversation does not begin with calls.", "reported", checks.call_first),
    _rule("G3", "Responses follow calls.", "reported", checks.response_without_call),
    _rule("G1", "Every call has one response in the next turn.", "reported", checks.wrong_count),
    _rule(
        "G5",
        "The first call of each step since the user spoke last is signed.",
        "reported",
        checks.unsigned,
        applies=checks.signed,
    ),
    _rule(
        "G6",
        "Signatures come back as they were given.",
        "reported",
        checks.foreign_signature,
        applies=checks.signed,
    ),
    # Reported two years ago; whether it still holds is not clear.
    _rule("G8", "The model's words do not stand last.", "known", checks.ends_with_model),
)
"""The rules, in the order in which they speak."""
