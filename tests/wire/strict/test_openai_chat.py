"""Each thing that OpenAI refuses is refused as it does, and what is next to it is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.json_text import Json, loads
from harness.core.messages import Message, ModelRequest
from harness.core.pairing import breaches
from harness.testing.strategies import histories
from harness.wire.codec import Asked
from harness.wire.openai_chat.codec import OpenAIChat
from harness.wire.strict.openai_chat import DEEPSEEK, RULES
from harness.wire.strict.rule import Case, Rule, refusal

USER = {"role": "user", "content": "Hi"}
DONE = {"role": "assistant", "content": "Done."}


def called(*ids: str, name: str = "f", **more: Json) -> Json:
    calls = [
        {"id": each, "type": "function", "function": {"name": name, "arguments": "{"}}
        for each in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def result(call_id: str) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": ""}


def body(*messages: Json, **more: Json) -> Json:
    return {"model": "m", "messages": list(messages), **more}


def tool(**more: Json) -> Json:
    return {"type": "function", "function": {"name": "f", **more}}


LONG = "string_above_max_length"
TABLE: list[tuple[str, Json, Json, str | None, str]] = [
    # rule, what breaks just it, its repaired twin, code, param
    ("C1", body(), body(USER), "empty_array", "messages"),
    (
        "C7",
        body(USER, {**DONE, "tool_calls": []}),
        body(USER, {**DONE, "tool_calls": None}),
        "empty_array",
        "messages[1].tool_calls",
    ),
    (
        "C8",
        body(USER, {"role": "assistant", "content": None}),
        body(USER, {"role": "assistant", "content": ""}),
        None,
        "messages.[1].content",
    ),
    (
        "C8",
        body({"role": "user", "content": None, "refusal": "No"}),
        body({"role": "function", "name": "f", "content": None}),
        None,
        "messages.[0].content",
    ),
    (
        "C8",
        body(USER, called("a"), {"role": "tool", "tool_call_id": "a"}),
        body(USER, {"role": "assistant", "content": None, "refusal": "No"}),
        None,
        "messages.[2].content",
    ),
    (
        "C9",
        body(USER, called("a", "b" * 41), result("a"), result("b" * 41)),
        body(USER, called("a", "b" * 40), result("a"), result("b" * 40)),
        LONG,
        "messages[1].tool_calls[1].id",
    ),
    (
        "C9",
        body(called("b" * 65), result("b" * 65), model="o3"),
        body(called("b" * 64), result("b" * 64), model="openai/gpt-5.5"),
        LONG,
        "messages[0].tool_calls[0].id",
    ),
    (
        "C10",
        body(USER, tools=[tool(), tool(name="a.b")]),
        body(USER, tools=[tool(), tool(name="a_b-2")]),
        "invalid_value",
        "tools[1].function.name",
    ),
    (
        "C10",
        body(called("a", name=""), result("a")),
        body(called("a", name="f"), result("a")),
        "invalid_value",
        "messages[0].tool_calls[0].function.name",
    ),
    (
        "C10b",
        body(USER, tools=[{"type": "custom", "custom": {"name": "f" * 65}}]),
        body(USER, tools=[{"type": "custom", "custom": {"name": "f" * 64}}]),
        LONG,
        "tools[0].custom.name",
    ),
    (
        "C11",
        body(USER, tools=[tool(description="d" * 1025)]),
        body(USER, tools=[tool(description="d" * 1024)]),
        LONG,
        "tools[0].function.description",
    ),
    ("C12", body(USER, tool_choice="auto"), body(USER), None, "tool_choice"),
    (
        "C12",
        body(USER, parallel_tool_calls=False),
        body(USER, parallel_tool_calls=False, tools=[tool()]),
        None,
        "parallel_tool_calls",
    ),
    (
        "C13",
        body(USER, model="o3-mini", temperature=0.5),
        body(USER, model="gpt-4o", temperature=0.5),
        "unsupported_parameter",
        "temperature",
    ),
    (
        "C13",
        body(USER, model="gpt-5-mini", temperature=0),
        body(USER, model="gpt-5-chat-latest", temperature=0),
        "unsupported_parameter",
        "temperature",
    ),
    (
        "C13b",
        body(USER, model="o3", max_tokens=5, temperature=1),
        body(USER, model="o3", max_completion_tokens=5),
        "unsupported_parameter",
        "max_tokens",
    ),
    ("C2", body(USER, result("a")), body(USER, DONE), None, "messages.[1].role"),
    (
        "C2",
        body(called("a"), result("a"), USER, result("a")),
        body(called("a"), result("a"), USER, DONE),
        None,
        "messages.[3].role",
    ),
    (
        "C6",
        body(called("a"), result("a"), result("b")),
        body(called("a", "b"), result("b"), result("a")),
        None,
        "messages.[2].tool_call_id",
    ),
    (
        "C5",
        body(called("a"), result("a"), result("a")),
        body(called("a", "a"), result("a"), result("a")),
        None,
        "messages.[2].tool_call_id",
    ),
    (
        "C3",
        body(USER, called("a", "b", "c"), result("b"), USER),
        body(USER, called("a", "b", "c"), result("b"), result("c"), result("a"), USER),
        None,
        "messages.[3].role",
    ),
    (
        "C3",
        body(USER, called("a")),
        body(USER, called("a"), result("a")),
        None,
        "messages.[1].role",
    ),
]


@pytest.mark.parametrize(("rule", "broken", "repaired", "code", "param"), TABLE)
def test_what_breaks_a_rule_is_refused_and_its_repaired_twin_is_not(
    rule: str, broken: Json, repaired: Json, code: str | None, param: str
) -> None:
    for pedantic in (False, True):
        found = refusal(Case(broken), RULES, pedantic=pedantic)
        if not pedantic and next(each for each in RULES if each.id == rule).pedantic:
            assert found is None
            continue
        assert found is not None
        failure = found.failure
        assert (found.rule.id, failure.status, failure.code) == (rule, 400, code)
        assert (failure.kind, failure.param) == ("invalid_request_error", param)
        others = [each for each in RULES if each.id != rule]
        assert refusal(Case(broken), others, pedantic=pedantic) is None
    assert refusal(Case(repaired), RULES, pedantic=True) is None


def test_every_rule_is_tried() -> None:
    assert {rule for rule, *_ in TABLE} == {rule.id for rule in RULES}
    assert len({rule.id for rule in (*RULES, *DEEPSEEK)}) == len((*RULES, *DEEPSEEK))


def test_what_is_told_names_what_is_wrong() -> None:
    def told(found: Json) -> str:
        refused = refusal(Case(found), RULES, pedantic=True)
        assert refused is not None
        return refused.failure.message

    assert told(body(called("a", "b", "c"), result("b"))).endswith("messages: a, c")
    assert "'b' not found" in told(body(called("a"), result("a"), result("b")))
    twice = told(body(called("a"), result("a"), result("a")))
    assert twice == "Duplicate value for 'tool_call_id' of 'a', in messages[1] and messages[2]."
    assert "length 41" in told(body(called("b" * 41), result("b" * 41)))


THINKING = {"thinking": {"type": "enabled"}}


@pytest.mark.parametrize(
    ("rule", "broken", "repaired"),
    [
        ("D2", body(USER, result("a")), body(USER)),
        ("D3", body(called("a"), USER), body(called("a"), result("a"), USER)),
        (
            "D1",
            body(called("a"), result("a"), **THINKING),
            body(called("a", reasoning_content=""), result("a"), **THINKING),
        ),
        (
            "D1",
            body(USER, called("a"), result("a"), model="deepseek-reasoner"),
            body(DONE, USER, model="deepseek-reasoner"),
        ),
        (
            "D1",
            body(USER, DONE, **THINKING),
            body(USER, DONE, thinking={"type": "disabled"}),
        ),
    ],
)
def test_deepseek_has_words_of_its_own(rule: str, broken: Json, repaired: Json) -> None:
    found = refusal(Case(broken), DEEPSEEK)
    assert found is not None
    failure = found.failure
    assert (found.rule.id, failure.param) == (rule, None)
    assert (failure.kind, failure.code) == ("invalid_request_error", "invalid_request_error")
    assert refusal(Case(repaired), DEEPSEEK) is None


CODEC = OpenAIChat()


def sent(messages: tuple[Message, ...]) -> Case:
    """The request in which a client sends a conversation."""
    return Case(loads(CODEC.write(Asked(ModelRequest("m", "", messages))).body))


@given(histories(), st.data())
def test_calls_and_results_are_judged_as_the_neutral_rule_judges_them(
    history: tuple[Message, ...], data: st.DataObject
) -> None:
    rules = [rule for rule in RULES if rule.id != "C1"]
    assert refusal(sent(history), rules, pedantic=True) is None
    spoilt = list(history)
    for _ in range(data.draw(st.integers(1, 3)) if spoilt else 0):
        at = data.draw(st.integers(0, len(spoilt) - 1))
        spoilt.insert(data.draw(st.integers(0, len(spoilt) - 1)), spoilt[at])
        if data.draw(st.booleans()):
            del spoilt[at]
    refused = refusal(sent(tuple(spoilt)), rules, pedantic=True)
    assert (refused is None) == (breaches(spoilt) == ())


KEYS = ["role", "content", "tool_calls", "tool_call_id", "id", "function", "name", "thinking"]
ROLES = st.sampled_from(["assistant", "tool", "user"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | ROLES | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=8,
)


@given(JSON, st.sampled_from([RULES, DEEPSEEK]))
def test_whatever_is_asked_is_judged(value: Json, rules: tuple[Rule, ...]) -> None:
    message = {"role": "assistant", "tool_calls": value, "content": value}
    for given_body in (
        {},
        {"model": value, "messages": value, "tools": value, "thinking": value},
        {"model": "o1", "messages": [value, message], "tools": [value, {"function": value}]},
    ):
        refusal(Case(given_body), rules, pedantic=True)
