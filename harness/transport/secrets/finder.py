"""Finds the secrets in a text, whatever it is: prose, JSON, JSON in strings, base64, compressed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.core import key_shapes
from harness.core.errors import UsageError
from harness.transport.cassettes.form import Rules
from harness.transport.redact import LOGIN, NAMED, REDACTED, SCHEME, SHORT
from harness.transport.secrets.coded import TooLarge, deflated, inflated, runs
from harness.transport.secrets.edits import Edit, applied, merged
from harness.transport.secrets.known import Known
from harness.transport.secrets.members import Leaf, leaves
from harness.transport.secrets.names import Names, looks_secret
from harness.wire.reading import json_of

DEEPEST = 8
"""How many codings may stand in each other; what is in more is hidden whole."""
TOO_DEEP = "more codings in each other than are undone"
TOO_LARGE = "something compressed that becomes too large"

_VALUE = re.compile(
    r"(\\{0,8}[\"'])([^\n]*?)(?:\1|$)"
    r"|((?:(?:bearer|basic|digest|token)\s{1,8})?[^\s\"'&,;}\]\[{\\]++)",
    re.IGNORECASE | re.MULTILINE,
)
"""What stands behind a name: in quotes, however often those are escaped, or up to a space."""


class Finder:
    """Finds secrets by their shapes, by the names that they stand behind, and by their values.

    UsageError where a pattern of the rules is none.
    """

    def __init__(self, rules: Rules) -> None:
        self.names = Names(rules.names)
        self.known = Known(rules.values)
        self._patterns = [_compiled(pattern) for pattern in rules.patterns]

    def redacted(self, text: str) -> str:
        """A text without its secrets."""
        return applied(text, self.edits(text))

    def edits(self, text: str, depth: int = 0) -> list[Edit]:
        """What takes the secrets out of a text."""
        if text.startswith(("{", "[")):
            if depth > DEEPEST:
                return merged(text, [Edit(0, len(text), what=TOO_DEEP)])
            try:
                json_of(text)
            except ValueError:
                return merged(text, [*self._in_json(text, depth), *self._in_prose(text, depth)])
            return merged(text, self._in_json(text, depth))
        return merged(text, self._in_prose(text, depth))

    def data(self, data: bytes, codings: str = "", depth: int = 0) -> bytes | None:
        """Bytes without their secrets; None where they have none."""
        try:
            found = inflated(data, codings)
        except TooLarge:
            return REDACTED.encode()
        if found is not None:
            inner = self.data(found.data, "", depth + 1)
            return None if inner is None else deflated(inner, found)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = data.decode(errors="surrogateescape")
            edits = merged(text, self._by_looks(text))
        else:
            edits = self.edits(text, depth)
        return applied(text, edits).encode(errors="surrogateescape") if edits else None

    def leaf(self, leaf: Leaf, depth: int) -> list[Edit]:
        """What takes the secrets out of a text in JSON, or of a number there."""
        text = leaf.view.text
        if leaf.secret:
            self.known.learn(text)
            hidden = REDACTED if leaf.is_text else f'"{REDACTED}"'
            return merged(
                text, [Edit(0, len(text), hidden, f"the value of `{leaf.name}`")] * bool(text)
            )
        if leaf.is_text:
            return self.edits(text, depth + 1)
        found = next(self._by_value(text), None)
        return [] if found is None else [Edit(0, len(text), f'"{REDACTED}"', found.what)]

    def _in_json(self, text: str, depth: int) -> Iterator[Edit]:
        for leaf in leaves(text, self.names):
            yield from leaf.view.lift(self.leaf(leaf, depth))

    def _in_prose(self, text: str, depth: int) -> Iterator[Edit]:
        yield from self._by_looks(text)
        yield from self._by_pattern(text)
        if len(text) < key_shapes.SHORTEST:
            return
        yield from self._named(text)
        for found in SCHEME.finditer(text):
            start = found.end(2)
            value = text[start : found.end()]
            if looks_secret(value) or _is_mixed(value):
                self.known.learn(value)
                yield Edit(start, found.end(), what=f"what stands behind `{found[1]}`")
        for found in LOGIN.finditer(text):
            login = found[0][:-1]
            if ":" in login or looks_secret(login):
                yield Edit(found.start(), found.end() - 1, what="a login in an address")
        yield from self._in_base64(text, depth)

    def _by_looks(self, text: str) -> Iterator[Edit]:
        yield from self.known.find(text)
        for found in key_shapes.find(text, cut=True):
            yield Edit(found.start, found.end, what=found.name)

    def _by_pattern(self, text: str) -> Iterator[Edit]:
        for pattern in self._patterns:
            for found in pattern.finditer(text):
                if found[0]:
                    yield Edit(*found.span(), what="what a pattern of the rules finds")

    def _by_value(self, text: str) -> Iterator[Edit]:
        yield from self.known.find(text)
        yield from self._by_pattern(text)

    def _named(self, text: str) -> Iterator[Edit]:
        at = 0
        for found in NAMED.finditer(text):
            name = found[1]
            said = self.names.says(name)
            if said == "never" or found.start() < at:
                continue
            before = text[max(0, found.start() - 1) : found.start()]
            quoted = text[found.end(1) : found.end(1) + 1] in ('"', "'", "\\")
            in_address = before in ("?", "&")
            if name.lower() in SHORT and not (in_address or quoted):
                continue
            value = _VALUE.match(text, found.end())
            if value is None:
                continue
            group = 3 if value[1] is None else 2
            if (
                in_address
                or (quoted and group == 2 and said == "always")
                or looks_secret(value[group].rpartition(" ")[2])
            ):
                at = value.end()
                self.known.learn(value[group])
                if value[group]:
                    yield Edit(*value.span(group), what=f"the value of `{name}`")

    def _in_base64(self, text: str, depth: int) -> Iterator[Edit]:
        for run in runs(text):
            if depth > DEEPEST:
                yield Edit(run.start, run.end, what=TOO_DEEP)
                continue
            data = self.data(run.data, "", depth + 1)
            if data is not None:
                yield Edit(run.start, run.end, run.spelled(data), "a secret in base64")


def _is_mixed(value: str) -> bool:
    """Whether a word without digits is none that anybody would write."""
    return len(value) >= 12 and re.search("[a-z][A-Z]", value) is not None


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"the pattern {pattern!r} for secrets is no regular expression: {error}; "
            "expected one as Python's module re reads it"
        ) from None
