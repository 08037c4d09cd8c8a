"""What two values differ in, place by place, for people to read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from harness.core.json_plain import dumps, dumps_sorted
from harness.core.json_text import Json
from harness.transport.cassettes.likeness import likeness, profile
from harness.wire.canonical import Canonical, members
from harness.wire.places import joined

SHOWN = 8
"""How many differences are told one by one."""
HEAD = "the request's "
"""How places begin that are not in a body."""
_AROUND, _WITHIN, _VALUE = 24, 60, 80
"""How many characters are shown around what differs in a text, of that itself, and of a value."""
_WORD = 20
"""How far what differs is widened to whole words."""
_TABLE = 2_500
"""How large the table may be by which two lists are aligned."""
_MOVES = 2
"""How many elements of a list are told one by one where only their order has changed."""
_OF_AN_ELEMENT = 300
"""How much of an element of a list is looked at to find its like."""


class Words(Struct, frozen=True):
    """What the two sides of a comparison are called: what one of them has, what only one has, and
    where an interaction stands that only the second has.
    """

    old: str
    new: str
    only_old: str
    only_new: str
    of_new: str


RECORDED = Words("was recorded", "came", "only recorded", "only came", "of what came")
FILES = Words("before", "after", "only before", "only after", "of the second file")


class Difference(Struct, frozen=True):
    """A place that differs: what was recorded there and what came; UNSET where it is not there.
    Two lists are of the same elements, many of them in other places.
    """

    path: str
    recorded: Json = UNSET
    found: Json = UNSET

    @property
    def sentence(self) -> str:
        """The difference in a line, of what was recorded and what came.

        >>> Difference("a.b", "It rains in Rome.", "It rains in Paris.").sentence
        'a.b: "It rains in [-Rome-]." was recorded, "It rains in {+Paris+}." came'
        """
        return self.said(RECORDED)

    def said(self, words: Words) -> str:
        """The difference in a line. What is gone stands in [-…-], what is new in {+…+}: marks that
        JSON has not, nor prose.
        """
        place = self.path or "the body"
        if self.recorded is UNSET:
            return f"{place}: {words.only_new}: {_short(self.found)}"
        if self.found is UNSET:
            return f"{place}: {words.only_old}: {_short(self.recorded)}"
        if isinstance(self.recorded, list) and isinstance(self.found, list):
            return f"{place}: the same {len(self.found)} elements in another order"
        if isinstance(self.recorded, str) and isinstance(self.found, str):
            old, new = _parts(self.recorded, self.found)
        else:
            old, new = _short(self.recorded), _short(self.found)
        return f"{place}: {old} {words.old}, {new} {words.new}"


def differences(recorded: Json, found: Json, path: str = "") -> list[Difference]:
    """What two values differ in; a member or an element that only one has is one difference.

    Elements of lists are aligned, so that one more in the middle is one difference. Paths name the
    places of what came, but for what was recorded only.
    """
    return list(_differences(recorded, found, path))


def between(recorded: Canonical, found: Canonical) -> Iterator[Difference]:
    """What two requests differ in; those that ask for the same differ in nothing."""
    old, new = [
        {
            "method": each.method,
            "host": each.host,
            "path": each.path,
            "query": members(each.query),
            "kind": each.kind,
        }
        for each in (recorded, found)
    ]
    for each in differences(old, new):
        yield replace(each, path=f"{HEAD}{each.path}")
    yield from _differences(recorded.body, found.body, "")


def told(found: Sequence[Difference], indent: str = "  ") -> str:
    """The first differences, a line each, and how many more there are."""
    lines = [f"{indent}{each.sentence}" for each in found[:SHOWN]]
    if len(found) > SHOWN:
        lines.append(f"{indent}and {len(found) - SHOWN:,} more")
    return "\n".join(lines)


def _differences(recorded: Json, found: Json, path: str) -> Iterator[Difference]:
    if isinstance(recorded, dict) and isinstance(found, dict):
        for key in sorted(recorded.keys() | found.keys()):
            yield from _pair(recorded.get(key, UNSET), found.get(key, UNSET), joined(path, key))
    elif isinstance(recorded, list) and isinstance(found, list):
        spelled = [[dumps_sorted(each) for each in side] for side in (recorded, found)]
        pairs = _aligned(recorded, found, *spelled)
        if _moved(pairs, *spelled) > _MOVES and sorted(spelled[0]) == sorted(spelled[1]):
            yield Difference(path, recorded, found)
            return
        for old, new in pairs:
            at = joined(path, (old if new is None else new) or 0)
            one = UNSET if old is None else recorded[old]
            other = UNSET if new is None else found[new]
            yield from _pair(one, other, at)
    elif type(recorded) is not type(found) or recorded != found:
        yield Difference(path, recorded, found)


def _pair(recorded: Json, found: Json, path: str) -> Iterator[Difference]:
    if recorded is UNSET or found is UNSET:
        yield Difference(path, recorded, found)
    else:
        yield from _differences(recorded, found, path)


def _aligned(
    recorded: list[Json], found: list[Json], old: list[str], new: list[str]
) -> list[tuple[int | None, int | None]]:
    """Which elements of two lists belong together, in their order; `old` and `new` spell them."""
    start = _shared(old, new)
    end = _shared(old[start:][::-1], new[start:][::-1])
    a, b = range(start, len(old) - end), range(start, len(new) - end)
    middle: list[tuple[int | None, int | None]]
    if len(a) == len(b) == 1 or not a or not b or len(a) * len(b) > _TABLE:
        both = min(len(a), len(b))
        middle = [*zip(a[:both], b[:both], strict=True)]
        middle += [(n, None) for n in a[both:]] + [(None, n) for n in b[both:]]
    else:
        middle = _best([recorded[n] for n in a], [found[n] for n in b], start)
    ends = zip(range(len(old) - end, len(old)), range(len(new) - end, len(new)), strict=True)
    return [*[(n, n) for n in range(start)], *middle, *ends]


def _moved(pairs: list[tuple[int | None, int | None]], old: list[str], new: list[str]) -> int:
    """How many elements are not where they were."""
    return sum([a is None or b is None or old[a] != new[b] for a, b in pairs])


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(one, other, strict=False)
    shortest = min(len(one), len(other))
    return next((n for n, (a, b) in enumerate(pairs) if a != b), shortest)


def _best(one: list[Json], other: list[Json], start: int) -> list[tuple[int | None, int | None]]:
    """The pairs, in order, that are most alike taken together."""
    kept = [[profile(each, _OF_AN_ELEMENT) for each in side] for side in (one, other)]
    alike = [
        [_kin(a, b) * (0.01 + likeness(kept[0][n], kept[1][m])) for m, b in enumerate(other)]
        for n, a in enumerate(one)
    ]
    best = [[0.0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for n in reversed(range(len(one))):
        for m in reversed(range(len(other))):
            best[n][m] = max(best[n + 1][m], best[n][m + 1], alike[n][m] + best[n + 1][m + 1])
    pairs: list[tuple[int | None, int | None]] = []
    n = m = 0
    while n < len(one) or m < len(other):
        if (
            n < len(one)
            and m < len(other)
            and alike[n][m]
            and (best[n][m] == alike[n][m] + best[n + 1][m + 1])
        ):
            pairs.append((start + n, start + m))
            n, m = n + 1, m + 1
        elif m == len(other) or (n < len(one) and best[n][m] == best[n + 1][m]):
            pairs.append((start + n, None))
            n += 1
        else:
            pairs.append((None, start + m))
            m += 1
    return pairs


def _kin(one: Json, other: Json) -> bool:
    """Whether two elements can be the same one, changed: messages have a role, items a type."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(one.get(key) == other.get(key) for key in ("role", "type"))
    return type(one) is type(other)


