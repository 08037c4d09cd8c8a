"""Requests and interactions without secrets: what is hidden, and all that stays as it was."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import zlib
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.transport import redact_bodies
from harness.transport.cassettes.form import Chunk, Interaction
from harness.transport.rules import NO_RULES, REDACTED, Rules
from harness.transport.secrets import bodies, coded, finder
from harness.transport.secrets.names import Names
from harness.wire.http import Headers, Request

OPAQUE = "Pl4nted-hunter2-opaque"
KEY = "sk-proj-Pl4nted0hunter2" + "Ab3d" * 6
SSE = (("content-type", "text/event-stream"),)


def asked(
    body: bytes | str = b"", headers: Headers = (), url: str = "/v1", rules: Rules = NO_RULES
) -> Request:
    data = body.encode() if isinstance(body, str) else body
    return redact_bodies.request(Request("POST", url, headers, data), rules)


def body_of(body: bytes | str, headers: Headers = (), rules: Rules = NO_RULES) -> str:
    return asked(body, headers, rules=rules).body.decode(errors="surrogateescape")


def answered(
    chunks: list[bytes], headers: Headers = SSE, request: Request | None = None
) -> Interaction:
    return Interaction(
        request=request or Request("POST", "/v1"),
        status=200,
        headers=headers,
        chunks=tuple([Chunk(n, data) for n, data in enumerate(chunks)]),
    )


def frames(*pieces: str, **more: object) -> list[bytes]:
    """A stream of text in pieces, one frame a chunk."""
    return [
        f"data: {json.dumps({'index': 0, 'delta': {'text': each}, **more})}\n\n".encode()
        for each in pieces
    ]


def texts(found: Interaction) -> list[str]:
    return [
        json.loads(line[6:])["delta"]["text"]
        for line in found.body.decode().split("\n")
        if line.startswith("data: {")
    ]


def shown(chunks: list[bytes], headers: Headers = SSE) -> Interaction:
    found = redact_bodies.interaction(answered(chunks, headers), NO_RULES)
    assert redact_bodies.interaction(found, NO_RULES) == found
    assert [chunk.at for chunk in found.chunks] == list(range(len(chunks)))
    return found


# --- addresses and headers


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"http://me:{OPAQUE}@h:1/a", "http://%5Bredacted%5D@h:1/a"),
        (f"https://h/a?key={OPAQUE}&a=%20", "https://h/a?key=%5Bredacted%5D&a=%20"),
        (f"/a?x-amz-signature={OPAQUE}", "/a?x-amz-signature=%5Bredacted%5D"),
        (f"/a/{KEY}/b%20c?q={KEY}", "/a/%5Bredacted%5D/b%20c?q=%5Bredacted%5D"),
        ("/a?key=", "/a?key="),
        ("/a%2fb?q=%7e", "/a%2fb?q=%7e"),
        (f"/a?{KEY}=1", "/a?%5Bredacted%5D=1"),
    ],
)
def test_an_address(url: str, expected: str) -> None:
    assert asked(url=url).url == expected
    assert asked(url=expected).url == expected


def test_headers() -> None:
    given = (
        ("Authorization", f"Bearer {OPAQUE}"),
        ("X-API-KEY", OPAQUE),
        ("Cookie", f"a={OPAQUE}; theme=dark;{OPAQUE}"),
        ("set-cookie", f"sid={OPAQUE}==; Path=/; HttpOnly"),
        ("x-ratelimit-remaining-tokens", "12"),
        ("location", f"https://h/cb?code={OPAQUE}"),
        ("x-secret", ""),
        ("accept", "*/*"),
    )
    assert asked(headers=given).headers == (
        ("Authorization", REDACTED),
        ("X-API-KEY", REDACTED),
        ("Cookie", f"a={REDACTED}; theme={REDACTED}; {REDACTED}"),
        ("set-cookie", f"sid={REDACTED}; Path=/; HttpOnly"),
        ("x-ratelimit-remaining-tokens", "12"),
        ("location", "https://h/cb?code=%5Bredacted%5D"),
        ("x-secret", ""),
        ("accept", "*/*"),
    )


@pytest.mark.parametrize(
    "header",
    [
        ("authorization", f"Bearer {OPAQUE}"),
        ("x-api-key", OPAQUE),
        ("authorization", "Basic " + base64.b64encode(f"me:{OPAQUE}".encode()).decode()),
        ("cookie", f"sid={OPAQUE}"),
    ],
)
def test_what_a_header_holds_is_found_in_all_the_rest(header: tuple[str, str]) -> None:
    """Providers quote the key that they refuse, and agents put their own into prompts."""
    sent = Request("POST", f"/v1/{OPAQUE}", (header,), json.dumps({"a": f"x{OPAQUE}y"}).encode())
    said = json.dumps({"error": {"message": f"bad key ({OPAQUE})"}}).encode()
    found = redact_bodies.interaction(answered([said[:30], said[30:]], (), sent), NO_RULES)
    assert found.request == redact_bodies.request(sent, NO_RULES)
    assert "hunter2" not in found.request.url + found.request.body.decode()
    assert json.loads(found.body) == {"error": {"message": f"bad key ({REDACTED})"}}


def test_a_token_that_a_reply_gives_is_hidden_wherever_it_says_it() -> None:
    said = json.dumps({"note": f"use {OPAQUE}", "access_token": OPAQUE, "expires_in": 3600})
    found = shown([said.encode()], ())
    assert json.loads(found.body) == {
        "note": f"use {REDACTED}",
        "access_token": REDACTED,
        "expires_in": 3600,
    }


def test_a_reason_is_searched_too() -> None:
    request = Request("GET", "/v1", (("x-api-key", OPAQUE),))
    for said in (OPAQUE, KEY, "api_key=0ther-hunter2"):
        given = Interaction(request=request, status=401, reason=f"no such {said}")
        found = redact_bodies.interaction(given, NO_RULES).reason
        assert found in (f"no such {REDACTED}", f"no such api_key={REDACTED}")


@pytest.mark.parametrize("name", ["location", "Content-Location", "referer"])
def test_headers_that_are_addresses(name: str) -> None:
    for url in (
        "/a?token%5B%5D=short&a=1",
        "https://h/cb?a=1#id_token=short",
        "https://h/#access_token=short",
    ):
        (told,) = asked(headers=((name, url),)).headers
        assert "short" not in told[1]
        assert asked(headers=(told,)).headers == (told,)


def test_a_header_that_is_no_login_says_nothing() -> None:
    headers = (("authorization", "Basic !!"), ("authorization", "none"), ("x-key", "test-key"))
    assert body_of("the none !! test-key", headers) == "the none !! test-key"


def test_the_length_of_a_body_is_as_far_off_as_it_was() -> None:
    body = json.dumps({"password": OPAQUE})
    headers = (("Content-Length", str(len(body) + 7)), ("content-length", "x"))
    found = asked(body, headers)
    assert found.headers == (("Content-Length", str(len(found.body) + 7)), ("content-length", "x"))
    assert asked(body, (("content-length", "1"),)).headers == (("content-length", "0"),)


FORM = (("content-type", "multipart/form-data; boundary=b1"),)
PASSWORDS = ["DB_PASS", "db_pass", "DB_PWD", "smtpPass", "mail-pwd"]


@pytest.mark.parametrize("name", PASSWORDS)
def test_names_that_end_in_a_word_for_a_password(name: str) -> None:
    for body in (f"{name}=tigerzz99", f"a=1&{name}=tigerzz99", f"so: {name}: tigerzz99, it is"):
        assert "tigerzz99" not in body_of(body)
    for value in (f"export {name}=tigerzz99", {name: "tigerzz99"}):
        assert "tigerzz99" not in body_of(json.dumps({"content": value}))
    assert "tigerzz99" not in asked(url=f"https://h/a?{name}=tigerzz99").url
    assert "tigerzz99" not in body_of(one_part(name, "tigerzz99"), FORM)


@pytest.mark.parametrize("name", PASSWORDS)
def test_what_is_only_called_a_pass_is_kept(name: str) -> None:
    for value in ("true", "second", "/home/me", "attempt-12", "20240501"):
        for body in (f"{name}={value}", f"so: {name}: {value}", json.dumps({name: value})):
            assert body_of(body) == body
        assert asked(url=f"https://h/a?{name}={value}").url == f"https://h/a?{name}={value}"
        assert body_of(one_part(name, value), FORM) == one_part(name, value)
    for other in ("PWD", "pass", "bypass", "compass"):
        assert body_of(f"{other}=tigerzz99") == f"{other}=tigerzz99"


def test_the_password_of_a_login_is_hidden_wherever_it_is_repeated() -> None:
    request = Request("POST", "/v1", body=b'{"a": "see postgres://bob:s3cr3t%70w@db/x"}')
    given = Interaction(
        request=request, status=200, chunks=(Chunk(0, b"bob's password: s3cr3tpw, s3cr3tpw"),)
    )
    found = redact_bodies.interaction(given, NO_RULES)
    assert found.request.body == b'{"a": "see postgres://[redacted]@db/x"}'
    assert b"s3cr3t" not in found.body


def one_part(name: str, value: str) -> str:
    return f'--b1\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n--b1--\r\n'


AWS = ("AKIA" + "ABCD2345" * 2, "abcdEFGH01/+" * 3 + "Yz23")


@pytest.mark.parametrize(
    "between", [" ", ":", "\n", "\naws_secret = ", "\r\n\nIt is '", '", "', " and " * 20]
)
def test_the_secret_that_belongs_to_an_access_key(between: str) -> None:
    body = f"{AWS[0]}{between}{AWS[1]}\n"
    shown = body_of(body)
    assert AWS[0] not in shown
    assert AWS[1] not in shown
    assert AWS[1] not in body_of(json.dumps({"content": body}))
    assert body_of(shown) == shown


@pytest.mark.parametrize(
    "behind",
    ["\n\n\n" + AWS[1], " " + AWS[1] + "x", " " + "0123456789abcdef" * 2 + "01234567", " A1/x" * 9],
)
def test_what_stands_behind_an_access_key_and_is_no_secret(behind: str) -> None:
    assert body_of(f"{AWS[0]}{behind}") == f"{REDACTED}{behind}"
    assert body_of(AWS[1]) == AWS[1]


# --- JSON


def test_json_keeps_its_spelling() -> None:
    assert body_of(f'["\\ud83d\\ude00 \\/{KEY}"]') == f'["\\ud83d\\ude00 \\/{REDACTED}"]'
    body = '{ "a":1.50,\n "token" :\t"x y", "b": [ "\\u00fc", {"pass\\u0077ord": 1234}, null] }'
    assert body_of(body) == (
        '{ "a":1.50,\n "token" :\t"[redacted]", "b": [ "\\u00fc", '
        '{"pass\\u0077ord": "[redacted]"}, null] }'
    )


@pytest.mark.parametrize(
    "value",
    [
        {"logprobs": {"content": [{"token": " Hello", "top_logprobs": [{"token": "Hi"}]}]}},
        {"error": {"code": "rate_limit_exceeded", "message": "no"}, "code": 429},
        {"properties": {"password": {"type": "string", "description": "A password."}}},
        {"usage": {"total_tokens": 12345, "time_to_first_token": 12345}, "credentials": True},
        {"arguments": '{"code": "print(1)", "key": "Enter", "sort_key": "name"}'},
        {"content": "token = tokens[0]; api_key: str; basic understanding; key: value"},
        {"content": 'password = os.environ["PASSWORD"]; auth=get_auth(a1, b2)'},
        {"url": "https://example.com/a?b=c", "ssh": "ssh://git@github.com/a", "n": "token: "},
        {"token": "", "secret": None, "nextPageToken": "Abc123Def456", "token_type": "bearer"},
        {"signature": "EqQBCkgIARABGAIiQL1", "encrypted_content": "gAAAAABob0l2"},
        {"key": "users/12345/report-v3.pdf", "auth_type": "oauth2_client", "sort_key": "at_2024x1"},
        {"key": "session:12345:user", "password_length": 12345, "secret_count": "12 of 12345"},
        {"content": "the token is invalid, the API key provided is wrong, a secret is a secret_2"},
        {"content": "a basic python3.12 script, sort_key=created_at2, <code>basic</code> 100%25"},
        {"html": '<div class="sk-toggleable__content">', "url": "https://h/a%20b?q=key%3A%20x1"},
    ],
)
def test_what_only_sounds_like_a_secret_is_kept(value: object) -> None:
    assert json.loads(body_of(json.dumps(value))) == value


@pytest.mark.parametrize(
    "body",
    [
        f'{{"a": [{{"password": "{OPAQUE}',
        f'{{"password": "{OPAQUE}"',
        f'{{"password": "{OPAQUE}",',
        f'{{"password": "{OPAQUE}", "b"',
        f'{{"password": "{OPAQUE}", "b":',
        f'{{"password": "{OPAQUE}", "b": tr',
        f'{{"password": "{OPAQUE}", "b\\u00',
        f'{{"password": {{"a": ["{OPAQUE}\\',
        f'{{"a": 1}}\n{{"password": "{OPAQUE}"}}\n',
        f'{{"a": 1, "a": 2, "password": "{OPAQUE}"}}',
        f"{{'password': '{OPAQUE}'}}",
        f"[see: password={OPAQUE}] and more",
        f'"{KEY}"',
        "[" * 300 + f'{{"password": "{OPAQUE}"}}',
    ],
)
def test_what_is_not_quite_json(body: str) -> None:
    found = body_of(body)
    assert "hunter2" not in found
    assert REDACTED in found
    assert body_of(found) == found


def test_what_says_what_its_value_is_called() -> None:
    body = json.dumps({"env": [{"name": "API_KEY", "value": OPAQUE}, {"name": "A", "value": "b"}]})
    assert json.loads(body_of(body)) == {
        "env": [{"name": "API_KEY", "value": REDACTED}, {"name": "A", "value": "b"}]
    }


def test_the_names_patterns_and_values_of_the_user() -> None:
    rules = Rules(
        names=("X-Internal_Id",), patterns=(r"emp-\d+", "q*"), values=("geheim ü", "4711")
    )
    body = {
        "xInternalId": "abc",
        "n": [4711, 47],
        "t": "geheim ü! emp-77, qinternalid: a",
        "emp-1": 0,
    }
    assert json.loads(body_of(json.dumps(body), rules=rules)) == {
        "xInternalId": REDACTED,
        "n": [REDACTED, 47],
        "t": f"{REDACTED}! {REDACTED}, {REDACTED}internalid: a",
        REDACTED: 0,
    }
    assert asked(headers=(("x-internal-id", "abc"),), rules=rules).headers[0][1] == REDACTED
    coded = base64.b64encode("is: geheim ü, is it".encode()).decode()
    for spelled in ("geheim%20%C3%BC", "geheim+%c3%bc", "geheim \\u00fc", coded):
        assert "geheim" not in body_of(f"so {spelled}", rules=rules)
        assert spelled not in body_of(f"so {spelled}", rules=rules)


def test_a_value_within_other_base64() -> None:
    rules = Rules(values=("a value of mine",))
    inside = base64.b64encode(b"\xff\xfe" + b"a value of mine" + b"\xff").decode()
    assert base64.b64decode(body_of(inside, rules=rules)) == b"\xff\xfe[redacted]\xff"
    assert REDACTED in body_of("!" + inside[1:], rules=rules)


@pytest.mark.parametrize(
    "body",
    [
        f"provided: {OPAQUE}Bearer a1b2c3d4e5 ",
        json.dumps({"a": f"\nword1234{OPAQUE}{KEY}["}),
        f"=api_key=%7B%22password%22%3A%20%22{OPAQUE}%22%7D]",
        f"{{'password': '{OPAQUE}'}}eyJ{OPAQUE}{KEY}Basic }}",
    ],
)
def test_what_stands_right_behind_a_secret_is_found_at_once(body: str) -> None:
    headers = (("x-note", body.replace("\n", " ")), ("authorization", f"Bearer {OPAQUE}"))
    found = asked(body, headers, f"/a?b={quote(body)}")
    assert asked(found.body, found.headers, found.url) == found
    (told,) = shown([body.encode()], headers).chunks
    assert told.data == found.body


def test_secrets_that_overlap_are_one() -> None:
    rules = Rules(values=("abcdef", "defghi"))
    assert body_of("<abcdefghi>", rules=rules) == f"<{REDACTED}>"
    assert body_of(f"<abc{REDACTED}def abcdef>", rules=rules) == f"<abc{REDACTED}def {REDACTED}>"


def test_what_is_redacted_already_is_left_alone() -> None:
    rules = Rules(patterns=(r"\w+",), values=("red",))
    once = body_of("some {words} here", rules=rules)
    assert once == f"{REDACTED} {{{REDACTED}}} {REDACTED}"
    assert body_of(once, rules=rules) == once


def test_names_without_end_are_known_too() -> None:
    names = Names()
    for n in range(10_001):
        assert names.says(f"key_{n}") == "never"
    assert names.says("password_url") == "where it looks so"
    assert names.says("password") == names.says("password") == "always"


# --- codings


def test_codings_in_each_other() -> None:
    inner = json.dumps({"password": OPAQUE, "note": "plain"})
    zipped = base64.b64encode(gzip.compress(inner.encode(), mtime=0)).decode()
    body = json.dumps({"arguments": json.dumps({"blob": zipped, "list": [inner]})})
    found = json.loads(json.loads(body_of(body))["arguments"])
    hidden = {"password": REDACTED, "note": "plain"}
    assert json.loads(gzip.decompress(base64.b64decode(found["blob"]))) == hidden
    assert json.loads(found["list"][0]) == hidden


def test_more_codings_than_are_undone_are_hidden_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder, "DEEPEST", 1)
    monkeypatch.setattr(bodies, "DEEPEST", 1)
    deep = json.dumps([json.dumps([json.dumps([json.dumps(["a"])])])])
    assert REDACTED in body_of(deep)
    twice = base64.b64encode(base64.b64encode(base64.b64encode(b"so much, and harmless")))
    assert REDACTED in base64.b64decode(base64.b64decode(body_of(twice))).decode()
    zipped = gzip.compress(gzip.compress(gzip.compress(b"so")))
    assert gzip.decompress(gzip.decompress(asked(zipped).body)) == REDACTED.encode()
    inside = base64.b64decode(body_of(base64.b64encode(zipped)))
    assert gzip.decompress(inside) == REDACTED.encode()


@pytest.mark.parametrize("newline", ["", "\n", "\r\n"])
def test_base64_in_lines(newline: str) -> None:
    text = base64.b64encode(f"{'a long text ' * 9}{KEY}".encode()).decode()
    lines = newline.join([text[n : n + 76] for n in range(0, len(text), 76)])
    found = body_of(f"-- \n{lines}\n--")
    assert base64.b64decode(found[4:-3]).decode() == f"{'a long text ' * 9}{REDACTED}"


def test_base64_of_another_alphabet_and_without_its_end() -> None:
    text = f"~~~???{KEY} ok ü"
    safe = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    found = body_of(f"x {safe} y")[2:-2]
    assert "=" not in found
    assert base64.urlsafe_b64decode(found + "==").decode() == f"~~~???{REDACTED} ok ü"
    assert body_of("x /path/" + base64.b64encode(KEY.encode()).decode()).startswith("x /path/")


def test_images_and_other_bytes_stay() -> None:
    image = bytes(range(256)) * 30
    for body in (image, json.dumps({"url": f"data:image/png;base64,{base64.b64encode(image)!r}"})):
        data = body.encode() if isinstance(body, str) else body
        assert asked(data).body == data
    assert asked(image + KEY.encode() + b"\xff").body == image + REDACTED.encode() + b"\xff"


@pytest.mark.parametrize(
    ("coding", "compress", "undo"),
    [
        ("gzip", lambda data: gzip.compress(data, mtime=7), gzip.decompress),
        ("", zlib.compress, zlib.decompress),
        ("deflate", zlib.compress, zlib.decompress),
        ("deflate", lambda data: zlib.compress(data, wbits=-15), lambda d: zlib.decompress(d, -15)),
        ("gzip", lambda data: gzip.compress(data[:5]) + gzip.compress(data[5:]), gzip.decompress),
    ],
)
def test_bodies_that_are_compressed(
    coding: str, compress: Callable[[bytes], bytes], undo: Callable[[bytes], bytes]
) -> None:
    headers = (("content-encoding", coding),)
    plain = json.dumps({"a": "harmless", "ü": "ß" * 50}).encode()
    assert asked(compress(plain), headers).body == compress(plain)
    secret = json.dumps({"password": OPAQUE}).encode()
    found = asked(compress(secret), headers).body
    assert json.loads(undo(found)) == {"password": REDACTED}
    assert asked(found, headers).body == found


def test_a_compressed_body_without_its_end() -> None:
    data = gzip.compress(json.dumps({"password": OPAQUE, "b": "c" * 50}).encode())[:-10]
    found = zlib.decompressobj(31)
    assert found.decompress(asked(data).body).startswith(b'{"password": "[redacted]"')
    assert not found.eof


def test_what_becomes_too_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coded, "LARGEST", 1000)
    bomb = gzip.compress(b" " * 1001)
    assert asked(bomb).body == REDACTED.encode()
    inside = json.loads(body_of(json.dumps([base64.b64encode(bomb).decode()])))
    assert base64.b64decode(inside[0]) == REDACTED.encode()


def test_a_coding_that_cannot_be_undone_is_not_kept() -> None:
    assert asked(b"\x0b\x03\x80\xff", (("content-encoding", "br"),)).body == REDACTED.encode()
    assert asked(b"it was undone", (("content-encoding", "br"),)).body == b"it was undone"
    assert asked(b"\x1f\x8bno gzip", (("content-encoding", "gzip"),)).body == b"\x1f\x8bno gzip"


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_other_codecs_of_text(codec: str) -> None:
    body = json.dumps({"ä": "ö", "password": OPAQUE}, ensure_ascii=False)
    found = asked(body.encode(codec)).body.decode(codec)
    assert json.loads(found) == {"ä": "ö", "password": REDACTED}


def test_utf_8_with_a_mark_and_broken_utf_8() -> None:
    body = json.dumps({"password": OPAQUE}).encode()
    assert asked(b"\xef\xbb\xbf" + body).body == b'\xef\xbb\xbf{"password": "[redacted]"}'
    assert asked(b'{"a": "\xff", ' + body[1:]).body == b'{"a": "\xff", "password": "[redacted]"}'


# --- forms


def test_forms() -> None:
    form = (("content-type", "application/x-www-form-urlencoded"),)
    body = f"a=1+2&client_secret={OPAQUE}&b={KEY}%21&empty=&flag"
    expected = "a=1+2&client_secret=%5Bredacted%5D&b=%5Bredacted%5D%21&empty=&flag"
    assert body_of(body, form) == body_of(expected, form) == expected
    assert body_of(body.removesuffix("&flag")) == expected.removesuffix("&flag")
    said = json.dumps({"a": "1 + 1 = 2 & so on", "password": OPAQUE})
    assert body_of(said, form) == said.replace(OPAQUE, "[redacted]")
    odd = body_of('{"a&password=' + OPAQUE, form)
    assert odd == '{"a&password=%5Bredacted%5D'


@pytest.mark.parametrize("end", ["\r\n", "\n"])
@pytest.mark.parametrize("headers", [(), (("content-type", 'multipart/form-data; boundary="b1"'),)])
def test_forms_in_several_parts(end: str, headers: Headers) -> None:
    zipped = gzip.compress(KEY.encode()).decode(errors="surrogateescape")
    parts = [
        ('name="token"', OPAQUE, REDACTED),
        ('name="a"', "harmless", "harmless"),
        ('name="token"', "", ""),
        (
            'name="b"; filename="b.json"',
            f'{{"password": "{OPAQUE}"}}',
            '{"password": "[redacted]"}',
        ),
        ('name="c"', f"line{end}{end}{KEY}", f"line{end}{end}{REDACTED}"),
    ]
    for last in (f"--b1--{end}", ""):
        made = [
            "".join(
                [
                    f"--b1{end}Content-Disposition: form-data; {name}{end}{end}{pair[which]}{end}"
                    for name, *pair in parts
                ]
            )
            for which in (0, 1)
        ]
        found = asked((made[0] + last).encode(), headers)
        assert found.body.decode() == made[1] + last
        assert asked(found.body, headers) == found
    file = f"--b1{end}Content-Type: application/gzip{end}{end}{zipped}{end}--b1--"
    found = asked(file.encode(errors="surrogateescape"), headers)
    begin = found.body.index(b"\x1f\x8b")
    assert gzip.decompress(found.body[begin : -len(end + "--b1--")]) == REDACTED.encode()


def test_what_is_only_called_a_form_in_several_parts() -> None:
    headers = (("content-type", "multipart/form-data; boundary=b1"),)
    assert body_of(f"{KEY} harmless", headers) == f"{REDACTED} harmless"
    assert body_of(f"{KEY} --b1 {KEY}", headers) == f"{REDACTED} --b1 {REDACTED}"


@pytest.mark.parametrize("head", ["b 1", "a;b", "b0)(+_,-./:=?"])
@pytest.mark.parametrize("quote_it", [True, False])
def test_boundaries_of_all_kinds(head: str, quote_it: bool) -> None:
    kind = (
        f'multipart/form-data; boundary="{head}"' if quote_it else f"multipart/x; boundary={head}"
    )
    part = 'Content-Disposition: form-data; name="token"'
    body = f"--{head}\r\n{part}\r\n\r\n{OPAQUE}\r\n--{head}--\r\n"
    assert body_of(body, (("content-type", kind),)) == body.replace(OPAQUE, REDACTED)
    if quote_it:  # with something before the first part, only the header tells
        assert "hunter2" not in body_of(f"hello\r\n{body}", (("content-type", kind),))


@pytest.mark.parametrize("times", [1, 2, 3, 9, 12])
def test_what_is_coded_as_addresses_are(times: int) -> None:
    for inner in (f"https://i/?token={OPAQUE}", f'{{"api_key": "{OPAQUE}"}}', f"={KEY}"):
        coded = inner
        for _ in range(times):
            coded = quote(coded, safe="")
        for body in (f"go to data:,{coded} now", json.dumps({"url": f"https://h/?u={coded}"})):
            found = body_of(body)
            assert "hunter2" not in found
            assert REDACTED in found
            assert body_of(found) == found
        assert "hunter2" not in asked(url=f"/a?b={coded}").url


@pytest.mark.parametrize("escape", ["\\u0022", "\\x22", "%22"])
def test_escapes_outside_of_json(escape: str) -> None:
    for body in (
        f"cb({{{escape}api_key{escape}:{escape}{OPAQUE}{escape}}})",
        json.dumps({"log": f"got {escape}{KEY}{escape}"}),
        f"cb('{KEY.replace('-', escape.replace('22', '2d'))}')",
    ):
        found = body_of(body)
        assert "hunter2" not in found
        assert body_of(found) == found


@pytest.mark.parametrize(
    "said",
    [
        "my password is {}.",
        "The API key is `{}`!",
        "Incorrect API key provided: {}. You can find",
        "the token was '{}', and",
        "(your secret is: {})",
    ],
)
def test_what_is_told_in_words(said: str) -> None:
    body = json.dumps({"content": said.format(OPAQUE)})
    assert body_of(body) == json.dumps({"content": said.format(REDACTED)})


def test_elements_of_xml() -> None:
    body = (
        f"<Credentials><ns:SecretAccessKey>{OPAQUE}</ns:SecretAccessKey>"
        f"<SessionToken a='b'>{OPAQUE}</SessionToken><Token>a word</Token></Credentials>"
    )
    assert body_of(body) == body.replace(OPAQUE, REDACTED)


# --- streams

# --- streams


@pytest.mark.parametrize("size", [1, 3, 7, 60, 1000])
def test_a_secret_in_several_pieces_of_a_text(size: int) -> None:
    said = f"My key is {KEY}, yes"
    found = shown(frames(*[said[n : n + size] for n in range(0, len(said), size)]))
    assert "".join(texts(found)) == f"My key is {REDACTED}, yes"


def test_a_secret_over_chunks() -> None:
    body = b"".join(frames("a", KEY, "b"))
    for size in (1, 10, 100):
        chunks = [body[n : n + size] for n in range(0, len(body), size)]
        found = shown(chunks)
        assert "".join(texts(found)) == f"a{KEY}b" or texts(found) == ["a", REDACTED, "b"]
        assert len(found.chunks) == len(chunks)


def test_arguments_in_pieces() -> None:
    said = json.dumps({"city": "Rome", "password": "opaque one", "pin": 123456})
    found = shown(frames(*[said[n : n + 5] for n in range(0, len(said), 5)]))
    assert json.loads("".join(texts(found))) == {
        "city": "Rome",
        "password": REDACTED,
        "pin": 123456,
    }


@pytest.mark.parametrize("size", [5, 7, 12])
def test_pieces_of_which_only_some_say_what_they_are_of(size: int) -> None:
    """The first piece of a call may tell its type and name; an index of 0 may be left out."""
    said = json.dumps({"password": "opaque one", "city": "Rome"})
    pieces = [said[n : n + size] for n in range(0, len(said), size)]
    calls: list[dict[str, object]] = [
        {"index": 0, "function": {"arguments": each}} for each in pieces
    ]
    calls[0]["type"] = "function"
    del calls[1]["index"]
    frames = [
        f"data: {json.dumps({'choices': [{'delta': {'tool_calls': [call]}}]})}\n\n".encode()
        for call in calls
    ]
    assert b"opaque" in b"".join(frames) or size < 12
    found = shown(frames).body.decode()
    told = [
        json.loads(line[6:])["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"]
        for line in found.split("\n\n")[:-1]
    ]
    assert json.loads("".join(told)) == {"password": REDACTED, "city": "Rome"}


def test_pieces_of_several_texts_that_take_turns() -> None:
    half = len(KEY) // 2
    one, other = KEY[:half], KEY[half:]
    chunks = [
        *frames(f"x {one}", index=1),
        *frames("harmless ", index=2),
        *frames(f"{other} y", index=1),
        *frames("too", index=2),
    ]
    assert texts(shown(chunks)) == [f"x {REDACTED}", "harmless ", " y", "too"]


def test_a_secret_that_each_frame_says_whole_is_hidden_in_each() -> None:
    found = shown(frames(KEY, KEY, " ok", api_key="x"))
    assert texts(found) == [REDACTED, REDACTED, " ok"]
    assert found.body.count(b'"api_key": "[redacted]"') == 3


@pytest.mark.parametrize("kept", [0, 10_000])
def test_a_text_that_comes_again_is_searched_for_what_became_known(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finder, "_KEPT", kept)
    frames = [{"id": OPAQUE}, {"id": OPAQUE}, {"password": OPAQUE}, {"id": OPAQUE}]
    found = shown([f"data: {json.dumps(each)}\n\n".encode() for each in frames])
    assert OPAQUE not in found.body.decode()
    assert found.body.count(REDACTED.encode()) == 4


def test_what_a_stream_repeats_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    plain = finder.Finder.edits

    def edits(self: finder.Finder, text: str, *more: object) -> object:
        looked.append(text)
        return plain(self, text, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(finder.Finder, "edits", edits)
    chunks = [f'data: {{"id": "chatcmpl-123456", "n": {n}}}\n\n'.encode() for n in range(9)]
    redact_bodies.interaction(answered(chunks), NO_RULES)
    assert looked.count("chatcmpl-123456") == 1


def test_only_frames_with_a_secret_change() -> None:
    chunks = [b": hi\n\n", *frames("a", KEY), b"event: x\r\ndata:{ }\r\n\r\n", b"data: [DONE]\n\n"]
    found = shown(chunks)
    assert [chunk.data for chunk in found.chunks][:2] == chunks[:2]
    assert [chunk.data for chunk in found.chunks][3:] == chunks[3:]


def test_streams_of_other_things() -> None:
    half = len(KEY) // 2
    for chunks, expected in (
        ([f"data: a {KEY[:half]}\n\n".encode(), f"data: {KEY[half:]} b\n\n".encode()], b" b"),
        ([f": {KEY}\n\n".encode(), b"data: x\n\n"], b": [redacted]"),
        ([f'data: {{"a":\ndata: "{KEY}"}}\n\n'.encode()], b'data: "[redacted]"}'),
        ([f"data: {{see {KEY}}}\n\n".encode()], b"{see [redacted]}"),
        ([f'event: x\ndata: {{"password": "{OPAQUE}'.encode()], b'{"password": "[redacted]'),
        ([b"data\n", f"data: {KEY}\n".encode()], b"data: [redacted]"),
    ):
        found = shown(chunks).body
        assert b"hunter2" not in found
        assert expected in found
    assert texts(shown(frames(KEY), ())) == [REDACTED]


def test_a_secret_that_goes_on_in_a_frame_without_an_end() -> None:
    half = len(KEY) // 2
    chunks = [
        f'data: {{"delta": {{"text": "a {KEY[:half]}"}}, "index": 0}}\n\n'.encode(),
        f'data: {{"delta": {{"text": "{KEY[half:]}'.encode(),
    ]
    assert shown(chunks).body.endswith(b'a [redacted]"}, "index": 0}\n\ndata: {"delta": {"text": "')


def test_a_reply_in_a_list_or_in_lines() -> None:
    half = len(KEY) // 2
    pieces = [{"text": f"x{' '}{KEY[:half]}"}, {"text": f"{KEY[half:]} y"}]
    listed = shown([json.dumps(pieces, indent=1).encode()], ())
    assert json.loads(listed.body) == [{"text": f"x {REDACTED}"}, {"text": " y"}]
    lines = "".join([json.dumps(each) + "\n" for each in pieces]).encode()
    found = shown([lines], (("content-type", "application/x-ndjson"),)).body
    assert [json.loads(line) for line in found.splitlines()] == json.loads(listed.body)


def test_an_interaction_without_an_answer() -> None:
    given = Interaction(request=Request("POST", "/v1"), ended="refused")
    assert redact_bodies.interaction(given, NO_RULES) == given


# --- whatever comes

SECRETS = st.sampled_from([KEY, "AKIA" + "ABCD2345" * 2, "ghp_" + "aB3" * 12, "hf_" + "aB" * 17])
TEXT = st.text(st.sampled_from('aé {}[]":\\,=&-\n.x'), max_size=12)
HARMLESS = st.recursive(
    st.none() | st.booleans() | st.integers(0, 99) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
CODINGS: list[Callable[[str], str]] = [
    str,
    lambda text: json.dumps({"a": text}),
    lambda text: json.dumps([text], ensure_ascii=False),
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: f"a {text} b",
]


@st.composite
def planted(draw: st.DrawFn) -> tuple[str, str]:
    """A secret, and a text that holds it in some codings."""
    secret = draw(SECRETS)
    text = f"{draw(TEXT)} {secret} {draw(TEXT)}"
    for code in draw(st.lists(st.sampled_from(CODINGS), max_size=4)):
        text = code(text)
    return secret, text


def unfolded(text: str, depth: int = 0) -> str:
    """A text with all that is coded in it, as plain as it gets."""
    said = [text]
    if depth < 6:
        for part in text.replace('"', " ").replace("\\", " ").split():
            with contextlib.suppress(ValueError):
                said.append(unfolded(base64.b64decode(part, validate=True).decode(), depth + 1))
        with contextlib.suppress(ValueError):
            value = json.loads(text)
            parts = value.values() if isinstance(value, dict) else [value]
            firsts = [part[0] if isinstance(part, list) else part for part in parts]
            said += [unfolded(str(part), depth + 1) for part in firsts]
    return "\n".join(said)


@settings(max_examples=200, deadline=None)
@given(planted(), st.integers(1, 40), st.integers(1, 40))
def test_no_planted_secret_is_left(plan: tuple[str, str], pieces: int, size: int) -> None:
    secret, text = plan
    body = b"".join(frames(*[text[n : n + pieces] for n in range(0, len(text), pieces)]))
    chunks = [body[n : n + size] for n in range(0, len(body), size)]
    found = shown(chunks)
    assert secret not in unfolded("".join(texts(found)))
    once = asked(text)
    assert secret not in unfolded(once.body.decode())
    assert asked(once.body) == once


@settings(max_examples=200, deadline=None)
@given(HARMLESS, st.sampled_from([None, 2]), st.booleans(), st.binary(max_size=20))
def test_what_is_harmless_comes_back_as_it_was(
    value: object, indent: int | None, plain: bool, data: bytes
) -> None:
    body = json.dumps(value, indent=indent, ensure_ascii=plain).encode()
    assert asked(body).body == body
    assert asked(data).body == data
    chunks = [b"data: " + json.dumps(value).encode() + b"\n\n", b"data: [DONE]\n\n"]
    assert [chunk.data for chunk in shown(chunks).chunks] == chunks
