"""Secrets are found in cassettes of others, in ours, and in any file; and nothing else is."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from vcr.request import Request as VcrRequest
from vcr.serialize import serialize
from vcr.serializers import jsonserializer, yamlserializer

from harness.transport import lint
from harness.transport.lint import Leak, scan, scan_folder
from harness.transport.rules import Rules
from harness.transport.secrets import coded

OPAQUE = "Pl4nted-hunter2-opaque"
KEY = "sk-proj-Pl4nted0hunter2" + "Ab3d" * 6
JSON = {"content-type": ["application/json"]}


def foreign(
    uri: str = "https://api.openai.com/v1/chat/completions",
    headers: dict[str, Any] | None = None,
    body: Any = None,
    reply: bytes = b"{}",
    reply_headers: dict[str, list[str]] | None = None,
    serializer: Any = yamlserializer,
) -> bytes:
    """A cassette as plain vcrpy writes it."""
    request = VcrRequest("POST", uri, body, headers or {})
    response = {
        "status": {"code": 200, "message": "OK"},
        "headers": reply_headers or JSON,
        "body": {"string": reply},
    }
    text: str = serialize({"requests": [request], "responses": [response]}, serializer)
    return text.encode()


FOREIGN: dict[str, tuple[bytes, str, str]] = {
    "authorization": (
        foreign(headers={"Authorization": f"Bearer {OPAQUE}"}),
        "the value of a header that is secret",
        "interactions[0].request.headers.Authorization",
    ),
    "a header of another name": (
        foreign(headers={"X-Note": f"see {KEY}"}),
        "an OpenAI project key",
        "interactions[0].request.headers.X-Note",
    ),
    "a cookie": (
        foreign(headers={"Cookie": f"a={OPAQUE}"}),
        "the value of a header that is secret",
        "interactions[0].request.headers.Cookie",
    ),
    "a query": (
        foreign(uri=f"https://h/v1?key={OPAQUE}"),
        "a secret in an address",
        "interactions[0].request.uri",
    ),
    "a login": (
        foreign(uri=f"https://me:{OPAQUE}@h/v1"),
        "a secret in an address",
        "interactions[0].request.uri",
    ),
    "a body": (
        foreign(body=json.dumps({"api_key": OPAQUE})),
        "the value of `api_key`",
        "interactions[0].request.body",
    ),
    "a body in several lines": (
        foreign(body=f"one\ntwo\n{KEY}\n"),
        "an OpenAI project key",
        "interactions[0].request.body",
    ),
    "a reply": (
        foreign(reply=json.dumps({"access_token": OPAQUE}).encode()),
        "the value of `access_token`",
        "interactions[0].response.body.string",
    ),
    "a stream": (
        foreign(
            reply=b"".join(
                [
                    f"data: {json.dumps({'text': each})}\n\n".encode()
                    for each in (KEY[:20], KEY[20:])
                ]
            )
        ),
        "an OpenAI project key",
        "interactions[0].response.body.string",
    ),
    "gzip": (
        foreign(
            reply=gzip.compress(json.dumps({"token": OPAQUE}).encode()),
            reply_headers={"Content-Encoding": ["gzip"]},
        ),
        "the value of `token`, compressed",
        "interactions[0].response.body.string",
    ),
    "base64": (
        foreign(body=json.dumps({"a": base64.b64encode(f"<{KEY}>".encode()).decode()})),
        "an OpenAI project key, in base64",
        "interactions[0].request.body",
    ),
    "set-cookie": (
        foreign(reply_headers={"Set-Cookie": ["a=b; Path=/", f"sid={OPAQUE}"]}),
        "the value of a header that is secret",
        "interactions[0].response.headers.Set-Cookie",
    ),
    "a key that a header holds and a reply repeats": (
        foreign(headers={"x-api-key": OPAQUE}, reply=f"wrong: {OPAQUE}".encode()),
        "a secret that is known from elsewhere",
        "interactions[0].response.body.string",
    ),
    "json": (
        foreign(body=json.dumps({"api_key": OPAQUE}), serializer=jsonserializer),
        "the value of `api_key`",
        "interactions[0].request.body",
    ),
    "base64 of json": (
        json.dumps(
            {
                "interactions": [
                    {
                        "response": {
                            "body": {"base64_string": base64.b64encode(KEY.encode()).decode()}
                        }
                    }
                ]
            }
        ).encode(),
        "an OpenAI project key",
        "interactions[0].response.body.base64_string",
    ),
    "another member": (
        f"interactions: []\nnotes:\n  password: {OPAQUE}\n".encode(),
        "the value of `password`",
        "notes.password",
    ),
    "a key of a mapping": (
        f"interactions: []\n{KEY}: 1\n".encode(),
        "an OpenAI project key",
        "a key of the file",
    ),
    "a comment": (f"interactions: []\n# {KEY}\n".encode(), "an OpenAI project key", "a comment"),
    "an environment": (
        f"A=b\nOPENAI_API_KEY={KEY}\n".encode(),
        "an OpenAI project key",
        "the file",
    ),
    "a password": (f"DB_PASSWORD='{OPAQUE}'\n".encode(), "the value of `DB_PASSWORD`", "the file"),
    "bytes": (b"\x00\xff" + KEY.encode(), "an OpenAI project key", "the file"),
}


SEVERAL_LINES = {"bytes", "gzip", "set-cookie"}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_leak_is_found_and_told_without_the_secret(name: str) -> None:
    data, kind, where = FOREIGN[name]
    found = scan("a.yaml", data)
    assert (kind, where) in [(each.kind, each.where) for each in found]
    assert "hunter2" not in "".join(map(str, found))
    assert all(each.file == "a.yaml" for each in found)


@pytest.mark.parametrize("name", [name for name in FOREIGN if name not in SEVERAL_LINES])
def test_the_line_is_the_one_where_it_stands(name: str) -> None:
    data, kind, where = FOREIGN[name]
    text = data.decode()
    (line,) = {each.line for each in scan("a", data) if (each.kind, each.where) == (kind, where)}
    shown = "\n".join(text.split("\n")[line - 1 : line + 4])
    coded = (base64.b64encode(each.encode()).decode() for each in (KEY, f"<{KEY}>"))
    assert any(each in shown for each in (OPAQUE, KEY[:20], *coded))


BLOCK = f"""\
interactions:
- request:
    body: |-
      {{
        "a": 1,
        "api_key": "{OPAQUE}"
      }}
