"""Where the providers are, as the user has it."""

from __future__ import annotations

import pytest

from harness.core.errors import UsageError
from harness.transport.homes import HOMES, home_of, homes_in
from harness.wire import CODECS


def bases(environment: dict[str, str], *given: str) -> list[str]:
    return [home.base for home in homes_in(environment, given)]


def test_the_public_addresses_unless_somebody_says_otherwise() -> None:
    assert bases({"OPENAI_BASE_URL": ""}) == [
        "https://api.openai.com/v1",
        "https://api.anthropic.com",
        "https://generativelanguage.googleapis.com",
    ]
    assert [home.root for home in HOMES] == [
        "https://api.openai.com",
        "https://api.anthropic.com",
        "https://generativelanguage.googleapis.com",
    ]


def test_what_is_given_comes_before_the_environment() -> None:
    environment = {"OPENAI_BASE_URL": "http://a.test/v1/", "ANTHROPIC_BASE_URL": "http://b.test/x"}
    assert bases(environment, "openai=http://127.0.0.1:9/v1")[:2] == [
        "http://127.0.0.1:9/v1",
        "http://b.test/x",
    ]
    assert bases(environment)[0] == "http://a.test/v1"


def test_every_protocol_has_a_home() -> None:
    assert [home_of(codec.name).name for codec in CODECS] == [
        "openai",
        "openai",
        "anthropic",
        "gemini",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("https://a.test", "names no address"),
        ("opena=https://a.test", "did you mean 'openai'"),
        ("openai=ftp://a.test", "openai is no address of a provider"),
        ("openai=a.test", "openai is no address"),
        ("openai=http://", "openai is no address"),
        ("openai=http://a.test:x", "openai is no address"),
        ("openai=http://[::1", "openai is no address"),
        ("openai=http://a.test/?key=sk-secret-of-mine", "openai is no address"),
        ("openai=http://a.test/#x", "openai is no address"),
    ],
)
def test_what_is_no_address(given: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        homes_in({}, [given])
    assert said in str(caught.value)
    assert "sk-secret" not in str(caught.value)


def test_the_variable_that_is_wrong_is_named() -> None:
    with pytest.raises(UsageError, match=r"^ANTHROPIC_BASE_URL is no address"):
        homes_in({"ANTHROPIC_BASE_URL": "localhost:80"})
