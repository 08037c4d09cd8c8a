"""Each rule refuses what breaks it and nothing else does, and accepts the same put right."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from msgspec.structs import replace

from harness.core.messages import Message, ModelRequest, Text, Thinking, ToolCall
from harness.testing.strategies import histories
from harness.wire.anthropic.codec import Anthropic
from harness.wire.anthropic_words import NEWER, OLDER, redacted
from harness.wire.codec import Asked
from harness.wire.reading import json_of
from harness.wire.strict.anthropic import RULES
from harness.wire.strict.rule import Case, Issued, refusal

OLD, MIDDLE, NEW = "claude-sonnet-4-5-20250929", "claude-opus-4-6", "claude-opus-5-5"
ENABLED = {"type": "enabled", "budget_tokens": 1024}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def said(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def text(words: str = "Hi", **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def use(call_id: str = "t1") -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}}


def result(call_id: str = "t1") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}


def thought(words: str = "why", signature: str = "s1") -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": signature}


def serve(call_id: str = "srv1") -> dict[str, Any]:
    return {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {}}


def served(call_id: str = "srv1") -> dict[str, Any]:
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": []}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object"}, **more}


HIDDEN = {"type": "redacted_thinking", "data": "d1"}
GO = user(text("Go"))
SYSTEM = {"role": "system", "content": "Be brief."}


def case(*messages: Any, model: str = MIDDLE, version: str = OLDER, **more: Any) -> Case:
    """A request; what was issued is known where it is asked for."""
    issued = more.pop("issued", None)
    betas = frozenset(more.pop("betas", ()))
    body = {"model": model, "max_tokens": 2048, "messages": list(messages)} | more
    return Case(body, version, issued, betas)


def memory() -> Issued:
    issued = Issued()
    first = (Thinking("why", "s1"), Text("Hi"), Thinking("how", "s2"), ToolCall("t1", "f", {}))
    issued.remember(Message("assistant", first))
    issued.remember(Message("assistant", (redacted("d1"), Text("Hi"))))
    issued.remember(Message("assistant", (Thinking("other", "s1"), Text("Hi"))))
    return issued


KEPT = {"issued": memory()}
LONG = "word " * 900_000

BROKEN: list[tuple[str, str, Case, Case]] = [
    ("A10", "at least one message", case(), case(GO)),
    ("A10", "at least one message", case(messages="none"), case(GO)),
    ("A9", "messages.0: all", case(user(), GO), case(GO)),
    ("A9", "messages.0: all", case({"role": "user", "content": ""}, GO), case(GO)),
    ("A9", "messages.1: all", case(GO, said(), GO), case(GO, said(text()), GO)),
    ("A8", "be non-empty", case(user(text(""))), case(GO)),
    ("A8", "non-whitespace", case(GO, said(text(" \n")), GO), case(GO, said(text()), GO)),
    (
        "A23",
        "messages.1.content.0: `tool_result` blocks can only be in `user`",
        case(GO, said(result(), text()), GO),
        case(GO, said(text()), GO),
    ),
    (
        "A23",
        "messages.0.content.1: `tool_use` blocks can only be in `assistant`",
        case(user(text(), use())),
        case(GO),
    ),
    (
        "A7",
        "messages.1.content.0.tool_use.id: String",
        case(GO, said(use("functions.f:0")), user(result("functions.f:0"))),
        case(GO, said(use("functions_f-0")), user(result("functions_f-0"))),
    ),
    (
        "A6",
        "messages.3.content.0: `tool_use` ids must be unique",
        case(GO, said(use()), user(result()), said(use()), user(result())),
        case(GO, said(use()), user(result()), said(use("t2")), user(result("t2"))),
    ),
    (
        "A3",
        "without `tool_result` blocks immediately after: t1, t2.",
        case(GO, said(use(), use("t2"), text()), user(result(), result("t2"))),
        case(GO, said(text(), use(), use("t2")), user(result(), result("t2"))),
    ),
    (
        "A3",
        "immediately after: t1.",
        case(GO, said(use()), said(text()), user(result())),
        case(GO, said(text()), said(use()), user(result())),
    ),
    (
        "A1",
        "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: t2.",
        case(GO, said(use(), use("t2")), user(result())),
        case(GO, said(use(), use("t2")), user(result()), user(result("t2"))),
    ),
    (
        "A1",
        "immediately after: t1, t2.",
        case(GO, said(use(), use("t2")), user(text("Stop."))),
        case(GO, said(use(), use("t2")), user(result("t2"), result(), text("Stop."))),
    ),
    (
        "A2",
        "immediately after: t1.",
        case(GO, said(use()), user(text()), user(result())),
        case(GO, said(use()), user(result()), user(text())),
    ),
    (
        "A4",
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t1. Each",
        case(user(result())),
        case(said(use()), user(result())),
    ),
    (
        "A4",
        "blocks: t1.",
        case(GO, said(use()), user(result()), said(text()), user(result())),
        case(GO, said(use()), user(result()), said(text()), user(text())),
    ),
    (
        "A4",
        "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks",
        case(GO, said(served(), text()), GO),
        case(GO, said(serve(), served(), text()), GO),
    ),
    (
        "A5",
        "messages.2.content.1: each tool_use must have a single result",
        case(GO, said(use()), user(result(), result())),
        case(GO, said(use()), user(result())),
    ),
    (
        "A15",
        "messages.1: The final block in an assistant message cannot be `thinking`.",
        case(GO, said(text(), thought()), GO),
        case(GO, said(thought()), said(text()), GO),
    ),
    (
        "A15",
        "cannot be `redacted_thinking`",
        case(GO, said(HIDDEN), GO),
        case(GO, said(HIDDEN, text()), GO),
    ),
    (
        "A14",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        case(GO, said(thought("why", "forged"), text()), GO, **KEPT),
        case(GO, said(thought(), text()), GO, **KEPT),
    ),
    (
        "A14",
        "Invalid `signature`",
        case(GO, said(thought("Why"), text()), GO, said(text()), GO, **KEPT),
        case(GO, said(thought("other"), text()), GO, said(text()), GO, **KEPT),
    ),
    (
        "A14",
        "Invalid `signature`",
        case(GO, said(thought("why", ""), text()), GO, **KEPT),
        case(GO, said(text()), GO, **KEPT),
    ),
    (
        "A14",
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant",
        case(GO, said(thought(""), text()), GO, **KEPT),
        case(GO, said(thought(), text(), thought("how", "s2"), text()), GO, **KEPT),
    ),
    (
        "A14",
        "messages.1.content.0: `thinking`",
        case(GO, said(thought("how", "s2"), thought(), text()), GO, **KEPT),
        case(GO, said(thought(), thought("how", "s2"), HIDDEN, text()), GO, **KEPT),
    ),
    (
        "A14",
        "Invalid `signature`",
        case(GO, said(HIDDEN | {"data": "D1"}, text()), GO, **KEPT),
        case(GO, said(HIDDEN, text()), GO, **KEPT),
    ),
    (
        "A17",
        "not supported for this model",
        case(GO, model=NEW, thinking=ENABLED),
        case(GO, model=NEW, thinking={"type": "adaptive"}),
    ),
    (
        "A13",
        ".0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When",
        case(GO, said(use()), user(result()), thinking=ENABLED),
        case(GO, said(thought(), use()), user(result()), thinking=ENABLED),
    ),
    (
        "A13",
        "messages.3.content.0.type: Expected",
        case(GO, said(text()), GO, said(text(), use()), user(result(), text()), thinking=ENABLED),
        case(GO, said(text()), GO, said(HIDDEN, use()), user(result(), text()), thinking=ENABLED),
    ),
    (
        "A16",
        "`max_tokens` must be greater",
        case(GO, thinking=ENABLED, max_tokens=1024),
        case(GO, thinking=ENABLED, max_tokens=1025),
    ),
    (
        "A16.choice",
        "when tool_choice forces tool use",
        case(GO, thinking=ENABLED, tool_choice={"type": "any"}),
        case(GO, thinking=ENABLED, tool_choice={"type": "auto"}),
    ),
    (
        "A22",
        "messages.1.content.0: When thinking is disabled",
        case(GO, said(thought(), text()), model=OLD),
        case(GO, said(thought(), text()), model=OLD, thinking=ENABLED),
    ),
    ("A11", "must end with a user message", case(GO, said(text())), case(GO, said(text()), GO)),
    ("A11", "must end", case(GO, said(text()), model="mine"), case(GO, said(text()), model=OLD)),
    (
        "A12",
        "trailing whitespace",
        case(GO, said(text("It is ")), model=OLD),
        case(GO, said(text("It is")), model=OLD),
    ),
    (
        "A18",
        "top_p",
        case(GO, version=NEWER, top_p=0.9),
        case(GO, top_p=0.9),
    ),
    ("A18", "temperature", case(GO, version=NEWER, temperature=1), case(GO, temperature=1)),
    (
        "A18",
        "messages.1.content.0: `document`",
        case(GO, said({"type": "document"}, text()), GO, version=NEWER),
        case(GO, said(text()), user({"type": "document"}), version=NEWER),
    ),
    (
        "A18",
        "messages.0.content.0.text.citations",
        case(user(text(citations=[{"type": "char_location"}])), version=NEWER),
        case(user(text(citations=[])), version=NEWER),
    ),
    (
        "A18.model",
        "`temperature` is deprecated",
        case(GO, model=NEW, temperature=0),
        case(GO, model=MIDDLE, temperature=0),
    ),
    (
        "A19",
        "role 'system' is not supported",
        case(GO, SYSTEM, model=OLD),
        case(GO, SYSTEM, model=NEW),
    ),
    ("A19", "messages.0: role", case(SYSTEM, GO, model=NEW), case(GO, SYSTEM, GO, model=NEW)),
    (
        "A20",
        "tools: Tool names must be unique.",
        case(GO, tools=[tool("f"), tool("f")]),
        case(GO, tools=[tool("f"), tool("g")]),
    ),
    (
        "A20",
        "tools.1.custom.name: String",
        case(GO, tools=[tool("f"), tool("a.b", type="custom")]),
        case(GO, tools=[tool("f"), {"type": "mcp_toolset"}, {"type": "mcp_toolset"}]),
    ),
    (
        "A20",
        "tools.0.custom.name",
        case(GO, tools=[tool("f" * 129)]),
        case(GO, tools=[tool("f" * 128)]),
    ),
    (
        "A21",
        "prompt is too long: 1125002 tokens > 200000 maximum",
        case(user(text(LONG)), model=OLD),
        case(user(text(LONG[:700_000])), model=OLD),
    ),
    (
        "A21",
        "exceed context limit: ",
        case(user(text(LONG[:700_000])), model=OLD, max_tokens=64_000),
        case(user(text(LONG[:700_000])), max_tokens=64_000),
    ),
    (
        "A21",
        "tokens > 1000000 maximum",
        case(user(text(LONG))),
        case(user({"type": "image", "source": {"type": "base64", "data": LONG}})),
    ),
]

ACCEPTED = {
    "the model's first": case(said(text()), GO),
    "no roles that alternate": case(GO, GO, said(text()), said(text()), GO, GO),
    "text after results": case(GO, said(use()), user(result(), text())),
    "results in any order": case(GO, said(use(), use("t2")), user(result("t2"), result())),
    "an empty last message": case(GO, said(), model=OLD),
    "no room": case(GO, max_tokens=0),
    "a tool that is not declared": case(GO, said(use()), user(result()), tools=[tool("g")]),
    "the provider's call after one": case(GO, said(use(), serve()), user(result())),
    "a paused turn": case(GO, said(text(), serve())),
    "a memory without a model's turn": case(GO, **KEPT),
    "signed by nobody knows whom": case(GO, said(thought("x", "y"), text()), GO),
    "reasoning at the first step only": case(
        GO,
        said(thought(), use()),
        user(result()),
        said(use("t2")),
        user(result("t2")),
        thinking=ENABLED,
    ),
    "a loop without a question": case(said(thought(), use()), user(result()), thinking=ENABLED),
    "reasoning in a turn that is over": case(GO, said(text()), GO, thinking=ENABLED),
    "results of nobody": Case({"model": MIDDLE, "messages": [GO, "odd", {}, {"content": [1]}]}),
    "reasoning in between": case(
        GO, thinking=ENABLED, max_tokens=9, betas=["interleaved-thinking-2025-05-14"]
    ),
    "a reply that was cut off": case(GO, said(thought(), text("H")), GO, **KEPT),
    "text at its end is free": case(GO, said(text("Hi \n")), GO),
}


def broken_by(of: Case, *, without: str = "", pedantic: bool = True) -> tuple[str, str] | None:
    rules = [rule for rule in RULES if rule.id != without]
    refused = refusal(of, rules, pedantic=pedantic)
    if refused is None:
        return None
    assert (refused.failure.status, refused.failure.kind) == (400, "invalid_request_error")
    return refused.rule.id, refused.failure.message


@pytest.mark.parametrize(
    ("rule", "told", "broken", "mended"), BROKEN, ids=[row[0] for row in BROKEN]
)
def test_what_breaks_a_rule_is_refused_and_its_twin_is_not(
    rule: str, told: str, broken: Case, mended: Case
) -> None:
    found = broken_by(broken)
    assert found is not None
    assert found[0] == rule
    assert told in found[1]
    assert broken_by(broken, without=rule) is None
    assert broken_by(mended) is None


def test_every_rule_is_broken_by_something() -> None:
    assert {row[0] for row in BROKEN} == {rule.id for rule in RULES}
    assert len({rule.id for rule in RULES}) == len(RULES)


def test_what_nobody_has_checked_is_refused_on_request_only() -> None:
    pedantic = {rule.id for rule in RULES if rule.pedantic}
    assert pedantic == {"A2", "A5", "A16.choice"}
    for rule, _, broken, _ in BROKEN:
        assert (broken_by(broken, pedantic=False) is None) == (rule in pedantic)


@pytest.mark.parametrize("accepted", ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_said_to_be_wrong_and_is_not(accepted: Case) -> None:
    assert broken_by(accepted) is None


@given(histories(systems=False))
def test_a_history_that_holds_together_is_accepted(history: tuple[Message, ...]) -> None:
    """Where it also says something, calls by ids that differ, and ends with the user."""
    ids = [call.id for message in history for call in message.calls]
    assume(len(ids) == len(set(ids)))
    issued = Issued()
    messages = []
    for number, message in enumerate(history):
        content = tuple([_saying(block, number) for block in message.content])
        messages.append(replace(message, content=content))
        issued.remember(messages[-1])
    messages.append(Message("user", (Text("Go on."),)))
    codec = Anthropic()
    sent = codec.write(Asked(ModelRequest(NEW, "", tuple(messages))))
    asked = Case(json_of(sent.body), NEWER, issued)
    assert broken_by(asked) is None
    assert codec.read(sent).request.messages == tuple(messages)


def _saying(block: Any, number: int) -> Any:
    """The same block with words where it has none, and with a signature of its own."""
    if isinstance(block, Thinking):
        return Thinking(block.text, f"s{number}")
    return Text("Hm.") if isinstance(block, Text) and not block.text.strip() else block
