"""An agent that is to be run on a cassette."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from harness.core.errors import UsageError
from harness.core.wording import counted
from harness.runner.agents import Subject, at_level
from harness.runner.levels import MODEL, level_of
from harness.transport.cassettes.form import Cassette
from harness.wire import codec_for
from harness.wire.codec import Unreadable


def on_cassette(subject: Subject, cassette: Cassette | str | Path, level: str = "model") -> Subject:
    """A subject whose replies come from a cassette, or from the file of one.

    At the level ``model``, and at any that names no protocol, the cassette's own is spoken, and
    replies are streamed where they were. UsageError for a program, which runs in real time, and for
    a cassette without a request that a model could have answered.
    """
    if subject.process is not None:
        raise UsageError(
            f"{subject.name}: a program is not run on a cassette, whose times are virtual; "
            "point it at what answers from one in real time"
        )
    if not isinstance(cassette, Cassette):
        from harness.transport.cassettes.file import load

        cassette = load(cassette)
    there = at_level(subject, _level(cassette, level))
    named = cassette.path or "a cassette"
    options = (*subject.options, "--cassette", cassette.path)
    if level != str(MODEL):
        options = (*options, "--level", level)
    return replace(
        there,
        name=f"{there.name} on {named}",
        options=options if subject.options and cassette.path else (),
        cassette=cassette,
    )


def _level(cassette: Cassette, asked: str) -> str:
    """The level with the protocol of the cassette, where it names none."""
    name, _, rest = asked.partition(":")
    level_of(asked)
    if rest:
        return asked
    for each in cassette.interactions:
        codec = codec_for(each.request)
        if codec is None:
            continue
        try:
            streamed = codec.read(each.request).stream
        except Unreadable:
            continue
        name = "http" if name == str(MODEL) else name
        return f"{name}:{codec.name}" + ("" if streamed else ":whole")
    raise UsageError(
        f"{cassette.path or 'the cassette'} has no request that a model could answer: "
        f"{counted(len(cassette.interactions), 'interaction')}, of none of the protocols that are "
        "known"
    )
