"""How much of what there is in a cassette."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from harness.core.durations import SECOND
from harness.core.errors import UsageError
from harness.core.json_text import Json
from harness.core.messages import Usage
from harness.runner.cassettes.heard import Heard, hear
from harness.transport.cassettes.form import Cassette, Interaction
from harness.wire import sse
from harness.wire.http import first

ENDINGS = (".yaml", ".yml", ".json")
"""How the names of cassettes end."""


class Stats(Struct, frozen=True):
    """What one file holds of one provider.

    `provider` is a protocol, "" for none that is known. `sent` and `received` are bytes of bodies,
    `frames` those of streams, tokens what the provider has reported, `time` nanoseconds from the
    first request to the last end; `ends` is how often interactions ended in each way.
    """

    file: str
    provider: str
    interactions: int
    sent: int
    received: int
    chunks: int
    frames: int
    prompt_tokens: int
    completion_tokens: int
    time: int
    ends: tuple[tuple[str, int], ...]


def found_in(paths: Iterable[Path]) -> list[Path]:
    """Files, and in place of folders the cassettes in them; UsageError where a folder has none."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*") if each.suffix in ENDINGS)
            if not inside:
                raise UsageError(
                    f"{path.as_posix()} holds no file that ends in {', '.join(ENDINGS)}"
                )
            files += inside
        else:
            files.append(path)
    return files


def stats_of(cassette: Cassette) -> list[Stats]:
    """What a cassette holds, a provider at a time, in the order in which they come."""
    usage: dict[int, Usage] = {
        each.number: each.usage
        for each in hear(cassette)
        if isinstance(each, Heard) and each.usage is not None
    }
    groups: dict[str, list[tuple[int, Interaction]]] = {}
    for number, each in enumerate(cassette.interactions, 1):
        groups.setdefault(each.protocol, []).append((number, each))
    return [
        _stats(cassette.path, protocol, [each for _number, each in given], _sum(usage, given))
        for protocol, given in groups.items()
    ]


def _sum(usage: dict[int, Usage], given: Sequence[tuple[int, Interaction]]) -> Usage:
    return sum([usage[number] for number, _each in given if number in usage], Usage())


def _stats(file: str, provider: str, given: Sequence[Interaction], usage: Usage) -> Stats:
    begun = min([each.begun for each in given])
    return Stats(
        file=file,
        provider=provider,
        interactions=len(given),
        sent=sum([len(each.request.body) for each in given]),
        received=sum([len(chunk.data) for each in given for chunk in each.chunks]),
        chunks=sum([len(each.chunks) for each in given]),
        frames=sum(map(_frames, given)),
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        time=max([each.begun + each.ended_at for each in given]) - begun,
        ends=tuple(sorted(Counter(each.ended for each in given).items())),
    )


def _frames(interaction: Interaction) -> int:
    """The frames of a stream; 0 where the answer is none."""
    kind = first(interaction.headers, "content-type") or ""
    if not kind.startswith("text/event-stream"):
        return 0
    return len(sse.Reader(errors="replace").feed(interaction.body))


def as_json(stats: Stats) -> dict[str, Json]:
    """The figures of a file as JSON; time in seconds."""
    figures: dict[str, Json] = {name: getattr(stats, name) for name in stats.__struct_fields__}
    return figures | {"time": round(stats.time / SECOND, 6), "ends": dict(stats.ends)}
