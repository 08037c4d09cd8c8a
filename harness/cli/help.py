"""Pages of help: whole sentences, in lines that fit the terminal, however narrow."""

from __future__ import annotations

import shutil
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

WIDTH_MAX = 100
"""The longest lines that are read with ease."""
NARROW = 60
"""Below this width, in columns, what a name means stands below it."""

_Formatter: Any = typer.Context.formatter_class


class _Pages(_Formatter):  # type: ignore[misc]  # typer has no public name for it
    """A page of help as wide as the terminal."""

    def __init__(self) -> None:
        super().__init__(width=max(min(shutil.get_terminal_size().columns, WIDTH_MAX) - 2, 20))

    def write_dl(
        self, rows: list[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write names with what they mean."""
        super().write_dl(rows, col_max if self.width >= NARROW else 0, col_spacing)


class _Help:
    """What a command and a group of commands have in common."""

    def get_help(self: Any, ctx: Any) -> str:
        """The whole page."""
        page = _Pages()
        self.format_help(ctx, page)
        return str(page.getvalue()).rstrip("\n")

    def format_options(self: Any, ctx: Any, formatter: Any) -> None:
        """Write arguments, without the names of Python's types, and options."""
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            params = [each for each in self.get_params(ctx) if each.param_type_name == kind]
            records = [record for each in params if (record := each.get_help_record(ctx))]
            if kind == "argument":
                records = [(name.partition(" <")[0], meaning) for name, meaning in records]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class Command(_Help, TyperCommand):
    """A command whose help fits the terminal."""


class Group(_Help, TyperGroup):
    """A group of commands whose help fits the terminal, and says of each what it is for."""

    def format_help_text(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write what the group is for. A paragraph that begins with a line of `\\b` is a list of
        examples, each with two blanks or more before what it shows.
        """
        for paragraph in (self.help or "").strip().split("\n\n"):
            formatter.write_paragraph()
            with formatter.indentation():
                if paragraph.startswith("\b\n"):
                    rows = [line.strip().partition("  ") for line in paragraph.splitlines()[1:]]
                    formatter.write_dl([(name, shows.strip()) for name, _, shows in rows], 45)
                else:
                    formatter.write_text(paragraph)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, and the commands."""
        super().format_options(ctx, formatter)
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, _sentence(each.help)) for name, each in self.commands.items()]
            )


def _sentence(text: str | None) -> str:
    """The first paragraph of what is said of a command, in one line, without its full stop."""
    first, _, _ = (text or "").partition("\n\n")
    return " ".join(first.split()).removesuffix(".")
