"""How a scenario spells a turn: what is said, where it is cut, what must come out."""

from __future__ import annotations

from typing import get_args

from msgspec.structs import replace

from harness.core.errors import UsageError, unknown
from harness.core.events import INSIDE, OUTSIDE, event_kind
from harness.core.json_text import Json
from harness.core.located import Node, Problems, shortened
from harness.core.messages import Role
from harness.core.outcome import OUTCOME_NAMES
from harness.core.rows import ROW_KINDS
from harness.runner.files.fields import Fields, Found, Key, MapOf
from harness.runner.files.script_format import REPLIES, USAGE
from harness.runner.files.shapes import Count, Duration, Flag, ListOf, OneOf, Shape, Text, refused
from harness.runner.scenario import Cancel, Expect, Turn
from harness.sim.cancel import Point

_TOO_LATE = (
    "turn_ended",
    "cancel_requested",
    "cancel_delivered",
    "task_leaked",
    "generator_abandoned",
    "network_reached",
    "error_unseen",
    "request_missed",
    "interaction_unused",
    "usage_counted",
    "run_stopped",
    "mismatch",
)
"""Events that come when there is nothing left to cut, or that no scenario can ask for."""

ROLES: tuple[str, ...] = get_args(Role)

EVENT_KINDS = tuple(kind for kind in map(event_kind, (*OUTSIDE, *INSIDE)) if kind not in _TOO_LATE)


class _After:
    """An event, as `<kind>` or `<kind> <name>`."""

    def read(self, node: Node, name: str, problems: Problems) -> tuple[str, str | None]:
        """The kind and the name."""
        text = Text(empty=False).read(node, name, problems)
        kind, _, subject = text.strip().partition(" ")
        if kind in EVENT_KINDS:
            return kind, subject.strip() or None
        if kind in _TOO_LATE:
            raise refused(
                problems, node, f"{name}: a turn cannot be cut after {kind}; it is over by then"
            )
        known = unknown("event", shortened(kind), EVENT_KINDS)
        raise refused(problems, node, f"{name}: {known}")

    def schema(self) -> dict[str, Json]:
        """A string that begins with a kind."""
        return {
            "type": "string",
            "pattern": rf"^\s*({'|'.join(EVENT_KINDS)})(\s.*)?$",
            "examples": ["tool_started weather", "delta text", "request_sent"],
        }


class _Shown:
    """A message, as its role, and a part of its text where more follows."""

    def read(self, node: Node, name: str, problems: Problems) -> str:
        """The text."""
        text = Text(empty=False).read(node, name, problems)
        role, _, _ = text.partition(" ")
        if role in ROLES:
            return text
        raise refused(problems, node, f"{name}: {unknown('role', shortened(role), ROLES)}")

    def schema(self) -> dict[str, Json]:
        """A string that begins with a role."""
        return {
            "type": "string",
            "pattern": rf"^({'|'.join(ROLES)})( |$)",
            "examples": ["user", "tool interrupted while running"],
        }


class _Point:
    """A point of a sweep, as reports print it."""

    def read(self, node: Node, name: str, problems: Problems) -> str:
        """The point's text."""
        text = Text(empty=False).read(node, name, problems)
        try:
            return str(Point.parse(text[:200]))
        except UsageError as error:
            raise refused(problems, node, f"{name}: {error}") from None

    def schema(self) -> dict[str, Json]:
        """A string of path, count and mode."""
        return {
            "type": "string",
            "pattern": "^[^#]+#[0-9]+/(start|early|late)$",
            "examples": ["1.2#3/late"],
        }


_MOMENTS = ("after", "at", "point")


def _cancel(found: Found) -> Cancel:
    moment = found.at_most_one(_MOMENTS)
    if moment is None:
        raise found.refused(
            None,
            "cancel: does not say when; write after: tool_started weather, at: 1.5s, "
            "or point: 1.2#3/late",
        )
    for key in ("nth", "mode"):
        if moment != "after" and found.has(key):
            raise found.refused(key, f"{key}: belongs to `after`, and means nothing for `{moment}`")
    kind, name = found.get("after", (None, None))
    return Cancel(
        kind,
        name,
        found.get("nth", 1),
        found.get("at"),
        found.get("point"),
        found.get("by"),
        found.get("mode", "now"),
    )


