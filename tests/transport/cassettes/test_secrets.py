"""No secret reaches the disk: one is planted in each place and each coding, and every byte that is
written is searched, also behind what is coded.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes, urlencode

import pytest

from harness.core.key_shapes import SHAPES, find
from harness.core.messages import Message, ModelRequest, Text, ToolCall, user
from harness.core.reply import ReplyDone, TextDelta
from harness.transport import lint, redact_bodies
from harness.transport.cassettes import file, matching
from harness.transport.cassettes.form import Cassette, Chunk, Interaction
from harness.transport.rules import NO_RULES, REDACTED, Rules
from harness.wire import CODECS
from harness.wire.codec import Answer, Asked, Codec
from harness.wire.http import Headers, Request, Response

MARK = "hunter2"
"""What stands in each secret that is planted, and nowhere else."""
OPAQUE = f"Pl4nted-{MARK}-opaque"
KEY = f"sk-proj-Pl4nted0{MARK}" + "Ab3d" * 6

# --- what is searched


def layers(data: bytes, depth: int = 0) -> Iterator[bytes]:
    """Some bytes, and what they are behind all codings that are tried here."""
    yield data
    if depth > 5:
        return
    inner: list[bytes] = []
    for bits in (31, 15, -15):
        with contextlib.suppress(zlib.error):
            inner.append(zlib.decompressobj(bits).decompress(data))
    for codec in ("utf-16", "utf-16-le"):
        with contextlib.suppress(UnicodeDecodeError):
            inner.append(data.decode(codec).encode("utf-8", "surrogatepass"))
    inner.append(unquote_to_bytes(data.replace(b"+", b" ")))
    inner.append(
        re.sub(rb"\\+u00([0-9a-f]{2})", lambda found: bytes.fromhex(found[1].decode()), data)
    )
    inner.append(data.replace(b"\\", b""))
    inner.append(b"".join(re.findall(rb'"(?:text|delta|arguments)": ?"([^"]*)"', data)))
    for run in re.findall(rb"[A-Za-z0-9+/_-]{12,}", re.sub(rb"\n *", b"", data)):
        for skip in range(4):
            part = run[skip:]
            with contextlib.suppress(ValueError):
                inner.append(
                    base64.urlsafe_b64decode(part[: len(part) // 4 * 4].translate(STANDARD))
                )
    for each in inner:
        if each and each != data and (len(each) > 5) and looks_readable(each):
            yield from layers(each, depth + 1)


STANDARD = bytes.maketrans(b"+/", b"-_")


def looks_readable(data: bytes) -> bool:
    """Whether it is worth going on: text, or something compressed."""
    return (
        data[:2] in (b"\x1f\x8b", b"\x78\x9c") or sum(byte < 9 or byte > 126 for byte in data) < 3
    )


def leaks(data: bytes) -> bool:
    return any(MARK.encode() in each for each in layers(data))


def written(tmp_path: Path, given: Interaction, rules: Rules = NO_RULES) -> bytes:
    path = tmp_path / "a.yaml"
    file.save(path, Cassette(interactions=(given,), rules=rules, source=f"a provider, {KEY}"))
    (loaded,) = file.load(path).interactions
    assert matching.canonical(given.request, rules) == matching.canonical(loaded.request, rules)
    data = path.read_bytes()
    assert lint.scan("a.yaml", data, rules) == []
    return data + loaded.body + loaded.request.body


# --- the table: places and codings

PAYLOAD = json.dumps({"note": f"with {KEY}, see", "password": OPAQUE, "n": 1})
FORM = (("content-type", "application/x-www-form-urlencoded"),)
MULTIPART = (("content-type", "multipart/form-data; boundary=b0"),)
SSE = (("content-type", "text/event-stream"),)


def parts(content: str, head: str = "") -> str:
    named = 'Content-Disposition: form-data; name="token"'
    return (
        f'--b0\r\n{named}\r\n\r\n{OPAQUE}\r\n--b0\r\nContent-Disposition: form-data; name="f"; '
        f'filename="f"\r\n{head}\r\n{content}\r\n--b0--\r\n'
    )


def stream(text: str, size: int, end: str = "\n") -> str:
    return "".join(
        [
            f"data: {json.dumps({'index': 0, 'delta': {'text': text[n : n + size]}})}{end}{end}"
            for n in range(0, len(text), size)
        ]
    )


def b64(data: str | bytes) -> str:
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


PLACES: dict[str, tuple[str, Headers]] = {
    "JSON": (PAYLOAD, ()),
    "JSON with escapes": (PAYLOAD.replace("-", "\\u002d"), ()),
    "JSON, indented": (json.dumps([json.loads(PAYLOAD)], indent=2), ()),
    "JSON without its end": (PAYLOAD[:-10], ()),
    "arguments": (json.dumps({"arguments": json.dumps({"deep": PAYLOAD})}), ()),
    "a prompt": (json.dumps({"content": f"password: {OPAQUE} and {KEY}"}), ()),
    "base64 in JSON": (json.dumps({"data": b64(PAYLOAD)}), ()),
    "a data address": (json.dumps({"url": f"data:text/plain;base64,{b64(PAYLOAD)}"}), ()),
    "gzip in base64 in JSON": (json.dumps({"data": b64(gzip.compress(PAYLOAD.encode()))}), ()),
    "base64 in base64": (json.dumps({"data": b64(f"it is {b64(PAYLOAD)}")}), ()),
    "base64, whole": (b64(PAYLOAD), ()),
    "a form": (urlencode({"a": PAYLOAD, "client_secret": OPAQUE}), FORM),
    "a form that is not called one": (f"token={OPAQUE}&a={quote(KEY)}", ()),
    "parts": (parts(KEY), MULTIPART),
    "parts with JSON": (parts(PAYLOAD, "Content-Type: application/json\r\n"), MULTIPART),
    "parts with base64": (parts(b64(PAYLOAD), "Content-Transfer-Encoding: base64\r\n"), MULTIPART),
    "parts that are not called so": (parts(PAYLOAD), ()),
    "a stream": (f"event: x\ndata: {PAYLOAD}\n\ndata: [DONE]\n\n", SSE),
    "a stream, text in pieces": (stream(f"My key is {KEY} and ok", 7), SSE),
    "a stream, arguments in pieces": (stream(PAYLOAD, 5), SSE),
    "a stream, other ends of lines": (stream(PAYLOAD, 11, "\r\n"), SSE),
    "a stream without its end": (stream(f"a {KEY}", 9)[:-30], SSE),
    "lines of JSON": (f'{PAYLOAD}\n{{"a": 1}}\n{PAYLOAD}\n', ()),
    "text": (f"{KEY}\nAuthorization: Bearer {OPAQUE}\nhttps://me:{OPAQUE}@h/?key={OPAQUE}", ()),
    "HTML": (f"<p>{KEY}</p><a href='/x?token={OPAQUE}'>", (("content-type", "text/html"),)),
    "broken UTF-8": (f'{{"\udcff": "\udc80", {PAYLOAD[1:]}', ()),
}
CODINGS: dict[str, tuple[Callable[[bytes], bytes], Headers]] = {
    "plain": (bytes, ()),
    "gzip": (gzip.compress, (("content-encoding", "gzip"),)),
    "gzip without a header": (gzip.compress, ()),
    "gzip twice": (lambda data: gzip.compress(gzip.compress(data)), ()),
    "zlib": (zlib.compress, (("content-encoding", "deflate"),)),
    "deflate": (lambda data: zlib.compress(data, wbits=-15), (("content-encoding", "deflate"),)),
    "brotli, say": (lambda data: b"\xff" + data, (("content-encoding", "br"),)),
}


def test_the_search_finds_what_is_planted() -> None:
    for text, _headers in PLACES.values():
        for code, _more in list(CODINGS.values())[:-1]:
            assert leaks(code(text.encode(errors="surrogateescape")))


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("place", PLACES)
def test_bodies(tmp_path: Path, place: str, coding: str) -> None:
    (text, headers), (code, more) = PLACES[place], CODINGS[coding]
    data = code(text.encode(errors="surrogateescape"))
    request = Request("POST", "https://api.example/v1/x", (*headers, *more), data)
    for size in (len(data), 13):
        given = Interaction(
            request=request,
            status=200,
            headers=(*headers, *more),
            chunks=tuple([Chunk(n, data[n : n + size]) for n in range(0, len(data), size)]),
            ended_at=len(data),
        )
        assert not leaks(written(tmp_path, given))
        assert redact_bodies.interaction(given, NO_RULES).request == redact_bodies.request(
            request, NO_RULES
        )


def in_pieces(text: str) -> list[str]:
    return [text[n : n + 6] for n in range(0, len(text), 6)]


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_replies_of_each_protocol_say_the_same_without_their_secrets(
    codec: Codec, streamed: bool
) -> None:
    """Text and arguments, streamed in pieces of six characters."""
    said = f"Your key is {KEY}, keep it."
    args = {"city": "Rome", "password": OPAQUE, "note": f"see {KEY}", "n": [1, 2]}
    calls = (ToolCall("call_1", "pay", args), ToolCall("call_2", "look", {"a": 1}))
    answer = Answer(Message("assistant", (Text(said), *calls)), stopped="calls", model="m")
    asked = Asked(ModelRequest("m", "", (user("Go."),)), stream=streamed)
    if streamed:
        encoder = codec.encoder(asked, answer, cut=in_pieces)
        parts = [TextDelta(each) for each in in_pieces(said)]
        chunks = [frame for part in parts for frame in encoder.part(part)]
        chunks += [*encoder.part(ReplyDone(answer.message)), *encoder.end()]
    else:
        chunks = [codec.answer(asked, answer).body]
    given = Interaction(
        request=Request("POST", "/"),
        status=200,
        chunks=tuple([Chunk(n, data) for n, data in enumerate(chunks)]),
    )
    found = redact_bodies.interaction(given, NO_RULES)
    assert not leaks(found.body)
    if streamed:
        decoder = codec.decoder()
        for chunk in found.chunks:
            decoder.feed(chunk.data)
        read = decoder.end()
    else:
        read = codec.read_answer(Response(200, (), found.body))
    assert read.message.text == f"Your key is {REDACTED}, keep it."
    assert [call.args for call in read.message.calls] == [
        {"city": "Rome", "password": REDACTED, "note": f"see {REDACTED}", "n": [1, 2]},
        {"a": 1},
    ]
    assert len(found.chunks) == len(given.chunks)


HEADS: dict[str, Callable[[str], Request]] = {
    "authorization": lambda s: Request("GET", "/v1", (("authorization", f"Bearer {s}"),)),
    "a header in capitals": lambda s: Request("GET", "/v1", (("X-API-KEY", s),)),
    "basic": lambda s: Request("GET", "/v1", (("authorization", f"Basic {b64('me:' + s)}"),)),
    "cookie": lambda s: Request("GET", "/v1", (("cookie", f"a=b; sid={s}"),)),
    "a referer": lambda s: Request("GET", "/v1", (("referer", f"https://h/?access_token={s}"),)),
    "a query": lambda s: Request("GET", f"https://h/v1?a=1&key={quote(s)}"),
    "a coded query": lambda s: Request("GET", f"https://h/v1?%6bey={quote(s)}"),
    "a signature": lambda s: Request("GET", f"https://h/v1?X-Amz-Signature={quote(s)}"),
    "a login": lambda s: Request("GET", f"https://me:{quote(s)}@h:8080/v1"),
}


@pytest.mark.parametrize("secret", [OPAQUE, KEY])
@pytest.mark.parametrize("place", HEADS)
def test_heads(tmp_path: Path, place: str, secret: str) -> None:
    """Also where a reply repeats what stands in a head, in any of its ways."""
    request = HEADS[place](secret)
    said = json.dumps({"error": {"message": f"wrong key {secret} ({b64(secret)})"}}).encode()
    for status in (200, None):
        given = Interaction(
            request=request,
            status=status,
            headers=(("set-cookie", f"sid={secret}; Path=/"), ("x-echo", secret)) if status else (),
            chunks=(Chunk(0, said[:30]), Chunk(1, said[30:])) if status else (),
            ended="complete" if status else "refused",
        )
        assert not leaks(written(tmp_path, given))


@pytest.mark.parametrize("place", ["{}", "so {}, it is", '{{"a": "{}"}}', "/a/{}/b?c={}"])
def test_what_the_user_calls_secret(tmp_path: Path, place: str) -> None:
    rules = Rules(names=("x-own",), patterns=(r"emp-\w+",), values=(f"mine {MARK} ü",))
    own, coded = f"emp-{MARK}", f"mine {MARK} ü"
    for text in (own, coded, quote(coded), b64(coded), b64(f"~{coded}~"), json.dumps(coded)[1:-1]):
        body = place.replace("{}", text).replace("{{", "{").replace("}}", "}").encode()
        given = Interaction(
            request=Request("POST", f"/a?q={quote(text)}", (("x-own", MARK),), body),
            status=200,
            headers=(("x-own", MARK),),
            chunks=(Chunk(0, body),),
        )
        assert not leaks(written(tmp_path, given, rules))


HARMLESS = [
    f"{name}_token" for name in ("next", "nextPage", "continuation", "sync", "cancel", "eos")
]


@pytest.mark.parametrize("name", [*HARMLESS, "nextToken", "token"])
def test_what_opens_nothing_is_kept(tmp_path: Path, name: str) -> None:
    """A place in a list is an argument of a tool: without it a replay goes another way."""
    body = json.dumps({"call": {"name": "list", "arguments": json.dumps({name: OPAQUE})}}).encode()
    heads = (("x-token", "other-Pl4nted"), ("content-type", "application/json"))
    given = Interaction(request=Request("POST", f"/a?{name}={OPAQUE}", heads, body), status=200)
    data = written(tmp_path, given, Rules(harmless=("token",)))
    assert data.count(OPAQUE.encode()) == 3  # in the address, and in the body twice
    assert b"other-Pl4nted" not in data
    assert file.load(tmp_path / "a.yaml").rules == Rules(harmless=("token",))


LETTERS = "hunter2aB3dE5fG7h" * 40
EXAMPLES = {
    "sk-or-": "sk-or-v1-" + "0a1b2c3d" * 8,
    "sk-ant-": f"sk-ant-api03-{LETTERS[:90]}",
    "sk-lf-": "sk-lf-01234567-89ab-cdef-0123-456789abcdef",
    "AIza": f"AIza{LETTERS[:35]}",
    "AKIA": "AKIA" + "ABCD2345" * 2,
    "ASIA": "ASIA" + "ABCD2345" * 2,
    "hooks.slack.com": "hooks.slack.com/services/T01234567/B01234567/abcdefgh01234567",
    "r8_": f"r8_{LETTERS[:37]}",
    "csk-": "csk-" + "a1b2c3d4" * 6,
    "nvapi-": f"nvapi-{LETTERS[:64]}",
    "sk_": "sk_" + "0a1b2c3d" * 6,
    "lsv2_": "lsv2_pt_" + "0a1b2c3d" * 4 + "_0123456789",
    "dapi": "dapi" + "0a1b2c3d" * 4,
    "npm_": f"npm_{LETTERS[:36]}",
    "pypi-": f"pypi-AgEIcHlwaS5vcmc{LETTERS[:90]}",
    "SG.": f"SG.{LETTERS[:22]}.{LETTERS[:43]}",
    "dop_v1_": "dop_v1_" + "0a1b2c3d" * 8,
    "hvs.": f"hvs.{LETTERS[:90]}",
    "PMAK-": "PMAK-" + "0a1b2c3d" * 3 + "-" + "01" * 17,
    "glsa_": f"glsa_{LETTERS[:32]}_0a1b2c3d",
    "sbp_": "sbp_" + "0a1b2c3d" * 5,
    "ATATT3": f"ATATT3{LETTERS[:180]}",
    ":AA": "bot0123456789:AA" + LETTERS[:33],
    "sig=": "sig=" + "aB3%2F" * 8 + "%3D",
    "AccountKey=": "AccountKey=" + LETTERS[:86] + "==",
    "eyJ": f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{LETTERS[:43]}",
    "-----BEGIN ": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
}
"""A key of each kind whose pattern is more than a beginning and many letters."""
KINDS = {
    shape.hint: EXAMPLES.get(
        shape.hint, shape.hint + ("0a1b" * 8 if shape.hint.startswith("shp") else LETTERS[:68])
    )
    for shape in SHAPES
}


@pytest.mark.parametrize("hint", KINDS)
def test_every_kind_of_key(tmp_path: Path, hint: str) -> None:
    key = KINDS[hint]
    assert all(shape.source for shape in SHAPES if shape.hint == hint)
    assert next((each.start, each.end) for each in find(key)) == (0, len(key))
    assert list(find(f"x{key}")) == [] or hint in ("sig=", ":AA", "-----BEGIN ")
    chunks = (Chunk(0, json.dumps({"text": f"<{key}> ok"}).encode()),)
    given = Interaction(request=Request("POST", "/", (), key.encode()), status=200, chunks=chunks)
    assert key[-20:] not in written(tmp_path, given).decode().replace("\\n", "\n")
    assert lint.scan("a", json.dumps({"a": key}).encode())


def test_the_shape_of_a_key_is_found_only_where_a_word_begins() -> None:
    for before in ("", " ", "\\n", "%2F", "=", '"', "é"):
        assert list(find(before + KEY))
    for before in ("a", "0", "q"):
        assert not list(find(before + "AKIA" + "ABCD2345" * 2))
