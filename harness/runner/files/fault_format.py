"""How a scenario spells what goes wrong with a reply."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from harness.core.errors import unknown
from harness.core.json_text import Json
from harness.core.located import MapNode, Node, Place, Problems, Scalar, describe, quoted, shortened
from harness.fakes.script import (
    DoneTwice,
    Fault,
    GenerateFails,
    Hang,
    LateThinking,
    StreamFails,
    Torn,
)
from harness.fakes.wire_faults import (
    BadJson,
    BadUtf8,
    Comments,
    CutAt,
    CutLine,
    Dropped,
    EmptyChoices,
    ErrorFrame,
    Http,
    Incomplete,
    JsonError,
    NoIndex,
    OddIndex,
    Refused,
    RepeatedIds,
    Reset,
    Split,
    Stall,
)
from harness.runner.files.fields import Fields, Found, Key, MapOf
from harness.runner.files.shapes import Count, Duration, Flag, OneOf, Text, Unreadable, refused


class _Known(Struct, frozen=True):
    """A fault that a file may name: what it is made into, its settings, and the one of them that
    may stand alone.
    """

    make: Callable[..., Fault]
    keys: tuple[Key, ...] = ()
    alone: str | None = None

    def build(self, found: Found) -> Fault:
        """The fault with the settings that were found."""
        if found.has("retry_as") and not found.has("retry_after"):
            raise found.refused(
                "retry_as", "retry_as: says how to spell retry_after; add that, or remove it"
            )
        for name, value in found.get("headers", {}).items():
            if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
                raise found.refused(
                    "headers", f"headers: {quoted(name)}: {quoted(value)} is no header of HTTP"
                )
        return self.make(**found.values)


_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
_VALUE = re.compile(r"[!-~]([ -~]*[!-~])?|")

_AFTER = Key("after", Count(), "How many parts of the reply come before it.")
_MESSAGE = Key("message", Text(), "The error's text.")
_KIND = Key("kind", Text(), "The error's type, in the provider's own words.")
_CODE = Key("code", Text(), "The error's code, in the provider's own words.")
_STATUS = Key("status", Count(400, 599), "The status of HTTP.")
_HTTP = (
    _STATUS,
    _MESSAGE,
    _KIND,
    _CODE,
    Key("retry_after", Duration(), "When the client may ask again."),
    Key("retry_as", OneOf(("seconds", "milliseconds", "date")), "How that is spelled."),
    Key("should_retry", Flag(), "Whether the client is told to ask again, or not to."),
    Key(
        "headers",
        MapOf("a header", Text(), example='{retry-after: "2"}', most=100),
        "More headers, their names in lower case.",
    ),
    Key("html", Flag(), "The body is a page, and no JSON."),
)
_CUT_AT = (
    Key("byte", Count(), "How many bytes of the body come."),
    Key("how", OneOf(("end", "incomplete", "reset")), "How it ends there; end is a clean end."),
)
_ERROR_FRAME = (
    _AFTER,
    _MESSAGE,
    _KIND,
    _CODE,
    _STATUS,
    Key("flat", Flag(), "The words stand beside the frame's type."),
)
_REPORTED = Key("reported", Flag(), "The stream reports it, instead of breaking with an error.")

_FAULTS: dict[str, _Known] = {
    "generate_fails": _Known(GenerateFails, (_MESSAGE,), "message"),
    "stream_fails": _Known(StreamFails, (_AFTER, _MESSAGE, _REPORTED), "message"),
    "torn": _Known(Torn, (_AFTER,)),
    "hang": _Known(Hang, (_AFTER,)),
    "done_twice": _Known(DoneTwice),
    "late_thinking": _Known(LateThinking, (Key("text", Text(), "The afterthought."),), "text"),
    "http": _Known(Http, _HTTP, "status"),
    "json_error": _Known(JsonError, (_MESSAGE, _KIND, _CODE), "message"),
    "refused": _Known(Refused),
    "dropped": _Known(Dropped),
    "incomplete": _Known(Incomplete, (_AFTER,)),
    "reset": _Known(Reset, (_AFTER,)),
    "cut_line": _Known(CutLine, (_AFTER,)),
    "cut_at": _Known(CutAt, _CUT_AT, "byte"),
    "error_frame": _Known(ErrorFrame, _ERROR_FRAME, "message"),
    "bad_json": _Known(BadJson, (_AFTER,)),
    "bad_utf8": _Known(BadUtf8, (_AFTER,)),
    "stall": _Known(Stall, (_AFTER, Key("takes", Duration(), "For how long.")), "takes"),
    "comments": _Known(Comments),
    "split": _Known(
        Split, (Key("bytes", Count(1, 1_000_000), "How many bytes a piece has."),), "bytes"
    ),
    "empty_choices": _Known(EmptyChoices),
    "repeated_ids": _Known(RepeatedIds),
    "no_index": _Known(NoIndex),
    "odd_index": _Known(OddIndex),
}
FAULT_NAMES = tuple(_FAULTS)


class _FaultShape:
    """A fault: its name, or its name with its settings, or with the one that may stand alone."""

    def __init__(self) -> None:
        self._settings = {
            name: Fields(
                f"the fault {name}",
                known.keys,
                known.build,
                example=f"{{{', '.join(f'{key.name}: …' for key in known.keys)}}}",
            )
            for name, known in _FAULTS.items()
        }

    def read(self, node: Node, name: str, problems: Problems) -> Fault:
        """The fault."""
        match node:
            case Scalar(value=str(word)) if word in _FAULTS:
                return _FAULTS[word].make()
            case Scalar(value=str(word)):
                raise self._unknown(node, word, problems)
            case MapNode(entries=entries) if len(entries) == 1:
                entry = next(iter(entries.values()))
                if entry.key not in _FAULTS:
                    raise self._unknown(entry, entry.key, problems)
                return self._with_settings(entry.key, entry.value, problems)
            case _:
                raise refused(
                    problems,
                    node,
                    f"{name}: expected one fault, such as torn or {{torn: {{after: 2}}}}; "
                    f"found {describe(node)}",
                )

    def _with_settings(self, fault: str, node: Node, problems: Problems) -> Fault:
        known = _FAULTS[fault]
        alone = _alone(known)
        if alone is not None and isinstance(node, Scalar):
            return known.make(**{alone.name: alone.shape.read(node, fault, problems)})
        if not known.keys:
            raise refused(
                problems, node, f"the fault {fault} has no settings; write `fault: {fault}`"
            )
        return self._settings[fault].read(node, fault, problems)

    def _unknown(self, place: Place, word: str, problems: Problems) -> Unreadable:
        return refused(problems, place, unknown("fault", shortened(word), _FAULTS))

    def schema(self) -> dict[str, Json]:
        """One of the spellings of one of the faults."""
        settings = []
        for name, known in _FAULTS.items():
            if known.keys:
                value = self._settings[name].schema()
                alone = _alone(known)
                if alone is not None:
                    value = {"oneOf": [alone.shape.schema(), value]}
                settings.append(
                    {
                        "type": "object",
                        "properties": {name: value},
                        "required": [name],
                        "additionalProperties": False,
                    }
                )
        return {"oneOf": [{"enum": list(_FAULTS)}, *settings]}


def _alone(known: _Known) -> Key | None:
    return next((key for key in known.keys if key.name == known.alone), None)


FAULT = _FaultShape()
