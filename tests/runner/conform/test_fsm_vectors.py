"""FSM vectors can fail, and one of another form is told from one that fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.core import json_text
from harness.core.errors import UsageError
from harness.runner.conform.common import vector_texts
from harness.runner.conform.fsm import Play
from harness.runner.conform.fsm_world import Hang, SerialThreads
from harness.runner.conform.vectors import run_vectors

VECTORS = Path(__file__).parents[2] / "vectors"
TEXTS = json_text.loads((VECTORS / "texts.json").read_text(encoding="utf-8"))


def vector(name: str) -> Any:
    with (VECTORS / "fsm_vectors.jsonl").open(encoding="utf-8") as file:
        return next(v for v in map(json_text.loads, file) if v["scenario"]["name"] == name)


def reason(changed: Any) -> str | None:
    """Why the vector fails; None where it holds."""
    report = run_vectors("fsm", [json_text.dumps(changed)], TEXTS)
    return report.failed[0][1] if report.failed else None


def found(changed: Any) -> dict[str, Any]:
    """What a vector's run comes to."""
    play = Play(changed["scenario"], vector_texts(TEXTS).fsm)
    return play.found(play.run())


def with_expected(name: str, **fields: Any) -> Any:
    base = vector(name)
    return {**base, "expected": {**base["expected"], **fields}}


def with_scenario(name: str, **fields: Any) -> Any:
    base = vector(name)
    return {**base, "scenario": {**base["scenario"], **fields}}


@pytest.mark.parametrize(
    "key",
    [
        "states", "terminal", "result", "loop_result", "rounds", "infos", "nudges", "nudge_count",
        "messages", "caller_list_len", "last_messages", "requests", "deltas", "notify", "logs",
        "auto_saves", "saved_text", "title_calls", "title", "first_user", "tool_runs",
        "round_results", "context", "events", "hang", "exception", "error", "terminal_text",
        "pending_left", "queued_left", "harness_injected", "cancelled", "stale", "compacting",
        "sub_results", "triggers_fired", "triggers_unfired", "script_exhausted",
    ],
)  # fmt: skip
def test_every_key_is_compared(key: str) -> None:
    assert reason(with_expected("multi_round")) is None
    assert str(reason(with_expected("multi_round", **{key: "other"}))).startswith(f".{key}")


def test_a_run_that_nobody_can_end_is_a_hang() -> None:
    with pytest.raises(Hang):
        SerialThreads().event().wait()


def test_a_hang_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SerialThreads, "start", lambda self, work: None)
    assert reason(vector("agent_nested_two")) is not None
    changed = with_expected("agent_nested_two", hang=True)
    assert ".hang" not in str(reason(changed))


@pytest.mark.parametrize(
    ("name", "old", "new", "holds"),
    [
        ("sync_base_exception_escapes", "SystemExit: tool exit", "SystemExit: other", True),
        ("sync_base_exception_escapes", "SystemExit: tool exit", "OSError: tool exit", False),
        ("null_required_schema_crashes", "'NoneType' object is not", "None is not", True),
        ("null_required_schema_crashes", "tool 'A' crashed", "tool 'B' crashed", False),
        ("bad_reply_not_tuple", "cannot unpack", "will not unpack", True),
    ],
)
def test_only_what_python_says_may_differ(name: str, old: str, new: str, holds: bool) -> None:
    base = vector(name)
    text = json_text.dumps(base["expected"])
    assert old in text
    changed = {**base, "expected": json_text.loads(text.replace(old, new))}
    assert (reason(changed) is None) == holds


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"weather": "fine"}, "the scenario has the unknown key 'weather'"),
        ({"cancel": {"at": "before_round:1", "mode": "perhaps"}}, "unknown mode 'perhaps'"),
        ({"cancel": {"at": "before_round:1", "why": ""}}, "a cancel has the unknown key 'why'"),
        ({"model": [{"txt": ""}]}, "a reply has the unknown key 'txt'"),
        ({"model": [{"bad": "luck"}]}, "unknown bad reply 'luck'"),
        (
            {"tools": [{"name": "A", "kind": "sync", "behaviour": "sing"}]},
            "unknown tool behaviour 'sing'",
        ),
        ({"messages": [{"role": "user", "mood": 1}]}, "a message has the unknown key 'mood'"),
    ],
)
def test_a_scenario_of_another_form_is_an_error(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        reason(with_scenario("nudge_two", **fields))
    assert str(caught.value) == f"line 1 is not a fsm vector: {message}"


def test_a_compaction_may_have_no_script_or_a_cancel_in_it() -> None:
    exhausted = found(with_scenario("compact_success", compaction=[]))
    assert exhausted["script_exhausted"]
    assert "compaction failed: script exhausted" in exhausted["logs"]
    during = [{"text": "S1", "cancel_during": True}]
    assert found(with_scenario("compact_success", compaction=during))["terminal"] == "ABRT"


def test_what_else_a_vector_may_say() -> None:
    plan_on = {"at": "during_request:1", "mode": "plan_on"}
    assert found(with_scenario("nudge_two", cancel=plan_on))["triggers_fired"] == [
        ["during_request:1", "plan_on"]
    ]
    assert found(with_scenario("nudge_two", model=[]))["error"] == "Error: script exhausted"
    replies = [{"text": "a", "usage": {"input": 64, "output": 1}}, {"text": "b"}, {"text": "c"}]
    context = found(with_scenario("nudge_two", model=replies))["context"]
    assert context["factor"] == 64 / context["updates"][0][0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"fn": "sing", "args": [], "expected": 1}', "unknown function 'sing'; known: "),
        ('{"fn": "estimate_tokens", "args": [""], "why": 1}', "the vector has the unknown key"),
    ],
)
def test_a_unit_vector_of_another_form_is_an_error(line: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"line 1 is not a fsm-units vector: {message}"):
        run_vectors("fsm-units", [line], TEXTS)
    [(name, _)] = run_vectors(
        "fsm-units", ['{"fn": "estimate_tokens", "args": ["abcd"], "expected": 2}'], TEXTS
    ).failed
    assert name == "line 1"