"""


def test_the_line_in_a_block() -> None:
    assert [each.line for each in scan("a", BLOCK.encode())] == [6]


PLACEHOLDERS = (
    *("REDACTED", "[redacted]", "Bearer REDACTED", "***", "<API_KEY>", "DUMMY", "FILTERED", "xxx"),
    *("{{ token }}", "${TOKEN}", "%TOKEN%", "fake-api-key", "Bearer XXXXXXXX", "your-key-here", ""),
)


@pytest.mark.parametrize("value", PLACEHOLDERS)
def test_what_stands_in_for_a_secret_is_none(value: str) -> None:
    assert scan("a", foreign(headers={"authorization": value, "cookie": f"a={value}"})) == []
    assert scan("a", foreign(body=json.dumps({"password": value, "m": f"password={value}"}))) == []
    assert scan("a", f"API_KEY={value}\n".encode()) == []
    assert scan("a", f"interactions: []\npassword: {json.dumps(value)}\n".encode()) == []


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-" + "x" * 40,
        "AKIAIOSFODNN7EXAMPLE",
        "sk-test",
        "https://example.com/a?page=2",
        '{"usage": {"total_tokens": 12}, "error": {"code": "invalid_api_key"}}',
        "my-task-force-of-the-year-2024-is-here",
        "def token(self): return self._token1",
    ],
)
def test_what_is_harmless_is_no_leak(text: str) -> None:
    assert scan("a", text.encode()) == []
    assert scan("a", foreign(body=text, reply=text.encode())) == []


def test_the_secret_behind_an_access_key_of_aws() -> None:
    text = f"id AKIA{'ABCD2345' * 2}\nsecret: {'abcdEFGH01/+' * 3}Yz23\n"
    told = [(1, "an AWS access key id"), (2, "an AWS secret access key")]
    assert [(each.line, each.kind) for each in scan("a", text.encode())] == told
    assert {each.kind for each in scan("a", foreign(body=text))} == {kind for _, kind in told}
    shown = b"AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"  # as AWS shows them
    assert scan("a", shown) == []


def test_the_rules_of_the_user() -> None:
    rules = Rules(names=("x-own",), patterns=(r"emp-\d+",), values=("geheim",))
    data = foreign(headers={"X-Own": "a", "b": "emp-1"}, body="so geheim")
    assert [each.where.rpartition(".")[2] for each in scan("a", data, rules)] == [
        "body",
        "X-Own",
        "b",
    ]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"interactions: [\n", "not scanned: as a cassette: "),
        (f"interactions: [\n# {KEY}\n".encode(), "an OpenAI project key, in the file"),
        (
            f"interactions: !!python/object:os.system {{password: {OPAQUE}}}\n".encode(),
            "the value of `password`, in interactions.password",
        ),
        (b"interactions: \xff\n", "not scanned: as a cassette: "),
        (
            foreign(reply=b"\x81\xff\xfe", reply_headers={"content-encoding": ["br"]}),
            "not scanned: a coding that cannot be undone, in interactions[0].response.body.string",
        ),
        (
            b'{"interactions": [{"response": {"body": {"base64_string": "abcde"}}}]}',
            "not scanned: interactions[0].response.body.base64_string is no base64",
        ),
    ],
)
def test_what_cannot_be_looked_into_is_told(data: bytes, says: str) -> None:
    assert any(says in str(each) for each in scan("a", data))


def test_limits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(coded, "LARGEST", 100)
    bomb = gzip.compress(b" " * 101)
    (found,) = scan("a", foreign(reply=bomb))
    assert found.kind == lint.NOT_SCANNED
    assert found.where.startswith("something compressed that becomes too large, in interactions[0]")
    monkeypatch.setattr(lint, "LARGEST", 10)
    file = tmp_path / "large"
    file.write_bytes(b"a" * 11)
    told = [Leak(file.as_posix(), 0, lint.NOT_SCANNED, "11 bytes, of at most 10")]
    assert list(scan_folder([file])) == scan(file.as_posix(), b"a" * 11) == told
    assert str(told[0]) == f"{file.as_posix()}: not scanned: 11 bytes, of at most 10"


def test_folders(tmp_path: Path) -> None:
    (tmp_path / "b" / ".git").mkdir(parents=True)
    for name in ("b/two.json", "a.env", "b/.git/x", "ok.txt"):
        (tmp_path / name).write_text("fine" if name == "ok.txt" else KEY)
    (tmp_path / "b" / "loop").symlink_to(tmp_path)
    found = list(scan_folder([tmp_path, tmp_path / "nothing"]))
    assert [str(each).replace(tmp_path.as_posix(), "") for each in found] == [
        "/a.env:1: an OpenAI project key, in the file",
        "/b/two.json:1: an OpenAI project key, in the file",
        "/nothing: not scanned: No such file or directory",
    ]


def test_folders_of_tools_are_passed_over_unless_they_are_asked_for(tmp_path: Path) -> None:
    for name, mark in (("env", "pyvenv.cfg"), (".cache", "CACHEDIR.TAG")):
        (tmp_path / name / "in").mkdir(parents=True)
        (tmp_path / name / mark).write_text("")
        (tmp_path / name / "in" / "a").write_text(KEY)
    assert list(scan_folder([tmp_path])) == []
    assert len(list(scan_folder([tmp_path / "env"]))) == 1


@pytest.mark.parametrize("name", ["docs/cassettes.md", "a.py", "notes.txt"])
def test_what_only_shows_a_cassette_is_read_as_text(name: str) -> None:
    text = "As in\n\ninteractions:\n- request: {a: b}\n\nand: so: on\n"
    assert scan(name, text.encode()) == []
    assert [each.line for each in scan(name, f"{text}{KEY}\n".encode())] == [7]
    assert scan("a.yaml", text.encode())[0].kind == lint.NOT_SCANNED


def test_comments_behind_values() -> None:
    text = f"interactions:\n- request: {{method: GET}}  # was {KEY}\n  # {KEY}\nversion: 1\n"
    assert [(each.line, each.where) for each in scan("a", text.encode())] == [
        (2, "a comment"),
        (3, "a comment"),
    ]
    inside = f"interactions:\n- request:\n    body: |\n      a\n      # is {KEY}\n"
    (found,) = scan("a", inside.encode())
    assert (found.line, found.where) == (5, "interactions[0].request.body")


@pytest.mark.parametrize("before", ["\ufeffinteractions", "http_interactions", '"interactions"'])
def test_cassettes_that_begin_otherwise(before: str) -> None:
    text = f"{before}:\n- request:\n    headers:\n      X-Api-Key:\n      - {OPAQUE}\n"
    (found,) = scan("a.yml", text.encode())
    assert (found.line, found.where.rpartition(".")[2]) == (5, "X-Api-Key")


def test_headers_of_odd_forms() -> None:
    headers = "{x-key: [7, null, !!binary aGk=], Cookie: a}"
    text = f"interactions:\n- request: {{headers: {headers}, body: 5}}\n"
    assert {each.line for each in scan("a", text.encode())} == {2}
    assert scan("a", b"interactions:\n- request: {headers: [a]}\n") == []
