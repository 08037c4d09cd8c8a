"""What the commands of the group share: users' own rules, and cassettes read by them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from harness.core import shell
from harness.core.errors import FileError, HarnessError, UsageError
from harness.core.wording import counted
from harness.transport.rules import Rules, joined, no_expression

if TYPE_CHECKING:
    from harness.transport.cassettes.form import Cassette

FilesArgument: TypeAlias = Annotated[
    list[Path],
    typer.Argument(metavar="PATH", help="Cassette files, or folders of them.", show_default=False),
]
IgnoreOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="PLACE",
        help="A place in bodies that says nothing, such as metadata.run_id or messages[*].name.",
    ),
]
NameOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="A header, a parameter or a member of bodies that holds a secret.",
    ),
]
HarmlessOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--harmless",
        metavar="NAME",
        help="A parameter or a member of bodies that holds no secret, though it sounds like it.",
    ),
]
PatternOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--pattern", metavar="REGEX", help="A regular expression for secrets."),
]
VolatileOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--volatile",
        metavar="REGEX",
        help="A regular expression for what changes from run to run in any text, such as a date.",
    ),
]


USUAL = Path("cassettes")
"""The folder that is meant where no path is given."""


def usual(paths: Sequence[Path] | None, command: str) -> Sequence[Path]:
    """The paths that a command was given, else the folder that is meant; UsageError where there is
    none, which names others of that name.
    """
    if paths:
        return paths
    if USUAL.is_dir():
        return [USUAL]
    others = [
        each.as_posix()
        for level in ("*", "*/*")
        for each in sorted(Path().glob(f"{level}/{USUAL}"))
        if each.is_dir() and not each.parts[0].startswith(".")
    ]
    step = (
        f"try harness cassette {command} {shell.join(others)}"
        if others
        else "name a file or a folder"
    )
    raise UsageError(f"no PATH was given, and there is no folder {USUAL}/ here; {step}")


def rules_of(
    ignore: Sequence[str] | None = None,
    name: Sequence[str] | None = None,
    pattern: Sequence[str] | None = None,
    harmless: Sequence[str] | None = None,
    volatile: Sequence[str] | None = None,
) -> Rules:
    """The user's own rules; UsageError where an expression is none."""
    for option, given in {"--pattern": pattern, "--volatile": volatile}.items():
        for each in given or ():
            if why := no_expression(each):
                raise UsageError(f"{option} {each!r} is no regular expression: {why}")
    return Rules(
        ignore=tuple(ignore or ()),
        volatile=tuple(volatile or ()),
        names=tuple(name or ()),
        harmless=tuple(harmless or ()),
        patterns=tuple(pattern or ()),
    )


def ruled(cassette: Cassette, rules: Rules) -> Cassette:
    """A cassette with more rules than its own."""
    from msgspec.structs import replace

    return replace(cassette, rules=joined(cassette.rules, rules))


def load_each(files: Sequence[Path], rules: Rules) -> list[Cassette]:
    """The cassettes in some files, with more rules; HarnessError tells what is wrong with any."""
    from harness.transport.cassettes.file import load

    cassettes: list[Cassette] = []
    broken: list[HarnessError] = []
    for file in files:
        try:
            cassettes.append(ruled(load(file), rules))
        except (FileError, UsageError) as error:
            broken.append(error)
    if broken:
        told = [str(error) for error in broken]
        many = [f"{counted(len(broken), 'file')} cannot be read"] if len(files) > 1 else []
        raise HarnessError("\n".join([*told, *many]))
    return cassettes


def safe(cassette: Cassette) -> Cassette:
    """A cassette without secrets, as others may see it."""
    from msgspec.structs import replace

    from harness.transport.redact_bodies import interaction

    redacted = [interaction(each, cassette.rules) for each in cassette.interactions]
    return replace(cassette, interactions=tuple(redacted))
