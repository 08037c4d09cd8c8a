"""The strategy: a conversation that is valid, with one fault in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from msgspec import Struct
from msgspec.structs import replace

from harness.core.errors import UsageError, unknown
from harness.core.json_text import Json
from harness.core.messages import Block, Message, ModelRequest, Text, Thinking, ToolCall
from harness.testing.invalid import anthropic, gemini, openai_chat, openai_responses
from harness.testing.invalid.fault import Faults
from harness.testing.strategies import histories
from harness.wire import CODECS
from harness.wire.codec import Asked, Codec
from harness.wire.http import Request
from harness.wire.reading import json_of
from harness.wire.strict.rule import Issued
from harness.wire.writing import bytes_of

_CODECS = {codec.name: codec for codec in CODECS}


class _Spelling(Struct, frozen=True):
    """How a provider spells a conversation: its protocol, the key of its messages, its usual model,
    and what a conversation may always end with.
    """

    codec: Codec
    key: str
    model: str
    faults: Faults
    end: tuple[Json, ...] = ()


_CHAT = _Spelling(
    _CODECS["openai_chat"], "messages", openai_chat.MODEL, openai_chat.FAULTS, (openai_chat.GO,)
)
_SPELLINGS: Mapping[str, _Spelling] = {
    "openai_chat": _CHAT,
    "deepseek": replace(_CHAT, faults=openai_chat.DEEPSEEK),
    "openai_responses": _Spelling(
        _CODECS["openai_responses"],
        "input",
        openai_responses.MODEL,
        openai_responses.FAULTS,
        (openai_responses.GO,),
    ),
    "anthropic": _Spelling(
        _CODECS["anthropic"],
        "messages",
        anthropic.MODEL,
        anthropic.FAULTS,
        (anthropic.WELL, anthropic.GO),
    ),
    "gemini": _Spelling(
        _CODECS["gemini"], "contents", gemini.MODEL, gemini.FAULTS, (gemini.SAID, gemini.GO)
    ),
}


class Invalid(Struct, frozen=True):
    """A request that `provider` refuses by `rule`, and by no other of its rules.

    `request` is as it goes over the wire. `issued` is what the provider remembers of its replies;
    None where the rule does not depend on it.
    """

    provider: str
    rule: str
    request: Request
    issued: Issued | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The body of the request, as JSON."""
        body: dict[str, Any] = json_of(self.request.body)
        return body


def rules_of(provider: str) -> tuple[str, ...]:
    """The names of the rules of a provider, as `harness.wire.strict.RULES` has them."""
    return tuple(_spelling(provider).faults)


def invalid_histories(provider: str, *, rule: str | None = None) -> SearchStrategy[Invalid]:
    """Requests that break exactly one rule of `provider`: the one that is called `rule`, or any.

    `provider` is ``openai_chat``, ``deepseek``, ``openai_responses``, ``anthropic`` or ``gemini``;
    UsageError for a name that is not known. The fault stands anywhere in a conversation that would
    be accepted without it, and the conversation around it shrinks away.
    """
    spelling = _spelling(provider)
    known = rules_of(provider)
    if rule is not None and rule not in known:
        raise UsageError(f"provider {provider}: {unknown('rule', rule, known)}")
    return _invalid(provider, spelling, known if rule is None else (rule,))


def _spelling(provider: str) -> _Spelling:
    found = _SPELLINGS.get(provider)
    if found is None:
        raise UsageError(unknown("provider", provider, list(_SPELLINGS)))
    return found


@st.composite
def _invalid(draw: DrawFn, provider: str, spelling: _Spelling, rules: Sequence[str]) -> Invalid:
    rule = draw(st.sampled_from(rules))
    fault = spelling.faults[rule](draw)
    model = spelling.model if fault.model is None else fault.model
    before, after = fault.place in ("anywhere", "last"), fault.place in ("anywhere", "first")
    written = spelling.codec.write(Asked(ModelRequest(model, "", ())))
    messages = [
        *(_valid(draw, spelling, "before") if before else ()),
        *fault.messages,
        *((*_valid(draw, spelling, "after"), *spelling.end) if after else ()),
    ]
    body = {**json_of(written.body), spelling.key: messages, **fault.more}
    named = dict(fault.headers)
    headers = tuple([(name, named.get(name, value)) for name, value in written.headers])
    request = replace(written, headers=headers, body=bytes_of(body))
    return Invalid(provider, rule, request, fault.issued)


def _valid(draw: DrawFn, spelling: _Spelling, prefix: str) -> list[Json]:
    """A conversation that the provider accepts, as it spells it, with ids of its own."""
    history = draw(histories(max_turns=2, max_steps=2, systems=False))
    given = tuple(_distinct(history, prefix))
    written = spelling.codec.write(Asked(ModelRequest(spelling.model, "", given)))
    messages: list[Json] = json_of(written.body)[spelling.key]
    return messages


def _distinct(history: Sequence[Message], prefix: str) -> Iterator[Message]:
    """The same without reasoning, and without texts that say nothing; no two calls have one id."""
    waiting: list[str] = []
    for at, message in enumerate(history):
        content = tuple(
            [_saying(block) for block in message.content if type(block) is not Thinking]
        )
        if message.role == "tool":
            yield replace(message, content=content, tool_call_id=waiting.pop(0))
            continue
        waiting = [f"{prefix}_{at}_{n}" for n in range(len(message.calls))]
        ids = iter(waiting)
        named = [
            replace(block, id=next(ids)) if isinstance(block, ToolCall) else block
            for block in content
        ]
        yield replace(message, content=tuple(named))


def _saying(block: Block) -> Block:
    return Text("...") if isinstance(block, Text) and not block.text.strip() else block
