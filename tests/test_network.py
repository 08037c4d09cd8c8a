"""The suite itself cannot reach the network."""

from __future__ import annotations

import socket

import pytest


def test_an_address_outside_is_refused() -> None:
    with (
        socket.socket() as outside,
        pytest.raises(RuntimeError, match=r"reached for '192\.0\.2\.1'"),
    ):
        outside.connect(("192.0.2.1", 80))


def test_a_name_outside_is_not_even_looked_up() -> None:
    with pytest.raises(RuntimeError, match=r"reached for 'example\.org'"):
        socket.getaddrinfo("example.org", 80)


def test_loopback_is_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
