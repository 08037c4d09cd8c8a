"""Clients that only vcrpy knows, and cassettes that it made or is to play."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, abc
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import httpx2
import pytest
import requests
import vcr

from harness import serve
from harness.core.errors import CassetteMiss
from harness.transport.cassettes import file
from harness.transport.cassettes.use import Unused, cassette
from tests.transport.cassettes.raw import raw, whole
from tests.transport.cassettes.tapes import ask

KEY = "sk-not-a-real-key-0123456789"
BODY = {"model": "m", "messages": [{"role": "user", "content": "Go"}]}
OTHER = {"model": "m", "messages": [{"role": "user", "content": "Stop"}]}
CHAT = "/v1/chat/completions"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "other.yaml"


def with_requests(url: str, body: Any = BODY) -> str:
    with requests.Session() as session:
        session.trust_env = False
        headers = {"Authorization": f"Bearer {KEY}"}
        answer = session.post(url + CHAT, json=body, headers=headers, timeout=10)
        return str(answer.json()["choices"][0]["message"]["content"])


def with_aiohttp(url: str, body: Any = BODY) -> str:
    async def go() -> str:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(url + CHAT, json=body) as answer,
        ):
            return str((await answer.json())["choices"][0]["message"]["content"])

    return asyncio.run(go())


def with_httpx2(url: str, body: Any = BODY) -> str:
    headers = {"Authorization": f"Bearer {KEY}"}
    answer = httpx2.post(url + CHAT, json=body, headers=headers, trust_env=False)
    return str(answer.json()["choices"][0]["message"]["content"])


LIBRARIES = {"requests": with_requests, "aiohttp": with_aiohttp, "httpx2": with_httpx2}
each = pytest.mark.parametrize("library", LIBRARIES)


@each
def test_they_are_recorded_in_our_form_without_secrets_and_replayed(
    library: str, path: Path
) -> None:
    asks = LIBRARIES[library]
    with serve("- say: Hello.\n- say: Again.\n") as server:
        with cassette(path, "all", source="a fake provider") as session:
            assert asks(server.url) == "Hello."
            assert [each.status for each in session.interactions] == [200]
        url = server.url
    assert KEY.encode() not in path.read_bytes()
    [kept] = file.load(path).interactions
    assert kept.protocol == "openai_chat"
    assert kept.request.header("authorization") == "[redacted]"
    with cassette(path) as session:
        assert asks(url) == "Hello."
        assert len(session.interactions) == 1
        assert session.unused() == ()
    with pytest.raises(Unused), cassette(path):
        pass
    with pytest.raises(CassetteMiss, match="Stop"), cassette(path):
        asks(url, OTHER)


@each
def test_what_one_library_recorded_answers_another(library: str, path: Path) -> None:
    with serve("- say: Hello.\n") as server:
        with cassette(path, "all"):
            assert with_requests(server.url) == "Hello."
        url = server.url
    with cassette(path):
        assert LIBRARIES[library](url) == "Hello."


@each
def test_threads_are_recorded_and_replayed_side_by_side(library: str, path: Path) -> None:
    """While others ask with another library, which may need real connections for a moment."""
    texts = [str(n) for n in range(24)]

    def ask_all(url: str) -> list[str]:
        def one(n: int) -> str:
            asks = LIBRARIES[library] if n % 2 else with_requests
            return asks(url, {**BODY, "messages": [{"role": "user", "content": texts[n]}]})

        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(one, range(len(texts))))

    with serve("".join(f"- say: Reply {n}.\n" for n in texts)) as server:
        with cassette(path, "all") as session:
            live = ask_all(server.url)
            assert len(session.recorded) == len(texts)
        url = server.url
    for _ in range(3):
        with cassette(path):
            assert ask_all(url) == live


class Slow(Counter[int]):
    """Counts, and lets other threads go on before it tells."""

    def __getitem__(self, key: int) -> int:
        told = super().__getitem__(key)
        time.sleep(0.001)
        return told


def test_threads_that_ask_for_the_same_never_get_one_answer_twice(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve("- say: One.\n- say: Two.\n- say: Three.\n- say: Four.\n") as server:
        with cassette(path, "all"):
            live = [with_httpx2(server.url) for _ in range(4)]
        url = server.url
    monkeypatch.setattr("vcr.cassette.collections", SimpleNamespace(Counter=Slow, abc=abc))
    with cassette(path), ThreadPoolExecutor(4) as pool:
        asks = with_requests, with_httpx2
        told = list(pool.map(lambda n: asks[n % 2](url), range(4)))
    assert sorted(told) == sorted(live)


def test_each_recorded_answer_is_given_once_whoever_asks(path: Path) -> None:
    with serve("- say: One.\n- say: Two.\n- say: Three.\n") as server:
        with cassette(path, "all") as session:
            assert with_httpx2(server.url) == "One."
            assert with_requests(server.url) == "Two."
            assert with_httpx2(server.url) == "Three."
        url = server.url
    said = [each.body.count(b"One.") for each in session.interactions]
    assert said == [1, 0, 0]
    with cassette(path) as session:
        theirs = session._shelf._cassette
        assert with_requests(url) == "One."
        assert len(session.unused()) == 2
        assert with_httpx2(url) == "Two."
        assert (theirs.play_count, theirs.all_played) == (2, False)
        assert with_requests(url) == "Three."
        assert (theirs.play_count, theirs.all_played) == (3, True)
        assert len(session.interactions) == 3
    with cassette(path) as session:
        assert [with_requests(url), with_requests(url), with_httpx2(url)][2] == "Three."
        for asks in (with_requests, with_httpx2):
            with pytest.raises(CassetteMiss):
                asks(url)
        assert len(session.missed) == 2
        session.missed.clear()


def test_what_is_missing_is_recorded_beside_what_vcrpy_plays(path: Path) -> None:
    with serve("- say: One.\n- say: Two.\n") as server:
        with cassette(path, "missing"):
            assert with_requests(server.url) == "One."
        with cassette(path, "missing") as session:
            assert with_requests(server.url) == "One."
            assert with_requests(server.url, OTHER) == "Two."
    assert session.said == f"{path}: 1 of 1 played, 1 recorded"
    first, second = file.load(path).interactions
    assert second.begun >= first.begun
    assert b"Two." in second.body


# --- cassettes that vcrpy made


def vcrpy(**options: Any) -> Any:
    return vcr.VCR(match_on=["method", "path", "query", "body"], **options)


@each
def test_a_cassette_of_plain_vcrpy_is_replayed(library: str, path: Path) -> None:
    with serve("- say: Hello.\n") as server:
        with vcrpy().use_cassette(str(path)):
            assert LIBRARIES[library](server.url) == "Hello."
        url = server.url
    before = path.read_bytes()
    for other in LIBRARIES.values():
        with cassette(path) as session:
            assert other(url) == "Hello."
        assert [each.ended for each in session.interactions] == ["complete"]
    assert path.read_bytes() == before


def test_a_stream_that_plain_vcrpy_recorded_is_replayed(path: Path) -> None:
    body = {**BODY, "stream": True}
    with serve("- say: Hello there.\n") as server:
        with vcrpy().use_cassette(str(path)):
            live = ask("httpx2", "sync", server.url + CHAT, json=body)
        url = server.url
    with cassette(path):
        again = ask("httpx2", "async", url + CHAT, json=body)
    assert again.body == live.body
    assert len(again.chunks) == 1  # vcrpy keeps no more
    with cassette(path, split=50):
        assert len(ask("httpx2", "async", url + CHAT, json=body).chunks) > 5


def test_a_cassette_of_pytest_recording_is_replayed(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(
        test_it="""
        import os, httpx2, pytest

        @pytest.mark.vcr
        def test_it():
            answer = httpx2.post(os.environ["URL"], json={"a": 1}, trust_env=False)
            assert answer.json() == {"b": 2}
        """
    )
    with raw([whole(b'{"b": 2}', "content-type: application/json")]) as server:
        monkeypatch.setenv("URL", server.url + "/else")
        done = pytester.runpytest_inprocess("-p", "no:harness", "--record-mode=once")
        done.assert_outcomes(passed=1)
        url = server.url
    [made] = pytester.path.rglob("*.yaml")
    with cassette(made):
        again = ask("httpx2", "sync", url + "/else", json={"a": 1})
    assert again.body == b'{"b": 2}'


# --- cassettes of ours that plain vcrpy plays


@each
def test_plain_vcrpy_replays_ours(library: str, path: Path) -> None:
    with serve("- say: Hello.\n") as server:
        with cassette(path, "all"):
            assert with_httpx2(server.url) == "Hello."
        url = server.url
    before = path.read_bytes()
    matching = ["method", "path"]  # it writes and compares bodies as they are, we readably
    with vcr.use_cassette(str(path), record_mode="none", match_on=matching) as theirs:
        assert LIBRARIES[library](url) == "Hello."
        assert theirs.all_played
    assert path.read_bytes() == before


def test_vcrpy_does_not_log_what_it_holds_unless_it_is_asked_to(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It would log addresses and whole answers, with the secrets in them, for every request."""
    logger = logging.getLogger("vcr")
    caplog.set_level(logging.DEBUG)
    for level, told in ((logging.NOTSET, False), (logging.INFO, True)):
        caplog.clear()
        logger.setLevel(level)
        try:
            with serve("- say: Hello.\n") as server, cassette(path, "all"):
                with_requests(server.url)
        finally:
            logger.setLevel(logging.NOTSET)
        assert any(each.name.startswith("vcr") for each in caplog.records) is told


