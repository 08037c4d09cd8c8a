"""What the tests of a session came to: noted by fixtures, carried by reports, told at the end."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any, NoReturn

import msgspec
import pytest
from msgspec.structs import asdict, replace

from harness.core import files, json_text
from harness.report.json_report import (
    Item,
    ResultJson,
    SweepJson,
    json_report,
    result_of,
    totals_lines,
    totals_of,
)
from harness.report.not_run import NotRun
from harness.testing.results_plugin import RESULTS

_RANKS = ("SKIPPED", "PASS", "INCOMPLETE", "FAIL", "ERROR")
_WELL = ("PASS", "SKIPPED")
_NARROWEST = 20
_DRAWN = 200
"""How many results a page shows at most."""
_NAMED = 4
"""How many invariants that never judged are named where nobody asks for more (-v)."""


def note(node: pytest.Item | pytest.Collector, item: Item) -> None:
    """Keep what a test, or a file of them, has come to, until its report carries it."""
    node.stash.setdefault(RESULTS, []).append(item)


def refuse(node: pytest.Item, lost: NotRun) -> NoReturn:
    """Keep what a test was to run and could not, and fail it with the reason."""
    note(node, lost)
    pytest.fail(lost.reason, pytrace=False)


def forget_refused(node: pytest.Item) -> None:
    """Keep no longer what a test could not run: it is passed over."""
    noted: list[Item] = node.stash.get(RESULTS, [])
    noted[:] = [each for each in noted if not isinstance(each, NotRun)]


def add_properties(node: pytest.Item) -> None:
    """Have JUnit's XML, and whoever else reads a test's properties, say what it came to."""
    results = [result_of(item) for item in node.stash.get(RESULTS, ())]
    if not results:
        return
    points = sum(each.points for each in results if isinstance(each, SweepJson))
    tokens = [found.token for each in results for found in each.findings if found.token]
    facts: list[tuple[str, object]] = [
        ("harness_status", max([each.status for each in results], key=_RANKS.index)),
        ("harness_runs", totals_of(results).runs),
        *[("harness_points", points)] * bool(points),
        *[("harness_token", token) for token in dict.fromkeys(tokens)],
    ]
    node.user_properties += facts


def carried(node: pytest.Item | pytest.Collector) -> str:
    """What a test came to, as its report carries it from process to process, whatever characters
    are in it: of each result the data, and where a page was asked for, what that shows of it.
    """
    drawn = bool(node.config.getoption("harness_html"))
    items = node.stash[RESULTS]
    plain = [
        {
            "result": msgspec.to_builtins(replace(result_of(item), test=node.nodeid)),
            "part": _part(node, number, item) if drawn else None,
        }
        for number, item in enumerate(items, 1)
    ]
    return json_text.dumps(plain)


def _part(node: pytest.Item | pytest.Collector, number: int, item: Item) -> dict[str, Any]:
    from harness.report.html.document import part_of

    known = hashlib.sha256(node.nodeid.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    part = part_of(item, f"t{known}-{number}")
    summary = f"{part.summary}; {node.nodeid}"
    return {**asdict(part), "body": str(part.body), "summary": summary}


def _page(carried: Sequence[dict[str, Any]]) -> str:
    """A page of what did not pass, what could not be run first; of all where nothing failed. Both
    as far as there is room.
    """
    from harness.report.html.document import page_of, rank
    from harness.report.html.markup import Markup
    from harness.report.html.part import Part

    drawn = [each["part"] for each in carried]
    chosen = [each for each in drawn if each["status"] not in _WELL] or drawn
    chosen.sort(key=lambda each: rank(each["status"]) > 0)
    parts = [Part(**{**each, "body": Markup(each["body"])}) for each in chosen[:_DRAWN]]
    some = f": the first {_DRAWN:,} of {len(chosen):,}" if len(chosen) > _DRAWN else ""
    return page_of(parts, title=f"harness in pytest{some}")


def _json(carried: Sequence[dict[str, Any]]) -> str:
    return json_report([msgspec.convert(each["result"], ResultJson) for each in carried])


def finish(carried: Sequence[str], config: pytest.Config) -> tuple[list[str], bool]:
    """Write the files that were asked for; what to say at the end, and whether one failed."""
    gathered = [each for text in carried for each in json_text.loads(text)]
    gathered.sort(key=lambda each: str(each["result"]["test"]))  # whoever ran it first
    results = [msgspec.convert(each["result"], ResultJson) for each in gathered]
    named = None if getattr(config.option, "verbose", 0) > 0 else _NAMED
    lines, failed = totals_lines(totals_of(results), named), False
    for option, make in {"harness_json": _json, "harness_html": _page}.items():
        name: str | None = config.getoption(option)
        if name:
            error = _write(config.invocation_params.dir / name, make(gathered))
            lines.append(f"ERROR: {name} cannot be written: {error}" if error else f"wrote {name}")
            failed = failed or bool(error)
    return lines, failed


def narrowed(lines: Sequence[str], columns: int) -> list[str]:
    """Lines that a terminal of so many columns does not break."""
    width = max(columns - 1, _NARROWEST)
    parts = [wrap(line, width, subsequent_indent="  ", break_on_hyphens=False) for line in lines]
    return [each for part in parts for each in part]


def _write(path: Path, text: str) -> str:
    """Write a file whole, or leave it as it was; why it cannot be written, or ""."""
    try:
        files.put(path, text.encode())
    except OSError as error:
        return error.strerror or str(error)
    return ""