CANCEL = Fields(
    "a cancel",
    [
        Key("after", _After(), "The event after which the turn is cut, and its name if need be."),
        Key("nth", Count(1, 1_000_000), "Which such event of the turn; the first if left out."),
        Key("at", Duration(), "The time of the turn at which it is cut."),
        Key("point", _Point(), "The point at which it is cut: path, suspension and mode."),
        Key(
            "by",
            OneOf(("agent", "task")),
            "Through the agent's own cancel, or by cancelling the turn's task.",
        ),
        Key(
            "mode",
            OneOf(("now", "early", "late")),
            "When the event is recorded, when its task suspends next, or before it resumes.",
        ),
    ],
    _cancel,
    example="{after: tool_started weather}",
    define="cancel",
    extra={
        "oneOf": [
            {"required": ["after"]},
            *(
                {
                    "required": [moment],
                    "not": {"anyOf": [{"required": ["nth"]}, {"required": ["mode"]}]},
                }
                for moment in ("at", "point")
            ),
        ]
    },
)


def _expect(found: Found) -> Expect:
    if not found.node.entries.keys() - {"under"}:
        raise found.refused(None, "expect: names nothing; write {outcome: completed}, or remove it")
    outcome = found.get("outcome", "error")
    if found.has("error") and outcome != "error":
        raise found.refused("error", f"error: there is none where the outcome is {outcome}")
    return Expect(**found.values, line=found.node.line)


_EXPECTATIONS = [
    Key("outcome", OneOf(OUTCOME_NAMES), "How the turn ends."),
    Key(
        "synthesized",
        ListOf(Text(empty=False), example="weather"),
        "The tools in whose place the loop answered, in order; [] for none.",
    ),
    Key(
        "tools",
        ListOf(Text(empty=False), example="clock"),
        "The tools that started, in order; [] for none.",
    ),
    Key(
        "rows",
        ListOf(OneOf(ROW_KINDS), example="turn_start"),
        "The kinds of rows that the loop logged, in order.",
    ),
    Key("say", Text(), "The text of the turn's last complete reply."),
    Key("error", Text(empty=False), "A part of the error's text."),
    Key("requests", Count(), "How many requests reach the model."),
    Key("trimmed", Flag(), "Whether the history is cut."),
    Key(
        "messages",
        ListOf(_Shown(), example="user"),
        "What the turn's last request shows the model, in order: roles, each with a part of the "
        "message's text where more follows it.",
    ),
    Key(
        "told",
        ListOf(Text(empty=False), example="done"),
        "What the loop tells its consumer, in order: names of events, each with a part of what it "
        "says where more follows it.",
    ),
    Key("usage", USAGE, "What the loop has counted since the run began."),
    Key(
        "only",
        Flag(),
        "Lists must match whole, and what is not named must not have happened.",
    ),
]

_UNDER = Fields(
    "an expect block",
    _EXPECTATIONS,
    _expect,
    example="{outcome: completed}",
    define="expect_under",
    extra={"minProperties": 1},
)

EXPECT = Fields(
    "an expect block",
    [
        *_EXPECTATIONS,
        Key(
            "under",
            MapOf("an expect block", _UNDER, example="{reference: {outcome: completed}}", most=10),
            "What is expected in its place under a policy of reference loops, by policy; "
            "`fsm reference` is that of one loop.",
        ),
    ],
    _expect,
    example="{outcome: completed}",
    whole=False,
    define="expect",
    extra={"minProperties": 1},
)


def _turn(found: Found) -> Turn:
    """What could be read of a turn, so that the rest of it is checked too."""
    if found.at_most_one(("user", "resume")) is None and not {"user", "resume"} & found.meant:
        raise found.refused(
            None, "a turn says nothing; write user: and the text, or resume: true to go on without"
        )
    cancel, expect = found.get("cancel"), found.get("expect")
    if not {"model", "cancel"} & found.meant:
        raise found.refused(
            None,
            "a turn needs the model's replies: model: [{say: Sunny.}]; without, it must be cut",
        )
    return Turn(
        found.get("user"),
        found.get("model", ()),
        replace(cancel, line=found.entry("cancel").line) if cancel else None,
        replace(expect, line=found.entry("expect").line) if expect else None,
        found.node.line,
    )


TURN: Shape[Turn] = Fields(
    "a turn",
    [
        Key("user", Text(), "What the user says."),
        Key("resume", Flag(only=True), "The agent goes on without a user's word."),
        Key("model", REPLIES, "What the model replies, in order."),
        Key("cancel", CANCEL, "Where the turn is cut."),
        Key("expect", EXPECT, "What must come out of it."),
    ],
    _turn,
    example="{user: Hello, model: [{say: Hi.}]}",
    whole=False,
    define="turn",
    extra={
        "oneOf": [{"required": ["user"]}, {"required": ["resume"]}],
        "anyOf": [{"required": ["model"]}, {"required": ["cancel"]}],
    },
)
