"""The page of docs/reference on the command line: from what each command says of itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from harness.cli import _app

HEAD = """\
# The command line

Generated from the commands' own help, which `harness COMMAND --help` prints. `harness
--install-completion` has the shell complete commands, options, scenarios and loops.
"""

TAIL = """\
## The environment

| variable | |
|---|---|
| `NO_COLOR` | takes colours, bold and dim text away, where it is set |
| `FORCE_COLOR` | keeps them in a pipe or a file, where it is set |
| `OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL`, `GOOGLE_GEMINI_BASE_URL` | where `harness record` finds \
the providers, unless `--upstream` says it. A program under `harness record` or `--command` finds \
its own address there, and `harness serve` prints what to set |
| `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GEMINI_API_KEY` or `GOOGLE_API_KEY` | the key with which \
`harness record --provider` asks. `harness serve` and `--command` give one that says nothing |
| `no_proxy`, `NO_PROXY` | `harness record` adds this machine to them, for its program |
"""
OF_TYPER = ("install_completion", "show_completion")
"""Options whose words are the library's, and change with it."""


def command_line() -> str:
    """The page: a section for each command, with its arguments and options."""
    top: Any = typer.main.get_command(_app())
    pieces = [HEAD, *_told(top.help), *_options(top)]
    for name, command in top.commands.items():
        pieces += [f"## harness {name}\n", *_told(command.help), *_options(command)]
        for inner, part in getattr(command, "commands", {}).items():
            pieces += [f"### harness {name} {inner}\n", *_told(part.help), *_options(part)]
    return "\n".join([*pieces, TAIL])


def _told(text: str) -> Iterator[str]:
    """What a command is for; a paragraph that begins with a line of `\\b` is shown as it is."""
    for paragraph in text.strip().split("\n\n"):
        if not paragraph.startswith("\b\n"):
            yield f"{paragraph}\n"
            continue
        shown = paragraph.splitlines()[1:]
        lines = [line.removeprefix("  ") for line in shown if line.startswith("  ")]
        yield "\n".join(["```sh", *lines, "```", ""])


def _options(command: Any) -> Iterator[str]:
    """Tables of a command's arguments and options, but for those that all have."""
    for kind in ("argument", "option"):
        rows = [
            f"| {_spelled(each)} | {_escaped(each.help)} | {_default(each)} |"
            for each in command.params
            if each.param_type_name == kind and each.help and each.name not in OF_TYPER
        ]
        if rows:
            yield "\n".join([f"| {kind} | | where left out |", "|---|---|---|", *rows, ""])


def _spelled(param: Any) -> str:
    value = param.metavar or ""
    if param.param_type_name == "argument":
        return f"`{value}`".replace("|", "\\|")
    words = [*param.opts, *param.secondary_opts]
    return ", ".join(f"`{word} {value}`".replace(" `", "`") for word in words)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _default(param: Any) -> str:
    default = param.default
    shown = param.show_default and default is not None and not isinstance(default, bool)
    return f"`{default}`" if shown else ""
