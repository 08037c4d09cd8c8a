"""Strategy for scenarios that a file can hold."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from harness.core.budget import Budget
from harness.core.events import INSIDE, OUTSIDE, event_kind
from harness.core.messages import Usage
from harness.core.outcome import OUTCOME_NAMES
from harness.core.rows import ROW_KINDS
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
from harness.invariants import INVARIANTS
from harness.runner.scenario import Allow, Cancel, Expect, Scenario, Turn

assert len(OUTSIDE) + len(INSIDE) == 29, "a new kind of event: does a cancel wait for it?"

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["14:05", "No", "a: b", "# x", "\ud800", "line\nline\n", "1e3", "null"]
)
words = texts.filter(lambda text: text != "")
shown = st.builds("{} {}".format, st.sampled_from(["user", "tool"]), texts) | st.just("assistant")
told = st.builds("{} {}".format, st.sampled_from(["text", "turn_end"]), texts) | st.just("done")
spans = st.integers(0, 3 * 10**12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(-1e9, 1e9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
mappings = st.dictionaries(texts, json_values, max_size=3)
tool_names = st.sampled_from(["clock", "weather", "tool", "args", "send mail", "14:05", "yes"])
undeclared_names = st.sampled_from(["nosuch", "raw", "~"])

behaviours = st.builds(
    lambda action, takes, effect, on_cancel: Behaviour(action, takes, effect, *on_cancel),
    st.builds(Returns, json_values)
    | st.builds(Answers, texts)
    | st.builds(Raises, texts)
    | st.sampled_from([Hangs(), CancelsItself()]),
    spans,
    st.sampled_from(["start", "end", "none"]),
    st.sampled_from([("honour", 0), ("ignore", 0)]) | st.tuples(st.just("cleanup"), spans),
)


def tool_spec(name: str) -> st.SearchStrategy[ToolSpec]:
    common: Any = {
        "name": st.just(name),
        "cases": st.lists(st.builds(Case, mappings, behaviours), max_size=2).map(tuple),
        "description": texts,
        "parameters": st.none() | mappings,
    }
    return st.builds(ToolSpec, behaviour=behaviours, **common) | st.builds(
        ToolSpec, calls=st.lists(behaviours, min_size=1, max_size=2).map(tuple), **common
    )


faults = st.one_of(
    st.builds(GenerateFails, texts),
    st.builds(StreamFails, st.integers(0, 1), texts, st.booleans()),
    st.builds(Torn, st.just(0)),
    st.builds(Hang, st.none() | st.integers(0, 1)),
    st.just(DoneTwice()),
    st.builds(LateThinking, texts),
    st.builds(Http, st.integers(400, 599), texts, words, st.none() | words, html=st.booleans()),
    st.builds(
        Http,
        retry_after=spans,
        retry_as=st.sampled_from(["seconds", "milliseconds", "date"]),
        should_retry=st.none() | st.booleans(),
        headers=st.just({"x-a": "b"}),
    ),
    st.builds(JsonError, texts, words, st.none() | words),
    st.builds(CutAt, st.integers(0, 99), st.sampled_from(["end", "incomplete", "reset"])),
    st.builds(ErrorFrame, st.integers(0, 1), texts, words, words, st.just(429), st.booleans()),
    st.builds(Stall, st.just(0), spans),
    st.builds(Split, st.integers(1, 9)),
    st.sampled_from([Refused(), Dropped(), Incomplete(1), Reset(), CutLine(), BadJson(1)]),
    st.sampled_from([BadUtf8(), Comments(), EmptyChoices(), RepeatedIds(), NoIndex(), OddIndex()]),
)
counts = st.integers(0, 10**9)
usages = st.builds(Usage, counts, counts, counts, counts, counts)


@st.composite
def calls(draw: st.DrawFn, declared: list[str]) -> ScriptedCall:
    tool = draw(st.sampled_from(declared) if declared else undeclared_names)
    if draw(st.booleans()):
        tool = draw(undeclared_names)
    call_id = draw(st.none() | texts)
    if draw(st.booleans()):
        return ScriptedCall(tool, None, "{" + draw(texts) + "{", call_id)  # never JSON
    return ScriptedCall(tool, draw(mappings | json_values), None, call_id)


@st.composite
def replies(draw: st.DrawFn, declared: list[str]) -> Reply:
    think = draw(texts)
    fault = draw(st.none() | faults)
    refusal = draw(st.none() | texts)
    stops = ["length", "filtered", "end", "paused"] if refusal is None else []
    return Reply(
        say=draw(texts),
        think=think,
        signature=draw(st.none() | texts) if think else None,
        calls=tuple(draw(st.lists(calls(declared), max_size=2))),
        usage=draw(st.none() | usages),
        chunk=draw(st.none() | st.integers(1, 30)),
        takes=draw(spans),
        each=draw(spans),
        fault=fault,
        optional=draw(st.booleans()),
        fault_times=draw(st.none() | st.integers(1, 3)) if fault else 1,
        stop=draw(st.none() | st.sampled_from([*stops, "refused"])),
        refusal=refusal,
    )


@st.composite
def cancels(draw: st.DrawFn, turn: int, script: list[Reply], declared: list[str]) -> Cancel:
    by = draw(st.sampled_from([None, "agent", "task"]))
    match draw(st.sampled_from(["at", "point", "after"])):
        case "at":
            return Cancel(at=draw(spans), by=by)
        case "point":
            path = draw(st.sampled_from([f"{turn}", f"{turn}.2.1", "x1", "gen.close.2"]))
            k = draw(st.integers(0, 9))
            mode = draw(st.sampled_from(["early", "late"])) if k else "start"
            return Cancel(point=f"{path}#{k}/{mode}", by=by)
        case _:
            mode = draw(st.sampled_from(["now", "early", "late"]))
    events: list[tuple[str, str | None]] = [
        ("turn_started", None),
        ("request_sent", None),
        ("request_sent", f"{turn}.1"),
        ("reply_ended", "complete"),
        ("log_row", "turn_start"),
        ("loop_event", "done"),
        ("state_entered", None),
        ("trimmed", None),
    ]
    never = {None}
    events += [
        ("tool_started", call.tool)
        for reply in script
        if reply.fault_times not in never
        for call in reply.calls
        if call.tool in declared
    ]
    kind, name = draw(st.sampled_from(events))
    assert kind in {event_kind(event) for event in (*OUTSIDE, *INSIDE)}
    return Cancel(kind, name, 1, by=by, mode=mode)


@st.composite
def expects(draw: st.DrawFn, script: list[Reply]) -> Expect:
    named = [c.tool for reply in script if reply.fault_times is not None for c in reply.calls]
    tools = st.lists(st.sampled_from(named), max_size=3).map(tuple) if named else st.just(())
    outcome = draw(st.none() | st.sampled_from(OUTCOME_NAMES))
    expect = Expect(
        outcome=outcome,
        synthesized=draw(st.none() | tools),
        tools=draw(st.none() | tools),
        rows=draw(st.none() | st.lists(st.sampled_from(ROW_KINDS), max_size=3).map(tuple)),
        say=draw(st.none() | texts),
        error=draw(st.none() | words) if outcome in (None, "error") else None,
        requests=draw(st.none() | st.integers(0, 9)),
        trimmed=draw(st.none() | st.booleans()),
        messages=draw(st.none() | st.lists(shown, max_size=3).map(tuple)),
        told=draw(st.none() | st.lists(told, max_size=3).map(tuple)),
        usage=draw(st.none() | usages),
        only=draw(st.booleans()),
    )
    return Expect(only=True) if expect == Expect() else expect


@st.composite
def expects_under_policies(draw: st.DrawFn, script: list[Reply]) -> Expect:
    policies = draw(st.sets(st.sampled_from(["safe", "reference"])))
    return replace(draw(expects(script)), under={name: draw(expects(script)) for name in policies})


@st.composite
def turns(draw: st.DrawFn, number: int, declared: list[str]) -> Turn:
    script = draw(st.lists(replies(declared), min_size=1, max_size=2))
    user = draw(texts if number == 1 else st.none() | texts)
    cancel = draw(st.none() | cancels(number, script, declared))
    return Turn(user, tuple(script), cancel, draw(st.none() | expects_under_policies(script)))


alsos = st.builds(
    AlsoWhen, system_contains=st.none() | words, message_contains=st.none() | words, model=words
)


limits = st.none() | st.integers(0, 10**9)
allows = st.builds(
    Allow,
    st.sampled_from([invariant.id for invariant in INVARIANTS]),
    words,
    st.none() | st.sampled_from(["safe", "reference"]),
)


def _no_two_for_one_run(allowed: list[Allow]) -> bool:
    return not any(
        one.invariant == other.invariant
        and (one.policy == other.policy or None in (one.policy, other.policy))
        for one, other in itertools.combinations(allowed, 2)
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Scenarios as `load` gives them, without name, source and lines."""
    declared = draw(st.lists(tool_names, max_size=3, unique=True))
    also_names = draw(st.lists(st.sampled_from(["title", "sum up"]), max_size=2, unique=True))
    return Scenario(
        name="",
        about=draw(words),
        loops=tuple(draw(st.lists(st.sampled_from(["turn", "fsm"]), max_size=2, unique=True))),
        config=draw(
            st.sampled_from([{}, {"max_steps": 3}, {"turn": {"cancel_grace": "5ms"}, "fsm": {}}])
        ),
        tools=tuple(draw(tool_spec(name)) for name in declared),
        turns=tuple(draw(turns(n + 1, declared)) for n in range(draw(st.integers(1, 3)))),
        also=tuple(
            Also(
                name, draw(alsos), tuple(draw(st.lists(replies(declared), min_size=1, max_size=2)))
            )
            for name in also_names
        ),
        order=draw(st.sampled_from(["place", "calls"])),
        budget=Budget(draw(limits), draw(limits), draw(limits)),
        allow=tuple(draw(st.lists(allows, max_size=2).filter(_no_two_for_one_run))),
        strict=draw(st.booleans()),
    )


def bare(scenario: Scenario) -> Scenario:
    """A loaded scenario without what a file adds: name, source and lines."""
    return replace(
        scenario,
        name="",
        source="",
        allow=tuple(replace(allow, line=0) for allow in scenario.allow),
        turns=tuple(
            replace(
                turn,
                line=0,
                cancel=turn.cancel and replace(turn.cancel, line=0),
                expect=turn.expect and _bare(turn.expect),
            )
            for turn in scenario.turns
        ),
    )


def _bare(expect: Expect) -> Expect:
    return replace(expect, line=0, under={k: _bare(v) for k, v in expect.under.items()})
