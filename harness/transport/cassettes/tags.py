"""Tags of vcrpy's files: read as data, and nothing else; no tag makes anything run."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from harness.core.located import ListNode, MapNode, Node, Scalar, within
from harness.core.yaml_text import Dialect


def _binary(node: Node) -> Node | None:
    """Bytes, in base64."""
    if not (isinstance(node, Scalar) and isinstance(node.value, str)):
        return None
    try:
        data = base64.b64decode("".join(node.value.split()), validate=True)
    except binascii.Error:
        return None
    return Scalar(data, node.line, node.column)


def _text(node: Node) -> Node | None:
    return node if isinstance(node, Scalar) else None


def _list(node: Node) -> Node | None:
    return node if isinstance(node, ListNode) else None


def _file(node: Node) -> Node | None:
    """What a file in memory held, which was sent as a body."""
    content = within(node, "state", 0)
    return content if isinstance(content, Scalar) else None


def _iterator(node: Node) -> Node | None:
    """The pieces of a body that was sent piece by piece."""
    pieces = within(node, "args", 0)
    return pieces if isinstance(pieces, ListNode) and isinstance(node, MapNode) else None


VCRPY: Final = Dialect(
    {
        "binary": _binary,
        "python/str": _text,
        "python/unicode": _text,
        "python/tuple": _list,
        "python/object/new:_io.BytesIO": _file,
        "python/object/apply:builtins.iter": _iterator,
    },
    pyyaml=True,
)
"""How vcrpy, and PyYAML below it, write YAML."""
