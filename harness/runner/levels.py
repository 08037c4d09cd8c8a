"""At which level an agent is played: with the model itself, or with a provider over HTTP."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from harness.core.errors import UsageError, unknown
from harness.wire import CODECS
from harness.wire.codec import Codec

LevelName: TypeAlias = Literal["model", "http", "server"]
LEVELS: tuple[LevelName, ...] = get_args(LevelName)
"""The fake model at the neutral port; a provider in memory, whose answers come as chunks; the same
as bytes of HTTP/1.1 over connections in memory.
"""
PROTOCOL = "openai_chat"
"""The protocol of a level that names none: most providers speak it, and the reference loops' own
client does.
"""


class Level(Struct, frozen=True):
    """A level, and the name of the protocol that is spoken there, "" at the level of the model."""

    name: LevelName = "model"
    protocol: str = ""

    @property
    def codec(self) -> Codec:
        """The protocol that is spoken here."""
        return next(codec for codec in CODECS if codec.name == self.protocol)

    def __str__(self) -> str:
        return f"{self.name}:{self.protocol}" if self.protocol else self.name


MODEL = Level()


def level_of(text: str) -> Level:
    """Read a level: ``model``, ``http``, ``server``, the last two with a protocol behind a colon.

    UsageError where there is no such level, or no such protocol.

    >>> str(level_of("http:anthropic")), str(level_of("server"))
    ('http:anthropic', 'server:openai_chat')
    """
    name, _, protocol = text.partition(":")
    if name not in LEVELS:
        raise UsageError(unknown("level", name, LEVELS))
    if name == "model":
        if protocol:
            raise UsageError(f"the level {text!r} names a protocol; model speaks none")
        return MODEL
    names = [codec.name for codec in CODECS]
    protocol = protocol or PROTOCOL
    if protocol not in names:
        raise UsageError(unknown("protocol", protocol, names))
    return Level(name, protocol)
