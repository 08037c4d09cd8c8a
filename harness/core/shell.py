"""Command lines: words as a shell takes them, and a line in the words that it means.

On Windows quotes are double ones, and a backslash stands in paths; elsewhere it is as in sh.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence

WINDOWS = os.name == "nt"

_PLAIN = re.compile(r"[\w@%+=:,./\\\[\]-]+", re.ASCII)
"""A word that the shells of Windows take as it is."""
_BEFORE_QUOTE = re.compile(r'(\\*)("|$)')


def join(words: Sequence[str], *, windows: bool = WINDOWS) -> str:
    r"""One line of several words, to be copied into a shell.

    >>> join(["pytest", "test_it.py::test[a b]"], windows=False)
    "pytest 'test_it.py::test[a b]'"
    >>> join(["pytest", "test_it.py::test[a b]"], windows=True)
    'pytest "test_it.py::test[a b]"'
    """
    return " ".join(map(_quoted, words)) if windows else shlex.join(words)


def split(line: str, *, windows: bool = WINDOWS) -> list[str]:
    r"""The words of a line; ValueError where a quote is not closed.

    >>> split(r'node "C:\my agents\it.mjs" -v', windows=True)
    ['node', 'C:\\my agents\\it.mjs', '-v']
    """
    if not windows:
        return shlex.split(line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = lexer.escape = ""
    lexer.quotes = '"'
    return list(lexer)


def setting(name: str, value: str, *, windows: bool = WINDOWS) -> str:
    """The line that sets a variable for the programs that a shell starts.

    >>> setting("PORT", "80", windows=False), setting("PORT", "80", windows=True)
    ('export PORT=80', 'set PORT=80')
    """
    return f"set {name}={value}" if windows else f"export {name}={value}"


def _quoted(word: str) -> str:
    """A word in double quotes where it needs them; programs of Windows take a backslash for one
    that escapes only before a quote.
    """
    if _PLAIN.fullmatch(word):
        return word
    return '"' + _BEFORE_QUOTE.sub(lambda m: m[1] * 2 + ('\\"' if m[2] else ""), word) + '"'
