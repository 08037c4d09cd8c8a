"""What public reports say goes wrong in agent loops, by families: each has its invariants, each
invariant a planted bug that it catches.
"""

from collections import defaultdict

from harness.invariants import INVARIANTS
from harness.invariants.relations import RELATIONS
from tests.bugs.planted import PLANTED
from tests.bugs.planted_relations import RELATED

FAMILIES = {
    "a call without its result, or a result without its call": "PAIR",
    "a history that no request can go on from": "RESUME",
    "other rules of the form of a request": "SHAPE ROUNDTRIP ACCEPTED",
    "a result that does not say what happened": "OUTCOME-TRUTH",
    "what happened is not in the log or the history": "DURABLE LOG-HISTORY",
    "a cut takes too much, too little or the wrong things": "TRIM BOUND PINNED TASK-KEPT",
    "summing up without end or in vain, and the same over and over": (
        "COMPACT-PROGRESS COMPACT-HONEST LOOP-DETECT"
    ),
    "sizes estimated wrong": "ESTIMATE",
    "no end of a turn, or several": "ONE-TERMINAL",
    "an end that is not what happened": "TERMINAL-TRUTH",
    "half a reply taken for a whole one, or parts of it dropped": "COMPLETE-ONLY NO-SILENT-DROP",
    "more than may be spent": "LIMIT COUNT CAP SERIAL",
    "a stream cut in other pieces comes to something else": "RECHUNK NOISE TOTAL-PARSER",
    "calls put together wrong, arguments that are none": "ASSEMBLE BAD-ARGS CALL-TRUTH",
    "streamed is not what is said at once": "PARITY",
    "order": "ORDER DETERMINISM",
    "an effect twice": "EFFECT-ONCE",
    "retries too soon, too many, or after something was shown": (
        "RETRY-AFTER RETRY-BOUND RETRY-VISIBLE"
    ),
    "work goes on after a cancel": "CANCEL",
    "something is left when the turn is over": "QUIESCE",
    "calls of one reply disturb each other": "SIBLING",
    "calls mixed up by their ids": "SLOT",
    "unknown tools, odd results, hidden failures": "UNKNOWN-TOOL RESULT-TOTAL FAIL-VISIBLE",
    "a recorded run that goes another way when it is played again": "DETERMINISM MISS REPLAY",
    "secrets in recordings, replays that reach the network": "NO-NET SECRETS",
    "fakes that do not keep their word": "FAKE",
    "tokens counted wrong": "USAGE",
    "a later cancel leaves less": "MONOTONIC",
    "an effect that the model never hears of": "EFFECT-KEPT",
}


def test_every_family_has_an_invariant() -> None:
    assert all(FAMILIES.values())


def test_every_invariant_is_for_a_family_and_has_a_planted_bug() -> None:
    bugs: dict[str, list[str]] = defaultdict(list)
    for bug in (*PLANTED, *RELATED):
        bugs[bug.caught_by].append(bug.build.__name__)
    for family, names in FAMILIES.items():
        print(f"\n{family}:")
        for name in names.split():
            print(f"  {name:18} {', '.join(bugs[name])}")
    known = {each.id for each in (*INVARIANTS, *RELATIONS)}
    assert {name for names in FAMILIES.values() for name in names.split()} == known == set(bugs)
