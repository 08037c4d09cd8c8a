"""Words that depend on a number or on the word that follows."""

from __future__ import annotations


def plural(noun: str, number: int) -> str:
    """A regular noun as it goes with a number of things.

    >>> plural("call", 1), plural("call", 0)
    ('call', 'calls')
    """
    return noun if number == 1 else f"{noun}s"


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "step"), counted(2_000, "step")
    ('1 step', '2,000 steps')
    """
    return f"{number:,} {plural(noun, number)}"


def an(word: str) -> str:
    """A word with the article that goes before it, by its first letter.

    >>> an("error"), an("cancelled")
    ('an error', 'a cancelled')
    """
    return f"an {word}" if word[:1] in tuple("aeiou") else f"a {word}"
