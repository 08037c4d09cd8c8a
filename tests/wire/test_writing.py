"""Frames that differ in one text: what stands around it is written once."""

from __future__ import annotations

import pytest

from harness.wire.writing import Stencils, bytes_of

HARD = ("", "a", '"', "\\", "ü\n\t", "#", '"#"', "\U0001f600", "\ud83d")


@pytest.mark.parametrize("name", ["plain", "#", '"#"', "##", '{"say": "#"}'])
def test_a_frame_is_what_would_be_written_whatever_stands_around_it(name: str) -> None:
    def write(text: str) -> bytes:
        return bytes_of({"name": name, "say": text, "end": name})

    stencils = Stencils()
    assert [stencils.frame(1, write, text) for text in HARD] == [write(text) for text in HARD]


def test_what_stands_around_is_written_once_a_key() -> None:
    written: list[str] = []

    def write(text: str) -> bytes:
        written.append(text)
        return bytes_of([len(written) // 3, text])

    stencils = Stencils()
    assert [stencils.frame("a", write, text) for text in "xyz"] == [
        b'[0, "x"]',
        b'[0, "y"]',
        b'[0, "z"]',
    ]
    assert stencils.frame("b", write, "x") == b'[1, "x"]'
    assert written == ["", "#", "", "#"]
