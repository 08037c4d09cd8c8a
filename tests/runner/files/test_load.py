"""Reading scenario files: what each key means, in YAML and in JSON."""

from __future__ import annotations

from typing import Any

import pytest

from harness.core.errors import FileError
from harness.core.messages import Usage
from harness.fakes.script import (
    Also,
    AlsoWhen,
    DoneTwice,
    GenerateFails,
    Hang,
    LateThinking,
    Reply,
    ScriptedCall,
    StreamFails,
    Torn,
)
from harness.fakes.tool_spec import (
    Answers,
    Behaviour,
    CancelsItself,
    Case,
    Hangs,
    Raises,
    Returns,
    ToolSpec,
)
from harness.fakes.wire_faults import (
    BadJson,
    BadUtf8,
    Comments,
    CutAt,
    CutLine,
    Dropped,
    EmptyChoices,
    ErrorFrame,
    Http,
    Incomplete,
    JsonError,
    NoIndex,
    OddIndex,
    Refused,
    RepeatedIds,
    Reset,
    Split,
    Stall,
)
from harness.loops.kind import LoopKind
from harness.runner.files.load import load_text, schema
from harness.runner.scenario import Cancel, Expect, Scenario, Turn
from tests.runner.files.loading import errors, read
from tests.runner.files.loop_kinds import FSM

MS = 1_000_000
SECOND = 1000 * MS


def reply(text: str) -> Reply:
    """The one reply of a scenario with two tools, spelled as a flow mapping."""
    scenario = read(
        f"about: x\ntools: {{clock: {{}}, weather: {{}}}}\nturns: [{{user: u, model: [{text}]}}]"
    )
    return scenario.turns[0].replies[0]


def tool(text: str) -> ToolSpec:
    scenario = read(
        f"about: x\ntools: {{clock: {text}}}\nturns: [{{user: u, model: [{{say: x}}]}}]"
    )
    return scenario.tools[0]


def test_a_text_that_a_comma_cuts_is_told_to_need_quotes() -> None:
    turn = "{user: u, model: [{say: Shipped, and refunded.}], expect: {say: Shipped, sent}}"
    reply, expect = errors(f"about: x\nturns: [{turn}]")
    assert "has no key 'and refunded.' (a text with a comma needs quotes); it may" in reply
    assert "has no key 'sent' (a text with a comma needs quotes); it may have outc" in expect
    [misspelt, *_] = errors("about: x\nturns: [{usr: , model: [{say: x}]}]")
    assert "has no key 'usr' (did you mean 'user'?); it may" in misspelt


