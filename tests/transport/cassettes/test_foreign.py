"""Cassettes of plain vcrpy are read, ours are played by it, and its stubs record into ours."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import pytest
import requests
import yaml
from msgspec.structs import replace
from vcr import VCR
from vcr.request import Request as VcrRequest
from vcr.serializers import jsonserializer, yamlserializer

from harness.core.errors import FileError
from harness.transport.cassettes.file import load, read, save
from harness.transport.cassettes.form import Chunk, Interaction
from harness.transport.cassettes.vcr_form import (
    Persister,
    Serializer,
    from_vcr,
    persister,
    serializer,
    to_vcr,
)
from harness.transport.rules import Rules
from harness.wire.http import Request
from tests.transport.cassettes.raw import Raw, raw, whole
from tests.transport.cassettes.samples import CODEC_NAMES, REFUSED, cassette, get, streamed
from tests.transport.cassettes.samples import whole as whole_reply

KEY = "sk-ant-REDACTED"
BODY = b'{"id": "1", "text": "\xc3\xa9"}'
ZIPPED = gzip.compress(BODY, mtime=0)

Client = Callable[[str], bytes]


def by_requests(url: str) -> bytes:
    headers = {"Authorization": f"Bearer {KEY}"}
    return requests.post(url, json={"a": [1, "é"]}, headers=headers, timeout=20).content


def by_aiohttp(url: str) -> bytes:
    async def ask() -> bytes:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(url, json={"a": [1, "é"]}) as response,
        ):
            return await response.read()

    return asyncio.run(ask())


def posted(module: Any, url: str) -> bytes:
    with module.Client(trust_env=False) as client:
        response = client.post(url, json={"a": [1, "é"]}, headers={"authorization": KEY})
        content: bytes = response.content
        return content


def by_httpx(url: str) -> bytes:
    return posted(pytest.importorskip("httpx"), url)


def by_httpx2(url: str) -> bytes:
    return posted(httpx2, url)


CLIENTS = [by_requests, by_aiohttp, by_httpx, by_httpx2]
clients = pytest.mark.parametrize("client", CLIENTS)


def zipped() -> Any:
    lines = ["content-type: application/json", "content-encoding: gzip", "set-cookie: a=1"]
    return raw([whole(ZIPPED, *lines)])


def ours(path: Path, **options: Any) -> Any:
    made = VCR(**options)
    made.register_serializer("harness", serializer)
    made.register_persister(persister)
    return made.use_cassette(str(path), serializer="harness")


def asked(server: Raw) -> str:
    return f"{server.url}/v1/messages?x=1"


@clients
@pytest.mark.parametrize("kind", ["yaml", "json"])
def test_what_plain_vcrpy_recorded_is_read(tmp_path: Path, client: Client, kind: str) -> None:
    path = tmp_path / f"plain.{kind}"
    unzip = {"decode_compressed_response": True} if kind == "json" else {}
    with zipped() as server, VCR(serializer=kind, **unzip).use_cassette(str(path)):
        url = asked(server)
        assert client(url) == BODY
    (found,) = load(path).interactions
    assert found.request.url == url
    assert json.loads(found.request.body) == {"a": [1, "é"]}
    assert found.protocol == "anthropic"
    assert (found.status, found.reason, found.ended) == (200, "OK", "complete")
    assert found.chunks == (Chunk(0, BODY),)
    names = [name for name, _value in found.headers]
    assert "content-encoding" not in names
    assert dict(found.headers)["content-length"] == str(len(BODY))
    assert found.line > 1 if kind == "yaml" else found.line >= 1


@clients
def test_what_its_stubs_record_is_written_as_ours_without_secrets(
    tmp_path: Path, client: Client
) -> None:
    path = tmp_path / "folder" / "ours.yaml"
    with zipped() as server, ours(path):
        url = asked(server)
        assert client(url) == BODY
    text = path.read_text(encoding="utf-8")
    assert KEY not in text
    assert "a=[redacted]" in text
    assert '"é"' in text
    (found,) = load(path).interactions
    assert (found.protocol, found.body) == ("anthropic", BODY)
    assert found.request.body == '{"a":[1,"é"]}'.encode()
    with ours(path, record_mode="none") as played:
        assert client(url) == BODY
    assert played.play_count == 1
    assert path.read_text(encoding="utf-8") == text


@clients
@pytest.mark.parametrize("given", [whole_reply(), streamed("openai_chat"), streamed("gemini")])
def test_plain_vcrpy_plays_ours(tmp_path: Path, client: Client, given: Interaction) -> None:
    path = tmp_path / "ours.yaml"
    request = replace(given.request, url="http://127.0.0.1:9/v1/x?alt=sse")
    played = replace(given, request=request, protocol="")
    save(path, cassette(replace(REFUSED, protocol="", request=request), played))
    with VCR(record_mode="none").use_cassette(str(path)) as tape:
        assert client(request.url) == given.body
        assert tape.all_played


def test_what_is_added_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "ours.yaml"
    before = replace(
        cassette(streamed("anthropic"), REFUSED, get(body=b"x")), rules=Rules(ignore=("a",))
    )
    save(path, before)
    with zipped() as server, ours(path, record_mode="new_episodes"):
        by_requests(asked(server))
    after = load(path)
    assert (after.source, after.rules) == (before.source, before.rules)
    kept = [replace(each, line=0) for each in after.interactions]
    assert tuple(kept[:3]) == before.interactions
    assert kept[3].body == BODY


def test_a_damaged_file_is_no_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "ours.yaml"
    for damage in (b"", b"\xff", b"interactions: [", b"interactions: []\n"):
        path.write_bytes(damage)
        for name in ("harness", "yaml") if b"[]" not in damage else ("harness",):
            made = VCR()
            made.register_serializer("harness", serializer)
            made.register_persister(persister)
            with pytest.raises(FileError), made.use_cassette(str(path), serializer=name):
                pass
        assert path.read_bytes() == damage


def test_what_is_not_there_is_recorded_by_other_serializers_without_secrets(
    tmp_path: Path,
) -> None:
    path = tmp_path / "plain.json"
    made = VCR(serializer="json")
    made.register_persister(Persister(Rules(values=("swordfish",))))
    with raw([whole(b"the word is swordfish")]) as server, made.use_cassette(str(path)) as tape:
        tape.get_metadata("api_key", KEY)
        url = asked(server)
        by_requests(url)
    text = path.read_text()
    assert KEY not in text
    assert "swordfish" not in text
    assert json.loads(text)["metadata"] == {"api_key": "[redacted]"}
    with made.use_cassette(str(path), record_mode="none"):
        assert by_requests(url) == b"the word is [redacted]"


def test_metadata_of_others_is_kept_and_its_secrets_are_not(tmp_path: Path) -> None:
    path = tmp_path / "ours.yaml"
    with ours(path) as tape:
        tape.get_metadata("seed", {"n": 3, "token": KEY})
    assert yaml.safe_load(path.read_text())["metadata"] == {
        "seed": {"n": 3, "token": "[redacted]"},
        "harness": {"format": 1},
    }


def test_rules_and_source_of_the_session_are_written() -> None:
    made = Serializer(Rules(names=("x-own",), values=("swordfish",)), "a test")
    request = VcrRequest("GET", "/x", None, {"X-Own": "1"})
    response = {"status": {"code": 200}, "headers": {}, "body": {"string": "swordfish"}}
    text = made.serialize({"interactions": [{"request": request._to_dict(), "response": response}]})
    found = read(text, "x.yaml")
    assert (found.source, found.rules) == ("a test", Rules(names=("x-own",)))
    assert found.interactions[0].request.headers == (("x-own", "[redacted]"),)
    assert "swordfish" not in text


def test_places_of_what_is_lost_stay_in_the_file_where_others_are_left_out() -> None:
    held = serializer.deserialize(written(get(), get(), REFUSED, get(), REFUSED))
    assert [each["at"] for each in held["metadata"]["harness"]["lost"]] == [2, 4]
    held["interactions"] = held["interactions"][:1]
    found = read(serializer.serialize(held), "x.yaml")
    assert [each.status for each in found.interactions] == [200, None, None]


def written(*interactions: Interaction) -> str:
    from harness.transport.cassettes.file import write

    return write(cassette(*interactions))


@pytest.mark.parametrize(
    "given", [*map(streamed, CODEC_NAMES), REFUSED, get(), whole_reply("gemini")]
)
def test_what_vcrpy_holds_is_the_same_interaction(given: Interaction) -> None:
    request, response = to_vcr(given)
    assert isinstance(request, VcrRequest)
    assert replace(from_vcr(request, response), line=0) == given
    if given.status is not None:
        assert response["body"] == {"string": given.body}
        yamlserializer.serialize(response)  # it writes plain values only


def test_an_interaction_without_an_answer_that_vcrpy_holds_is_written_as_one() -> None:
    request, response = to_vcr(REFUSED)
    text = serializer.serialize(
        {"interactions": [{"request": request._to_dict(), "response": response}]}
    )
    (found,) = read(text, "x.yaml").interactions
    assert replace(found, line=0) == REFUSED


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (None, b""),
        ("é", "é".encode()),
        (b"\xff", b"\xff"),
        (bytearray(b"ab"), b"ab"),
        (io.BytesIO(b"ab"), b"ab"),
        (iter([b"a", "é"]), "aé".encode()),
        ([b"a", b"b"], b"ab"),
        ({"b": "é", "a": [1, None]}, '{"b":"é","a":[1,null]}'.encode()),
        ([{"a": 1}], b'[{"a":1}]'),
        ((("a", "b"),), b'[["a","b"]]'),
        (12, b"12"),
        ({"file": b"\xe9"}, '{"file":"é"}'.encode()),
        ({"a": object(), "b": float("nan")}, b'{"a":"[builtins.object]","b":"nan"}'),
    ],
)
def test_every_body_of_a_request_that_vcrpy_holds_is_read(body: Any, expected: bytes) -> None:
    request = VcrRequest("POST", "/x", body, {})
    response = {"status": {"code": 200, "message": None}, "headers": {}, "body": {}}
    assert from_vcr(request, response).request.body == expected


def test_a_body_that_is_nothing_is_refused() -> None:
    with pytest.raises(FileError) as caught:
        from_vcr(
            VcrRequest("POST", "/x", None, {}),
            {"status": {"code": 200}, "headers": {}, "body": {"string": {"a": float("nan")}}},
        )
    assert str(caught.value) == (
        "<vcrpy>: response.body.string: expected a text, bytes, or what JSON can say, found a "
        "mapping with the key 'a'"
    )


def test_what_vcrpy_holds_and_cannot_be_is_refused() -> None:
    with pytest.raises(FileError) as caught:
        from_vcr(VcrRequest("GET", "/x", None, {}), {"status": {"code": 1}, "headers": {}})
    assert str(caught.value) == (
        "<vcrpy>: response.status.code: expected a whole number from 100 to 999, found the number 1"
    )


def plain(response: dict[str, Any], body: Any = None, headers: Any = None) -> str:
    """A cassette as plain vcrpy writes it."""
    request = {"method": "POST", "uri": "/x", "body": body, "headers": headers or {}}
    interactions = [{"request": request, "response": response}]
    text: str = yamlserializer.serialize({"interactions": interactions, "version": 1})
    return text


def answer(body: Any, headers: Any = None) -> dict[str, Any]:
    return {"status": {"code": 200, "message": "OK"}, "headers": headers or {}, "body": body}


@pytest.mark.parametrize(
    ("response", "headers", "body"),
    [
        (answer({"string": "é\n"}), (), "é\n".encode()),
        (answer({"string": b"\xff"}), (), b"\xff"),
        (answer({"string": None}), (), b""),
        (answer({}), (), b""),
        (answer("text"), (), b"text"),
        (answer({"string": ZIPPED}, {"Content-Encoding": ["gzip"]}), (), BODY),
        (
            answer(
                {"string": zlib.compress(BODY)}, {"a": ["1", "2"], "content-encoding": "deflate"}
            ),
            (("a", "1"), ("a", "2")),
            BODY,
        ),
        (  # decoded already, and the header was left
            answer({"string": BODY}, {"content-encoding": ["gzip"], "content-length": "9"}),
            (("content-length", str(len(BODY))),),
            BODY,
        ),
        (
            answer({"string": ZIPPED[:-3]}, {"content-encoding": ["gzip"]}),
            (("content-encoding", "gzip"),),
            ZIPPED[:-3],
        ),
        (
            answer({"string": ZIPPED}, {"content-encoding": [b"gzip"], "content-length": ["99"]}),
            (("content-length", str(len(BODY))),),
            BODY,
        ),
        (
            {"status_code": 200, "http_version": "1", "headers": {"a": "1"}, "content": "é"},
            (("a", "1"),),
            "é".encode(),
        ),
        (
            {"status_code": 200, "headers": {"content-encoding": "gzip"}, "content": ZIPPED},
            (),
            BODY,
        ),
    ],
)
def test_answers_of_all_versions_are_read(
    response: dict[str, Any], headers: Any, body: bytes
) -> None:
    (found,) = read(plain(response), "x.yaml").interactions
    assert (found.status, found.headers, found.body) == (200, headers, body)
    assert found.chunks == ((Chunk(0, body),) if body else ())


def test_bodies_that_somebody_took_apart_are_put_together() -> None:
    response = {"status": {"code": 200}, "headers": {}, "parsed_body": {"b": [1, "é"]}}
    text = plain(response).replace("body: null", "parsed_body: {c: 1}")
    (found,) = read(text, "x.yaml").interactions
    assert (found.request.body, found.body) == (b'{"c":1}', '{"b":[1,"é"]}'.encode())


def test_several_values_of_a_header_of_a_request_are_kept() -> None:
    request = Request("GET", "/x", (("a", "1"), ("b", "2"), ("a", "3")))
    held, response = to_vcr(replace(get(), request=request))
    assert from_vcr(held, response).request.headers == (("a", "1, 3"), ("b", "2"))


def test_headers_may_be_missing() -> None:
    text = plain({"status": {"code": 200}, "body": {}})
    (found,) = read(text.replace("headers: {}", "headers: null"), "x.yaml").interactions
    assert found.headers == found.request.headers == ()


def test_texts_that_look_like_numbers_stay_texts() -> None:
    headers = {"a": ["1e5", "0o17", "1_0", "12:30", "0x1", "no", "5.e9", "12345678901234567890"]}
    (found,) = read(plain(answer({"string": "1e5"}), "12e4", headers), "x.yaml").interactions
    assert [value for _name, value in found.request.headers] == headers["a"]
    assert (found.body, found.request.body) == (b"1e5", b"12e4")


def test_values_that_stand_twice_are_read_where_they_are_referred_to() -> None:
    headers = {"a": ["x"]}
    text = plain(answer({"string": ""}, headers), headers=headers)
    assert "*id001" in text
    (found,) = read(text, "x.yaml").interactions
    assert found.headers == found.request.headers == (("a", "x"),)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("!!binary |\n        /w==", b"\xff"),
        ("!!python/unicode 'a'", b"a"),
        ("!!python/str 'a'", b"a"),
        ("!!python/tuple ['a', 'b']", b"ab"),
        (
            "!!python/object/new:_io.BytesIO {state: !!python/tuple [!!binary 'YWI=', 0, null]}",
            b"ab",
        ),
        ("!!python/object/apply:builtins.iter {args: [['a', !!binary 'Yg==']], state: 0}", b"ab"),
    ],
)
def test_tags_that_vcrpy_writes_are_data(body: str, expected: bytes) -> None:
    text = (
        "interactions:\n"
        f"- request:\n    body: {body}\n    headers: {{}}\n    method: GET\n    uri: /x\n"
        "  response: {status: {code: 200, message: OK}, headers: {}, body: {string: ''}}\n"
        "version: 1\n"
    )
    assert read(text, "x.yaml").interactions[0].request == Request("GET", "/x", (), expected)
    VCR()  # vcrpy reads them too
    assert yamlserializer.deserialize(text)["interactions"]


def test_a_json_cassette_says_where_it_is_wrong() -> None:
    text = jsonserializer.serialize({"version": 1, "interactions": [{"request": None}]})
    with pytest.raises(FileError, match=r"^c.json:4:9: interactions\[0\]: expected a mapping with"):
        read(text, "c.json")
