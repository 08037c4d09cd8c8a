"""What vcrpy is asked to stand in for: what is there, and is not ours."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest
import vcr.patch  # noqa: F401  # loads what is installed

from harness.transport.cassettes.shelf import skipped
from harness.transport.cassettes.use import cassette


def test_a_library_that_is_loaded_is_not_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tornado", raising=False)
    monkeypatch.setitem(sys.modules, "httplib2", ModuleType("httplib2"))
    assert {"httpx", "httpx2", "tornado"} <= set(skipped())
    assert not {"httplib2", "requests", "urllib3", "aiohttp"} & set(skipped())


def test_a_library_that_is_not_installed_is_not_looked_for_at_each_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = {
        name for name in ("botocore", "httplib2", "tornado") if not importlib.util.find_spec(name)
    }
    sought: list[str] = []

    class Spy:
        @staticmethod
        def find_spec(name: str, path: Sequence[str] | None, target: object = None) -> None:
            sought.append(name)

    with cassette(tmp_path / "a.yaml", "all"):
        pass
    monkeypatch.setattr(sys, "meta_path", [Spy, *sys.meta_path])
    with cassette(tmp_path / "a.yaml", "all"):
        pass
    assert not missing & {name.partition(".")[0] for name in sought}
