"""Looks for secrets in files: cassettes, ours and those of others, and any other text or bytes."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from harness.core import json_nodes, yaml_text
from harness.core.located import Limits, ListNode, MapNode, Node, Problems, Scalar
from harness.transport.cassettes import tags
from harness.transport.rules import NO_RULES, Rules
from harness.transport.secrets import heads
from harness.transport.secrets.bodies import UNKNOWN, body
from harness.transport.secrets.edits import Edit
from harness.transport.secrets.finder import TOO_DEEP, TOO_LARGE, Finder
from harness.wire.http import Headers

LARGEST = 256_000_000
"""How many bytes a file may have."""
LIMITS = Limits(characters=LARGEST, values=20_000_000, aliases=100_000)
NOT_SCANNED = "not scanned"
"""The kind of what is told where something could not be looked into."""

_CASSETTE = re.compile(
    rb"^(?:\xef\xbb\xbf)?[ \t]*+\{?[ \t]*+[\"']?(?:http_)?interactions[\"']?[ \t]*+:", re.MULTILINE
)
_DATA = frozenset({".yaml", ".yml", ".json", ""})
"""How the names of cassettes end; in other files, one may only be shown."""
_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#.*$", re.MULTILINE)
_BLOCK = re.compile(r"[|>][-+0-9]*\s*(?:#.*)?$")
_SKIPPED = frozenset({".git", ".hg", "__pycache__", "node_modules"})
_OF_TOOLS = ("pyvenv.cfg", "CACHEDIR.TAG")
"""Files in folders that tools have made, and make again: environments, caches."""


class Leak(Struct, frozen=True):
    """A secret in a file: in which line, what kind it is, and where it stands; never the secret.

    The kind is ``not scanned`` where something could not be looked into; `where` then says why.
    """

    file: str
    line: int
    kind: str
    where: str

    def __str__(self) -> str:
        """One line for people."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.kind}{': ' if self.kind == NOT_SCANNED else ', in '}{self.where}"


def scan_folder(paths: Iterable[str | os.PathLike[str]], rules: Rules = NO_RULES) -> Iterator[Leak]:
    """What stands in these files, and in all files of these folders, in the order of names."""
    for file in files_in(paths):
        try:
            size = file.stat().st_size
            data = file.read_bytes() if size <= LARGEST else b""
        except OSError as error:
            yield Leak(file.as_posix(), 0, NOT_SCANNED, str(error.strerror or error))
            continue
        if size > LARGEST:
            yield _too_long(file.as_posix(), size)
        yield from scan(file.as_posix(), data, rules)


def files_in(paths: Iterable[str | os.PathLike[str]]) -> Iterator[Path]:
    """These files, and all that are looked at of these folders."""
    for path in map(Path, paths):
        yield from _files(path) if path.is_dir() else [path]


def _files(folder: Path) -> Iterator[Path]:
    for each in sorted(folder.iterdir()):
        if each.is_file():
            yield each
        elif each.is_dir() and not each.is_symlink() and not _is_skipped(each):
            yield from _files(each)


def _is_skipped(folder: Path) -> bool:
    return folder.name in _SKIPPED or any((folder / mark).exists() for mark in _OF_TOOLS)


def _too_long(name: str, size: int) -> Leak:
    return Leak(name, 0, NOT_SCANNED, f"{size} bytes, of at most {LARGEST}")


def scan(name: str, data: bytes, rules: Rules = NO_RULES) -> list[Leak]:
    """The secrets in the bytes of a file of that name, in the order of their lines."""
    if len(data) > LARGEST:
        return [_too_long(name, len(data))]
    return sorted(dict.fromkeys(_Scan(name, rules).leaks(data)), key=_place)


def _place(leak: Leak) -> int:
    return leak.line


