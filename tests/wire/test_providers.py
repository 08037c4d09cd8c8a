"""Each protocol is found by its requests, and each provider refuses by its own rules."""

from __future__ import annotations

import pytest

from harness.core.json_text import Json, dumps
from harness.wire import CODECS, codec_for, refused_by, sse
from harness.wire.codec import Codec, Garbled, whole
from harness.wire.http import Headers, Request
from harness.wire.strict import RULES, case_of

ORPHAN: Json = {"model": "m", "messages": [{"role": "tool", "content": "", "tool_call_id": "a"}]}


def request(body: Json, path: str = "/v1/chat/completions", sent: Headers = ()) -> Request:
    return Request(
        "POST", f"http://provider.test{path}?beta=true&beta=false", sent, dumps(body).encode()
    )


def test_a_protocol_is_found_by_its_path() -> None:
    paths = {
        "openai_chat": "/v1/chat/completions",
        "openai_responses": "/v1/responses",
        "anthropic": "/v1/messages",
        "gemini": "/v1/models/gemini-3-x:generateContent",
    }
    assert set(paths) == {codec.name for codec in CODECS}
    for name, path in paths.items():
        found = codec_for(request({}, path))
        assert found is not None
        assert found.name == name
    assert codec_for(request({}, "/v1/models")) is None
    assert request({}).query == {"beta": "false"}


def test_every_protocol_that_is_known_has_rules() -> None:
    assert {codec.name for codec in CODECS} <= set(RULES)
    for rules in RULES.values():
        assert all(rule.says.endswith(".") for rule in rules)
        assert len({rule.id for rule in rules}) == len(rules)


@pytest.mark.parametrize(
    ("provider", "rule"), [("openai_chat", "C2"), ("deepseek", "D2"), ("other", None)]
)
def test_a_provider_refuses_by_its_own_rules(provider: str, rule: str | None) -> None:
    refused = refused_by(provider, request(ORPHAN))
    assert (None if refused is None else refused.rule.id) == rule
    empty = request({"model": "m", "messages": []})
    assert refused_by("openai_chat", empty) is None
    assert refused_by("openai_chat", empty, pedantic=True) is not None


def test_what_rules_depend_on_is_in_the_headers() -> None:
    sent = (
        ("anthropic-version", "2026-10-21"),
        ("anthropic-beta", "one, two"),
        ("anthropic-beta", "three"),
    )
    case = case_of(request(ORPHAN, sent=sent))
    assert (case.version, case.betas) == ("2026-10-21", {"one", "two", "three"})
    assert (case.body, case.model, case.issued) == (ORPHAN, "m", None)
    assert case_of(request({})).version == ""


def test_what_is_no_object_is_not_judged() -> None:
    with pytest.raises(ValueError, match="no JSON object"):
        case_of(request([]))


def test_a_text_may_stay_whole() -> None:
    assert (list(whole("sunny")), list(whole(""))) == (["sunny"], [])


def test_an_address_that_is_none_is_of_no_protocol() -> None:
    for url, path in (("//[", "//["), ("http://[x/v1/messages?beta=true", "")):
        odd = Request("POST", url)
        assert codec_for(odd) is None
        assert odd.path == path
        assert odd.query == {}


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_line_that_does_not_end_is_no_reply(
    codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "LONGEST", 100)
    with pytest.raises(Garbled, match="more than 100 bytes"):
        codec.decoder().feed(b"data: " + b"x" * 200)
    with pytest.raises(Garbled, match="more than 100 characters"):
        codec.decoder().feed((b"data: " + b"x" * 60 + b"\n") * 3)