def test_a_whole_scenario() -> None:
    text = (
        "about: The slow tool is cut off.\n"
        "loops: [turn]\n"
        "config: {max_parallel_tool_calls: 1}\n"
        "tools:\n"
        '  clock:   {returns: "14:05", takes: 10ms}\n'
        "  weather: {returns: sunny, takes: 2s}\n"
        "turns:\n"
        "  - user: Time and weather in Paris?\n"
        "    model:\n"
        "      - think: Two look-ups.\n"
        "        calls: [{clock: {zone: Europe/Paris}}, {weather: {city: Paris}}]\n"
        "      - say: 14:05 and sunny.\n"
        "    cancel: {after: tool_started weather}\n"
        "    expect: {outcome: cancelled, synthesized: [weather]}\n"
        "  - resume: true\n"
        "    model: [{say: Still sunny.}]\n"
        "also:\n"
        "  - name: title\n"
        "    when: {system_contains: title}\n"
        "    model: [{say: Weather}]\n"
        "order: calls\n"
        "strict: false\n"
    )
    calls = (
        ScriptedCall("clock", {"zone": "Europe/Paris"}),
        ScriptedCall("weather", {"city": "Paris"}),
    )
    assert read(text) == Scenario(
        name="folder/case",
        about="The slow tool is cut off.",
        loops=("turn",),
        config={"max_parallel_tool_calls": 1},
        tools=(
            ToolSpec("clock", Behaviour(Returns("14:05"), 10 * MS)),
            ToolSpec("weather", Behaviour(Returns("sunny"), 2 * SECOND)),
        ),
        turns=(
            Turn(
                "Time and weather in Paris?",
                (Reply(think="Two look-ups.", calls=calls), Reply(say="14:05 and sunny.")),
                Cancel("tool_started", "weather", line=13),
                Expect(outcome="cancelled", synthesized=("weather",), line=14),
                line=8,
            ),
            Turn(None, (Reply(say="Still sunny."),), line=15),
        ),
        also=(Also("title", AlsoWhen(system_contains="title"), (Reply(say="Weather"),)),),
        order="calls",
        strict=False,
        source="folder/case.yaml",
    )


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("clock", ScriptedCall("clock")),
        ("{clock: {zone: UTC}}", ScriptedCall("clock", {"zone": "UTC"})),
        ("{clock: }", ScriptedCall("clock")),
        ("{tool: clock}", ScriptedCall("clock")),
        ("{tool: clock, args: [1], id: c9}", ScriptedCall("clock", [1], None, "c9")),
        ("{tool: clock, args: null}", ScriptedCall("clock", None)),
        ("{tool: clock, raw: '{bad'}", ScriptedCall("clock", None, "{bad")),
        ("{tool: clock, raw: ''}", ScriptedCall("clock", None, "")),
        ("{tool: nosuch, undeclared: true}", ScriptedCall("nosuch")),
    ],
)
def test_calls(text: str, call: ScriptedCall) -> None:
    assert reply(f"{{calls: [{text}]}}") == Reply(calls=(call,))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("torn", Torn()),
        ("{torn: {after: 2}}", Torn(2)),
        ("generate_fails", GenerateFails()),
        ("{generate_fails: overloaded}", GenerateFails("overloaded")),
        ("{generate_fails: {message: overloaded}}", GenerateFails("overloaded")),
        ("stream_fails", StreamFails()),
        ("{stream_fails: gone}", StreamFails(0, "gone")),
        (
            "{stream_fails: {after: 2, message: gone, reported: true}}",
            StreamFails(2, "gone", reported=True),
        ),
        ("hang", Hang()),
        ("{hang: {after: 0}}", Hang(0)),
        ("{hang: {after: 4}}", Hang(4)),
        ("done_twice", DoneTwice()),
        ("late_thinking", LateThinking()),
        ("{late_thinking: hm}", LateThinking("hm")),
        ("http", Http()),
        ("{http: 503}", Http(503)),
        (
            "{http: {status: 529, message: m, kind: k, code: c, retry_after: 1.5s, retry_as: date, "
            "should_retry: false, html: true, headers: {x-a: b}}}",
            Http(529, "m", "k", "c", 1500 * MS, "date", False, {"x-a": "b"}, True),
        ),
        ("{json_error: busy}", JsonError("busy")),
        ("refused", Refused()),
        ("dropped", Dropped()),
        ("{incomplete: {after: 2}}", Incomplete(2)),
        ("reset", Reset()),
        ("{cut_line: {after: 1}}", CutLine(1)),
        ("{cut_at: 100}", CutAt(100)),
        ("{cut_at: {byte: 7, how: reset}}", CutAt(7, "reset")),
        ("{error_frame: busy}", ErrorFrame(message="busy")),
        (
            "{error_frame: {after: 1, kind: k, code: c, status: 429, flat: true}}",
            ErrorFrame(1, kind="k", code="c", status=429, flat=True),
        ),
        ("{bad_json: {after: 2}}", BadJson(2)),
        ("bad_utf8", BadUtf8()),
        ("{stall: 30s}", Stall(0, 30_000 * MS)),
        ("{stall: {after: 3, takes: 1s}}", Stall(3, 1000 * MS)),
        ("comments", Comments()),
        ("{split: 7}", Split(7)),
        ("empty_choices", EmptyChoices()),
        ("repeated_ids", RepeatedIds()),
        ("no_index", NoIndex()),
        ("odd_index", OddIndex()),
    ],
)
def test_faults(text: str, fault: Any) -> None:
    # three parts before the end signal: one of thinking, two of text
    found = reply(f"{{think: a, say: bc, chunk: 1, fault: {text}}}")
    assert found == Reply(say="bc", think="a", chunk=1, fault=fault)


