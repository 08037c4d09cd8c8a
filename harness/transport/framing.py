"""How a stream is cut on its way: pieces of any size, noise, lines that end in another way."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from harness.wire.codec import QUIET, Noise


class Framing(Struct, frozen=True):
    """How the frames of a reply reach the client.

    `size` is the bytes of a chunk; 0 is a chunk a frame, and None one chunk for the whole reply.
    `comments` puts a comment before each frame. `crlf` ends lines with CR LF, or with LF alone
    where the protocol itself has CR LF.
    """

    size: int | None = 0
    noise: Noise = QUIET
    comments: bool = False
    crlf: bool = False


PLAIN = Framing()
NOISY = Noise(obfuscation=True, pings=True, unknown=True)


SPLITS: tuple[int | None, ...] = (1, 7, None)
"""The sizes of chunks that a search tries beside the ordinary one."""


def dressed(frame: bytes, framing: Framing) -> bytes:
    r"""A frame with the comment before it, and the ends of lines, that it is to have.

    >>> dressed(b"data: {}\n\n", Framing(comments=True, crlf=True))
    b': keep-alive\r\n\r\ndata: {}\r\n\r\n'
    """
    if framing.comments:
        frame = b": keep-alive\n\n" + frame
    if framing.crlf:
        had = b"\r\n" in frame
        frame = frame.replace(b"\r\n", b"\n")
        return frame if had else frame.replace(b"\n", b"\r\n")
    return frame


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """Bytes in pieces of a size; 0 is one piece.

    >>> list(pieces(b"abc", 2)), list(pieces(b"abc", 0))
    ([b'ab', b'c'], [b'abc'])
    """
    if size <= 0:
        yield data
        return
    for at in range(0, len(data), size):
        yield data[at : at + size]
