"""Where the cassette of a test is: a file of its own, with a name that every file system takes."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest

FOLDER = "cassettes"
ENDINGS = (".yaml", ".yml", ".json")

_PLAIN = re.compile(r"[A-Za-z0-9_.]+(\[[a-z0-9_.-]*\])?")
"""What is a file's name as it is. Capitals in the names of functions and classes stay, since these
rarely differ by them alone; parameters do.
"""
_STRANGE = re.compile(r"[^A-Za-z0-9_.\[\]-]+")
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
"""What Windows takes for a device, whatever its ending."""
_LONGEST = 100
_READABLE = 80


def cassette_path(item: pytest.Item, name: str | None = None) -> Path:
    """The file for a test: ``cassettes/<module>/<Class.test[parameters]>.yaml`` beside its own.

    A `name` stands in place of the test's. One that ends like a file is a path, from the folder of
    the test's file, or else from pytest's root where it is there.
    """
    beside = item.path.parent
    if name is not None and name.endswith(ENDINGS):
        path, from_root = beside / name, item.config.rootpath / name
        return from_root if from_root.exists() and not path.exists() else path
    module = item.path.stem if item.path.suffix == ".py" else item.path.name
    if name is None:
        classes = [each.name for each in item.listchain() if isinstance(each, pytest.Class)]
        name = ".".join([*classes, item.name])  # not of the node's id: xdist writes into that
    return beside / FOLDER / file_name(module) / f"{file_name(name)}.yaml"


def file_name(name: str) -> str:
    """A name as one of a file, without its ending, the same in every process; names that differ
    give others, also where capitals do not count.

    >>> file_name("TestModel.test_asks[openai]"), file_name("test_asks[a/b]")
    ('TestModel.test_asks[openai]', 'test_asks[a-b]-2e75fa1bd7')
    """
    device = _DEVICE.fullmatch(name)
    if _PLAIN.fullmatch(name) and len(name) <= _LONGEST and not device:
        return name
    mark = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    readable = _STRANGE.sub("-", name)[:_READABLE]
    return f"{'_' if device else ''}{readable}-{mark}"
