"""`harness cassette show`: a recorded session, as a conversation."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli.cassette.options import (
    FilesArgument,
    HarmlessOption,
    NameOption,
    PatternOption,
    load_each,
    rules_of,
    safe,
)
from harness.cli.report_files import HtmlOption, check_targets, write_html
from harness.core.errors import UsageError
from harness.core.wording import counted


def show(
    files: FilesArgument,
    number: Annotated[
        int | None,
        typer.Option(
            "--number", metavar="N", help="Only interaction N, whole: headers, bodies, chunks."
        ),
    ] = None,
    name: NameOption = None,
    pattern: PatternOption = None,
    harmless: HarmlessOption = None,
    html: HtmlOption = None,
) -> None:
    """Show sessions: what was said, asked and answered, when, and what went wrong.

    Secrets are left out, also where the file holds some.

    \b
    Examples:
      harness cassette show cassettes/anthropic/retried.yaml
      harness cassette show session.yaml --number 3
    """
    from harness.report.conversation import Conversation, print_conversation
    from harness.report.terminal import make_console
    from harness.runner.cassettes.shown import sections_of, title_of, whole
    from harness.runner.cassettes.stats import found_in

    check_targets(html)
    console = make_console()
    rules = rules_of(None, name, pattern, harmless)
    told: list[Conversation] = []
    for at, cassette in enumerate(load_each(found_in(files), rules)):
        shown = safe(cassette)
        if at:
            console.print()
        given = shown.interactions
        if number is None:
            sections = sections_of(shown)
        elif 1 <= number <= len(given):
            sections = whole(given[number - 1], number)
        else:
            raise UsageError(
                f"{cassette.path} has no interaction {number}; it has "
                f"{counted(len(given), 'interaction')}, from 1"
            )
        print_conversation(console, title_of(shown), sections)
        told.append(Conversation(title_of(shown), tuple(sections)))
    write_html(html, told)
