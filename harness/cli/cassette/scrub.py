"""`harness cassette scrub`: take the secrets out of cassettes that are there."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

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
from harness.core.errors import UsageError
from harness.core.wording import counted

if TYPE_CHECKING:
    from harness.transport.cassettes.form import Cassette, Interaction
    from harness.wire.http import Headers


def scrub(
    files: FilesArgument,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; the exit code is 1 where it would.")
    ] = False,
    name: NameOption = None,
    pattern: PatternOption = None,
    harmless: HarmlessOption = None,
) -> None:
    """Hide the secrets that cassettes hold, ours and vcrpy's, and say how many of which kind.

    A file is replaced at once, and only where something was hidden. One of vcrpy is written as one
    of ours, which vcrpy plays all the same. A secret that was there must be replaced where it came
    from too: whoever has an old copy has it.

    \b
    Examples:
      harness cassette scrub session.yaml
      harness cassette scrub cassettes/*.yaml --check
      harness cassette scrub a.yaml --name x-tenant --pattern 'tk_[0-9a-f]{32}'
    """
    from harness.runner.cassettes.stats import found_in
    from harness.transport.cassettes.file import save

    files = found_in(files)
    json = [file for file in files if file.suffix == ".json"]
    if json:
        raise UsageError(f"{json[0]} is JSON, and scrub writes YAML; record it again as YAML")
    leaking = 0
    for cassette in load_each(files, rules_of(None, name, pattern, harmless)):
        hidden = Counter(_hidden(cassette, safe(cassette)))
        if not hidden:
            sys.stdout.write(f"{cassette.path}: nothing to hide\n")
            continue
        leaking += 1
        if not check:
            save(cassette.path, cassette)
        said = ", ".join([f"{count} in {place}" for place, count in sorted(hidden.items())])
        done = "to hide" if check else "hidden"
        sys.stdout.write(f"{cassette.path}: {counted(hidden.total(), 'secret')} {done}: {said}\n")
    raise typer.Exit(1 if check and leaking else 0)


def _hidden(before: Cassette, after: Cassette) -> Iterator[str]:
    """The places of what was hidden, one by one."""
    for old, new in zip(before.interactions, after.interactions, strict=True):
        yield from _of_headers("header", old.request.headers, new.request.headers)
        yield from _of_headers("answer's header", old.headers, new.headers)
        yield from _of_texts(old, new)


def _of_headers(what: str, old: Headers, new: Headers) -> Iterator[str]:
    for (name, before), (_name, after) in zip(old, new, strict=True):
        if before != after and name != "content-length":
            yield f"{what} {name}"


def _of_texts(old: Interaction, new: Interaction) -> Iterator[str]:
    from harness.transport.rules import REDACTED

    texts = {
        "addresses": (old.request.url.encode(), new.request.url.encode()),
        "requests' bodies": (old.request.body, new.request.body),
        "answers' bodies": (old.body, new.body),
    }
    for place, (before, after) in texts.items():
        if before != after:
            count = after.count(REDACTED.encode()) - before.count(REDACTED.encode())
            yield from [place] * max(count, 1)
