"""How a file spells what a run is held to, beside what its turns expect."""

from __future__ import annotations

from harness.core.budget import Budget
from harness.invariants import INVARIANTS
from harness.invariants.relations import RELATIONS
from harness.runner.files.fields import Fields, Found, Key
from harness.runner.files.shapes import Count, ListOf, OneOf, Text
from harness.runner.scenario import Allow


def _budget(found: Found) -> Budget:
    if not found.values:
        raise found.refused(None, "budget: limits nothing; write {steps: 3}, or remove it")
    return Budget(**found.values)


BUDGET = Fields(
    "a budget",
    [
        Key("steps", Count(), "How many requests a turn may send to the model."),
        Key("parallel_tools", Count(), "How many tools may run at the same time."),
        Key("tool_calls", Count(), "How many tools a turn may run."),
    ],
    _budget,
    example="{steps: 3}",
    define="budget",
    extra={"minProperties": 1},
)

ALLOW = ListOf(
    Fields(
        "an accepted finding",
        [
            Key(
                "invariant",
                OneOf((*[each.id for each in INVARIANTS], *[each.id for each in RELATIONS])),
                "The invariant that is broken.",
                required=True,
            ),
            Key("why", Text(empty=False), "Why that is accepted.", required=True),
            Key(
                "policy",
                Text(empty=False),
                "The policy of reference loops that break it, `fsm reference` that of one loop; "
                "any agent where left out.",
            ),
        ],
        lambda found: Allow(
            found.get("invariant"), found.get("why"), found.get("policy"), found.node.line
        ),
        example="{invariant: QUIESCE, why: a known leak}",
        define="allow",
    ),
    example="{invariant: QUIESCE, why: a known leak}",
    least=1,
    most=100,
)
