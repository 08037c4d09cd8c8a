"""How a provider spells a conversation: bytes on one side, the neutral form on the other."""

from __future__ import annotations

from harness.wire.anthropic.codec import Anthropic
from harness.wire.codec import Codec
from harness.wire.http import Request
from harness.wire.openai_chat.codec import OpenAIChat
from harness.wire.strict import RULES, case_of
from harness.wire.strict.rule import Issued, Refused, refusal

CODECS: tuple[Codec, ...] = (OpenAIChat(), Anthropic())
"""The protocols that are known."""


def codec_for(request: Request) -> Codec | None:
    """The protocol that a request is of; None where it is of none that is known."""
    return next((codec for codec in CODECS if codec.is_for(request)), None)


def refused_by(
    provider: str, request: Request, issued: Issued | None = None, *, pedantic: bool = False
) -> Refused | None:
    """Why a provider would refuse a request that is well-formed; None where it would not.

    `provider` is one of `harness.wire.strict.RULES`; one without rules refuses nothing. `issued` is
    what it remembers of its own replies. ValueError where the body is no object, which the codec
    says better.
    """
    return refusal(case_of(request, issued), RULES.get(provider, ()), pedantic=pedantic)
