"""Replay tokens: one run of one scenario, in a word that can be pasted.

A token reads ``h1.<python>.<scenario>.<what is decided>.<checksum>``: the version of this form; the
Python it was made under (``311``), since orders inside asyncio differ between versions; a digest of
what the scenario means; the order that is left to choices, where it is, the cancels and the choices
other than 0, joined by commas; the CRC-32 of all before it. An order is one word
(harness/sim/orders.py). A cancel is ``<task path>:<k>:<mode>:<whom>``, and ``:<step>`` for a
``mid`` one. A choice is ``<source>:<label>=<value>:<bound>``. What a shell or a URL would act on is
escaped as in a URL's query.
"""

from __future__ import annotations

import hashlib
import re
import sys
from urllib.parse import quote_plus, unquote_plus
from zlib import crc32

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from harness.core import json_text
from harness.core.choices import Draw, Tape
from harness.core.errors import UsageError
from harness.exploration.probe import Shot
from harness.runner.files.spell import spell
from harness.runner.scenario import Scenario
from harness.sim.orders import Order

VERSION = "h1"

_FORM = re.compile(r"h1\.([0-9])([0-9]+)\.([0-9a-f]{10})\.(.*)\.([0-9a-f]{8})", re.ASCII)
_SHOT = re.compile(r"([^:,=]+):([0-9]{1,9}):(\w+):(\w+)(?::([0-9]{1,9}))?", re.ASCII)
_DRAW = re.compile(r"([^:,=]+):([^:,=]*)=([0-9]{1,18}):([0-9]{1,18})", re.ASCII)
_SHOWN = 60
"""How many characters of a text that is no token are shown."""


class Token(Struct, frozen=True):
    """What a token says: the Python (``3.11``), the digest of what was run, the choices, the
    cancels, and which orders are choices.
    """

    python: str
    digest: str
    tape: Tape = ()
    shots: tuple[Shot, ...] = ()
    order: Order = "fifo"

    @classmethod
    def of(
        cls,
        digest: str,
        tape: Tape = (),
        shots: tuple[Shot, ...] = (),
        order: Order = "fifo",
    ) -> Token:
        """The token of a run under this Python, of what has the digest `digest`."""
        ordered = tuple(sorted(tape, key=lambda draw: (draw.source, draw.label)))
        return cls(_python(), digest, ordered, shots, order)

    @classmethod
    def parse(cls, text: str) -> Token:
        """Read what `str` writes; UsageError says what is wrong with it."""
        text = text.strip()
        if "…" in text:
            raise UsageError(
                f"the token {text[:_SHOWN]!r} was shortened where it was printed; copy the whole "
                "last line of a failure of your own"
            )
        version = re.match(r"(h[0-9]+)\.", text)
        if version is None:
            raise UsageError(
                f"{_shown(text)} is not a replay token; expected one like {VERSION}.311.0f3c…, "
                "so copy the whole last line of a failure"
            )
        if version[1] != VERSION:
            raise UsageError(
                f"the token {_shown(text)} is of the version {version[1]}, and this is a harness "
                f"that reads {VERSION}; replay it with the harness that made it, or search again"
            )
        found = _FORM.fullmatch(text)
        if found is None or found[5] != _checksum(text[: found.start(5) - 1]):
            raise _damaged(text)
        try:
            return cls(f"{found[1]}.{found[2]}", found[3], *_items(found[4]))
        except (ValueError, msgspec.ValidationError):
            raise _damaged(text) from None

    def check(self, here: str, name: str) -> None:
        """UsageError where the token was made under another Python, or of something else than
        `name`, whose digest is `here`.
        """
        if self.python != _python():
            raise UsageError(
                f"the token was made under Python {self.python} and this is Python {_python()}, "
                "whose tasks may go another way; replay it under the other, or search again"
            )
        if self.digest != here:
            raise UsageError(
                f"the token was made of another scenario: it is for {self.digest}, and {name} "
                f"is {here}; give the file it was made of, as it was then, or search again"
            )

    def __str__(self) -> str:
        order = () if self.order == "fifo" else (self.order,)
        items = ",".join([*order, *map(_shot_text, self.shots), *map(_draw_text, self.tape)])
        text = f"{VERSION}.{self.python.replace('.', '')}.{self.digest}.{items}"
        return f"{text}.{_checksum(text)}"


def digest(scenario: Scenario) -> str:
    """Ten hexadecimal digits for what a scenario means: its file's name, comments, layout and
    `about` do not matter.
    """
    meaning = json_text.dumps(spell(replace(scenario, about="")))
    return hashlib.sha256(meaning.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _checksum(text: str) -> str:
    return f"{crc32(text.encode('utf-8', 'surrogatepass')):08x}"


def _items(text: str) -> tuple[Tape, tuple[Shot, ...], Order]:
    """The choices, the cancels and the order; ValueError where they have not their form."""
    items = text.split(",") if text else []
    order: Order = "fifo"
    if items and ":" not in items[0]:
        order = msgspec.convert(items.pop(0), Order)
    tape = tuple([_draw(item) for item in items if "=" in item])
    return tape, tuple([_shot(item) for item in items if "=" not in item]), order


def _shot_text(shot: Shot) -> str:
    step = "" if shot.step is None else f":{shot.step}"
    return f"{_escaped(shot.path)}:{shot.k}:{shot.mode}:{shot.whom}{step}"


def _shot(text: str) -> Shot:
    found = _SHOT.fullmatch(text)
    if found is None:
        raise ValueError(text)
    path, k, mode, whom, step = found.groups()
    named = {"path": _plain(path), "k": int(k), "mode": mode, "whom": whom}
    shot = msgspec.convert({**named, "step": None if step is None else int(step)}, Shot)
    if (shot.k == 0) != (shot.mode == "start") or (shot.step is None) == (shot.mode == "mid"):
        raise ValueError(text)
    return shot


def _draw_text(draw: Draw) -> str:
    return f"{_escaped(draw.source)}:{_escaped(draw.label)}={draw.value}:{draw.bound}"


def _draw(text: str) -> Draw:
    found = _DRAW.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return Draw(_plain(found[1]), _plain(found[2]), int(found[3]), int(found[4]))


def _escaped(text: str) -> str:
    return quote_plus(text, errors="surrogatepass").replace("~", "%7E")


def _plain(text: str) -> str:
    return unquote_plus(text, errors="surrogatepass")


def _damaged(text: str) -> UsageError:
    return UsageError(
        f"the token {_shown(text)} is damaged: what it says and its checksum do not agree; "
        "copy the whole last line of a failure"
    )


def _shown(text: str) -> str:
    return ascii(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
