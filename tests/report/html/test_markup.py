"""Nothing is smuggled into a page: texts are escaped, and JSON ends no element."""

from __future__ import annotations

from html.parser import HTMLParser

from harness.core import json_text
from harness.report.html.markup import Markup, data, joined, tag, text
from tests.report.html.items import HOSTILE


class Seen(HTMLParser):
    """The elements and the text of some HTML."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_text_is_only_text() -> None:
    seen = Seen(tag("p", HOSTILE, title=HOSTILE))
    assert seen.tags == ["p"]
    assert seen.text == HOSTILE.translate({0x2028: "\\u2028", 0x202E: "\\u202e", 0xD800: "\\ud800"})
    assert tag("p", HOSTILE).encode()  # what is no Unicode is spelled


def test_what_is_markup_stays() -> None:
    assert tag("p", tag("b", "1 < 2"), None, "", "&") == "<p><b>1 &lt; 2</b>&amp;</p>"
    assert joined([Markup("<br>"), None, "<"]) == "<br>&lt;"


def test_attributes_are_spelled_as_html_spells_them() -> None:
    assert tag(
        "input", type="checkbox", aria_label='"', class_="a", checked=True, hidden=False
    ) == ('<input type="checkbox" aria-label="&quot;" class="a" checked>')


def test_data_is_the_same_json_and_ends_nothing() -> None:
    spelled = data({"a": [HOSTILE, "<!-- <script>"]})
    seen = Seen(spelled)
    assert seen.tags == ["script"]
    assert "<" not in seen.text
    assert json_text.loads(seen.text) == {"a": [HOSTILE, "<!-- <script>"]}


def test_text_hides_nothing() -> None:
    assert text("a\u200bb\x1b") == "a\\u200bb\\u001b"
