"""The path and the parameters of a request, whatever its address looks like."""

from __future__ import annotations

import pytest

from harness.wire.http import Request


@pytest.mark.parametrize(
    ("url", "path", "query"),
    [
        ("//v1/chat/completions?a=1#b", "//v1/chat/completions", {"a": "1"}),
        ("/v1?a=http://x/?b", "/v1", {"a": "http://x/?b"}),
        ("http://v1/chat?a=1", "/chat", {"a": "1"}),
        ("http://[x/chat?a=1", "", {}),
    ],
)
def test_the_parts_of_an_address(url: str, path: str, query: dict[str, str]) -> None:
    assert (Request("POST", url).path, Request("POST", url).query) == (path, query)
