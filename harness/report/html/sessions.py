"""The part of a page that shows a recorded session: who said what, when, and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.durations import moment
from harness.core.wording import counted
from harness.report.conversation import Conversation, Said, Who, lines
from harness.report.html.lanes import Kind, Lane, Picture, Rows, in_order
from harness.report.html.markup import Markup, data, joined, tag, text
from harness.report.html.part import Part

_LANES: dict[Who, tuple[Kind, str]] = {
    "user": ("user", "user"),
    "asks": ("model", "model"),
    "thinks": ("model", "model"),
    "says": ("model", "model"),
    "wrong": ("run", "wrong"),
    "note": ("log", "notes"),
}


def session_part(conversation: Conversation, anchor: str) -> Part:
    """A session: its lanes, and what was said, a section each turn."""
    sections = [
        tag(
            "section",
            tag("h3", section.title),
            tag("ol", *_items(section.said), class_="said"),
        )
        for section in conversation.sections
    ]
    name, _, about = conversation.title.partition(" · ")
    said = [each for section in conversation.sections for each in section.said]
    lanes = tag("div", data(_picture(said).plain()), class_="figure", id=anchor) if said else None
    wrong = sum(each.who == "wrong" for each in said)
    summary = f"{about} · " if about else ""
    summary += counted(len(conversation.sections), "section")
    if wrong:
        summary += f", {counted(wrong, 'time')} something went wrong"
    return Part("session", name, "", None, summary, joined([lanes, *sections]))


def _picture(said: Sequence[Said]) -> Picture:
    """What was said as marks: a request goes on to the last that came of it, a call to what it
    gave. What has no time stands where what was said before it does.
    """
    keys = [_lane(each) for each in said]
    rows = Rows()
    at: list[int] = []
    spans: list[tuple[int, int, int]] = []
    calls: dict[str, list[tuple[int, int]]] = {}
    below: list[tuple[int, int]] = []
    asked = answered = -1
    for index, each in enumerate(said):
        at.append(max(each.at or 0, at[-1] if at else 0))
        rows.use(keys[index])
        if each.who in ("asks", "user"):
            if asked >= 0:
                spans.append((asked, answered, 0))
            asked = answered = index if each.who == "asks" else -1
        elif each.who in ("thinks", "says", "calls", "wrong"):
            answered = index
        if each.who == "calls":
            row = rows.take(keys[index])
            calls.setdefault(each.tool, []).append((index, row))
            below.append((index, row))
        elif each.who == "gives" and calls.get(each.tool):
            begun, row = calls[each.tool].pop(0)
            rows.free(keys[index], row)
            spans.append((begun, index, row))
            below.append((index, row))
    if asked >= 0:
        spans.append((asked, answered, 0))
    lanes = in_order(rows.counts)
    places = {key: place for place, key in enumerate(lanes)}
    return Picture(
        tuple([Lane(*key, rows.counts[key]) for key in lanes]),
        tuple(at),
        tuple([places[key] for key in keys]),
        tuple(sorted(spans)),
        tuple([each for each in below if each[1]]),
        tuple([index for index, each in enumerate(said) if each.who == "wrong"]),
    )


def _lane(said: Said) -> tuple[Kind, str]:
    return ("tool", said.tool) if said.who in ("calls", "gives") else _LANES[said.who]


def _items(said: Sequence[Said]) -> list[Markup]:
    items, before = [], None
    for each in said:
        shown = "" if each.at is None or each.at == before else moment(each.at)
        before = before if each.at is None else each.at
        words = Markup("\n".join([text(line) for line in lines(each.text).split("\n")]))
        items.append(
            tag(
                "li",
                tag("time", shown),
                tag("b", each.who),
                tag("div", words),
                class_=each.who,
            )
        )
    return items
