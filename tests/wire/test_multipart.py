"""Forms in several parts, taken apart."""

from __future__ import annotations

import pytest

from harness.wire.multipart import Part, parts_of

KIND = 'multipart/form-data; boundary="the mark"'
BODY = (
    b'--the mark\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n'
    b'--the mark\r\nContent-Disposition: form-data; name=file; filename="a \\"b\\".txt"\r\n'
    b"Content-Type: text/plain\r\n\r\none\r\n\r\n--two\r\n"
    b"--the mark\r\n\r\nbare\r\n"
    b"--the mark--\r\n"
)


def test_the_parts_are_found() -> None:
    assert parts_of(BODY, KIND) == [
        Part("purpose", "", "", b"user_data"),
        Part("file", 'a \\"b\\".txt', "text/plain", b"one\r\n\r\n--two"),
        Part("", "", "", b"bare"),
    ]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (BODY, "multipart/form-data"),
        (b"no mark in it", KIND),
        (BODY.removesuffix(b"--\r\n"), KIND),
    ],
    ids=["no boundary", "none of it", "no end"],
)
def test_what_is_no_form_has_no_parts(body: bytes, kind: str) -> None:
    assert parts_of(body, kind) is None
