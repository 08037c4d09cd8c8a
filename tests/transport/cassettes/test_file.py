"""Cassettes as files: what is written, how it looks, and that it reads back as it was."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.core.errors import FileError, UsageError
from harness.transport.cassettes import file
from harness.transport.cassettes.bodies import compact
from harness.transport.cassettes.file import load, read, save, write
from harness.transport.cassettes.form import Cassette, Chunk, Ended, Interaction
from harness.transport.cassettes.reading import ANSWERED, LOST
from harness.transport.redact_bodies import interaction as redacted
from harness.transport.rules import Rules
from harness.wire import codec_for
from harness.wire.http import Headers, Request
from tests.transport.cassettes.samples import (
    BASE,
    CODEC_NAMES,
    MILLISECOND,
    REFUSED,
    cassette,
    get,
    streamed,
    whole,
)


def kept(given: Cassette) -> Cassette:
    """What is read of a cassette that was written, without places."""
    found = read(write(given), "kept.yaml")
    return replace(found, interactions=unplaced(found.interactions), path=given.path)


def unplaced(given: Sequence[Interaction]) -> tuple[Interaction, ...]:
    return tuple(replace(each, line=0) for each in given)


@pytest.mark.parametrize("name", CODEC_NAMES)
def test_what_is_written_is_read_as_it_was(name: str) -> None:
    given = cassette(streamed(name), REFUSED, whole(name), get(), replace(REFUSED, ended="reset"))
    assert kept(given) == given


def test_a_file_looks_as_people_read_it() -> None:
    pieces = [b"event: ping\nda", b'ta: {"type": "ping"}\n\n', b"\xc3", b"\xa9\n"]
    request = Request(
        "POST", f"{BASE}/v1/other?a=1", (("x-b", "1"), ("x-b", "2")), b'{"b":"\xc3\xa9","a":[1]}'
    )
    one = Interaction(
        request=request,
        begun=1_000,
        status=200,
        headers=(("content-type", "text/event-stream"),),
        chunks=tuple(Chunk(n * MILLISECOND + 999, piece) for n, piece in enumerate(pieces)),
        ended="torn",
        ended_at=2_500 * MILLISECOND,
    )
    two = Interaction(request=Request("GET", "/x", (), b"\xff"), ended="refused", ended_at=0)
    text = write(
        Cassette(
            interactions=(two, one),
            source="a test",
            rules=Rules(ignore=("a.b",), values=("hidden",)),
        )
    )
    assert (
        text
        == """\
interactions:
- request:
    method: POST
    uri: http://127.0.0.1:8080/v1/other?a=1
    headers:
      x-b: ['1', '2']
    body: |-
      {
        "b": "é",
        "a": [
          1
        ]
      }
  response:
    status: {code: 200, message: ''}
    headers:
      content-type: [text/event-stream]
    body:
      string: |
        event: ping
        data: {"type": "ping"}

        é
    harness:
      begun: 0.000001
      head: 0.000
      ended: torn
      took: 2.500
      chunks:
      - {at: 0.000, bytes: 14}
      - {at: 0.001, bytes: 22, event: ping}
      - {at: 0.002, bytes: 1}
      - {at: 0.003, bytes: 2}
metadata:
  harness:
    format: 1
    source: a test
    rules:
      ignore: [a.b]
    lost:
    - at: 0
      request:
        method: GET
        uri: /x
        headers: {}
        body: !!binary |
          /w==
      harness:
        begun: 0.000
        ended: refused
        took: 0.000
