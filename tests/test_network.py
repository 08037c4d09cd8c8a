"""The suite itself cannot reach the network."""

from __future__ import annotations

import socket

import pytest

from harness.transport.guard import NetworkUsed


def test_an_address_outside_is_refused(refused: list[str]) -> None:
    with (
        socket.socket() as outside,
        pytest.raises(NetworkUsed, match=r"reached for 192\.0\.2\.1:80, and"),
    ):
        outside.connect(("192.0.2.1", 80))
    refused.clear()


def test_a_name_outside_is_not_even_looked_up(refused: list[str]) -> None:
    with pytest.raises(NetworkUsed, match=r"reached for example\.org:80, and"):
        socket.getaddrinfo("example.org", 80)
    refused.clear()


def test_loopback_is_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
