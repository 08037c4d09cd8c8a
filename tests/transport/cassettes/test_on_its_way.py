"""Answers that are recorded on their way, whoever carries them."""

from __future__ import annotations

import asyncio

import pytest

from harness.transport.cassettes.form import Interaction
from harness.transport.cassettes.recording import recorded
from harness.transport.exchange import Exchange, Whole
from harness.wire.http import Request, Response


async def answer(_request: Request) -> Exchange:
    return Whole(Response(200, (("content-length", "2"),), b"{}"))


def kept(request: Request) -> Interaction:
    found: list[Interaction] = []

    async def ask() -> None:
        async for _chunk in await recorded(answer, found.append, lambda: 0)(request):
            pass

    asyncio.run(ask())
    (one,) = found
    return one


@pytest.mark.parametrize(
    ("url", "headers", "uri"),
    [
        ("http://one.test/v1/messages", (), "http://one.test/v1/messages"),
        ("/v1/messages?a=b", (("host", "two.test:81"),), "http://two.test:81/v1/messages?a=b"),
        ("/v1/messages", (), "/v1/messages"),
    ],
)
def test_a_request_is_kept_with_its_whole_address(
    url: str, headers: tuple[tuple[str, str], ...], uri: str
) -> None:
    assert kept(Request("POST", url, headers, b"{}")).request.url == uri
