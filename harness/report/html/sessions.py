"""The part of a page that shows a recorded session: who said what, when, and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.durations import moment
from harness.core.wording import counted
from harness.report.conversation import Conversation, Said, lines
from harness.report.html.markup import Markup, joined, tag, text
from harness.report.html.part import Part


def session_part(conversation: Conversation) -> Part:
    """A session, a section each turn."""
    sections = [
        tag(
            "section",
            tag("h3", section.title),
            tag("ol", *_items(section.said), class_="said"),
        )
        for section in conversation.sections
    ]
    name, _, on = conversation.title.partition(" · ")
    said = [each for section in conversation.sections for each in section.said]
    wrong = sum(each.who == "wrong" for each in said)
    summary = counted(len(conversation.sections), "section")
    if wrong:
        summary += f", {counted(wrong, 'time')} something went wrong"
    return Part("session", name, on, None, summary, joined(sections))


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
