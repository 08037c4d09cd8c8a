"""The rules that users add: what makes no sense is told where they are made."""

from __future__ import annotations

from re import escape

import pytest

from harness.core.errors import UsageError
from harness.transport.rules import Rules, no_expression


@pytest.mark.parametrize("name", ["patterns", "volatile"])
@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("emp-(", "missing ), unterminated subpattern at position 4"),
        ("a{99999999999999999999}", "the repetition number is too large"),
    ],
)
def test_what_is_no_regular_expression_is_told_when_rules_are_made(
    name: str, expression: str, why: str
) -> None:
    said = f"{name} of Rules has {expression!r}, which is no regular expression: {why}; expected"
    with pytest.raises(UsageError, match=escape(said)):
        Rules(**{name: ("fine", expression)})


def test_what_is_no_regular_expression_may_stand_in_other_rules() -> None:
    rules = Rules(values=("a(b",), names=("x[",), ignore=("messages[*].name",))
    assert rules.values == ("a(b",)
    assert no_expression("(" * 50_000)
