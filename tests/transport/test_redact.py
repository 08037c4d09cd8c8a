"""No secret in what is written down or told: one is planted in each place, case and coding."""

from __future__ import annotations

import io
from base64 import b64encode
from urllib.parse import quote

import pytest

from harness.core.json_text import Json, dumps
from harness.core.trace import Trace
from harness.transport import redact
from harness.transport.findings import find
from harness.transport.http1 import Malformed, Reader, refusal
from harness.transport.journal import Journal
from harness.transport.rules import NO_RULES, REDACTED
from harness.transport.secrets.finder import Finder
from harness.wire.http import Headers, Request

PLANTED = "Pl4nted-hunter2"
"""A secret without the shape of one."""
BARE = ("sk-0123456789", "sk-ant-api03-ab_cd", "AIzaSyA0123456789", "ghp_0123456789ab")
SHAPED = (*BARE, "Bearer Pl4nted-hunter2", "bearer  Pl4nted-hunter2", "eyJhbGci.eyJzdWIi.c2ln-x")
NAMES = (
    *("key", "api_key", "apiKey", "access_token", "token", "auth", "authorization", "secret"),
    *("client_secret", "password", "sig", "code", "credential", "x-goog-api-key", "refreshToken"),
)
CASED = [spell(each) for each in NAMES for spell in (str, str.upper, lambda n: n.replace("_", "-"))]
JSON_TYPE = (("content-type", "application/json"),)
FORM = (("content-type", "application/x-www-form-urlencoded"),)


def written(request: Request, told: bytes = b"") -> str:
    """All that is written of a request, and of an error that it was told."""
    file = io.StringIO()
    journal = Journal(lambda: 0, file)
    record = journal.begin(1, request)
    record.status = 400
    journal.tell(record, told)
    journal.end(record, "whole")
    found = find(journal.records, Trace([]), [])
    return file.getvalue() + "".join([str(each) for each in found])


def asked(url: str = "/v1", headers: Headers = (), body: str = "") -> str:
    return written(Request("POST", url, headers, body.encode()))


@pytest.mark.parametrize("name", CASED)
def test_what_has_the_name_of_a_secret(name: str) -> None:
    coded = "".join([f"%{ord(char):02x}" for char in name])
    nested: Json = {"a": [{name: PLANTED}, {name: {"x": [PLANTED]}}]}
    for said in (
        asked(f"/v1/x?a=1&{name}={PLANTED}"),
        asked(f"/v1beta/models/m:generateContent?{coded}={quote(PLANTED)}"),
        asked(f"http://[no/v1?{name}={PLANTED}"),
        asked("/v1", FORM, f"a=1&{coded}={PLANTED}"),
        asked("/v1", (), f"a=1&{name}={PLANTED}"),
        asked("/v1", (), f'{{"{name}": "{PLANTED}'),
        asked("/v1", (), f'--b\r\nA: b; name="{name}"\r\n\r\n{PLANTED}\r\n--b--'),
        asked("/v1", (), f'--b\r\nA: b; name="{name}"\r\nC: d\r\n\r\n{PLANTED}\r\n--b--'),
        asked("/v1", (("referer", f"https://x/?{name}={PLANTED}"),)),
        asked("/v1", JSON_TYPE, dumps(nested)),
        asked("/v1", JSON_TYPE, dumps({"arguments": dumps(nested)})),
        written(Request("POST", "/v1"), dumps({"error": {"message": dumps(nested)}}).encode()),
    ):
        assert "hunter2" not in said


@pytest.mark.parametrize(
    "name",
    [
        *("authorization", "X-Api-Key", "api-key", "apikey", "x-amz-security-token", "cookie"),
        *("x-secret", "x-password", "x-credential", "x-signature", "openai-organization"),
        *("x-passwd", "ok-access-passphrase", "x-user-pwd", "x-jwt-assertion", "x-csrf", "x-xsrf"),
        *("x-session-id", "mcp-session-id", "x-session", "x-sid"),
    ],
)
def test_headers_that_have_the_name_of_a_secret(name: str) -> None:
    for cased in (name, name.lower(), name.upper()):
        assert "hunter2" not in asked("/v1", ((cased, PLANTED),))


@pytest.mark.parametrize("secret", SHAPED)
def test_what_has_the_shape_of_a_key(secret: str) -> None:
    core = secret.rsplit(maxsplit=1)[-1]
    for said in (
        asked(f"/v1/{quote(secret)}/x"),
        asked("/v1/x?a=" + quote(secret)),
        asked("/v1", (("x-note", secret),)),
        asked("/v1", FORM, "a=" + quote(secret)),
        asked("/v1", (), f"{{ the\\n{secret} "),
        asked("/v1", JSON_TYPE, dumps({"messages": [{"content": f"use {secret}, please"}]})),
        asked("/v1", JSON_TYPE, dumps([{secret: 1}])),
        written(Request("POST", "/v1"), dumps({"error": {"message": secret}}).encode()),
        written(Request("POST", "/v1"), f"<p>{secret}</p>".encode()),
    ):
        assert core not in said
        assert REDACTED in said or quote(REDACTED) in said


def test_a_body_that_is_coded_is_not_shown() -> None:
    assert '"[3 bytes]"' in asked("/v1", (("content-encoding", "gzip"),), "abc")
    sent = Request("POST", "/v1", (), f'x"token": "{PLANTED}"'.encode("utf-16-le"))
    assert "h\\u0000" not in written(sent)


