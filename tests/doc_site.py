"""Makes the site's pages of the documents: what `doc_blocks` reads in a fence becomes its title."""

from __future__ import annotations

import re
from typing import Any

_OPENING = re.compile(r"^(?P<fence>`{3,}|~{3,})(?P<language>\w+) (?P<options>\S.*)$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Show the name of a file above its block, and leave out what only a test needs to know."""
    return _OPENING.sub(_opening, markdown)


def _opening(found: re.Match[str]) -> str:
    options = dict(word.partition("=")[::2] for word in found["options"].split())
    title = f' title="{options["file"]}"' if "file" in options else ""
    return f"{found['fence']}{found['language']}{title}"
