"""Finds the secrets in a text, whatever it is: prose, JSON, JSON in strings, base64, compressed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias, TypeVar
from urllib.parse import unquote

from msgspec import Struct

from harness.core import key_shapes
from harness.core.json_text import Json
from harness.core.key_shapes import SHAPES, Shape
from harness.transport.rules import REDACTED, Rules
from harness.transport.secrets.coded import TooLarge, decoded, deflated, inflated, runs
from harness.transport.secrets.edits import CODED, Edit, applied, in_escapes, merged
from harness.transport.secrets.known import Known
from harness.transport.secrets.looks import looks_random, looks_secret, stands_in
from harness.transport.secrets.members import Leaf, leaves, lifted, parsed
from harness.transport.secrets.names import SHORT, names_of

_Value = TypeVar("_Value")

_ATTEMPTS = 5
"""How often something is gone through, at most, until no more is found in it."""
_REPEATED = 100
"""How long a text is, at most, that is expected to come again, such as names and ids."""
_KEPT = 10_000
DEEPEST = 8
"""How many codings may stand in each other; what is in more is hidden whole."""
TOO_DEEP = "more codings in each other than are undone"
TOO_LARGE = "something compressed that becomes too large"

Doubt: TypeAlias = Literal["keep", "weigh", "hide"]
"""What becomes of that which may be a secret or not: it is kept; it is weighed by its looks, so
that as much is left as can be; it is hidden. What surely is one is hidden always.
"""

_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2}))"
"""Where a word begins, also behind an escape of JSON or of an address."""
_BEGUN = re.compile(
    _START + r"(?:sk-[\w-]{6,}|AIza[\w-]{8,}|gh[opsur]_\w{8,}|github_pat_\w{8,}"
    r"|eyJ[\w-]{2,}\.[\w-]{2,}\.[\w-]*)"
)
"""What begins as the commonest keys do: where what is in doubt is hidden, that is enough."""
_SCHEME = re.compile(_START + r"(bearer|basic)((?:\s|%20|\+){1,8})[\w.~+/=%-]{6,}", re.IGNORECASE)
_LOGIN = re.compile(r"(?<=://)[^/@\s]{1,200}@")
_NAMED = re.compile(r"(?<![\w-])([\w-]++)\\{0,8}[\"']?\s{0,4}[:=]\s{0,4}")
"""A name and what stands between it and its value."""
_VALUE = re.compile(
    r"(?P<quote>\\{0,8}[\"'])(?:(?!(?P=quote))(?:\\.|[^\n]))*+"
    r"|(?P<bare>(?:(?:bearer|basic|digest|token)\s{1,8})?[^\s\"'&,;}\]\[{\\]++)"
    r"(?:[\[{\\][^\s\"'&,;}\]]*+)?"
    r"|(?!\[redacted\])(?P<brackets>[\[{].*+)",
    re.IGNORECASE,
)
"""What stands behind a name: in quotes, however often those are escaped; up to a space, and what
goes on there in brackets; in brackets.
"""
_FAR = 4_000
"""How far from the end of a line the quote may be that closes a value."""
_FIELD = re.compile(
    r"(?<=name=\")([^\"\r\n]{1,200})"
    r"\"[^\r\n]{0,200}+(?:\r?\n[^\r\n]{1,200}+){0,8}+(?:\r?\n){2}([^\r\n]++)"
)
"""A field of a form in several parts: its name, the lines behind it, its value."""
_JSON = re.compile(r"[\ufeff\s]*[{\[]")
_ELEMENT = re.compile(r"<(?:[\w.-]{1,100}+:)?([\w.-]{1,200}+)(?:\s[^<>]{0,500})?>([^<>]{8,4000})</")
"""An element of XML that holds a text: its name, and the text."""
_SAID = re.compile(
    r"(?<![\w-])(api[ _-]?key|password|passphrase|token|secret)\s(?:is|was|provided)"
    r"\s{0,4}[:=]?\s{0,4}[\"'`]{0,3}([^\s\"'`<>,;\\]{8,400}?)(?=[.!?:)\]]{0,8}(?:[\s\"'`<>,;\\]|$))",
    re.IGNORECASE,
)
"""What a sentence calls a secret."""
_WORD = re.compile(r"[^\s\"'<>]{9,}+")
_IN_NAMES = (
    "key", "auth", "token", "secret", "pass", "pwd", "credential", "cookie", "sig", "code", "jwt",
)  # fmt: skip
"""What stands in every name of a secret."""


class Scope(Struct, frozen=True):
    """What a text may hold, as far as a look at all of it says: keys of these kinds, values that
    are known.
    """

    shapes: tuple[Shape, ...]
    known: bool


class Finder:
    """Finds secrets by their shapes, by the names that they stand behind, and by their values.

    Where what is in doubt is kept, keys must be whole, and nothing is one that stands in for a
    secret.
    """

    def __init__(self, rules: Rules, *, doubt: Doubt = "weigh") -> None:
        self._keeps = doubt == "keep"
        self._wary = doubt == "hide"
        self.names = names_of(rules.names, rules.harmless, wary=self._wary)
        self.known = Known(rules.values)
        self._patterns = [re.compile(pattern) for pattern in rules.patterns]
        self._hints = tuple([each.lower() for each in rules.names])
        self._told: dict[tuple[str, int], list[Edit]] = {}
        self._told_for: tuple[Scope | None, int] = None, 0

    def redacted(self, text: str, scope: Scope | None = None) -> str:
        """A text without its secrets."""
        return steady(lambda given: applied(given, self.edits(given, 0, scope)), text)

    def hides(self, value: str) -> bool:
        """Whether a value that has the name of a secret is one."""
        return value not in ("", REDACTED) and not (self._keeps and stands_in(value))

    def scope(self, text: str) -> Scope:
        """What a text may hold, and all that is in it, unless that is coded."""
        if "\\u" in text or "\\/" in text:
            return Scope(SHAPES, known=True)
        return Scope(key_shapes.likely(text), self.known.may_be_in(text))

    def edits(self, text: str, depth: int = 0, scope: Scope | None = None) -> list[Edit]:
        """What takes the secrets out of a text; `scope` is that of a text that holds it."""
        if scope is None:
            scope = self.scope(text)
        if len(text) < key_shapes.SHORTEST and not (scope.known or self._patterns or self._wary):
            return []
        if is_json(text):
            if depth > DEEPEST:
                return merged(text, [Edit(0, len(text), what=TOO_DEEP)])
            try:
                value, _whole = parsed(text)
            except ValueError:
                pass
            else:
                return self.in_json(text, value, depth, scope)
        return merged(text, list(self._in_prose(text, depth, scope)))

    def in_json(self, text: str, value: Json, depth: int, scope: Scope) -> list[Edit]:
        """What takes the secrets out of JSON, which has this value."""
        found = []
        for leaf in leaves(value, self.names):
            edits = self.leaf(leaf, depth, scope)
            if edits:
                found.append((leaf.number, edits))
        return merged(text, lifted(text, found)) if found else []

    def leaf(self, leaf: Leaf, depth: int, scope: Scope) -> list[Edit]:
        """What takes the secrets out of a text in JSON, or of a number there."""
        text = leaf.text
        if leaf.secret:
            if not self.hides(text):
                return []
            self.known.learn(text)
            hidden = REDACTED if leaf.kind == "text" else f'"{REDACTED}"'
            return [Edit(0, len(text), hidden, f"the value of `{leaf.name}`")]
        if leaf.kind != "number":
            return self._again(text, depth + 1, scope)
        found = next(self._by_value(text, scope), None)
        return [] if found is None else [Edit(0, len(text), f'"{REDACTED}"', found.what)]

    def _again(self, text: str, depth: int, scope: Scope) -> list[Edit]:
        """The edits of a text: of a short one, which each frame of a stream may have, they are
        kept for as long as no more secrets are known.
        """
        if len(text) > _REPEATED:
            return self.edits(text, depth, scope)
        if self._told_for[0] is not scope or self._told_for[1] != len(self.known):
            self._told.clear()
            self._told_for = scope, len(self.known)
        found = self._told.get((text, depth))
        if found is None:
            found = self.edits(text, depth, scope)
            if len(self._told) < _KEPT:
                self._told[text, depth] = found
        return found

    def data(self, data: bytes, depth: int = 0) -> tuple[bytes, str] | None:
        """Bytes without their secrets, and what one of those is; None where they have none."""
        try:
            found = inflated(data)
        except TooLarge:
            return REDACTED.encode(), TOO_LARGE
        if found is not None:
            if depth > DEEPEST:
                return REDACTED.encode(), TOO_DEEP
            inner = self.data(found.data, depth + 1)
            return None if inner is None else (deflated(inner[0], found), f"{inner[1]}, compressed")
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = data.decode(errors="surrogateescape")
            edits = merged(text, list(self._by_looks(text, self.scope(text))))
        else:
            edits = self.edits(text, depth)
        if not edits:
            return None
        return applied(text, edits).encode(errors="surrogateescape"), edits[0].what

    def _in_prose(self, text: str, depth: int, scope: Scope) -> Iterator[Edit]:
        yield from self._by_looks(text, scope)
        yield from self._by_pattern(text)
        if "://" in text:
            yield from self._logins(text)
        if "%" in text or "\\" in text:
            yield from self._in_escapes(text, depth)
        small = text.lower()
        if any(each in small for each in (*_IN_NAMES, *self._hints)):
            if "=" in text or ":" in text:
                yield from self._named(text)
            yield from self._in_words(_SAID, text)
            if "</" in text:
                yield from self._in_words(_ELEMENT, text)
            if 'name="' in text:
                yield from self._in_words(_FIELD, text, surely=self._wary)
        if "bearer" in small or "basic" in small:
            yield from self._with_scheme(text)
        yield from self._in_base64(text, depth)

    def _by_looks(self, text: str, scope: Scope) -> Iterator[Edit]:
        if scope.known:
            yield from self.known.find(text)
        for found in key_shapes.find(text, scope.shapes, cut=not self._keeps):
            if self.hides(text[found.start : found.end]):
                yield Edit(found.start, found.end, what=found.name)
        if self._wary:
            for begun in _BEGUN.finditer(text):
                yield Edit(*begun.span(), what="what begins as a key does")

    def _by_pattern(self, text: str) -> Iterator[Edit]:
        for pattern in self._patterns:
            for found in pattern.finditer(text):
                if found[0]:
                    yield Edit(*found.span(), what="what a pattern of the rules finds")

    def _by_value(self, text: str, scope: Scope) -> Iterator[Edit]:
        if scope.known:
            yield from self.known.find(text)
        yield from self._by_pattern(text)

    def _named(self, text: str) -> Iterator[Edit]:
        at = 0
        for found in _NAMED.finditer(text):
            if found.start() < at or self.names.says(found[1]) == "never":
                continue
            value = _VALUE.match(text, found.end())
            if value is None:
                continue
            start, end = self._span(value)
            if self._is_secret(found, value, text[start:end]):
                at = end
                self.known.learn(text[start:end])
                yield Edit(start, end, what=f"the value of `{found[1]}`")

    def _span(self, value: re.Match[str]) -> tuple[int, int]:
        """Where a value is that stands behind a name, without its quotes."""
        quote, end = value["quote"] or "", value.end()
        start = value.start() + len(quote)
        if not self._wary:
            return start, end if value["bare"] is None else value.end("bare")
        closing = value.string.find(quote, end, end + _FAR)  # it may stand in a later line
        return start, max(end, closing)

    def _is_secret(self, name: re.Match[str], value: re.Match[str], secret: str) -> bool:
        """Whether what stands behind a name in a text is secret: as in an address or in JSON, or
        for its looks.
        """
        before = name.string[max(0, name.start() - 1) : name.start()]
        in_address = before in ("?", "&", "#")
        in_quotes = name.string[name.end(1)] in "\"'\\" and value["quote"] is not None
        is_member = before == '"' if self._wary else in_quotes
        if not self.hides(secret) or (name[1].lower() in SHORT and not (in_address or is_member)):
            return False
        if self._wary:
            return True
        said = self.names.says(name[1])
        looks = looks_secret if said == "always" else looks_random
        return (
            (in_address and said != "as a password" and value["brackets"] is None)
            or (is_member and said == "always")
            or looks(secret.rpartition(" ")[2])
        )

    def _in_words(
        self, pattern: re.Pattern[str], text: str, *, surely: bool = False
    ) -> Iterator[Edit]:
        """What a pattern finds, a name and its value, where the value also looks like a secret, or
        `surely` is one.
        """
        for found in pattern.finditer(text):
            said, value = self.names.says(found[1]), found[2]
            if said != "never" and self.hides(value) and (surely or looks_random(value)):
                self.known.learn(value)
                yield Edit(*found.span(2), what=f"the value of `{found[1]}`")

    def _in_escapes(self, text: str, depth: int) -> Iterator[Edit]:
        for word in _WORD.finditer(text):
            if CODED.search(word[0]) is None:
                continue
            if depth > DEEPEST:
                yield Edit(*word.span(), what=TOO_DEEP)
                continue
            inside = in_escapes(text, *word.span())
            yield from inside.lift(self.edits(inside.text, depth + 1))

    def _logins(self, text: str) -> Iterator[Edit]:
        for found in _LOGIN.finditer(text):
            login = found[0][:-1]
            if self.hides(login) and (self._wary or ":" in login or looks_secret(login)):
                self.known.learn(unquote(login.partition(":")[2]))
                yield Edit(found.start(), found.end() - 1, what="a login in an address")

    def _with_scheme(self, text: str) -> Iterator[Edit]:
        for found in _SCHEME.finditer(text):
            start = found.end(2)
            value = text[start : found.end()]
            if self.hides(value) and (self._wary or _may_log_in(found[1], value)):
                self.known.learn(value)
                yield Edit(start, found.end(), what=f"what stands behind `{found[1]}`")

    def _in_base64(self, text: str, depth: int) -> Iterator[Edit]:
        for run in runs(text):
            if depth > DEEPEST:
                yield Edit(run.start, run.end, what=TOO_DEEP)
                continue
            shown = self.data(run.data, depth + 1)
            if shown is not None:
                data, what = shown
                yield Edit(run.start, run.end, run.spelled(data), f"{what}, in base64")


def steady(redact: Callable[[_Value], _Value], given: _Value) -> _Value:
    """What is redacted until no more is found: what stood right behind a secret may look like one
    only without it.
    """
    for _ in range(_ATTEMPTS):
        shown = redact(given)
        if shown == given:
            break
        given = shown
    return given


def is_json(text: str) -> bool:
    """Whether a text begins as an object or a list of JSON does."""
    return _JSON.match(text) is not None


def _may_log_in(scheme: str, value: str) -> bool:
    """Whether what stands behind a scheme is no word behind another, as in "basic python3.12", nor
    one without digits that anybody would write.
    """
    if scheme.lower() == "basic" and b":" not in decoded(value):
        return False
    return looks_secret(value) or (len(value) >= 12 and re.search("[a-z][A-Z]", value) is not None)
