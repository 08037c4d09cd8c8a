"""Content codings undone while a body comes, so that what is kept of it can be read."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, Protocol

MOST: Final = 256 * 1024 * 1024
"""How many bytes are kept of a body; one that has more behind its codings is kept as it came."""


class Undoable(Exception):
    """A body cannot be had without its coding, so that nothing is lost."""


class Coding(Protocol):
    """Undoes one coding."""

    def feed(self, data: bytes) -> bytes:
        """What is behind these bytes, as far as they tell; Undoable where they are none of it."""
        ...

    def whole(self) -> bool:
        """Whether the end has come."""
        ...


class Deflated:
    """Bytes of gzip or deflate. `bits` say which, as in zlib."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._inflate = zlib.decompressobj(bits)
        self._begun = False

    def feed(self, data: bytes) -> bytes:
        """What is behind these bytes."""
        try:
            inflated = self._inflate.decompress(data, MOST)
        except zlib.error as error:
            if self._begun or self._bits != zlib.MAX_WBITS:
                raise Undoable(str(error)) from None
            self._bits = -zlib.MAX_WBITS  # many send deflate without its header
            self._inflate = zlib.decompressobj(self._bits)
            return self.feed(data)
        self._begun = True
        if self._inflate.unused_data or self._inflate.unconsumed_tail:
            raise Undoable("there is more than the coding says, or more than is kept")
        return inflated

    def whole(self) -> bool:
        """Whether the end has come."""
        return self._inflate.eof


class Brotli:
    """Bytes of brotli; `module` is the library that knows it."""

    def __init__(self, module: Any) -> None:
        self._error: type[Exception] = module.error
        self._inflate = module.Decompressor()

    def feed(self, data: bytes) -> bytes:
        """What is behind these bytes."""
        try:
            inflated: bytes = self._inflate.process(data)
        except self._error as error:
            raise Undoable(str(error)) from None
        return inflated

    def whole(self) -> bool:
        """Whether the end has come."""
        return bool(self._inflate.is_finished())


class Zstandard:
    """Bytes of zstd; `module` is the library that knows it."""

    def __init__(self, module: Any) -> None:
        self._error: type[Exception] = module.ZstdError
        self._inflate = module.ZstdDecompressor().decompressobj()

    def feed(self, data: bytes) -> bytes:
        """What is behind these bytes."""
        try:
            inflated: bytes = self._inflate.decompress(data)
        except self._error as error:
            raise Undoable(str(error)) from None
        if self._inflate.unused_data:
            raise Undoable("there is more than the coding says")
        return inflated

    def whole(self) -> bool:
        """Whether the end has come."""
        return bool(self._inflate.eof)


_CODINGS: Final[dict[str, Callable[[], Coding]]] = {
    "gzip": lambda: Deflated(zlib.MAX_WBITS | 16),
    "x-gzip": lambda: Deflated(zlib.MAX_WBITS | 16),
    "deflate": lambda: Deflated(zlib.MAX_WBITS),
    "br": lambda: Brotli(import_module("brotli")),
    "zstd": lambda: Zstandard(import_module("zstandard")),
}
"""The codings that can be undone, by what a header calls them; the last two need a library."""


class Codings:
    """Undoes what a header ``content-encoding`` names, the last of it first."""

    def __init__(self, named: str) -> None:
        self._left: list[Coding] | None = []
        self._size = 0
        try:
            for name in reversed(named.lower().replace(" ", "").split(",")):
                if name not in ("", "identity"):
                    self._left.append(_CODINGS[name]())
        except (KeyError, ImportError):
            self._left = None

    def feed(self, data: bytes) -> bytes:
        """What is behind these bytes, as far as they tell; nothing once they cannot be undone."""
        if self._left is None:
            return b""
        try:
            for coding in self._left:
                data = coding.feed(data) if data else b""
        except Undoable:
            self._left = None
            return b""
        self._size += len(data)
        if self._size > MOST:
            self._left = None
        return data

    def undone(self, *, whole: bool) -> bool:
        """Whether all that was fed is undone without a loss; `whole` says that it was all."""
        if self._left is None:
            return False
        return not whole or all(coding.whole() for coding in self._left)
