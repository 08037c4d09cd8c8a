"""YAML text in and out: the one place where YAML becomes values and values become YAML.

Plain scalars mean what the core schema of YAML 1.2 says, and no more: ``14:05``, ``No``, ``yes``
and ``1_000`` are text. Refused, with their places: duplicate keys, tags that are not the core's,
several documents, infinite numbers, more aliases, depth or values than the limits allow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import yaml
from msgspec import Struct

from harness.core.json_text import Json, well_formed
from harness.core.located import (
    LIMITS,
    Entry,
    Limits,
    ListNode,
    MapNode,
    Node,
    Problems,
    Scalar,
    Spot,
    describe,
    quoted,
)
from harness.core.reading import (
    FORBIDDEN,
    LARGEST,
    TOO_LARGE,
    Tally,
    Unreadable,
    at,
    attempt,
    not_closed,
)

_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN")
_PYYAML_NUMBER = re.compile(
    r"[-+]?[0-9]+|0x[0-9a-fA-F]+|([-+]?[0-9]+\.[0-9]*|\.[0-9]+)([eE][-+][0-9]+)?|[-+]?\.(inf|nan)",
    re.IGNORECASE,
)
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_CORE = "tag:yaml.org,2002:"
_SURROGATE_ESCAPE = re.compile(r"\\(u|U0000)[dD][89a-fA-F]")

_Loader: TypeAlias = Any
"""A PyYAML loader; the fast one and the slow one have no typed base in common."""


class Dialect(Struct, frozen=True):
    """What a text means that a person did not write: `tags` are those that count beside the core's,
    by their names behind ``!!``; each makes of a node, read as if it had no tag, what it stands
    for, and None where it does not fit. `pyyaml` says that PyYAML wrote the plain scalars: to it,
    ``12e45`` and ``0o17`` are text. It also never writes half of a surrogate pair, so that the fast
    parser always does.
    """

    tags: Mapping[str, Callable[[Node], Node | None]] = {}
    pyyaml: bool = False


CORE = Dialect()
"""What files that people write are read as."""


def read(
    data: str | bytes, problems: Problems, limits: Limits = LIMITS, dialect: Dialect = CORE
) -> Node | None:
    """The one document of a YAML text; None, and a problem, where there is none to go on with.

    A text without a document is null.
    """

    def document(text: str, tally: Tally) -> Node:
        return _Reader(text, tally, dialect).document()

    return attempt(document, data, problems, limits)


class _Reader:
    """Builds nodes from the events of PyYAML's parser, counting as it goes."""

    def __init__(self, text: str, tally: Tally, dialect: Dialect) -> None:
        self._text = text
        self._tally = tally
        self._dialect = dialect
        self._aliases = 0
        self._referred = 0
        self._anchors: dict[str, Node | None] = {}
        # The C parser is much faster, but refuses the escape of a lone surrogate.
        fast = yaml.__with_libyaml__ and (dialect.pyyaml or not _SURROGATE_ESCAPE.search(text))
        self._loader: _Loader = (yaml.CSafeLoader if fast else yaml.SafeLoader)(text)

    def document(self) -> Node:
        self._next()
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return Scalar(None, 1, 1)
        if event.version not in (None, (1, 2)):
            self._note(event, "files are read as YAML 1.2; remove the %YAML line")
        node = self._node(self._next(), 1)
        self._next()
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            raise self._stop(event, "a second document begins; a file holds one")
        return node

    def _node(self, event: Any, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        mark = event.start_mark
        place = Spot(mark.line + 1, mark.column + 1)
        self._tally.count(place, depth)
        anchor = event.anchor
        if anchor is not None:
            self._anchors[anchor] = None
        node: Node
        tagged = self._meaning(event)
        if isinstance(event, yaml.ScalarEvent):
            value = event.value if tagged else self._scalar(event)
            node = Scalar(value, place.line, place.column)
        elif isinstance(event, yaml.SequenceStartEvent):
            if not tagged:
                self._collection_tag(event, "seq", "a list")
            items = []
            while not isinstance(event := self._next(), yaml.SequenceEndEvent):
                items.append(self._node(event, depth + 1))
            node = ListNode(tuple(items), place.line, place.column)
        else:
            if not tagged:
                self._collection_tag(event, "map", "a mapping")
            node = MapNode(self._entries(depth), place.line, place.column)
        if tagged:
            node = self._meant(tagged, node)
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _meaning(self, event: Any) -> str:
        """The tag of an event, where it is one of the dialect's; else ""."""
        if event.tag is None:
            return ""
        tag: str = event.tag.removeprefix(_CORE)
        return tag if tag in self._dialect.tags else ""

    def _meant(self, tag: str, node: Node) -> Node:
        meant = self._dialect.tags[tag](node)
        if meant is None:
            self._tally.problems.add(node, f"{describe(node)} does not fit its tag !!{tag}")
            return node
        return meant

    def _entries(self, depth: int) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise self._stop(event, "a key must be text, not a list, a mapping or an alias")
            if event.tag not in (None, "!", _CORE + "str"):
                self._note(event, f"a key has no tag; remove {quoted(event.tag)}")
            key = well_formed(event.value)
            if key == "<<" and not event.style:
                self._note(event, "merge keys are not part of YAML 1.2; write the keys out")
            place = _place(event)
            self._tally.put(entries, key, place, self._node(self._next(), depth + 1))
        return entries

    def _alias(self, event: Any, depth: int) -> Node:
        self._aliases += 1
        if self._aliases > self._tally.limits.aliases:
            raise self._stop(event, f"more than {self._tally.limits.aliases} aliases")
        name = event.anchor
        if name not in self._anchors:
            raise self._stop(event, f"the alias *{name} has no anchor &{name} before it")
        node = self._anchors[name]
        if node is None:
            raise self._stop(event, f"the alias *{name} stands inside its own anchor &{name}")
        values, height, characters = _extent(node)
        self._tally.count(_place(event), depth + height, values)
        self._referred += characters
        if self._referred > self._tally.limits.characters:
            most = self._tally.limits.characters
            raise self._stop(event, f"more than {most} characters, where aliases are followed")
        return node

    def _collection_tag(self, event: Any, kind: str, words: str) -> None:
        if event.tag not in (None, "!", _CORE + kind):
            self._note(event, f"the tag {quoted(event.tag)} is not known here; write {words}")

    def _scalar(self, event: Any) -> bool | int | float | str | None:
        text: str = event.value
        tag: str | None = event.tag
        if tag is None:
            if event.style:  # in quotes, or a block
                return well_formed(text) if event.style == '"' else text
            return self._resolved(event, text)
        if tag in ("!", _CORE + "str"):
            return text
        name = tag.removeprefix(_CORE)
        kinds: dict[str, tuple[type, ...]] = {
            "null": (type(None),),
            "bool": (bool,),
            "int": (int,),
            "float": (float, int),
        }
        if name == tag or name not in kinds:
            self._note(event, f"the tag {quoted(tag)} is not known here; remove it")
            return text
        value = self._resolved(event, text)
        if type(value) not in kinds[name]:
            self._note(event, f"{quoted(text)} does not fit its tag !!{name}; remove the tag")
        return float(value) if name == "float" and type(value) is int else value

    def _resolved(self, event: Any, text: str) -> bool | int | float | str | None:
        first = text[:1]
        if first.isalpha() and first not in "tTfFnN":
            return text
        if text.isdecimal() and text.isascii() and len(text) < 19:  # most numbers, in few steps
            return int(text)
        if text in _WORDS:
            return _WORDS[text]
        if self._dialect.pyyaml and not _PYYAML_NUMBER.fullmatch(text):
            return text
        if _INTEGER.fullmatch(text):
            value = int(text, {"0o": 8, "0x": 16}.get(text[:2], 10)) if len(text) < 400 else LARGEST
            if abs(value) >= LARGEST:
                self._note(event, TOO_LARGE)
                return 0
            return value
        if _NOT_FINITE.fullmatch(text) or (
            _FLOAT.fullmatch(text) and not math.isfinite(float(text))
        ):
            self._note(event, f"{text} is not a finite number; put it in quotes to mean the text")
            return 0
        return float(text) if _FLOAT.fullmatch(text) else text

    def _next(self) -> Any:
        try:
            return self._loader.get_event()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            assert mark is not None, "PyYAML marks its errors"
            place = Spot(mark.line + 1, mark.column + 1)
            self._tally.problems.add(place, _syntax(error, self._char(place)))
        except (ValueError, OverflowError):  # the slow parser, for an escape beyond Unicode
            mark = self._loader.get_mark()
            place = Spot(mark.line + 1, mark.column + 1)
            self._tally.problems.add(place, "an escape names no character; Unicode ends at 10ffff")
        raise Unreadable

    def _char(self, place: Spot) -> str:
        lines = self._text.splitlines()[place.line - 1 : place.line]
        return lines[0][place.column - 1 : place.column] if lines else ""

    def _note(self, event: Any, message: str) -> None:
        self._tally.problems.add(_place(event), message)

    def _stop(self, event: Any, message: str) -> Unreadable:
        return self._tally.stop(_place(event), message)


def _place(event: Any) -> Spot:
    return Spot(event.start_mark.line + 1, event.start_mark.column + 1)


def _extent(node: Node) -> tuple[int, int, int]:
    """How many values a node holds, itself included, how many levels below it, and how many
    characters.
    """
    match node:
        case Scalar(value=str() | bytes() as text):
            return 1, 0, len(text)
        case Scalar():
            return 1, 0, 0
        case ListNode():
            below = [_extent(item) for item in node.items]
        case MapNode():
            below = [_extent(entry.value) for entry in node.entries.values()]
    values, heights, characters = zip(*below, strict=True) if below else ((), (-1,), ())
    return 1 + sum(values), 1 + max(heights), sum(characters)


def _syntax(error: yaml.MarkedYAMLError, found: str) -> str:
    """What a person can do about an error of the parser, whichever of the two parsers it was."""
    problem = error.problem or "not YAML"
    opened = error.context_mark
    where = at(Spot(opened.line + 1, opened.column + 1)) if opened else ""
    if found == "\t" or "tab character" in problem:
        return "a tab cannot indent; use spaces"
    if problem.startswith("mapping values are not allowed"):
        return (
            "a ':' that cannot be here; put a text that holds ': ' in quotes, "
            "or line the key up with its neighbours"
        )
    if "sequence entries are not allowed" in problem:
        return "a list cannot begin here; put its first '-' on a line of its own"
    if problem == "found unexpected end of stream":
        return f"the quote that opens at {where} is never closed"
    if "',' or ']'" in problem or "',' or '}'" in problem:
        return not_closed("[" if "]" in problem else "{", where)
    if "nesting depth" in problem:
        return "nested too deep"
    if "found character" in problem:
        return f"a text cannot begin with {found or 'this character'!r}; put it in quotes"
    if "unknown escape" in problem:
        return (
            "the backslash in this text in double quotes begins no known escape; "
            "use single quotes, or write it twice"
        )
    if "Unicode character escape" in problem:
        return "an escape names no character; Unicode ends at 10ffff"
    if "block mapping" in (error.context or "") or "block collection" in (error.context or ""):
        return f"this does not line up with what begins at {where}; indent it like its neighbours"
    if problem.startswith("could not find expected ':'"):
        return "a key must be followed by ': ' on the same line"
    context = f" {error.context}" if error.context else ""
    return f"not YAML: {problem}{context}"


class _Dumper(yaml.SafeDumper):
    """Writes what older and newer readers take alike."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Write every value out."""
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None
    if FORBIDDEN.search(text):
        style = '"'
    elif "\n" in text:
        style = "|"
    elif _INTEGER.fullmatch(text) or _FLOAT.fullmatch(text) or _NOT_FINITE.fullmatch(text):
        style = "'"
    return dumper.represent_scalar(_CORE + "str", text, style)


def _float(dumper: _Dumper, value: float) -> yaml.ScalarNode:
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a JSON value; give a finite number or None")
    return dumper.represent_float(value)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(float, _float)


def dump(value: Json) -> str:
    """Write a JSON value as YAML that `read` takes back as it was; ValueError for NaN and infinity.

    >>> print(dump({"takes": "10ms", "at": "14:05", "list": [1, None, "No"]}), end="")
    takes: 10ms
    at: '14:05'
    list: [1, null, 'No']
    """
    return yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=10**9,
    )
