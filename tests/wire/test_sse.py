"""Server-sent events are read the same however their bytes are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.testing.strategies import chunkings
from harness.wire import sse
from harness.wire.sse import Event, Reader

TEXTS = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12)
NAMES = st.one_of(st.none(), st.sampled_from(["ping", "message_stop"]))
ENDS = st.sampled_from(["\n", "\r\n"])
FRAMES = st.lists(st.tuples(NAMES, st.lists(TEXTS, min_size=1, max_size=3)), max_size=5)


@given(FRAMES, ENDS, st.booleans(), st.data())
def test_what_is_written_is_read_from_any_pieces(
    frames: list[tuple[str | None, list[str]]], end: str, comments: bool, data: st.DataObject
) -> None:
    sent = b""
    for name, lines in frames:
        sent += sse.frame("\n".join(lines), name, end=end)
        sent += sse.comment("still here") if comments else b""
    reader = Reader()
    found = [event for piece in data.draw(chunkings(sent)) for event in reader.feed(piece)]
    assert found == [Event(name or "", "\n".join(lines)) for name, lines in frames]
    assert not reader.open


def test_each_byte_for_itself_is_read_as_the_whole() -> None:
    sent = (
        "event: a\r\ndata: é€😀\r\rdata:x\ndata: y\n\nid: 7\nretry: 1\n\n: note\ndata\n\n".encode()
    )
    whole = Reader().feed(sent)
    reader = Reader()
    pieces = [event for n in range(len(sent)) for event in reader.feed(sent[n : n + 1])]
    assert whole == pieces == [Event("a", "é€😀"), Event("", "x\ny"), Event("", "")]


def test_an_event_that_no_empty_line_closes_is_not_given() -> None:
    reader = Reader()
    assert reader.feed(b"data: half\n") == []
    assert reader.open
    assert Reader().feed("\ufeffdata: marked\n\n".encode()) == [Event("", "marked")]


def test_what_is_no_text_is_told() -> None:
    with pytest.raises(UnicodeDecodeError):
        Reader().feed(b"data: \xff\n\n")
    assert Reader("replace").feed(b"data: \xff\n\n") == [Event("", "\ufffd")]


def test_a_line_and_an_event_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "LONGEST", 10)
    reader = Reader()
    reader.feed(b"data: 1234")
    with pytest.raises(sse.TooLong, match=r"a line .* more than 10 bytes"):
        reader.feed(b"5")
    reader = Reader()
    for _ in range(3):
        assert reader.feed(b"data: 12345\ndata: 12345\n\n") == [Event("", "12345\n12345")]
    with pytest.raises(sse.TooLong, match=r"an event .* more than 10 characters"):
        reader.feed(b"data: 12345\ndata: 12345\ndata: 6\n")
