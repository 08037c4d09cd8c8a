"""What every reference loop offers, so that it can stand in `harness.loops.LOOPS`."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from harness.core.events import LoopEvent, StateEntered
from harness.core.json_text import dumps
from harness.invariants import INVARIANTS
from harness.invariants.relations import RELATIONS
from harness.loops import LOOPS
from harness.loops.kind import LoopKind
from harness.runner.agents import Subject, loop_subject
from harness.runner.exploring import sweep
from harness.runner.run import run
from harness.runner.scenario import Scenario
from harness.testing.conformance import agents
from harness.testing.conformance.agents import SCENARIOS, SIDE_BY_SIDE, WITHOUT_WORDS
from harness.testing.conformance.laws import Law, expect, hold
from harness.testing.generated import saved


def check_loop(kind: LoopKind) -> None:
    """Hold a reference loop against what all of them do; NotConforming tells of all that does not.

    It is held to all that `check_agent` asks for, under its first policy; what it breaks under the
    others must be known. UsageError for what is no kind of loop.
    """
    given: object = kind
    expect(kind, "a kind of loop, a LoopKind", fits=isinstance(given, LoopKind))
    hold(f"the loop {kind.name}", kind, LAWS)


def _subject(kind: LoopKind, scenario: Scenario, policy: str | None = None) -> Subject:
    """The loop on a scenario; no command finds one that is not among the harness's own."""
    subject = loop_subject(kind, scenario, policy)
    return subject if kind in LOOPS else replace(subject, options=())


def is_named(kind: LoopKind) -> Iterator[str]:
    """It has a name that is one word, and policies and settings that a file can spell."""
    if not kind.name.isidentifier():
        yield f"the name {kind.name!r} is no identifier"
    if any(each.name == kind.name and each is not kind for each in LOOPS):
        yield f"there is another loop that is called {kind.name}"
    if not kind.policies or len(set(kind.policies)) < len(kind.policies):
        yield f"the policies {kind.policies} are none, or one is there twice"
    for name, value in kind.settings.items():
        try:
            dumps(value)
        except (TypeError, ValueError) as error:
            yield f"the setting {name}: {error}"


def knows_what_it_breaks(kind: LoopKind) -> Iterator[str]:
    """What it is known to break are invariants, each with its reason, under policies it has."""
    known = {each.id for each in INVARIANTS} | {each.id for each in RELATIONS}
    for policy, broken in kind.known.items():
        if policy not in kind.policies:
            yield f"there is no policy {policy!r}"
        for name, reason in broken.items():
            if name not in known:
                yield f"there is no invariant {name!r}"
            if not reason:
                yield f"nothing says why {name} is broken under {policy}"


def usual_settings_change_nothing(kind: LoopKind) -> Iterator[str]:
    """Settings that are written out as they are by default change nothing."""
    for scenario in SCENARIOS:
        spelled = replace(scenario, config=dict(kind.settings))
        one, other = (run(each, _subject(kind, each)).trace for each in (scenario, spelled))
        if one != other:
            yield f"{scenario.name} is another run with the default settings written out"


def tells_what_it_says_it_tells(kind: LoopKind) -> Iterator[str]:
    """Where it lists its events and its states, it reports no others."""
    for scenario in SCENARIOS:
        for entry in run(scenario, _subject(kind, scenario)).trace:
            match entry.event:
                case LoopEvent(name=name) if kind.events and name not in kind.events:
                    yield f"{scenario.name}: the event {name!r} is not one of {kind.events}"
                case StateEntered(state=state) if kind.states and state not in kind.states:
                    yield f"{scenario.name}: the state {state!r} is not one of {kind.states}"
                case _:
                    pass


def does_as_agents_do(kind: LoopKind) -> Iterator[str]:
    """Under its first policy it keeps the laws of every agent."""
    subject = _subject(kind, SIDE_BY_SIDE)
    for law in agents.LAWS:
        yield from [f"{law.__name__}: {wrong}" for wrong in law(subject)]


def breaks_only_what_is_known(kind: LoopKind) -> Iterator[str]:
    """Under its other policies a cancel breaks nothing that it is not known to break."""
    for policy in kind.policies[1:]:
        swept = sweep(WITHOUT_WORDS, _subject(kind, WITHOUT_WORDS, policy), whom="turn")
        if swept.status != "PASS":
            yield f"{WITHOUT_WORDS.about}\n{swept}\n{saved(WITHOUT_WORDS)}"


LAWS: tuple[Law[LoopKind], ...] = (
    is_named,
    knows_what_it_breaks,
    usual_settings_change_nothing,
    tells_what_it_says_it_tells,
    does_as_agents_do,
    breaks_only_what_is_known,
)
"""What `check_loop` holds a loop against."""