def _form() -> aiohttp.FormData:
    form = aiohttp.FormData({"a": "b"})
    form.add_field("file", b"\xff", filename="f")
    return form


def _parts() -> aiohttp.MultipartWriter:
    parts = aiohttp.MultipartWriter("mixed")
    parts.append("a part")
    return parts


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (_form, '"[aiohttp.formdata.FormData]"'),
        (_parts, '[["[aiohttp.payload.StringPayload]","",""]]'),
        (lambda: {"file": BytesIO(b"\xffabc"), "n": "1"}, '{"file":"\xffabc","n":"1"}'),
        (lambda: {"api_key": "Pl4nted-hunter2"}, '{"api_key":"[redacted]"}'),
        (lambda: BytesIO(b"abc"), "abc"),
    ],
)
def test_bodies_of_aiohttp_that_are_no_bytes(path: Path, data: Any, kept: str) -> None:
    """They are sent as they are, and kept the same each time: by what they hold, or their type."""

    async def go(url: str) -> list[str]:
        async with aiohttp.ClientSession() as session:
            got = []
            for _ in range(2):
                async with session.post(url, data=data()) as answer:
                    got.append(await answer.text())
            return got

    steps = [whole(b"hi", "connection: close")]
    with raw(steps, steps) as server, cassette(path, "all"):
        url = server.url
        assert asyncio.run(go(url)) == ["hi", "hi"]
    bodies = [each.request.body.decode() for each in file.load(path).interactions]
    assert bodies == [kept, kept]
    with cassette(path):
        assert asyncio.run(go(url)) == ["hi", "hi"]
