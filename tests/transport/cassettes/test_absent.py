"""What stands in for a cassette that is not there."""

from __future__ import annotations

import httpx2
import pytest

from harness.core.errors import CassetteMiss
from harness.transport.cassettes.absent import absent


def ask_twice() -> None:
    with absent("some.yaml", lambda: "planted"):
        for _ in range(2):
            with pytest.raises(CassetteMiss, match=r"^planted$"):
                httpx2.get("http://provider.invalid/")


def test_each_request_is_a_miss_that_says_why_and_is_raised_again() -> None:
    with pytest.raises(CassetteMiss, match=r"^planted$"):
        ask_twice()


def test_a_miss_that_is_expected_is_taken_out() -> None:
    with absent("some.yaml", lambda: "planted") as session:
        with pytest.raises(CassetteMiss):
            httpx2.get("http://provider.invalid/")
        session.missed.clear()
    assert session.interactions == ()


def test_hosts_that_are_ignored_are_nothing_to_it() -> None:
    with absent("some.yaml", lambda: "planted", ("127.0.0.1",)), pytest.raises(httpx2.ConnectError):
        httpx2.get("http://127.0.0.1:9/")
