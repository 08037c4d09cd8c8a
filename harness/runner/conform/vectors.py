"""Runs recorded vectors of every kind and reports which the loops agree with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from harness.core import json_text
from harness.core.errors import UsageError, unknown
from harness.core.json_text import Json
from harness.runner.conform import derive, fsm, fsm_units, race, trim, turn
from harness.runner.conform.common import Check, Stuck, vector_texts

LENIENT = {
    "race",
    "ambiguous",
    "protocol_violation",
    "seam_violation",
    "w813",
    "later_version",
    "dispatch_started_after_abort",
    "internals",
}
"""Tags of vectors that pin what may also be otherwise; they count neither way."""

CHECKS: Mapping[str, Check] = {
    "turn": turn.check,
    "trim": trim.check,
    "derive": derive.check,
    "race": race.check,
    "fsm": fsm.check,
    "fsm-units": fsm_units.check,
}


class ConformReport(Struct, frozen=True):
    """How the vectors of one kind went.

    `failed` holds name and reason; `lenient`, counted in neither, holds name, tags, whether it
    agreed all the same, and the reason where it did not.
    """

    passed: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    lenient: tuple[tuple[str, tuple[str, ...], bool, str], ...] = ()


def run_vectors(
    kind: str, lines: Iterable[str], texts: Mapping[str, Json] | None = None
) -> ConformReport:
    """Hold the policy ``reference`` of a loop against `lines`, one vector each; empty ones are
    passed over.

    `texts` is what the vectors' ``texts.json`` holds. Vectors carry the texts that they were
    recorded with, so without it (our own texts) those that show a default prompt, a trim's note or
    an unanswered call fail. UsageError where the kind is not known, or a line is no vector of it.
    """
    check = CHECKS.get(kind)
    if check is None:
        raise UsageError(unknown("kind of vectors", kind, CHECKS))
    spoken = vector_texts(texts)
    passed = 0
    failed: list[tuple[str, str]] = []
    lenient: list[tuple[str, tuple[str, ...], bool, str]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            vector = json_text.loads(line)
            reason = check(vector, spoken)
        except Stuck as stuck:
            reason = str(stuck)
        except (KeyError, TypeError, ValueError) as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise UsageError(f"line {number} is not a {kind} vector: {what}") from error
        about = {**vector.get("scenario", {}), **vector}
        name = str(about.get("name") or about.get("id") or f"line {number}")
        tags = tuple(about.get("tags", ()))
        if LENIENT.intersection(tags):
            lenient.append((name, tags, reason is None, reason or ""))
        elif reason is None:
            passed += 1
        else:
            failed.append((name, reason))
    return ConformReport(passed, tuple(failed), tuple(lenient))
