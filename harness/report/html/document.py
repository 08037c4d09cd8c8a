"""Runs, sweeps, searches and sessions as one page that needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias, assert_never

from harness.core.wording import counted
from harness.report.conversation import Conversation
from harness.report.html.explored import search_part, sweep_part
from harness.report.html.markup import Markup, joined, tag
from harness.report.html.not_run import not_run_part
from harness.report.html.part import Part, badge
from harness.report.html.runs import function_part, replay_part, run_part
from harness.report.html.sessions import session_part
from harness.report.not_run import NotRun
from harness.report.replay import FunctionReplay, Replay
from harness.report.search import Exploration
from harness.report.sweep import Sweep
from harness.report.terminal import Report

Item: TypeAlias = Report | Sweep | Exploration | Replay | FunctionReplay | Conversation | NotRun
"""What a page can show."""

_RANKS = {"ERROR": 0, "FAIL": 1, "INCOMPLETE": 1, "SKIPPED": 2}
"""What is listed before all others, the smallest number first."""
_COUNTED = ("PASS", "FAIL", "INCOMPLETE", "ERROR", "SKIPPED")
_STYLES = ("page.css",)
_FOR_READERS = re.compile(r"^\s*(?:(?://.*|/\*\*.*\*/)\n)?", re.MULTILINE)
_SCRIPTS = ("dom.js", "scale.js", "marks.js", "lanes.js", "events.js", "figure.js", "page.js")


def page(items: Sequence[Item], *, title: str = "") -> str:
    """One HTML page that shows `items`; the same items give the same text.

    It asks for nothing from anywhere, and allows itself no more: its own script and style are let
    in by their hashes. Without scripts all is there to be read but the pictures. `title` is what is
    shown where it is opened; by itself it is made of what the page shows.
    """
    return page_of([part_of(item, f"r{at}") for at, item in enumerate(items, 1)], title=title)


def page_of(parts: Sequence[Part], *, title: str = "") -> str:
    """The same of parts that were made elsewhere, each with an anchor of its own."""
    named = title or _title(parts)
    heading = named if title or len(parts) != 1 else f"harness {parts[0].kind}"
    style, script = _asset(_STYLES), _asset(_SCRIPTS)
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", named),
        tag("style", Markup(style)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the report", href="#main", class_="skip"),
        tag("header", tag("h1", heading), _counts(parts), class_="top"),
        tag(
            "main",
            _contents(parts) if len(parts) > 1 else None,
            *[_section(part, f"r{number}") for number, part in enumerate(parts, 1)],
            id="main",
        ),
        tag("script", Markup(script), type="module"),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def part_of(item: Item, anchor: str) -> Part:
    """An item as a part of a page; all that it links to within itself begins with `anchor`."""
    figure = f"{anchor}-run"
    match item:
        case Report():
            return run_part(item, figure)
        case Sweep():
            return sweep_part(item, anchor)
        case Exploration():
            return search_part(item, anchor)
        case Replay():
            return replay_part(item, figure)
        case FunctionReplay():
            return function_part(item, figure)
        case Conversation():
            return session_part(item, figure)
        case NotRun():
            return not_run_part(item)
        case _:
            assert_never(item)


def _title(parts: Sequence[Part]) -> str:
    if len(parts) == 1:
        return f"{parts[0].kind}: {parts[0].name}"
    kinds = Counter([part.kind for part in parts])
    return ", ".join([counted(count, kind) for kind, count in kinds.items()]) or "nothing was run"


def _counts(parts: Sequence[Part]) -> Markup | None:
    """How many came to what."""
    counts = Counter([part.status for part in parts if part.status is not None])
    if len(parts) < 2:
        return None
    shown = [
        joined([badge(status), f" {counts[status]:,}"])
        for status in sorted(counts, key=_COUNTED.index)
    ]
    return tag("p", *shown, class_="counts")


def rank(status: str | None) -> int:
    """Where what came to this stands in a list: what was not run first, what passed last."""
    return _RANKS.get(status or "", len(_RANKS))


def _contents(parts: Sequence[Part]) -> Markup:
    """All parts in a table, each with a link to it; what was not run first, what passed last."""
    judged = any(part.status is not None for part in parts)
    ons = any(part.on for part in parts)
    rows = [
        tag(
            "tr",
            tag("td", badge(part.status)) if judged else None,
            tag("th", tag("a", part.name, href=f"#r{number}"), scope="row"),
            tag("td", part.on) if ons else None,
            tag("td", part.summary),
            data_status=part.status,
            data_part=f"r{number}",
        )
        for number, part in sorted(enumerate(parts, 1), key=lambda each: rank(each[1].status))
    ]
    names = ("verdict" if judged else "", "name", "on" if ons else "", "what came of it")
    heads = [tag("th", name, scope="col") for name in names if name]
    return tag(
        "nav",
        tag(
            "div",
            tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows), class_="contents"),
            class_="scroll",
        ),
        aria_label="All that is shown",
    )


def _section(part: Part, anchor: str) -> Markup:
    on = joined([" on ", tag("span", part.on)]) if part.on else None
    return tag(
        "section",
        tag("h2", badge(part.status), " ", part.name, tag("small", on)),
        tag("p", tag("span", part.kind, class_="kind"), f" {part.summary}", class_="summary"),
        part.body,
        id=anchor,
        class_="part",
        aria_label=f"{part.kind} {part.name}",
        tabindex=-1,
    )


@cache
def _asset(names: tuple[str, ...]) -> str:
    """The files' text, without what is there for their readers: comments and indentation."""
    folder = Path(__file__).parent
    whole = "".join([(folder / name).read_text(encoding="utf-8") for name in names])
    return _FOR_READERS.sub("", whole)


def _digest(inline: str) -> str:
    digest = hashlib.sha256(inline.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
