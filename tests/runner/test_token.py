"""Replay tokens: what is written is read again, and what does not fit is refused with a reason."""

from __future__ import annotations

import re
import shlex
from typing import Any
from urllib.parse import parse_qs, urlencode
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.choices import Draw
from harness.core.errors import UsageError
from harness.exploration.probe import Shot
from harness.runner import token as tokens
from harness.runner.files.load import load_text
from harness.runner.token import Token, digest
from harness.sim.orders import ORDERS, Order

CASE = """\
about: It answers.
turns:
  - user: Hello
    model: [{say: Hi.}]
"""
SCENARIO = load_text(CASE, "case.yaml")
DIGEST = digest(SCENARIO)
SHOTS = (Shot("1.2", 1, "early", "turn"), Shot("x1", 3, "mid", "task", 17))
TAPE = (Draw("latency", "quick call_1_1_2", 4, 5), Draw("ready", "7", 1, 3))

NAMES = st.text(st.characters(exclude_categories=()), min_size=1)
COUNTS = st.integers(1, 10**9 - 1)


@st.composite
def shots(draw: Any) -> Shot:
    mode = draw(st.sampled_from(["start", "early", "late", "mid"]))
    return Shot(
        draw(NAMES),
        0 if mode == "start" else draw(COUNTS),
        mode,
        draw(st.sampled_from(["agent", "turn", "task"])),
        draw(COUNTS) if mode == "mid" else None,
    )


DRAWS = st.builds(Draw, NAMES, st.text(st.characters(exclude_categories=())), COUNTS, COUNTS)


def signed(text: str) -> str:
    """The text with a checksum that fits."""
    return f"{text}.{crc32(text.encode()):08x}"


@pytest.fixture
def python_311(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_python", lambda: "3.11")


@given(
    st.lists(shots()),
    st.lists(DRAWS, unique_by=lambda draw: (draw.source, draw.label)),
    st.sampled_from(ORDERS),
)
def test_what_is_written_is_read_again(shots: list[Shot], draws: list[Draw], order: Order) -> None:
    token = Token.of(DIGEST, tuple(draws), tuple(shots), order)
    text = str(token)
    assert Token.parse(f" {text}\n") == token
    assert re.fullmatch(r"[A-Za-z0-9.:,=%+_-]+", text)
    assert shlex.quote(text) == text
    assert parse_qs(urlencode({"token": text})) == {"token": [text]}


@pytest.mark.usefixtures("python_311")
def test_a_token_has_its_pinned_form() -> None:
    assert str(Token.of(DIGEST, TAPE, SHOTS)) == (
        "h1.311.d0b29a293e.1.2:1:early:turn,x1:3:mid:task:17,"
        "latency:quick+call_1_1_2=4:5,ready:7=1:3.141d064c"
    )
    assert str(Token.of(DIGEST)) == "h1.311.d0b29a293e..a9e725d2"
    assert str(Token.of(DIGEST, order="tasks")) == "h1.311.d0b29a293e.tasks.e7e9d727"


def test_the_order_of_choices_does_not_matter() -> None:
    assert Token.of(DIGEST, TAPE[::-1]) == Token.of(DIGEST, TAPE)


def test_a_digest_is_of_what_a_scenario_means() -> None:
    for same in (
        CASE.replace("about: It answers.", "# A comment.\nabout: Something else."),
        CASE.replace("[{say: Hi.}]", "\n      - say: 'Hi.'"),
    ):
        assert digest(load_text(same, "elsewhere.yaml")) == digest(SCENARIO)
    for other in (
        CASE.replace("Hello", "Hallo"),
        CASE.replace("Hi.", "Ho."),
        CASE + "strict: false\n",
        CASE + "    expect: {outcome: completed}\n",
    ):
        assert digest(load_text(other, "case.yaml")) != digest(SCENARIO)


@pytest.mark.parametrize("at", range(0, 90, 7))
def test_a_changed_letter_is_noticed(at: int) -> None:
    text = str(Token.of(DIGEST, TAPE, SHOTS))
    changed = text[:at] + ("1" if text[at] != "1" else "2") + text[at + 1 :]
    with pytest.raises(UsageError, match=r"is damaged|is not a replay token|of the version"):
        Token.parse(changed)


def test_a_token_that_was_cut_is_noticed() -> None:
    text = str(Token.of(DIGEST, TAPE, SHOTS))
    for end in range(3, len(text)):
        with pytest.raises(UsageError, match="copy the whole last line of a failure"):
            Token.parse(text[:end])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a replay token; expected one like h1.311.0f3c"),
        ("1.2#1/early", "'1.2#1/early' is not a replay token"),
        ("x" * 99, f"'{'x' * 60}...' is not a replay token"),
        ("h1.…", "the token 'h1.…' was shortened where it was printed; copy the whole last line"),
        ("h2.311.whatever", "is of the version h2, and this is a harness that reads h1; replay it"),
    ],
)
def test_what_is_no_token_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        Token.parse(text)


@pytest.mark.parametrize(
    "items",
    [
        "1:1:early",
        "1:1:eraly:turn",
        "1:1:early:nobody",
        "1:0:early:turn",
        "1:1:start:turn",
        "1:1:mid:turn",
        "1:1:early:turn:4",
        "1:1:early:turn,",
        "latency:x=1",
        "latency=1:2",
        "latency:%FF=1:2",
        "task",
        "1:1:early:turn,tasks",
    ],
)
def test_what_no_harness_writes_is_damaged_though_its_checksum_fits(items: str) -> None:
    with pytest.raises(UsageError, match="is damaged"):
        Token.parse(signed(f"h1.311.0123456789.{items}"))
    assert Token.parse(signed("h1.311.0123456789.1:1:early:turn")).shots


def test_another_python_is_told() -> None:
    token = Token("3.99", digest(SCENARIO))
    assert Token.parse(str(token)) == token
    with pytest.raises(UsageError, match=r"under Python 3\.99 and this is Python 3\.\d\d, .* or "):
        token.check(DIGEST, "case.yaml")


def test_another_scenario_is_told() -> None:
    token = Token.of(DIGEST)
    token.check(digest(load_text(CASE, "copy.yaml")), "copy.yaml")
    with pytest.raises(UsageError, match=f"it is for {DIGEST}, and case.yaml is 0123456789; "):
        token.check("0123456789", "case.yaml")
