"""Where the providers are, as the user has it."""

from __future__ import annotations

import pytest

from harness.core.errors import UsageError
from harness.core.messages import ModelRequest, user
from harness.transport.homes import HOMES, home_of, homes_in
from harness.wire import CODECS
from harness.wire.codec import Asked, Codec


def bases(environment: dict[str, str], *given: str) -> list[str]:
    return [home.base for home in homes_in(environment, given)]


def test_the_public_addresses_unless_somebody_says_otherwise() -> None:
    assert bases({"OPENAI_BASE_URL": ""}) == [
        "https://api.openai.com/v1",
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


def test_the_users_key() -> None:
    gemini = HOMES[2]
    assert gemini.key_in({"GEMINI_API_KEY": "", "GOOGLE_API_KEY": "two"}) == "two"
    assert gemini.key_in({"GEMINI_API_KEY": "one", "GOOGLE_API_KEY": "two"}) == "one"
    with pytest.raises(UsageError, match="set GEMINI_API_KEY or GOOGLE_API_KEY"):
        gemini.key_in({})


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_keys_are_sent_as_our_own_clients_send_them(codec: Codec) -> None:
    asked = Asked(ModelRequest("m", "", (user("x"),)), stream=False)
    name, before = home_of(codec.name).sign
    assert (name, f"{before}the-key") in codec.write(asked, key="the-key").headers
    assert name in codec.secrets.headers


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
