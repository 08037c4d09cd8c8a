"""Interactions in the form that vcrpy holds in memory, and what vcrpy calls to load and save them.

Register both, so that all it writes is a cassette of ours, free of secrets and written at once:
``my_vcr.register_serializer("harness", serializer)`` and ``my_vcr.register_persister(persister)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from harness.core import yaml_blocks
from harness.core.errors import FileError, Problem
from harness.core.json_text import copy
from harness.core.located import Entry, ListNode, MapNode, Node, Problems, Scalar, plain
from harness.transport import redact
from harness.transport.cassettes import file, reading, writing
from harness.transport.cassettes.bodies import as_bytes
from harness.transport.cassettes.form import Interaction
from harness.transport.cassettes.found import Found, Wrong
from harness.transport.redact_bodies import interaction as redacted
from harness.transport.rules import NO_RULES, Rules

if TYPE_CHECKING:
    from vcr.request import Request  # type: ignore[import-untyped]

NOWHERE: Final = "<vcrpy>"
"""The file in messages about what vcrpy holds in memory."""


def to_vcr(given: Interaction) -> tuple[Request, dict[str, Any]]:
    """An interaction as vcrpy holds it: its request, and the response as a dict, which says below
    ``harness`` when its chunks came. One without an answer has nothing else there.
    """
    from vcr.request import Request

    if given.status is None:
        lost = writing.lost(given, 0)
        response = {"harness": lost["harness"]}
    else:
        response = writing.entry(given, [{} for _ in given.chunks])["response"]
        response["body"] = {"string": given.body}
    headers: dict[str, str] = {}
    for name, value in given.request.headers:  # of several values it would keep the first only
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    request = Request(given.request.method, given.request.url, given.request.body, headers)
    return request, copy(response)


def from_vcr(request: Request, response: Mapping[str, Any]) -> Interaction:
    """An interaction from what vcrpy holds, whichever of its stubs made it; FileError where that
    says what cannot be.
    """
    problems = Problems(NOWHERE)
    values = {"request": _values(request), "response": response}
    try:
        return reading.remembered(Found(_node(values), "", problems, _PLACE))
    except Wrong:
        raise problems.error() from None


class Serializer:
    """What makes text of what vcrpy holds, and reads it.

    `rules` find secrets beside those that are always found, and are written into the file;
    `source` says whom the client spoke to. Where they are not given, those of the file stay.
    """

    def __init__(self, rules: Rules = NO_RULES, source: str = "") -> None:
        self._rules = rules
        self._source = source

    def serialize(self, cassette_dict: Mapping[str, Any]) -> str:
        """The text of a cassette, without secrets."""
        others, ours = _metadata(cassette_dict)
        count = len(cassette_dict["interactions"])
        given = {
            "interactions": cassette_dict["interactions"],
            "metadata": {"harness": _placed(ours, count)} if ours else {},
            "version": file.VERSION,
        }
        cassette = file.of_values(_node(given), Problems(NOWHERE), reading.remembered)
        rules = cassette.rules if self._rules == NO_RULES else self._rules
        cassette = replace(cassette, rules=rules, source=self._source or cassette.source)
        values = file.values(cassette)
        return yaml_blocks.dump({**values, "metadata": {**others, **values["metadata"]}})

    def deserialize(self, cassette_string: str) -> dict[str, Any]:
        """What vcrpy holds of a cassette's text; FileError where it is none."""
        cassette = file.read(cassette_string, NOWHERE)
        pairs = [to_vcr(each) for each in cassette.interactions if each.status is not None]
        return {
            "interactions": [
                {"request": _values(request), "response": response} for request, response in pairs
            ],
            "metadata": copy(file.metadata(cassette)),
            "version": file.VERSION,
        }


class Persister:
    """What loads and saves vcrpy's cassettes: no damaged file counts as an empty one, and nothing
    is written but at once and without secrets, whatever the serializer. `rules` find more secrets.
    """

    def __init__(self, rules: Rules = NO_RULES) -> None:
        self._rules = rules

    def load_cassette(self, cassette_path: str | Path, serializer: Any) -> tuple[Any, ...]:
        """The requests, the responses and the metadata of a file.

        CassetteNotFoundError where there is none, FileError where it cannot be read.
        """
        from vcr.persisters.filesystem import (  # type: ignore[import-untyped]
            CassetteNotFoundError,
        )
        from vcr.serialize import deserialize  # type: ignore[import-untyped]

        path = Path(cassette_path)
        if not path.exists():
            raise CassetteNotFoundError
        if not isinstance(serializer, Serializer):
            try:
                return tuple(deserialize(path.read_text(encoding="utf-8"), serializer))
            except Exception as error:  # else vcrpy may take the file for an empty one
                problem = Problem(f"cannot be read: {error}")
                raise FileError(path.as_posix(), [problem]) from error
        cassette = file.load(path)
        pairs = [to_vcr(each) for each in cassette.interactions if each.status is not None]
        requests, responses = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        return requests, responses, copy(file.metadata(cassette))

    def save_cassette(
        self, cassette_path: str | Path, cassette_dict: Mapping[str, Any], serializer: Any
    ) -> None:
        """Write a file; FileError where that fails, and the file is as it was."""
        from vcr.serialize import serialize

        pairs = zip(cassette_dict["requests"], cassette_dict["responses"], strict=True)
        if isinstance(serializer, Serializer):
            interactions = [
                {"request": _values(request), "response": response} for request, response in pairs
            ]
            text = serializer.serialize({**cassette_dict, "interactions": interactions})
        else:
            safe = [to_vcr(redacted(from_vcr(*pair), self._rules)) for pair in pairs]
            others, ours = _metadata(cassette_dict)
            given = {
                "requests": [pair[0] for pair in safe],
                "responses": [pair[1] for pair in safe],
                "metadata": {**others, "harness": ours} if ours else others,
            }
            text = serialize(given, serializer)
        file.save_text(cassette_path, text)


serializer: Final = Serializer()
"""For vcrpy, without rules of the user's."""
persister: Final = Persister()
"""For vcrpy, without rules of the user's."""

_PLACE: Final = Scalar(None, 0, 0)


def _values(request: Request) -> dict[str, Any]:
    values: dict[str, Any] = request._to_dict()
    return {**values, "body": as_bytes(request.body)}


def _metadata(cassette_dict: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The metadata that others keep, without secrets, and what of it is ours."""
    given = dict(cassette_dict.get("metadata") or {})
    ours = given.pop("harness", {})
    return redact.value(plain(_node(given))), ours


def _placed(ours: Mapping[str, Any], count: int) -> dict[str, Any]:
    """What is ours in the metadata, with places for what is lost that are still there: vcrpy may
    have left interactions out.
    """
    lost = [
        {**each, "at": min(each["at"], count + n)} for n, each in enumerate(ours.get("lost") or [])
    ]
    return {**ours, "lost": lost} if lost else dict(ours)


def _node(value: Any) -> Node:
    """A value of vcrpy's as one of a file that stands nowhere."""
    match value:
        case None | bool() | int() | float() | str() | bytes():
            return Scalar(value, 0, 0)
        case bytearray() | memoryview():
            return Scalar(bytes(value), 0, 0)
        case Mapping():
            entries = {str(key): Entry(str(key), _node(each), 0, 0) for key, each in value.items()}
            return MapNode(entries, 0, 0)
        case Iterable():
            read = getattr(value, "read", None)
            return _node(read()) if read else ListNode(tuple(map(_node, value)), 0, 0)
        case _:
            return Scalar(str(value), 0, 0)