def test_a_fault_may_come_as_late_as_the_reply_lasts() -> None:
    latest = {"torn": 4, "stream_fails": 5, "hang": 5, "stall": 4, "cut_line": 4, "reset": 5}
    for fault, most in latest.items():
        text = "{think: a, say: bc, chunk: 1, usage: {total_tokens: 1}, fault: {%s: {after: %s}}}"
        assert reply(text % (fault, most)).fault is not None
        with pytest.raises(FileError, match=f"the reply has at most {most} part"):
            reply(text % (fault, most + 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{fault: droped}", "'droped' (did you mean 'dropped'?)"),
        ("{fault: {droped: {after: 1}}}", "'droped' (did you mean 'dropped'?)"),
        ("{fault: {http: 200}}", "http: expected a whole number from 400 to 599, found"),
        ("{fault: {http: {stats: 500}}}", "has no key 'stats' (did you mean 'status'?)"),
        (
            "{fault: {http: {retry_as: date}}}",
            "retry_as: says how to spell retry_after; add that, or remove it",
        ),
        (
            "{fault: {http: {retry_after: 1s, retry_as: dat}}}",
            "retry_as: expected one of seconds, milliseconds, date; found the text 'dat'",
        ),
        ("{fault: {http: {headers: {X-A: b}}}}", "headers: 'X-A': 'b' is no header of HTTP"),
        ("{fault: {http: {headers: {x-a: ü}}}}", "is no header of HTTP"),
        ("{fault: {cut_at: {how: torn}}}", "how: expected one of end, incomplete, reset; found"),
        ("{fault: {refused: {after: 1}}}", "the fault refused has no settings"),
        (
            "{fault: {split: 0}}",
            "split: expected a whole number from 1 to 1000000, found",
        ),
        ("{say: a, stop: calls}", "stop: the reply has no calls; add them, or write stop: end"),
        ("{refusal: no, stop: end}", "stop: a reply with a refusal stops as refused"),
        ("{say: a, stop: lenght}", "found the text 'lenght' (did you mean 'length'?)"),
    ],
)
def test_what_is_wrong_with_a_fault_or_a_stop(text: str, message: str) -> None:
    with pytest.raises(FileError) as told:
        reply(text)
    assert message in str(told.value)


def test_why_the_model_stopped() -> None:
    assert reply("{say: a, stop: length}") == Reply("a", stop="length")
    assert reply("{refusal: no}") == Reply(refusal="no")
    assert reply("{refusal: no, stop: refused}") == Reply(refusal="no", stop="refused")
    assert reply("{calls: [clock], stop: end}").stopped == "end"


def test_the_other_keys_of_a_reply() -> None:
    assert reply(
        "{think: hm, signature: s, usage: {prompt_tokens: 3, cache_read: 1}, chunk: 4, "
        "takes: 1.5s, each: 250us, fault: torn, fault_times: 2, optional: true}"
    ) == Reply(
        think="hm",
        signature="s",
        usage=Usage(prompt_tokens=3, cache_read=1),
        chunk=4,
        takes=1500 * MS,
        each=250_000,
        fault=Torn(),
        optional=True,
        fault_times=2,
    )
    assert reply("{fault: torn, fault_times: always}").fault_times is None


def test_reasoning_may_be_signed_without_words() -> None:
    assert reply("{think: '', signature: s}") == Reply(signature="s")
    with pytest.raises(FileError, match="signature: belongs to thinking; add think, or remove it"):
        reply("{say: a, signature: s}")


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("{}", ToolSpec("clock")),
        ("{returns: null}", ToolSpec("clock")),
        ("{returns: [1, {a: null}]}", ToolSpec("clock", Behaviour(Returns([1, {"a": None}])))),
        ("{error: no sky}", ToolSpec("clock", Behaviour(Answers("no sky")))),
        ("{cancels_itself: true}", ToolSpec("clock", Behaviour(CancelsItself()))),
        ("{raises: boom, takes: 1m}", ToolSpec("clock", Behaviour(Raises("boom"), 60 * SECOND))),
        (
            "{hangs: true, on_cancel: ignore, effect: start}",
            ToolSpec("clock", Behaviour(Hangs(), 0, "start", "ignore")),
        ),
        (
            "{on_cancel: {cleanup: 50ms}, effect: none}",
            ToolSpec("clock", Behaviour(Returns(), 0, "none", "cleanup", 50 * MS)),
        ),
        ("{on_cancel: honour}", ToolSpec("clock")),
        (
            "{calls: [{error: busy}, {returns: 1}]}",
            ToolSpec("clock", calls=(Behaviour(Answers("busy")), Behaviour(Returns(1)))),
        ),
        (
            "{returns: 1, when: [{args: {a: 1}, returns: 2, takes: 1ms}]}",
            ToolSpec("clock", Behaviour(Returns(1)), (Case({"a": 1}, Behaviour(Returns(2), MS)),)),
        ),
        (
            "{description: The time., parameters: {type: object}}",
            ToolSpec("clock", description="The time.", parameters={"type": "object"}),
        ),
    ],
)
def test_tools(text: str, spec: ToolSpec) -> None:
    assert tool(text) == spec


