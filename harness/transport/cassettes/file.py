"""Cassettes as files: read with all that is wrong with them, written free of secrets and at once.

The format is vcrpy's, version 1. What it has no place for stands below keys that it passes over:
``harness`` in each response, and ``harness`` in the file's metadata.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from msgspec.structs import replace

from harness.core import files, json_nodes, yaml_blocks, yaml_text
from harness.core.errors import FileError, Problem, UsageError
from harness.core.located import Limits, ListNode, MapNode, Node, Problems, Scalar, describe
from harness.transport import redact
from harness.transport.cassettes import reading, tags, view, writing
from harness.transport.cassettes.bodies import compact
from harness.transport.cassettes.form import Cassette, Interaction
from harness.transport.cassettes.found import Found, Wrong
from harness.transport.redact_bodies import interaction as redacted
from harness.transport.rules import NO_RULES, Rules
from harness.wire import codec_for

T = TypeVar("T")

VERSION: Final = 1
"""The version of vcrpy's format."""
FORMAT: Final = 1
"""The version of what is ours in it."""
LIMITS: Final = Limits(characters=256_000_000, values=20_000_000, aliases=100_000)
MOST_PROBLEMS: Final = 20
"""So many problems of a file are told, and no more looked for."""

_EXPECTED = "expected a cassette: a mapping with the keys interactions and version"
_CONFLICT = re.compile(rb"^<{7} ", re.MULTILINE)
_MERGED = (
    "a merge has left two versions here, between <<<<<<< and >>>>>>>; keep one of them, or record "
    "the cassette again"
)
_CUT = "the end of the file is missing: it was cut off while it was written; record it again"


def load(path: str | os.PathLike[str]) -> Cassette:
    """Read a cassette file, ours or one of vcrpy, as YAML or JSON.

    UsageError where there is none; FileError, with what is wrong and where, where it is not one.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > LIMITS.characters:
            problem = f"the file is too long: {size} bytes, of at most {LIMITS.characters}"
            raise FileError(path.as_posix(), [Problem(problem)])
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{files.missing(path)}; expected a cassette file") from None
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise FileError(path.as_posix(), [Problem(problem)]) from None
    return read(data, path.as_posix())


def read(text: str | bytes, path: str) -> Cassette:
    """Read a cassette from the text of the file `path`; FileError where it is not one."""
    problems = Problems(path)
    start = text[:64].lstrip() if isinstance(text, str) else text[:64].lstrip(b"\xef\xbb\xbf \r\n")
    if start[:1] in ("{", b"{"):
        root = json_nodes.read(text, problems, LIMITS)
    else:
        root = yaml_text.read(text, problems, LIMITS, tags.VCRPY)
    if root is None:
        raise _unreadable(problems.error(), text)
    problems.check()
    return of_values(root, problems)


def _unreadable(error: FileError, text: str | bytes) -> FileError:
    """The error, which also says so where reading came to the end of the file; or what a merge has
    left there, whatever else that breaks.
    """
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    left = _CONFLICT.search(data)
    if left is not None:
        return FileError(error.file, [Problem(_MERGED, data.count(b"\n", 0, left.start()) + 1, 1)])
    lines = data.count(b"\n")
    last = error.problems[-1]
    if last.line < max(lines, 1):
        return error
    says = f"{last.message}; the file ends here: was it cut off while it was written?"
    return FileError(error.file, [*error.problems[:-1], Problem(says, last.line, last.column)])


def of_values(
    root: Node, problems: Problems, entry: Callable[[Found], Interaction] = reading.entry
) -> Cassette:
    """A cassette from the values of its file, each interaction read by `entry`; FileError where
    they are not those of one.
    """
    _check_kind(root, problems)
    found = Found(root, "", problems, root)
    try:
        ours = found["metadata"]
        if ours.there:
            ours = ours["harness"]
        if ours.there:
            _check_format(ours)
        if not found["interactions"].there:
            says = f"expected a list, found nothing{found.meant('interactions')}; {_CUT}"
            raise found["interactions"].refused(says)
        answered = _each(found["interactions"], entry)
        missing = []
        source, rules = "", NO_RULES
        if ours.there:
            missing = _each(ours["lost"], reading.lost) if ours["lost"].there else []
            source = ours["source"].text() if ours["source"].there else ""
            rules = reading.rules(ours["rules"]) if ours["rules"].there else NO_RULES
    except Wrong:
        raise problems.error() from None
    problems.check()
    return Cassette(
        interactions=_in_order(answered, missing, ours),
        source=source,
        rules=rules,
        path=problems.file,
    )


def write(cassette: Cassette) -> str:
    """The text of a cassette's file: free of secrets, the same for the same values."""
    return yaml_blocks.dump(values(cassette))


def save(path: str | os.PathLike[str], cassette: Cassette) -> None:
    """Write a cassette to a file at once: whatever happens, it is the old one or the new one.

    Its folders are made. FileError where it cannot be written; the file is then as it was.
    """
    save_text(path, write(cassette))