def test_what_only_sounds_like_a_secret_is_kept() -> None:
    kept: Json = {
        **dict.fromkeys(("max_tokens", "prompt_tokens", "max_output_tokens", "tokens"), 5),
        **dict.fromkeys(("total_tokens", "promptTokenCount", "author", "monkey", ""), 5),
        **dict.fromkeys(("thoughtSignature", "signature", "prompt_cache_key"), "x"),
        "token": None,
    }
    assert redact.value(kept) == kept
    for said in ("max_tokens: 5", "Error code: 400", "key: value", "risk-free-of-all", "token: "):
        assert redact.text(said) == said
    assert redact.text("https://me:hunter2@x/y") == "https://[redacted]@x/y"
    assert redact.text('name="a"\r\n\r\nb') == 'name="a"\r\n\r\nb'


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("my sk-abcdefgh", "my [redacted]"),
        ('password: "hun\\"ter 2" and more', 'password: "[redacted]" and more'),
        ('password: "hun\nter" and more', 'password: "[redacted]" and more'),
        ('password: "hun\nter 2', 'password: "[redacted]\nter 2'),
        ("password=hunter2[x]{y}\\z more", "password=[redacted]]{y}\\z more"),
        ("password: {hunter: [2]} more", "password: [redacted]"),
        ("password: [redacted] more", "password: [redacted] more"),
        ('a "key": hunter2', 'a "key": [redacted]'),
        ("auth_key: 2", "auth_key: [redacted]"),
        ("/x?api_key=hunter%202", "/x?api_key=[redacted]"),
        ("Basic hunter2, bearer words", "Basic [redacted], bearer words"),
        ("https://hunter@x/", "https://[redacted]@x/"),
    ],
)
def test_where_it_is_in_doubt_it_is_not_told(said: str, shown: str) -> None:
    assert redact.text(said) == shown


def test_what_is_hidden_in_cassettes_is_not_told_either() -> None:
    coded = b64encode(f'{{"a": 1, "token": "{PLANTED}"}}'.encode()).decode()
    for said in (
        f"my data {coded}",
        f"The password is {PLANTED}.",
        f"<password>{PLANTED}</password>",
        f"db_pass={PLANTED}",
        dumps([{"name": "password", "value": PLANTED}]),
    ):
        for doubt in ("weigh", "hide"):
            assert Finder(NO_RULES, doubt=doubt).redacted(said) != said
        assert PLANTED not in redact.text(said)
        assert coded not in redact.text(said)


def test_a_secret_is_hidden_where_it_stands_again_but_only_in_the_same_text() -> None:
    assert redact.text(f"password={PLANTED} as {PLANTED}") == "password=[redacted] as [redacted]"
    assert redact.text(f"as {PLANTED}") == f"as {PLANTED}"


def test_numbers_behind_the_names_of_secrets_are_hidden() -> None:
    given: Json = {"password": 12345678, "token": 12345678, "pin": {"max_tokens": 12345678}}
    hidden = {"password": "[redacted]", "token": "[redacted]"}
    assert redact.value(given) == {**given, **hidden}
    assert redact.value({"properties": {"password": {"type": "string"}}}) == {
        "properties": {"password": {"type": "string"}}
    }


CHUNKS = "P / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
LINES = {
    "a control character": f"POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {PLANTED}\0",
    "a fold": f"POST / HTTP/1.1\r\nHost: x\r\nX-Api-Key:\r\n {PLANTED}",
    "a fold with a colon": f"POST / HTTP/1.1\r\nHost: x\r\nX-Api-Key:\r\n\t{PLANTED}: a",
    "no colon": f"POST / HTTP/1.1\r\nHost: x\r\nx-api-key {PLANTED}",
    "nothing else": f"POST / HTTP/1.1\r\nHost: x\r\n{PLANTED}",
    "a name of that shape": f"POST / HTTP/1.1\r\nHost: x\r\nsk-{PLANTED}: a\0",
    "a query": f"POST /v1?key={PLANTED} HTTP/1.1 x\r\nHost: x",
    "a query of another protocol": f"POST /v1?key={PLANTED} HTTP/2.0\r\nHost: x",
    "an address that is none": f"POST http://[x?key={PLANTED} HTTP/2.0\r\nHost: x",
    "a protocol": f"POST /v1 {PLANTED}\r\nHost: x",
    "a method": f"{PLANTED} /v1\r\nHost: x",
    "a word": PLANTED,
    "an expectation": f"POST / HTTP/1.1\r\nHost: x\r\nExpect: {PLANTED}",
    "a length": f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {PLANTED}",
    "a coding": f"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: {PLANTED}",
    "a chunk": f"{CHUNKS}{PLANTED}",
    "behind a chunk": f"{CHUNKS}1\r\na{PLANTED}",
}


@pytest.mark.parametrize("head", LINES.values(), ids=LINES)
def test_bytes_that_are_no_request_are_not_quoted(head: str) -> None:
    reader = Reader()
    reader.feed(f"{head}\r\n\r\n".encode())
    with pytest.raises(Malformed) as caught:
        reader.take()
    file = io.StringIO()
    journal = Journal(lambda: 0, file)
    journal.malformed(1, caught.value)
    (found,) = find(journal.records, Trace([]), [])
    for said in (str(caught.value), file.getvalue(), str(found), refusal(caught.value).decode()):
        assert not any(part in said for part in ("Pl4", "hunter2", "Pl"))


def test_what_is_said_of_bytes_that_are_no_request() -> None:
    for head, said in (
        ("a control character", "the header Authorization is no header line"),
        ("no colon", "line 2 of the headers is no header line"),
        ("a query", "a request begins with POST '/v1'; expected POST"),
        ("a chunk", "a chunk begins with a line of 15 bytes that is no size"),
    ):
        reader = Reader()
        reader.feed(f"{LINES[head]}\r\n\r\n".encode())
        with pytest.raises(Malformed, match=said):
            reader.take()
