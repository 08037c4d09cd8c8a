"""HTML that nothing can be smuggled into: what is no markup already is text, and is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable

from harness.core import json_text
from harness.core.json_text import Json
from harness.report.values import printable

_EMPTY = frozenset({"br", "input", "meta", "wbr"})
"""Elements that hold nothing and are not closed."""
_IN_SCRIPT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
"""What could end a script element, or begin one within it, as JSON spells it too."""


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


def text(plain: str) -> Markup:
    r"""Text as HTML shows it; what cannot be seen is escaped, as in all reports.

    >>> text("<b> & \u202e")
    '&lt;b&gt; &amp; \\u202e'
    """
    return Markup(html.escape(printable(plain)))


def tag(name: str, /, *children: str | None, **attributes: str | int | bool | None) -> Markup:
    """An element. Children that are no `Markup` are text; None is nothing.

    An attribute of True stands bare, one of None or False is left out; `class_` is `class`, and an
    underscore within a name a hyphen.

    >>> tag("a", "x < y", href="#1", class_="far", data_at=3, hidden=False)
    '<a href="#1" class="far" data-at="3">x &lt; y</a>'
    """
    opening = [name]
    for key, value in attributes.items():
        spelled = key.rstrip("_").replace("_", "-")
        if value is True:
            opening.append(spelled)
        elif value is not None and value is not False:
            opening.append(f'{spelled}="{text(str(value))}"')
    start = f"<{' '.join(opening)}>"
    return Markup(start if name in _EMPTY else f"{start}{joined(children)}</{name}>")


def joined(parts: Iterable[str | None]) -> Markup:
    """Parts behind each other; those that are no `Markup` are text."""
    return Markup(
        "".join([part if isinstance(part, Markup) else text(part) for part in parts if part])
    )


def data(value: Json) -> Markup:
    r"""A JSON value as an element that holds it for scripts, and that nothing runs.

    >>> print(data("</script>"))
    <script type="application/json">"\u003c/script\u003e"</script>
    """
    spelled = json_text.dumps(value).translate(_IN_SCRIPT)
    spelled = spelled.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return Markup(f'<script type="application/json">{spelled}</script>')
