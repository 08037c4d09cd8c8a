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
    """A level, the name of the protocol that is spoken there, "" at the level of the model, and
    whether replies are streamed.
    """

    name: LevelName = "model"
    protocol: str = ""
    streamed: bool = True

    @property
    def codec(self) -> Codec:
        """The protocol that is spoken here."""
        return next(codec for codec in CODECS if codec.name == self.protocol)

    def __str__(self) -> str:
        words = [
            self.name,
            *[self.protocol] * bool(self.protocol),
            *["whole"] * (not self.streamed),
        ]
        return ":".join(words)


MODEL = Level()


def level_of(text: str) -> Level:
    """Read a level: ``model``, ``http``, ``server``, the last two with a protocol behind a colon,
    and with ``whole`` behind that where replies are not streamed.

    UsageError where there is no such level, or no such protocol.

    >>> str(level_of("http:anthropic")), str(level_of("server")), str(level_of("http::whole"))
    ('http:anthropic', 'server:openai_chat', 'http:openai_chat:whole')
    """
    name, _, rest = text.partition(":")
    protocol, _, way = rest.partition(":")
    if name not in LEVELS:
        raise UsageError(unknown("level", name, LEVELS))
    if name == "model":
        if rest:
            raise UsageError(f"the level {text!r} names a protocol; model speaks none")
        return MODEL
    protocol = protocol or PROTOCOL
    names = [codec.name for codec in CODECS]
    if protocol not in names:
        raise UsageError(unknown("protocol", protocol, names))
    if way not in ("", "whole"):
        raise UsageError(unknown("way of replying", way, ["whole"]))
    return Level(name, protocol, streamed=not way)