version: 1
"""
    )
    assert "hidden" not in text


def test_where_an_interaction_stands_is_kept() -> None:
    text = write(cassette(get(), REFUSED, get()))
    lines = text.splitlines()
    first, lost, third = [each.line for each in read(text, "x.yaml").interactions]
    assert lines[first - 1] == lines[third - 1] == "- request:"
    assert lines[lost - 1].strip() == "- at: 1"


def test_a_body_with_other_line_ends_has_a_line_for_each_too() -> None:
    text = write(cassette(get(body=b"data: 1\r\n\r\ndata: 2 \r\n\r\n")))
    assert (
        '      string: "data: 1\\r\\n\\\n'
        "        \\r\\n\\\n"
        "        data: 2 \\r\\n\\\n"
        '        \\r\\n"\n'
    ) in text


def test_json_of_requests_is_kept_as_it_is_meant() -> None:
    body = '{"b": 1.50, "a": "\\u00fc\u2028\\ud83d\x7f", "c": {"d": []}}'.encode()
    headers: Headers = (("content-length", str(len(body))),)
    given = replace(get(), request=Request("POST", "/x", headers, body))
    sent = '{"b":1.5,"a":"ü\u2028\\ud83d\x7f","c":{"d":[]}}'.encode()
    found = kept(cassette(given)).interactions[0].request
    assert found == Request("POST", "/x", (("content-length", str(len(sent))),), sent)


@pytest.mark.parametrize("body", [b'"a\\nb"\n', b"[1, 2", b'{"a": 1, "a": 2}', b"{}\n{}\n", b"12"])
def test_other_bodies_of_requests_are_kept_as_they_are(body: bytes) -> None:
    given = replace(get(), request=Request("POST", "/x", (), body))
    assert kept(cassette(given)).interactions[0].request.body == body


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
BYTES = st.one_of(
    st.binary(max_size=20),
    st.lists(
        st.sampled_from(
            [
                *(b"data: {}", b"\n", b"\r\n", b"\r", b" ", b"\t", b"---", b"- a: b", b"...", b"#"),
                *(b"\xc3\xa9", b"\xc2\x85", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\0", b"\xff", b'"'),
                *(b"{", b"}", b"[", b"]", b'{"a": 1}', b"event: x\n", b"data: [DONE]\n\n", b"|"),
            ]
        ),
        max_size=10,
    ).map(b"".join),
)
TIMES = st.integers(0, 10**7).map(lambda microseconds: microseconds * 1000)
NAMES = st.text("abc-x:!\u00e9", min_size=1, max_size=5).map(str.lower)
HEADERS = st.dictionaries(NAMES, st.lists(TEXTS, min_size=1, max_size=2), max_size=3).map(
    lambda named: tuple((name, value) for name, values in named.items() for value in values)
)
REQUESTS = st.builds(
    Request,
    st.sampled_from(["GET", "POST", "x y"]),
    st.sampled_from([f"{BASE}/v1/messages", "/v1/chat/completions?a=%20b", "https://x/é \n", "/"]),
    HEADERS,
    BYTES,
).map(compact)


@st.composite
def interactions(draw: st.DrawFn) -> Interaction:
    request = draw(REQUESTS)
    codec = codec_for(request) if draw(st.booleans()) else None
    times = sorted(draw(st.lists(TIMES, min_size=2, max_size=6)))
    answered = draw(st.booleans())
    endings: Sequence[Ended] = ANSWERED if answered else LOST
    streams = (("content-type", "text/event-stream"),) if draw(st.booleans()) else ()
    given = Interaction(
        request=request,
        protocol=codec.name if codec else "",
        begun=draw(TIMES),
        ended=draw(st.sampled_from(endings)),
        ended_at=times[-1],
    )
    if not answered:
        return given
    return replace(
        given,
        status=draw(st.integers(100, 599)),
        reason=draw(TEXTS),
        headers=(*streams, *draw(HEADERS)),
        chunks=tuple(Chunk(at, draw(BYTES)) for at in times[1:-1]),
        head_at=times[0],
    )


CASSETTES = st.builds(
    lambda given, source, rules: Cassette(
        interactions=tuple(given), source=source, rules=rules, path="kept.yaml"
    ),
    st.lists(interactions(), max_size=4),
    st.sampled_from(["", "a fake provider", "x: y"]),
    st.builds(Rules, ignore=st.lists(TEXTS, max_size=2).map(tuple)),
)


@given(CASSETTES)
def test_any_cassette_is_read_as_it_was_but_for_its_secrets(given: Cassette) -> None:
    safe = replace(
        given, interactions=tuple(redacted(each, given.rules) for each in given.interactions)
    )
    text = write(given)
    assert kept(given) == safe
    assert write(given) == text
    assert write(read(text, "kept.yaml")) == text
    assert yaml.load(text, yaml.CSafeLoader) == yaml.load(text, yaml.SafeLoader)


def test_the_same_values_give_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    save(tmp_path / "a.yaml", cassette(*map(streamed, CODEC_NAMES), REFUSED))
    program = (
        "import sys; from harness.transport.cassettes.file import load, write;"
        "sys.stdout.write(write(load(sys.argv[1])))"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", program, tmp_path / "a.yaml"],
            env={"PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            check=True,
        )
        assert done.stdout == (tmp_path / "a.yaml").read_bytes()


def test_nothing_secret_is_written() -> None:
    key = "sk-ant-REDACTED"
    request = Request("POST", "/v1/x?key=" + key, (("Authorization", f"Bearer {key}"),))
    given = replace(get(body=f'{{"api_key": "{key}"}}'.encode()), request=request)
    found = replace(cassette(given, REFUSED), source=f"with {key}")
    assert key not in write(found)
    own = replace(get(body=b"the word is swordfish"), request=request)
    rules = Rules(values=("swordfish",))
    assert "swordfish" not in write(replace(cassette(own), rules=rules))


def test_a_protocol_that_is_not_that_of_the_path_is_not_written() -> None:
    request = Request("POST", "/v1/elsewhere")
    given = replace(streamed("anthropic"), request=request)
    (found,) = kept(cassette(given)).interactions
    assert found == replace(given, protocol="")


def test_times_are_cut_to_microseconds() -> None:
    given = replace(get(body=b"x"), begun=1_999, ended_at=3_001_999)
    found = kept(cassette(given)).interactions[0]
    assert (found.begun, found.ended_at) == (1_000, 3_001_000)


def test_a_file_is_saved_and_loaded_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.yaml"
    save(path, cassette(get()))
    found = load(path)
    assert found.path == path.as_posix()
    assert found.source == "a fake provider"
    assert unplaced(found.interactions) == (get(),)


def test_a_path_that_is_not_there_is_a_mistake_of_use(tmp_path: Path) -> None:
    (tmp_path / "weather.yaml").touch()
    meant = f"did you mean '{tmp_path.as_posix()}/weather.yaml'?"
    with pytest.raises(UsageError) as caught:
        load(tmp_path / "wether.yaml")
    assert str(caught.value) == (
        f"there is no {tmp_path.as_posix()}/wether.yaml ({meant}); expected a cassette file"
    )
    with pytest.raises(UsageError, match="expected a cassette file"):
        load(tmp_path / "weather.yaml" / "below")


def test_what_cannot_be_read_or_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileError) as caught:
        load(tmp_path)
    assert str(caught.value) == f"{tmp_path.as_posix()}: cannot be read: Is a directory"
    with pytest.raises(FileError) as caught:
        save(tmp_path, cassette())
    assert str(caught.value) == (
        f"{tmp_path.as_posix()}: cannot be written: Is a directory; what was there is as it was"
    )


def test_a_file_that_is_too_large_is_not_even_read(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    with path.open("wb") as large:
        large.truncate(file.LIMITS.characters + 1)
    with pytest.raises(FileError) as caught:
        load(path)
    assert str(caught.value) == (
        f"{path.as_posix()}: the file is too long: 256000001 bytes, of at most 256000000"
    )
