"""The fake tools of a recorded session: what requests declare, and what came of each call."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from harness.core.json_text import Json, dumps
from harness.core.messages import Image, Message, ToolCall, ToolSchema
from harness.fakes.tool_spec import Action, Answers, Behaviour, Case, Hangs, Returns, ToolSpec
from harness.fakes.tools import fits
from harness.loops.fsm.prompts import TEXTS as FSM_TEXTS
from harness.runner.cassettes.heard import Heard
from harness.runner.cassettes.replies import Note, rounded
from harness.runner.cassettes.session import Step, cut_short, stops_something
from harness.wire.reading import json_of

Spelling: TypeAlias = Literal["json", "text"]
"""How an agent tells its model what a tool gave: each value as JSON, or texts as they are."""

_ERROR = "Error: "
_CUT = re.compile(r"cancel|interrupt|abort|\bstopped\b|\bkilled\b", re.IGNORECASE)
"""The words by which agents answer for a tool that they did not see through."""

_UNBEGUN = re.compile(
    r"before execution|not (?:been )?(?:executed|run|started)|never", re.IGNORECASE
)


class Run(Struct, frozen=True):
    """What came of a call: its result, None where nothing shows one, and how long that took at
    most. `cut` says that its turn ended meanwhile, `unbegun` that it seems to have ended before.
    """

    call: ToolCall
    result: Message | None
    takes: int
    cut: bool
    unbegun: bool
    place: str


def runs_of(steps: Sequence[Step], *, cut: bool) -> list[Run]:
    """The calls of some steps of one turn; `cut` says that the turn was ended behind the last."""
    runs: list[Run] = []
    for step, following in zip(steps, [*steps[1:], None][: len(steps)], strict=True):
        calls = step.message.calls
        if not calls or not step.whole:
            continue
        last = step.last
        span = _between(last, None if following is None else following.first)
        for call, result in zip(calls, step.results or [None] * len(calls), strict=True):
            last_one = cut and following is None and call.raw is None
            ended = last_one and (result is None or cut_off(call, result))
            place = "the history of the first request" if last is None else last.place
            before = step.lost or (result is not None and bool(_UNBEGUN.search(result.text)))
            takes = rounded(span // len(calls))
            runs.append(Run(call, result, takes, ended, ended and before, place))
    return runs


def cut_off(call: ToolCall, result: Message) -> bool:
    """Whether an agent seems to have answered for a tool that it did not see through."""
    brief = result.is_error or result.text.startswith("Error") or len(result.text) < 100
    said = brief and _CUT.search(result.text) is not None
    return (said and not stops_something(call)) or cut_short(call, result)


def _between(last: Heard | None, following: Heard | None) -> int:
    """How long after a reply the next request went out."""
    if last is None or following is None:
        return 0
    given = last.interaction
    return max(following.interaction.begun - given.begun - given.ended_at, 0)


def spelling_of(runs: Iterable[Run], note: Note) -> Spelling:
    """How the session's results are spelled: as JSON where all of them read so."""
    texts = [
        run.result.text
        for run in runs
        if run.result is not None and not run.cut and _error_in(run) is None
    ]
    values = [_json(text) for text in texts]
    if not texts or any(value is None for value in values):
        return "text"
    if all(dumps(value[0]) == text for value, text in zip(values, texts, strict=True) if value):
        told = [value[0] for value in values if value]
        if not any(isinstance(value, str) for value in told):
            note(
                "all results are JSON: the agent is taken to write what tools give as JSON, and "
                "texts too; one that passes texts on gets the same requests"
            )
        return "json"
    return "text"


def _json(text: str) -> tuple[Json] | None:
    try:
        return (json_of(text),)
    except ValueError:
        return None


def specs(
    runs: Sequence[Run],
    requests: Iterable[Heard],
    spelling: Spelling,
    note: Note,
    own: Collection[str] = (),
) -> tuple[ToolSpec, ...]:
    """The tools that the requests declare, each with what it gave; `own` are tools that the agent
    has of itself.
    """
    runs = [run for run in runs if run.call.name not in own]
    declared = {n: tool for n, tool in _declared(requests, note).items() if n not in own}
    by_name: dict[str, list[Run]] = {name: [] for name in declared}
    for run in runs:
        if run.call.name in declared or _ran(run):
            by_name.setdefault(run.call.name, []).append(run)
    return tuple(
        [
            _spec(declared.get(name, ToolSchema(name)), each, spelling, note)
            for name, each in by_name.items()
        ]
    )


