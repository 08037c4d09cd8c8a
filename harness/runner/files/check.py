"""What the parts of a scenario say of each other: names, settings, and what cannot happen."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from harness.core.errors import unknown
from harness.core.json_text import Json
from harness.core.located import (
    Entry,
    ListNode,
    MapNode,
    Node,
    Place,
    Scalar,
    describe,
    plain,
    shortened,
    within,
)
from harness.fakes.script import Also
from harness.fakes.tool_spec import ToolSpec
from harness.loops.kind import LoopKind
from harness.runner.files.check_cancel import Around, impossible, not_called
from harness.runner.files.fields import Found
from harness.runner.files.reach import reach
from harness.runner.files.shapes import Duration, Unreadable, is_duration
from harness.runner.scenario import Allow, Expect, Turn


class Checker:
    """Checks one file, of which `found` is what could be read.

    What could not be read, or is probably there under a misspelt key, is not complained of again.
    """

    def __init__(self, found: Found, loops: Sequence[LoopKind]) -> None:
        values = found.values
        self._root = found.node
        self._problems = found.problems
        self._kinds = {kind.name: kind for kind in loops}
        self._listed: tuple[str, ...] = values.get("loops", ())
        self._turns: tuple[Turn | None, ...] = values.get("turns", ())
        self._allow: tuple[Allow, ...] = values.get("allow", ())
        self._also: tuple[Also, ...] = values.get("also", ())
        self._shared_reach = reach([reply for also in self._also for reply in also.replies])
        self._in_order = values.get("order") == "calls"
        if self._in_order:
            read = [turn for turn in self._turns if turn is not None]
            self._shared_reach += reach([reply for turn in read for reply in turn.replies])
        self._all_read = ("also" in values or "also" not in found.meant) and not (
            self._in_order and None in self._turns
        )
        listed = [self._kinds[name] for name in self._listed if name in self._kinds]
        self._loop_events = tuple(dict.fromkeys(name for loop in listed for name in loop.events))
        self._states = tuple(dict.fromkeys(name for loop in listed for name in loop.states))
        self._tools: dict[str, ToolSpec] | None = None
        if "tools" in values or "tools" not in found.meant:
            self._tools = {spec.name: spec for spec in values.get("tools", ())}

    def check(self) -> None:
        """Note all that is wrong."""
        self._check_loops()
        self._check_config()
        self._check_also()
        self._check_policies()
        self._check_allow()
        for index, turn in enumerate(self._turns):
            if turn is not None:
                self._check_turn(index, turn)
        if self._tools is not None:
            for section in ("turns", "also"):
                for place in _items(self._root, section):
                    for reply in _items(place, "model"):
                        for call in _items(reply, "calls"):
                            self._check_call(call, self._tools)

    # --- loops and their settings

    def _check_loops(self) -> None:
        for index, name in enumerate(self._listed):
            place = within(self._root, "loops", index)
            if name not in self._kinds:
                self._problems.add(place, unknown("loop", shortened(name), self._kinds))
            elif name in self._listed[:index]:
                self._problems.add(place, f"the loop {name} stands here twice; keep one")

    def _check_config(self) -> None:
        config = self._root.entries.get("config")
        if config is None or not isinstance(config.value, MapNode):
            return
        kinds = [self._kinds[name] for name in self._listed if name in self._kinds]
        for entry in config.value.entries.values():
            kind = self._kinds.get(entry.key)
            if kind is None:
                self._check_shared(entry, kinds or list(self._kinds.values()))
            elif isinstance(entry.value, MapNode):
                for setting in entry.value.entries.values():
                    self._check_setting(setting, kind)
            else:
                self._problems.add(
                    entry.value,
                    f"{kind.name}: expected the settings of this loop as a mapping; "
                    f"found {describe(entry.value)}",
                )

    def _check_shared(self, entry: Entry, kinds: Sequence[LoopKind]) -> None:
        having = [kind for kind in kinds if entry.key in kind.settings]
        if self._listed and having and len(having) < len(kinds):
            lacking = next(kind.name for kind in kinds if kind not in having)
            self._problems.add(
                entry,
                f"the loop {lacking} has no setting {entry.key!r}; write it under the loop that "
                f"has it: {having[0].name}: {{{entry.key}: …}}",
            )
        elif having:
            self._check_setting(entry, having[0])
        else:
            names = dict.fromkeys(name for kind in kinds for name in kind.settings)
            self._problems.add(entry, unknown("setting", shortened(entry.key), names))

    def _check_setting(self, entry: Entry, kind: LoopKind) -> None:
        if entry.key not in kind.settings:
            message = unknown(f"setting of {kind.name}", shortened(entry.key), kind.settings)
            self._problems.add(entry, message)
            return
        default = kind.settings[entry.key]
        if is_duration(default):
            try:
                Duration().read(entry.value, entry.key, self._problems)
            except Unreadable:
                return
        elif not _same_type(plain(entry.value), default):
            self._problems.add(
                entry.value,
                f"{entry.key}: expected {_type_words(default)} such as {_spelled(default)}, "
                f"found {describe(entry.value)}",
            )

    def _check_policies(self) -> None:
        """Every policy that is named is one of a loop."""
        allowed = _items(self._root, "allow")
        named: list[Place] = [within(item, "policy") for item in allowed if _has(item, "policy")]
        for turn in _items(self._root, "turns"):
            under = within(turn, "expect", "under")
            if _has(within(turn, "expect"), "under") and isinstance(under, MapNode):
                named += under.entries.values()
        known = dict.fromkeys(name for kind in self._kinds.values() for name in kind.policies)
        known |= dict.fromkeys(
            f"{kind.name} {name}" for kind in self._kinds.values() for name in kind.policies
        )
        for place in named:
            name = plain(place) if isinstance(place, Scalar) else getattr(place, "key", None)
            if self._kinds and isinstance(name, str) and name not in known:
                self._problems.add(place, unknown("policy", shortened(name), known))

    def _check_allow(self) -> None:
        """No run may be under two entries of one invariant: one would go without a word."""
        for index, allow in enumerate(self._allow):
            for earlier in self._allow[:index]:
                if earlier.invariant == allow.invariant and _overlap(allow.policy, earlier.policy):
                    place = within(self._root, "allow", index, "invariant")
                    self._problems.add(place, f"{allow.invariant} stands here twice; keep one")
                    break

    # --- the script

    def _check_also(self) -> None:
        seen: set[str] = set()
        for index, also in enumerate(self._also):
            place = within(self._root, "also", index, "name")
            if also.name in seen:
                self._problems.add(place, f"the name {also.name!r} stands here twice; change one")
            if also.name[:1].isdigit() or also.name == "main":
                self._problems.add(
                    place, f"the name {shortened(also.name)!r} is taken by the turns; change it"
                )
            seen.add(also.name)

    def _check_turn(self, index: int, turn: Turn) -> None:
        node = within(self._root, "turns", index)
        given = node.entries if isinstance(node, MapNode) else {}
        if index == 0 and "resume" in given:
            self._problems.add(
                node, "the first turn resumes, but there is nothing to go on with; give it a user"
            )
        if not self._all_read or (not turn.replies and given.keys() - _BESIDE_REPLIES):
            return
        around = self._around(index, turn)
        if turn.cancel is not None:
            reason = impossible(turn.cancel, around)
            if reason:
                place = within(node, "cancel", "after" if turn.cancel.after else "point")
                self._problems.add(place, f"this cancel can never fire: {reason}")
        if turn.expect is not None:
            self._check_expect(turn.expect, within(node, "expect"), around.reach.calls)
            for policy, expect in turn.expect.under.items():
                self._check_expect(
                    expect, within(node, "expect", "under", policy), around.reach.calls
                )

    def _around(self, index: int, turn: Turn) -> Around:
        own = reach(() if self._in_order else turn.replies)
        return Around(
            index + 1,
            len(turn.replies),
            self._shared_reach + own,
            tuple(also.name for also in self._also),
            self._tools,
            self._loop_events,
            self._states,
        )

    def _check_call(self, node: Node, tools: Collection[str]) -> None:
        called = _called(node)
        if called is None:
            return
        name, place = called
        on_purpose = isinstance(node, MapNode) and {"tool", "undeclared"} <= node.entries.keys()
        if on_purpose and name in tools:
            self._problems.add(place, f"{name} is declared; remove `undeclared`")
        if not on_purpose and name not in tools:
            short = shortened(name)
            self._problems.add(
                place,
                f"{unknown('tool', short, tools)}; declare it under `tools`, or, where it is "
                f"missing on purpose, write {{tool: {short}, undeclared: true}}",
            )

    def _check_expect(self, expect: Expect, node: Node, calls: Collection[str]) -> None:
        for key, names in (("synthesized", expect.synthesized), ("tools", expect.tools)):
            for index, name in enumerate(names or ()):
                if name not in calls:
                    place = within(node, key, index)
                    self._problems.add(place, f"{key}: {not_called(name, calls)}")
        for index, item in enumerate(expect.told or () if self._loop_events else ()):
            name = item.partition(" ")[0]
            if name not in self._loop_events:
                message = unknown("event of the loop", shortened(name), self._loop_events)
                self._problems.add(within(node, "told", index), f"told: {message}")


_BESIDE_REPLIES = {"user", "resume", "cancel", "expect"}


def _overlap(one: str | None, other: str | None) -> bool:
    """Whether some run is under both: `reference` is that of every loop, `fsm reference` of one."""
    if one is None or other is None:
        return True
    return one == other or one.endswith(f" {other}") or other.endswith(f" {one}")


def _items(node: Node, key: str) -> tuple[Node, ...]:
    """The items of the list under a key, where there is one."""
    entry = node.entries.get(key) if isinstance(node, MapNode) else None
    return entry.value.items if entry and isinstance(entry.value, ListNode) else ()


def _has(node: Node, key: str) -> bool:
    return isinstance(node, MapNode) and key in node.entries


def _called(node: Node) -> tuple[str, Place] | None:
    """The tool that an entry of `calls` names, and where; None where it is no call."""
    match node:
        case Scalar(value=str(name)):
            return name, node
        case MapNode(entries=entries) if "tool" in entries:
            return _called(entries["tool"].value)
        case MapNode(entries=entries) if len(entries) == 1:
            entry = next(iter(entries.values()))
            return entry.key, entry
        case _:
            return None


def _same_type(value: Json, default: Json) -> bool:
    if default is None:
        return True
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, float):
        return isinstance(value, int | float)
    return isinstance(value, type(default))


def _type_words(default: Json) -> str:
    match default:
        case bool():
            return "true or false,"
        case int():
            return "a whole number"
        case float():
            return "a number"
        case str():
            return "a text"
        case list() | tuple():
            return "a list"
        case _:
            return "a mapping"


def _spelled(default: Json) -> str:
    return shortened(str(default).lower() if isinstance(default, bool) else repr(default))