def _parts(recorded: str, found: str) -> tuple[str, str]:
    """Two texts, each as what differs in it between marks, and some of what is around that."""
    start = _common(recorded, found)
    end = _common(recorded[start:][::-1], found[start:][::-1])
    start -= _to_edge(recorded[max(0, start - _WORD) : start][::-1])
    end -= _to_edge(recorded[len(recorded) - end :][:_WORD])
    return _part(recorded, start, end, "[--]"), _part(found, start, end, "{++}")


def _to_edge(text: str) -> int:
    """How many characters of the text belong to a word that it begins in."""
    return next((n for n, each in enumerate(text) if not each.isalnum()), len(text))


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with that are the same."""
    lengths = range(1, min(len(one), len(other)) + 1)
    return bisect_left(lengths, True, key=lambda n: one[:n] != other[:n])  # noqa: FBT003


def _part(text: str, start: int, end: int, marks: str) -> str:
    until = len(text) - end
    before, after = text[max(0, start - _AROUND) : start], text[until:][:_AROUND]
    within = shortened(text[start:until], _WITHIN)
    if start > _AROUND:
        before = f"...{before.lstrip()}"
    if end > _AROUND:
        after = f"{after.rstrip()}..."
    marked = f"{marks[:2]}{within}{marks[2:]}" if within else ""
    return f'"{_plain(before)}{marked}{_plain(after)}"'


def _short(value: Json) -> str:
    return shortened(dumps(value), _VALUE)


def shortened(text: str, most: int) -> str:
    r"""A text for a terminal: without its middle where it is long, without what a terminal obeys.

    >>> print(shortened("one two three four", 12), shortened("a\n\x1b[2J", 20))
    one two ...our a\n\x1b[2J
    """
    if len(text) > most:
        text = f"{text[: most - most // 3]}...{text[-(most // 3) + 1 :]}"
    return _plain(text)


def _plain(text: str) -> str:
    """A text with escapes in place of what cannot be seen."""
    if text.isprintable():
        return text
    return "".join([each if each.isprintable() else repr(each)[1:-1] for each in text])
