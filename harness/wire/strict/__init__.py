"""What providers refuse of a history, as rules: answered with the provider's own 400."""

from __future__ import annotations

from collections.abc import Mapping

from harness.wire.gemini_words import asked_in
from harness.wire.http import Request
from harness.wire.reading import json_of
from harness.wire.strict import anthropic, gemini, openai_chat, openai_responses
from harness.wire.strict.rule import Case, Issued, Rule

RULES: Mapping[str, tuple[Rule, ...]] = {
    "openai_chat": openai_chat.RULES,
    "deepseek": openai_chat.DEEPSEEK,
    "openai_responses": openai_responses.RULES,
    "anthropic": anthropic.RULES,
    "gemini": gemini.RULES,
}
"""The rules of a provider, by the name of its protocol, or its own where it speaks another's."""


def case_of(request: Request, issued: Issued | None = None) -> Case:
    """What the rules judge of a request; ValueError where its body is no object.

    `issued` is what the provider remembers, where it does. A model that the path names stands in
    the body too.
    """
    body = json_of(request.body)
    if not isinstance(body, dict):
        raise ValueError("the body is no JSON object")
    if (named := asked_in(request.path)) is not None:
        body = {**body, "model": named[0]}
    betas = [value for name, value in request.headers if name == "anthropic-beta"]
    trials = [each.strip() for value in betas for each in value.split(",")]
    version = request.header("anthropic-version") or ""
    return Case(body, version, issued, frozenset(trials))
