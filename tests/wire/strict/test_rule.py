"""A rule judges whom it is for, and the first breach is what the provider answers."""

from __future__ import annotations

from msgspec.structs import replace

from harness.core.messages import Message, Text, Thinking
from harness.wire.codec import Failure
from harness.wire.strict.rule import Breach, Case, Issued, Rule, refusal

EMPTY = Rule(
    "T1",
    "There is something.",
    "reported",
    lambda case: None if case.body.get("messages") else Breach("nothing there", "messages"),
    code="empty",
)
CASE = Case({"model": "m", "messages": []})


def test_a_breach_is_told_as_the_provider_tells_it() -> None:
    refused = refusal(CASE, [EMPTY])
    assert refused is not None
    assert refused.rule is EMPTY
    assert refused.failure == Failure(
        400, "nothing there", "invalid_request_error", "empty", "messages"
    )
    assert refusal(Case({"messages": [1]}), [EMPTY]) is None


def test_the_first_rule_that_is_broken_speaks() -> None:
    other = replace(EMPTY, id="T2", status=404)
    refused = refusal(CASE, [other, EMPTY])
    assert refused is not None
    assert (refused.rule.id, refused.failure.status) == ("T2", 404)


def test_what_nobody_has_checked_judges_only_who_asks_for_it() -> None:
    known = replace(EMPTY, evidence="known")
    assert known.pedantic
    assert refusal(CASE, [known]) is None
    assert refusal(CASE, [known], pedantic=True) is not None


def test_a_rule_may_be_for_some_models_or_versions() -> None:
    gated = replace(EMPTY, applies=lambda case: case.model == "m" and case.version == "2")
    assert refusal(CASE, [gated]) is None
    assert refusal(replace(CASE, version="2"), [gated]) is not None
    assert refusal(Case({"model": 5}, "2"), [gated]) is None


def test_what_rules_share_is_made_once() -> None:
    made: list[Case] = []

    def size(case: Case) -> int:
        made.append(case)
        return len(case.body)

    assert [CASE.once(size), CASE.once(size), replace(CASE, version="2").once(size)] == [2, 2, 2]
    assert len(made) == 2


def test_what_was_signed_is_remembered_with_what_came_beside_it() -> None:
    issued = Issued()
    first, second = Thinking("a", "s1"), Thinking("b", "s2")
    issued.remember(Message("assistant", (first, Text("x"), Thinking("unsigned"), second)))
    issued.remember(Message("assistant", (Text("x"),)))
    assert issued.given("s2") == issued.given("s1") == ((first, second),)
    assert issued.given("s3") == ()
    for _ in range(2):
        issued.remember(Message("assistant", (second,)))
    assert issued.given("s1") == ((first, second),)
    assert issued.given("s2") == ((first, second), (second,))
