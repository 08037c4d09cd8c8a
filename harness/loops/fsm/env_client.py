"""The model of a run as the loop's client: the neutral port, in the loop's own words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from harness.core import messages as neutral
from harness.core.json_text import Json
from harness.core.messages import ModelRequest, Text, Thinking, ToolSchema
from harness.core.ports import Aborted, Env, ProviderFailed
from harness.core.reply import (
    ReplyDone,
    ReplyFailed,
    ReplyInterrupted,
    ReplyPart,
    TextDelta,
    UsageReport,
)
from harness.loops.fsm.client import CancelCheck, RequestOptions, Usage
from harness.loops.fsm.messages import Message, ToolCall, wire
from harness.loops.fsm.policy import Policy


class EnvClient:
    """Asks the model of a run. `interrupted` hears of a Ctrl-C that comes while it waits.

    Where `policy` refuses bad replies, a stream that ends without its end signal is an error, and
    replies that say nothing are not sent back; else the first counts as whole, and the second are.
    `spent` gets what each reply has reported.
    """

    def __init__(
        self,
        env: Env,
        model: str,
        interrupted: Callable[[], None],
        policy: Policy,
        spent: list[neutral.Usage],
    ) -> None:
        self._spent = spent
        self._env = env
        self._model = model
        self._interrupted = interrupted
        self._policy = policy
        self._whole = policy.refuse_bad_replies
        self._empty_ids = policy.keep_empty_ids
        self._signed = policy.keep_signed_thinking
        self._asking = self._aborted = False

    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Json] | None,
        system: str | None,
        options: RequestOptions,
        on_delta: Callable[[str], None] | None,
        cancel_check: CancelCheck,  # noqa: ARG002 - a cancel comes by `abort`
        on_retry: Callable[[], None] | None,  # noqa: ARG002 - nothing is sent twice
    ) -> tuple[Message, Usage]:
        """Ask for the next reply."""
        offered = tuple([_schema(tool) for tool in tools or ()])
        request = self._request(messages, system, offered, options.max_tokens, options.temperature)
        return self._ask(request, on_delta)

    def chat_sync(
        self,
        messages: Sequence[Message],
        *,
        system: str,
        temperature: float | None = None,
        cancel_check: CancelCheck | None = None,  # noqa: ARG002 - a cancel comes by `abort`
    ) -> Message:
        """Ask once, without tools."""
        return self._ask(self._request(messages, system, (), None, temperature), None)[0]

    def clone(self) -> EnvClient:
        """Another one for the same model, which asks beside this one and counts with it."""
        return EnvClient(self._env, self._model, self._interrupted, self._policy, self._spent)

    def abort(self) -> None:
        """Break off what is being asked."""
        if self._asking:
            self._aborted = True
            self._env.abort()

    def _request(
        self,
        messages: Sequence[Message],
        system: str | None,
        tools: tuple[ToolSchema, ...],
        max_tokens: int | None,
        temperature: float | None,
    ) -> ModelRequest:
        sent = [to_neutral(message, empty_ids=self._empty_ids) for message in messages]
        if self._whole:  # no provider takes a model's message that says nothing
            sent = [message for message in sent if message.content or message.role != "assistant"]
        return ModelRequest(self._model, system or "", tuple(sent), tools, max_tokens, temperature)

    def _ask(
        self, request: ModelRequest, on_delta: Callable[[str], None] | None
    ) -> tuple[Message, Usage]:
        self._asking, self._aborted = True, False
        heard = _Heard(on_delta)
        spent = neutral.Usage()
        try:
            with closing(self._env.model_sync.generate(request)) as parts:
                while (part := None if self._aborted else next(parts, None)) is not None:
                    if isinstance(part, UsageReport):
                        spent += part.usage
                    heard.take(part)
        except (Aborted, KeyboardInterrupt) as stopped:
            if isinstance(stopped, KeyboardInterrupt):
                self._interrupted()
            if heard.message is None:
                raise Aborted("the request was broken off") from None
        finally:
            self._asking = False
            self._spent.append(spent)
        if heard.message is None and (self._whole or self._aborted):
            raise ProviderFailed("the stream ended before the reply was whole")
        said = heard.message or neutral.assistant(heard.text)
        cost = Usage(spent.prompt_tokens, spent.completion_tokens)
        return from_neutral(said, signed=self._signed), cost


class _Heard:
    """What has come of a reply."""

    def __init__(self, on_delta: Callable[[str], None] | None) -> None:
        self.message: neutral.Message | None = None
        self.text = ""
        self._on_delta = on_delta

    def take(self, part: ReplyPart) -> None:
        """Take in a part; ProviderFailed where it says that there is no reply."""
        match part:
            case TextDelta(text=text):
                self.text += text
                if self._on_delta is not None:
                    self._on_delta(text)
            case ReplyDone(message=message):
                self.message = message
            case ReplyFailed(message=message):
                raise ProviderFailed(message)
            case ReplyInterrupted():
                raise ProviderFailed("the provider stopped before the end")
            case _:
                pass


def from_neutral(message: neutral.Message, *, signed: bool = True) -> Message:
    """A model's message in the loop's words; what it thought goes in front of what it said, and
    where `signed`, what the provider signed of it is kept.

    >>> from_neutral(neutral.assistant("so", neutral.ToolCall("1", "look", {})))
    Message(role='assistant', content='so', tool_calls=[ToolCall(id='1', name='look', \
arguments={}, result=None, diff=None, elapsed=None)], tool_call_id=None, reasoning=None, \
name=None, injected=False, signed=())
    """
    thoughts = [block for block in message.content if isinstance(block, Thinking)]
    thought = "".join([block.text for block in thoughts])
    kept = [block for block in thoughts if signed and block.signature is not None]
    calls = [ToolCall(call.id, call.name, _written(call)) for call in message.calls]
    text = f"{thought}\n{message.text}" if thought else message.text
    return Message("assistant", text, calls or None, reasoning=thought or None, signed=tuple(kept))


def to_neutral(message: Message, *, empty_ids: bool = True) -> neutral.Message:
    """A message of the loop as a request carries it."""
    sent = wire(message, empty_ids=empty_ids)
    text = message.text() if isinstance(message.content, list) else sent.get("content", "")
    blocks: list[neutral.Block] = [*message.signed]
    if text or message.role != "assistant":
        blocks.append(Text(text))
    blocks += [_call(call) for call in message.tool_calls or ()]
    return neutral.Message(message.role, tuple(blocks), sent.get("tool_call_id"))


def _written(call: neutral.ToolCall) -> Json:
    return call.args if call.raw is None else call.raw


def _call(call: ToolCall) -> neutral.ToolCall:
    if isinstance(call.arguments, str):
        return neutral.ToolCall(call.id, call.name, None, call.arguments)
    return neutral.ToolCall(call.id, call.name, call.arguments)


def _schema(tool: Any) -> ToolSchema:
    function = tool["function"]
    return ToolSchema(function["name"], function["description"], function["parameters"])
