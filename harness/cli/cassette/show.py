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
from harness.cli.report_files import HtmlOption, also_html, check_targets
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
    rules = rules_of(None, name, pattern, harmless)
    told: list[Conversation] = []
    for cassette in load_each(found_in(files), rules):
        shown = safe(cassette)
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
        told.append(Conversation(title_of(shown), tuple(sections)))
    console = make_console()
    with also_html(html, told):
        for at, each in enumerate(told):
            if at:
                console.print()
            print_conversation(console, each.title, each.sections)
