"""How a provider spells a conversation: bytes on one side, the neutral form on the other."""

from __future__ import annotations

from harness.core.messages import Message, Text
from harness.wire.anthropic.codec import Anthropic
from harness.wire.codec import Answer, Asked, Codec
from harness.wire.gemini.codec import Gemini
from harness.wire.http import Request
from harness.wire.openai_chat.codec import OpenAIChat
from harness.wire.openai_responses.codec import OpenAIResponses
from harness.wire.reading import json_of
from harness.wire.strict import RULES, case_of
from harness.wire.strict.rule import Issued, Refused, refusal

CODECS: tuple[Codec, ...] = (OpenAIChat(), OpenAIResponses(), Anthropic(), Gemini())
"""The protocols that are known."""


def codec_for(request: Request) -> Codec | None:
    """The protocol that a request is of; None where it is of none that is known."""
    return next((codec for codec in CODECS if codec.is_for(request)), None)


def asked_by(codec: Codec, request: Request, issued: Issued) -> Asked:
    """What a request asks a provider for that remembers its replies.

    Where a protocol lets a client refer to what was said, that is in it. Unreadable where the
    provider would refuse the request for its form.
    """
    if isinstance(codec, OpenAIResponses):
        return codec.read(request, issued.responses)
    return codec.read(request)


def remember(
    codec: Codec, request: Request, asked: Asked, answer: Answer, issued: Issued
) -> Message:
    """Keep what a provider remembers of a reply that it gives; the message as the client has it."""
    stores = isinstance(codec, OpenAIResponses)
    if not stores and all(isinstance(block, Text) for block in answer.message.content):
        return answer.message  # no provider signs what is only said
    response = codec.answer(asked, answer)
    message = codec.read_answer(response).message
    issued.remember(message)
    if stores:
        issued.responses.keep(json_of(request.body), json_of(response.body))
    return message


def refused_by(
    provider: str, request: Request, issued: Issued | None = None, *, pedantic: bool = False
) -> Refused | None:
    """Why a provider would refuse a request that is well-formed; None where it would not.

    `provider` is one of `harness.wire.strict.RULES`; one without rules refuses nothing. `issued` is
    what it remembers of its own replies. ValueError where the body is no object, which the codec
    says better.
    """
    return refusal(case_of(request, issued), RULES.get(provider, ()), pedantic=pedantic)
