"""What is drawn as invalid breaks the rule that it is named after, and no other of its provider."""

from __future__ import annotations

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.testing.invalid import Invalid, invalid_histories, rules_of
from harness.wire import codec_for, refused_by
from harness.wire.strict import RULES, case_of

EVERY = [(provider, rule.id) for provider, rules in RULES.items() for rule in rules]
FEW = settings(max_examples=settings().max_examples // 20, phases=[Phase.generate])


def broken(invalid: Invalid) -> list[str]:
    """Every rule of its provider that a request breaks."""
    case = case_of(invalid.request, invalid.issued)
    rules = RULES[invalid.provider]
    return [rule.id for rule in rules if rule.applies(case) and rule.check(case) is not None]


@pytest.mark.parametrize(("provider", "rule"), EVERY, ids=lambda value: value)
def test_one_rule_is_broken_and_no_other(provider: str, rule: str) -> None:
    @FEW
    @given(invalid_histories(provider, rule=rule))
    def holds(invalid: Invalid) -> None:
        assert (invalid.provider, invalid.rule) == (provider, rule)
        assert broken(invalid) == [rule]
        refused = refused_by(provider, invalid.request, invalid.issued, pedantic=True)
        assert refused is not None
        assert refused.rule.id == rule

    holds()


@pytest.mark.nightly
@given(st.sampled_from(list(RULES)).flatmap(invalid_histories))
def test_any_of_them_breaks_what_it_is_named_after(invalid: Invalid) -> None:
    assert broken(invalid) == [invalid.rule]


@pytest.mark.parametrize("provider", RULES)
def test_every_rule_of_a_provider_is_there(provider: str) -> None:
    assert rules_of(provider) == tuple([rule.id for rule in RULES[provider]])


@settings(max_examples=settings().max_examples // 4)
@given(st.sampled_from(list(RULES)).flatmap(invalid_histories))
def test_what_is_drawn_is_a_request_of_its_protocol(invalid: Invalid) -> None:
    codec = codec_for(invalid.request)
    assert codec is not None
    assert codec.name == {"deepseek": "openai_chat"}.get(invalid.provider, invalid.provider)
    assert invalid.body == case_of(invalid.request).body or codec.name == "gemini"


SMALLEST = {
    ("openai_chat", "C3"): [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "bad_1",
                    "type": "function",
                    "function": {"name": "f", "arguments": "{}"},
                }
            ],
        },
        {"role": "user", "content": "Go on."},
        {"role": "user", "content": "Go on."},
    ],
    ("anthropic", "A1"): [
        {"role": "user", "content": [{"type": "text", "text": "Go on."}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "bad_1", "name": "f", "input": {}}],
        },
        {"role": "user", "content": [{"type": "text", "text": "Stop."}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Well."}]},
        {"role": "user", "content": [{"type": "text", "text": "Go on."}]},
    ],
    ("openai_responses", "R2"): [
        {"role": "user", "content": "Go on."},
        {"type": "function_call_output", "call_id": "bad_1", "output": "ok"},
        {"role": "user", "content": "Go on."},
    ],
}


FIRST, *OTHERS = SMALLEST
"""One of them is tried in every run of the tests."""


@pytest.mark.parametrize(
    ("provider", "rule"),
    [FIRST, *[pytest.param(*other, marks=pytest.mark.nightly) for other in OTHERS]],
)
def test_the_conversation_around_the_fault_shrinks_away(provider: str, rule: str) -> None:
    smallest = find(
        invalid_histories(provider, rule=rule),
        lambda _invalid: True,
        settings=settings(
            max_examples=10,
            database=None,
            derandomize=True,
            phases=[Phase.generate, Phase.shrink],
        ),
    )
    key = "input" if provider == "openai_responses" else "messages"
    assert smallest.body[key] == SMALLEST[provider, rule]


def test_names_that_are_not_known_are_told_with_what_there_is() -> None:
    with pytest.raises(UsageError, match="anthropic"):
        invalid_histories("anthropi")
    with pytest.raises(UsageError, match=r"provider anthropic: .*A1"):
        invalid_histories("anthropic", rule="A99")
    with pytest.raises(UsageError, match="provider"):
        rules_of("nobody")