class _Scan:
    """Goes through one file."""

    def __init__(self, name: str, rules: Rules) -> None:
        self._name = name
        self._rules = rules
        self._finder = Finder(rules, doubt="keep")
        self._lines: list[str] = []

    def leaks(self, data: bytes) -> Iterator[Leak]:
        """What the bytes of the file hold."""
        if _CASSETTE.search(data) is None:
            yield from self._bytes(data)
            return
        problems = Problems(self._name)
        if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            root = json_nodes.read(data, problems, LIMITS)
        else:
            root = yaml_text.read(data, problems, LIMITS, tags.VCRPY)
        if root is None:
            told = problems.error().problems[0]
            if Path(self._name).suffix.lower() in _DATA:
                yield Leak(self._name, told.line, NOT_SCANNED, f"as a cassette: {told.message}")
            yield from self._bytes(data)
            return
        text = data.decode()
        self._lines = text.split("\n")
        told_of = set()
        for leak in self._node(root, "", ""):
            told_of.add(leak.line)
            yield leak
        for leak in self._comments(text):
            if leak.line not in told_of:  # else it stands in a value that looks like a comment
                yield leak

    def _comments(self, text: str) -> Iterator[Leak]:
        line, at = 1, 0
        for found in _COMMENT.finditer(text):
            line += text.count("\n", at, found.start())
            at = found.start()
            yield from self._found(found[0], line, "a comment")

    def _bytes(self, data: bytes) -> Iterator[Leak]:
        """What stands in any file."""
        spelled, edits = body(data, (), self._finder, reply=False)
        yield from self._edits(spelled.text, edits, 1, "the file", block=True)

    def _node(self, node: Node, where: str, name: str, headers: Headers = ()) -> Iterator[Leak]:
        """What stands in a value of a cassette, which has that name, and below it; `headers` are
        those of the message that it is in.
        """
        match node:
            case ListNode():
                for number, item in enumerate(node.items):
                    if where.endswith("interactions"):
                        self._finder = Finder(self._rules, doubt="keep")
                    yield from self._node(item, f"{where}[{number}]", name, headers)
            case MapNode():
                given = node.entries.get("headers")
                if given is not None and isinstance(given.value, MapNode):
                    headers = _headers(given.value)
                    heads.learn(headers, self._finder)
                for key, entry in node.entries.items():
                    inside = f"{where}.{key}" if where else key
                    if key == "headers" and isinstance(entry.value, MapNode):
                        yield from self._headers(entry.value, inside)
                    else:
                        yield from self._found(key, entry.line, f"a key of {where or 'the file'}")
                        yield from self._node(entry.value, inside, key, headers)
            case Scalar(value=bytes(data)):
                yield from self._body(data, headers, node, where)
            case Scalar(value=str(text)):
                yield from self._text(text, headers, node, where, name)
            case _:
                pass

    def _headers(self, node: MapNode, where: str) -> Iterator[Leak]:
        for name, entry in node.entries.items():
            inside = f"{where}.{name}"
            yield from self._found(name, entry.line, inside)
            for line, value in _values(entry.value):
                shown = heads.headers(((name, value),), self._finder)[0][1]
                if shown == value:
                    continue
                edits = [] if self._finder.names.header(name) else self._finder.edits(value)
                kind = edits[0].what if edits else "the value of a header that is secret"
                yield Leak(self._name, line, kind, inside)

    def _text(
        self, text: str, headers: Headers, node: Scalar, where: str, name: str
    ) -> Iterator[Leak]:
        if name in ("body", "string"):
            yield from self._body(text.encode(errors="surrogatepass"), headers, node, where)
        elif name == "base64_string":
            try:
                yield from self._body(base64.b64decode(text), headers, node, where)
            except binascii.Error:
                yield Leak(self._name, node.line, NOT_SCANNED, f"{where} is no base64")
        elif name in ("uri", "url"):
            if heads.address(text, self._finder) != text:
                yield Leak(self._name, node.line, "a secret in an address", where)
        elif self._finder.names.says(name) == "always":
            if self._finder.hides(text):
                yield Leak(self._name, node.line, f"the value of `{name}`", where)
        else:
            yield from self._found(text, node.line, where)

    def _body(self, data: bytes, headers: Headers, node: Scalar, where: str) -> Iterator[Leak]:
        spelled, edits = body(data, headers, self._finder, reply="response" in where)
        block = self._is_block(node)
        yield from self._edits(spelled.text, edits, node.line + block, where, block=block)

    def _found(self, text: str, line: int, where: str) -> Iterator[Leak]:
        yield from self._edits(text, self._finder.edits(text), line, where)

    def _edits(
        self, text: str, edits: Sequence[Edit], line: int, where: str, *, block: bool = False
    ) -> Iterator[Leak]:
        """What edits of a text tell; `block` where each line of it is one of the file."""
        at = 0
        for edit in edits:
            if block:
                line += text.count("\n", at, edit.start)
                at = edit.start
            if any(each in edit.what for each in (TOO_DEEP, TOO_LARGE, UNKNOWN)):
                yield Leak(self._name, line, NOT_SCANNED, f"{edit.what}, in {where}")
            elif edit.what:
                yield Leak(self._name, line, edit.what, where)

    def _is_block(self, node: Scalar) -> bool:
        """Whether a text is a block, which begins in the next line and goes on as the file does."""
        lines = self._lines[node.line - 1 : node.line]
        return bool(lines) and _BLOCK.search(lines[0]) is not None


def _headers(node: MapNode) -> Headers:
    return tuple(
        [
            (name.lower(), value)
            for name, entry in node.entries.items()
            for _line, value in _values(entry.value)
        ]
    )


def _values(node: Node) -> Iterator[tuple[int, str]]:
    """The values of a header, each with its line."""
    for each in node.items if isinstance(node, ListNode) else [node]:
        if isinstance(each, Scalar) and each.value is not None:
            value = each.value
            yield each.line, value.decode("latin-1") if isinstance(value, bytes) else str(value)