def test_shared_settings_and_settings_of_one_loop() -> None:
    text = "about: x\nloops: %s\nconfig: %s\nturns: [{user: u, model: [{say: x}]}]"
    for loops, config in (
        ("[turn, fsm]", "{max_steps: 3, turn: {cancel_grace: 5ms}, fsm: {plan: true, seed: [1]}}"),
        ("[turn]", "{context_trim_threshold: 1, fsm: {max_rounds: 2}}"),
        ("[fsm]", "{plan: true}"),
    ):
        assert read(text % (loops, config)).loops
    assert errors(text % ("[turn, fsm]", "{max_rounds: 3}")) == [
        "case.yaml:3:10: the loop turn has no setting 'max_rounds'; write it under the loop that "
        "has it: fsm: {max_rounds: …}"
    ]
    assert errors(text % ("[fsm]", "{plan: 1, max_rounds: true, seed: .nan}")) == [
        "case.yaml:3:16: plan: expected true or false, such as false, found the number 1",
        "case.yaml:3:31: max_rounds: expected a whole number such as 8, found true",
        "case.yaml:3:43: .nan is not a finite number; put it in quotes to mean the text",
    ]


def test_a_scenario_without_loops_may_use_the_settings_of_any() -> None:
    text = (
        "about: x\nconfig: {max_rounds: 3, cancel_grace: 1s}\nturns: [{user: u, model: [{say: x}]}]"
    )
    assert read(text).config == {"max_rounds": 3, "cancel_grace": "1s"}


def test_json_files_hold_the_same() -> None:
    text = '{"about": "x", "turns": [{"user": "\\ud800", "model": [{"say": "14:05"}]}]}'
    assert read(text, "a.json").turns[0].user == "\ud800"
    assert read(text, "a.json").name == "a"
    assert read(text, "a.yaml").turns == read(text, "a.json").turns


def test_settings_have_the_type_of_their_default() -> None:
    kind = LoopKind(
        "odd", {"names": ["a"], "limits": {"n": 1}, "title": "x", "on": True}, ("safe",), FSM.build
    )
    text = "about: x\nloops: [odd]\nconfig: %s\nturns: [{user: u, model: [{say: x}]}]"
    right = "{names: [b], limits: {m: 2}, title: y, on: false}"
    assert load_text(text % right, "case.yaml", (kind,)).config["names"] == ["b"]
    with pytest.raises(FileError) as caught:
        load_text(text % "{names: b, limits: 3, title: 4, on: 1}", "case.yaml", (kind,))
    assert str(caught.value).splitlines() == [
        "case.yaml:3:17: names: expected a list such as ['a'], found the text 'b'",
        "case.yaml:3:28: limits: expected a mapping such as {'n': 1}, found the number 3",
        "case.yaml:3:38: title: expected a text such as 'x', found the number 4",
        "case.yaml:3:45: on: expected true or false, such as true, found the number 1",
    ]
    properties = schema((kind,))["properties"]["config"]["properties"]["odd"]["properties"]
    assert [properties[key]["type"] for key in ("names", "limits", "title", "on")] == [
        "array",
        "object",
        "string",
        "boolean",
    ]


def test_too_many_of_anything_are_refused() -> None:
    turn = "turns: [{user: u, model: [{say: x}]}]\nabout: x\n"
    calls = f"{{calls: [{', '.join(['clock'] * 1001)}]}}"
    tools = ", ".join(f"t{n}: {{}}" for n in range(1001))
    for text, expected in (
        (f"tools: {{{tools}}}\n{turn}", "1:8: tools: 1001 are too many; at most 1000"),
        (
            f"about: x\ntools: {{clock: {{}}}}\nturns: [{{user: u, model: [{calls}]}}]",
            "3:35: calls: 1001 are too many; at most 1000",
        ),
        (
            "about: x\nturns: [{user: u, model: [{say: x, takes: 9000m}]}]",
            "2:43: takes: 9000m is too long; at most 86400s",
        ),
        (
            "about: x\nturns: [{user: u, model: [{say: x, takes: true}]}]",
            "2:43: takes: expected a duration such as 10ms, 2s or 1m, found true",
        ),
        (
            f"tools: [clock]\n{turn}",
            '1:8: tools: expected a mapping, such as {clock: {returns: "14:05"}}; '
            "found a list of 1 item",
        ),
    ):
        assert errors(text) == [f"case.yaml:{expected}"]


def test_one_misspelling_is_one_complaint() -> None:
    for text in (
        "about: x\ntols: {clock: {}}\nturns: [{user: u, model: [{calls: [clock]}]}]",
        "about: x\nturns: [{usr: u, model: [{say: x}]}]",
        "about: x\nturns: [{user: u, modl: [{say: x}], cancel: {after: request_sent}}]",
        "abut: x\nturns: [{user: u, model: [{say: x}]}]",
        "about: x\ntools: {clock: 3}\nturns: [{user: u, model: [{calls: [clock]}]}]",
        "about: x\nturns: [{user: u, model: [{sy: x}], cancel: {after: delta, nth: 9}}]",
    ):
        assert len(errors(text)) == 1
