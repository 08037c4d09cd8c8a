"""The tool calls that the model has asked for, and which of them a run of a tool answers to."""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.errors import UnrequestedTool, hint, nearest
from harness.core.json_text import Json, dumps
from harness.core.messages import ToolCall
from harness.fakes.line import Given


class IssuedCall:
    """One tool call of a reply that reached the agent whole; `beside` are all calls of that reply,
    in the model's order, this one at `index`.
    """

    __slots__ = ("_spelled", "beside", "call", "given", "index", "runs")

    def __init__(self, call: ToolCall, given: Given, index: int) -> None:
        self.call = call
        self.given = given
        self.index = index
        self.beside: Sequence[IssuedCall] = ()
        self.runs = 0
        self._spelled = ""

    @property
    def spelled(self) -> str:
        """The tool and its arguments as canonical text, by which equal calls are known."""
        if not self._spelled:
            self._spelled = _spell(self.call.name, self.call.args)
        return self._spelled

    def spelled_with(self, defaults: dict[str, Json]) -> str:
        """As `spelled`, with `defaults` for the arguments that the model left out."""
        if not defaults or not isinstance(self.call.args, dict):
            return self.spelled
        return _spell(self.call.name, {**defaults, **self.call.args})


class IssuedCalls:
    """All calls of a run, and which of them still wait for their tool."""

    __slots__ = ("_by_id", "_waiting")

    def __init__(self) -> None:
        self._by_id: dict[str, list[IssuedCall]] = {}
        self._waiting: dict[str, dict[IssuedCall, None]] = {}

    def issue(self, given: Given, calls: Sequence[ToolCall]) -> None:
        """Take in the calls of a reply that the agent has got."""
        issued = [IssuedCall(call, given, index) for index, call in enumerate(calls)]
        for each in issued:
            each.beside = issued
            self._by_id.setdefault(each.call.id, []).append(each)
            self._waiting.setdefault(each.call.name, {})[each] = None

    def asked(self, name: str, call_id: str | None) -> bool:
        """Whether the model has asked for a tool of this name (in the call `call_id`)."""
        if call_id is None:
            return bool(self._waiting.get(name))
        return any(issued.call.name == name for issued in self._by_id.get(call_id, ()))

    def claim(
        self, name: str, args: Json, call_id: str | None, defaults: dict[str, Json]
    ) -> IssuedCall:
        """Find the call that a run of `name` answers to, and count the run.

        With an id: the oldest call of that id and name that waits, else its last one, since a
        second run is for an invariant to judge. Without: the oldest that waits and has equal
        arguments, where `defaults` stand for what either leaves out. UnrequestedTool where there
        is none.
        """
        if call_id is None:
            found = self._by_arguments(name, args, defaults)
        else:
            found = self._by_id_waiting(name, call_id) or self._by_id_last(name, call_id, args)
        self._waiting[name].pop(found, None)
        found.runs += 1
        return found

    def _by_arguments(self, name: str, args: Json, defaults: dict[str, Json]) -> IssuedCall:
        spelled = _spell(name, args)
        filled = _spell(name, {**defaults, **args}) if defaults else spelled
        for issued in self._waiting.get(name, ()):
            if issued.spelled_with(defaults) == filled:
                return issued
        raise UnrequestedTool(
            f"{spelled} was run, and no call of the model waits for that; {self._nearest(spelled)}"
        )

    def _by_id_waiting(self, name: str, call_id: str) -> IssuedCall | None:
        waiting = self._waiting.get(name, ())
        return next((issued for issued in waiting if issued.call.id == call_id), None)

    def _by_id_last(self, name: str, call_id: str, args: Json) -> IssuedCall:
        same_id = self._by_id.get(call_id)
        if same_id is None:
            guess = hint(nearest(call_id, self._by_id))
            raise UnrequestedTool(
                f"{name} was run for the call {call_id!r}, which the model has not made{guess}; "
                f"{self._nearest(_spell(name, args))}"
            )
        same_name = [issued for issued in same_id if issued.call.name == name]
        if not same_name:
            raise UnrequestedTool(
                f"{name} was run for the call {call_id!r}, by which the model asked for "
                f"{same_id[-1].spelled}; run the tool that the call names"
            )
        return same_name[-1]

    def _nearest(self, spelled: str) -> str:
        calls = [issued for same_id in self._by_id.values() for issued in same_id]
        if not calls:
            return "the model has made no call yet"
        close = nearest(spelled, [issued.spelled for issued in calls])
        best = next((issued for issued in calls if issued.spelled == close), calls[-1])
        state = "was run already" if best.runs else "waits"
        again = "; to run it again, say its id: env.tools.call(name, args, call_id)"
        repeats = again if best.runs and best.spelled == spelled else ""
        return f"the nearest call is {best.call.id!r}, {best.spelled}, which {state}{repeats}"


def _spell(name: str, args: Json) -> str:
    return f"{name}({dumps(args)})"
