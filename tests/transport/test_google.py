"""Google's client is kept from aiohttp while a cassette is in use, whenever it is loaded."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from google import genai

from harness.transport import google
from harness.transport.cassettes.use import cassette


def test_it_takes_aiohttp_again_at_the_end(tmp_path: Path) -> None:
    client = genai.Client(api_key="k")._api_client
    assert client._use_aiohttp()
    with cassette(tmp_path / "x.yaml", "missing"):
        assert not client._use_aiohttp()
        client._async_httpx_client = None  # as where it has a certificate of its own
        assert client._use_aiohttp()
    assert client._use_aiohttp()


def test_a_library_that_is_loaded_later_is_kept_from_it_too(tmp_path: Path) -> None:
    code = f"""
import sys
from harness.transport.cassettes.use import cassette
with cassette({str(tmp_path / "x.yaml")!r}, "missing"):
    assert "google.genai" not in sys.modules
    from google import genai
    client = genai.Client(api_key="k")._api_client
    assert not client._use_aiohttp()
assert client._use_aiohttp()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", [{}, {"BaseApiClient": object}])
def test_a_library_that_decides_otherwise_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, module: dict[str, Any]
) -> None:
    made = types.ModuleType("google.genai._api_client")
    vars(made).update(module)
    monkeypatch.setitem(sys.modules, made.__name__, made)
    assert google.swaps() == []