def _ran(run: Run) -> bool:
    """Whether a tool that no request declares seems to be there all the same."""
    return run.result is not None and _error_in(run) is None


def _declared(requests: Iterable[Heard], note: Note) -> Mapping[str, ToolSchema]:
    declared: dict[str, ToolSchema] = {}
    changed: set[str] = set()
    for heard in requests:
        for tool in heard.request.tools:
            known = declared.setdefault(tool.name, tool)
            if known != tool and tool.name not in changed:
                changed.add(tool.name)
                note(f"{heard.place}: it declares {tool.name} otherwise; the first one counts")
    return declared


def _spec(schema: ToolSchema, runs: Sequence[Run], spelling: Spelling, note: Note) -> ToolSpec:
    """A tool that gives what it gave: always the same, by its arguments, or call by call."""
    behaviours = [_behaviour(run, spelling, note) for run in runs if run.call.raw is None]
    args = [run.call.args for run in runs if run.call.raw is None]
    groups: dict[str, list[int]] = {}
    for at, given in enumerate(args):
        groups.setdefault(dumps(given), []).append(at)
    one: Behaviour = behaviours[0] if behaviours else Behaviour()
    cases: list[Case] = []
    in_order = list(range(len(behaviours)))
    if any(each.action != one.action for each in behaviours):
        cases, in_order = _cases(args, behaviours, groups)
    calls = tuple([behaviours[at] for at in in_order]) if cases or not _alike(behaviours) else ()
    return ToolSpec(
        schema.name,
        one if not cases and not calls else Behaviour(),
        tuple(cases),
        calls,
        schema.description,
        schema.parameters,
    )


def _alike(behaviours: Sequence[Behaviour]) -> bool:
    return all(each.action == behaviours[0].action for each in behaviours)


def _cases(
    args: Sequence[Json], behaviours: Sequence[Behaviour], groups: Mapping[str, list[int]]
) -> tuple[list[Case], list[int]]:
    """What is said by arguments, the longest first, since a case fits more than it names; and which
    calls are left to be told in their order.
    """
    steady = [at for at in groups.values() if _alike([behaviours[n] for n in at])]
    left = sorted([n for at in groups.values() if at not in steady for n in at])
    by_args = [at for at in steady if isinstance(args[at[0]], dict)]
    if len(by_args) < len(steady) or any(
        fits(args[at[0]], args[n]) for at in by_args for n in left
    ):
        return [], list(range(len(args)))
    by_args.sort(key=lambda at: -len(dumps(args[at[0]])))
    return [Case(args[at[0]], behaviours[at[0]]) for at in by_args], left


def _behaviour(run: Run, spelling: Spelling, note: Note) -> Behaviour:
    return Behaviour(_action(run, spelling, note), 0 if run.cut else run.takes)


def _action(run: Run, spelling: Spelling, note: Note) -> Action:
    """What a tool did, by what the model was told."""
    result = run.result
    if run.cut:
        return Hangs()
    if result is None:
        note(f"{run.place}: nothing shows what {run.call.name} gave; it gives null")
        return Returns(None)
    if any(isinstance(block, Image) for block in result.content):
        note(f"{run.place}: {run.call.name} gave a picture too; it is left out")
    error = _error_in(run)
    told = spelling == "json" or result.is_error or error != result.text.removeprefix(_ERROR)
    if error is not None and told:
        return Answers(error)
    if result.text == FSM_TEXTS.no_result:
        return Returns(None)
    return Returns(json_of(result.text) if spelling == "json" else result.text)


def _error_in(run: Run) -> str | None:
    """The tool's own words, where what the model was told is an error; None where it is not."""
    result = run.result
    assert result is not None
    if result.text == FSM_TEXTS.no_result:
        return None
    if not result.is_error and not result.text.startswith(_ERROR):
        return None
    return result.text.removeprefix(_ERROR).removeprefix(f"{run.call.name} failed: ")
