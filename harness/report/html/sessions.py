"""The part of a page that shows a recorded session: who said what, when, and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.durations import moment
from harness.core.wording import counted
from harness.report.conversation import Conversation, Said, Who, lines
from harness.report.html.lanes import Kind, Lane, Picture, in_order
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
    lanes = in_order(keys)
    at: list[int] = []
    spans: list[tuple[int, int, int]] = []
    calls: dict[str, list[int]] = {}
    asked = answered = -1
    for index, each in enumerate(said):
        at.append(max(each.at or 0, at[-1] if at else 0))
        name = keys[index][1]
        if each.who in ("asks", "user"):
            if asked >= 0:
                spans.append((asked, answered, 0))
            asked = answered = index if each.who == "asks" else -1
        elif each.who in ("thinks", "says", "calls", "wrong"):
            answered = index
        if each.who == "calls":
            calls.setdefault(name, []).append(index)
        elif each.who == "gives" and calls.get(name):
            spans.append((calls[name].pop(0), index, 0))
    if asked >= 0:
        spans.append((asked, answered, 0))
    places = {key: place for place, key in enumerate(lanes)}
    return Picture(
        tuple([Lane(*key) for key in lanes]),
        tuple(at),
        tuple([places[key] for key in keys]),
        tuple(sorted(spans)),
        (),
        tuple([index for index, each in enumerate(said) if each.who == "wrong"]),
    )


def _lane(said: Said) -> tuple[Kind, str]:
    if said.who == "calls":
        return "tool", said.text.partition(" ")[0]
    if said.who == "gives":
        return "tool", said.text.partition(":")[0]
    return _LANES[said.who]


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