def save_text(path: str | os.PathLike[str], text: str) -> None:
    """The same for its text."""
    try:
        files.replace(Path(path), text.encode())
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}; what was there is as it was"
        raise FileError(Path(path).as_posix(), [Problem(problem)]) from None


def values(cassette: Cassette) -> writing.Values:
    """What stands in a cassette's file, free of secrets."""
    safe = [_safe(each, cassette.rules) for each in cassette.interactions]
    return {
        "interactions": [
            writing.entry(each, view.said(each)) for each in safe if each.status is not None
        ],
        "metadata": metadata(replace(cassette, interactions=tuple(safe))),
        # the last, as in files of vcrpy: who reads one that was cut off sees that it is not there
        "version": VERSION,
    }


def _safe(given: Interaction, rules: Rules) -> Interaction:
    """An interaction without secrets, as it will be read again: its protocol is that of its path,
    or none.
    """
    safe = redacted(replace(given, request=compact(given.request)), rules)
    codec = codec_for(safe.request)
    fits = codec is not None and codec.name == safe.protocol
    return safe if fits else replace(safe, protocol="")


def metadata(cassette: Cassette) -> writing.Values:
    """What stands in a cassette's metadata."""
    ours: writing.Values = {"format": FORMAT}
    if cassette.source:
        ours["source"] = redact.text(cassette.source)
    if shown := writing.rules(cassette.rules):
        ours["rules"] = shown
    given = enumerate(cassette.interactions)
    if lost := [writing.lost(each, at) for at, each in given if each.status is None]:
        ours["lost"] = lost
    return {"harness": ours}


def _check_kind(root: Node, problems: Problems) -> None:
    """Raise FileError where a file is no cassette, or one of another version."""
    message = _other_kind(root)
    if message:
        problems.add(root, message)
        raise problems.error()
    version = Found(root, "", problems, root)["version"]
    if not version.there:
        problems.add(_last(root), f"version: is missing; {_CUT}")
    elif version.node != Scalar(VERSION, version.place.line, version.place.column):
        version.refused(_newer(version, VERSION, "of vcrpy's format"))
    problems.check()


def _last(node: Node) -> Node:
    """What stands last in a file."""
    match node:
        case ListNode(items=(*_, below)):
            return _last(below)
        case MapNode(entries=entries) if entries:
            return _last(list(entries.values())[-1].value)
        case _:
            return node


def _other_kind(root: Node) -> str:
    """What a file is instead of a cassette; "" where it looks like one."""
    match root:
        case Scalar(value=None):
            return f"the file is empty; {_EXPECTED}"
        case ListNode(items=(MapNode(entries=entries), *_)) if "request" in entries:
            return (
                "the file was written by vcrpy before version 1.0, in a form that is read no more; "
                "convert it with `python -m vcr.migration FILE`, or record it again"
            )
        case MapNode(entries=entries) if "interactions" in entries or "version" in entries:
            return ""
        case MapNode(entries=entries) if entries.keys() & {"about", "turns"}:
            return f"found a scenario; {_EXPECTED}"
        case _:
            return f"found {describe(root)}; {_EXPECTED}"


def _check_format(ours: Found) -> None:
    found = ours["format"]
    if found.node != Scalar(FORMAT, found.place.line, found.place.column):
        raise found.refused(_newer(found, FORMAT, "of what harness adds to a cassette"))
    ours.only(("format", "source", "rules", "lost"))


def _newer(found: Found, known: int, what: str) -> str:
    match found.node:
        case Scalar(value=int(number)) if number > known:
            return (
                f"{number} is a newer version {what} than the one known here, which is {known}; "
                "install a newer harness"
            )
        case None:
            return f"is missing; expected {known}, the version {what}"
        case node:
            return f"expected {known}, the version {what}, found {describe(node)}"


def _each(found: Found, read: Callable[[Found], T]) -> list[T]:
    """The items of a list, as far as they can be read; what is wrong with the others is noted."""
    items: list[T] = []
    wrong = 0
    for each in found.items():
        try:
            items.append(read(each))
        except Wrong:
            wrong += 1
            if wrong == MOST_PROBLEMS:
                raise
    return items


def _in_order(
    answered: Sequence[Interaction], lost: Sequence[tuple[int, Interaction]], ours: Found
) -> tuple[Interaction, ...]:
    """All interactions, those without an answer at their places."""
    total = len(answered) + len(lost)
    places: dict[int, Interaction] = {}
    for (at, each), found in zip(lost, ours["lost"].items() if lost else (), strict=True):
        if at >= total or at in places:
            why = f"the file has {total} interactions" if at >= total else "that place is taken"
            found["at"].refused(
                f"found {at}, but {why}; write the place in the order of all, from 0"
            )
        places[at] = each
    ours.problems.check()
    rest = iter(answered)
    return tuple([places[n] if n in places else next(rest) for n in range(total)])
