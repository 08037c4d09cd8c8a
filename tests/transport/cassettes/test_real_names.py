"""Real classes in the places of vcrpy's, for the moments in which it needs them."""

from __future__ import annotations

import http.client
import urllib.request
from pathlib import Path

import pytest
import urllib3
import vcr

from harness.transport.cassettes import file
from harness.transport.cassettes.form import Cassette, Chunk, Interaction
from harness.transport.cassettes.real_names import RealNames
from harness.transport.cassettes.use import cassette
from harness.wire.http import Request

REAL = http.client.HTTPSConnection


def test_several_that_need_them_have_them_until_the_last_has_done() -> None:
    names = RealNames()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http.client, "HTTPSConnection", "a stand-in")
        first, second = names(), names()
        first.__enter__()
        second.__enter__()
        assert http.client.HTTPSConnection is REAL
        first.__exit__(None, None, None)
        assert http.client.HTTPSConnection is REAL
        second.__exit__(None, None, None)
        assert http.client.HTTPSConnection == "a stand-in"


def test_what_is_taken_away_meanwhile_does_not_come_back() -> None:
    names = RealNames()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http.client, "HTTPSConnection", "a stand-in")
        moment = names()
        moment.__enter__()
        names.leave()
    moment.__exit__(None, None, None)
    assert http.client.HTTPSConnection is REAL


def test_a_client_that_needs_them_is_answered_while_no_other_is_let_out(tmp_path: Path) -> None:
    path = tmp_path / "page.yaml"
    page = Interaction(
        request=Request("GET", "https://provider.invalid/page"),
        status=200,
        reason="OK",
        chunks=(Chunk(0, b"a page"),),
    )
    file.save(path, Cassette(interactions=(page,)))
    with cassette(path):
        stand_in = urllib3.HTTPSConnectionPool.ConnectionCls
        with vcr.patch.force_reset():
            assert urllib3.HTTPSConnectionPool.ConnectionCls is stand_in
        with urllib.request.urlopen("https://provider.invalid/page", timeout=10) as answer:
            assert answer.read() == b"a page"
