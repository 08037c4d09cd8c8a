"""What every model at the neutral port does, whatever provider or library is behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from harness.core.json_text import Json
from harness.core.messages import (
    Message,
    ModelRequest,
    ToolSchema,
    Usage,
    assistant,
    tool_result,
    user,
)
from harness.core.ports import Env, Model, ProviderFailed
from harness.core.reply import (
    ReplyDone,
    ReplyFailed,
    ReplyInterrupted,
    ReplyPart,
    TextDelta,
    ThinkingDelta,
    UsageReport,
)
from harness.fakes.script import GenerateFails, Hang, Reply, ScriptedCall, StreamFails, Torn
from harness.invariants.cancellation import Quiesce
from harness.runner.levels import level_of
from harness.runner.result import Result
from harness.runner.run import run
from harness.runner.scenario import Scenario, Turn
from harness.testing.conformance.laws import Law, expect, hold

MakeModel: TypeAlias = Callable[[Env], Model]
"""Makes the model from what an agent is given: `env.http()` and `env.base_url`, or `env.model`."""

_SAID = "It is 14:05, and the sky is grey 😀."
_COUNTED = Usage(9, 5, 14)
_PLAIN = Reply(_SAID, usage=_COUNTED, chunk=5)
_CALLS = (ScriptedCall("clock"), ScriptedCall("sky", {"city": "Århus", "n": [1]}))
_ASKING = Reply("Let me see.", calls=_CALLS, usage=_COUNTED)
_SILENT = Reply(calls=_CALLS[:1])
_NEXT = Reply("And now?")
_OPEN: dict[str, Json] = {"type": "object"}
_TOOLS = (ToolSchema("clock", "Tells the time.", _OPEN), ToolSchema("sky", "", _OPEN))
_QUESTION = "What time is it?"
_HISTORY = (user("Hi."), assistant("Hello."), user(_QUESTION))


def check_model(make: MakeModel, *, level: str = "model") -> None:
    """Hold a model against what all of them do; NotConforming tells of all that does not hold.

    `make` builds the model in a run, where a script answers it in virtual time; for one that asks
    over HTTP, `level` is ``http`` or ``server``, with the protocol that it speaks, as in
    ``http:anthropic``. UsageError for what makes no model, and where there is no such level.
    """
    level_of(level)
    expect(make, "a function that makes a model from an env", fits=callable(make))
    name = getattr(make, "__qualname__", repr(make))
    hold(f"the model of {name} at {level}", _Tried(make, level), LAWS)


class _Tried(Struct, frozen=True):
    """A model, and where it is asked."""

    make: MakeModel
    level: str


class Came(Struct):
    """What came of one request: parts in their order, and by what error it ended, if by any."""

    parts: list[ReplyPart] = field(default_factory=list)
    error: BaseException | None = None

    @property
    def whole(self) -> list[Message]:
        """The messages that are said to be whole."""
        return [part.message for part in self.parts if isinstance(part, ReplyDone)]

    @property
    def said(self) -> str:
        """The pieces of text, together."""
        return "".join([part.text for part in self.parts if isinstance(part, TextDelta)])

    @property
    def told(self) -> bool:
        """Whether a failure was told: by an error of the port, or by a part."""
        failed = any(isinstance(part, ReplyFailed) for part in self.parts)
        return failed or isinstance(self.error, ProviderFailed)


Ask: TypeAlias = Callable[[Model], Awaitable[Came]]


def _request(messages: Sequence[Message] = _HISTORY) -> ModelRequest:
    return ModelRequest("a-model", "Be brief.", tuple(messages), _TOOLS, 64)


async def _all(model: Model) -> Came:
    """Ask, and read to the end."""
    came = Came()
    try:
        async for part in await model.generate(_request()):
            came.parts.append(part)
    except Exception as error:
        came.error = error
    return came


async def _first(model: Model) -> Came:
    """Ask, read one part, and stop."""
    came = Came()
    stream = await model.generate(_request())
    came.parts.append(await anext(stream))
    await _closed(stream)
    return came


async def _cut(model: Model) -> Came:
    """Ask, and be cancelled while the reply hangs."""
    came = Came()
    task = asyncio.ensure_future(_all(model))
    await asyncio.sleep(1)
    task.cancel()
    try:
        came = await task
    except asyncio.CancelledError as error:
        came.error = error
    return came


async def _closed(stream: AsyncIterator[ReplyPart]) -> None:
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()


def _play(
    tried: _Tried, replies: Sequence[Reply], ways: Sequence[Ask]
) -> tuple[list[Came], Result]:
    """Ask once for each of some replies, in these ways."""
    came: list[Came] = []

    class Asks:
        def __init__(self, env: Env) -> None:
            self.model = tried.make(env)

        async def turn(self, _text: str | None) -> None:
            for way in ways:
                came.append(await way(self.model))  # noqa: PERF401 - what came before an error counts

    scenario = Scenario("conformance", turns=(Turn(_QUESTION, tuple(replies)),), order="calls")
    result = run(scenario, Asks, level=tried.level)
    if len(came) < len(ways):
        told = "; ".join([failure.message for failure in result.failures])
        raise AssertionError(f"request {len(came) + 1} came to no end: {told}")
    return came, result


def _one(tried: _Tried, reply: Reply) -> Came:
    return _play(tried, (reply,), (_all,))[0][0]


def replies_are_whole(tried: _Tried) -> Iterator[str]:
    """A reply comes as pieces that make its text, then once as the whole message, calls and all."""
    for reply in (_PLAIN, _ASKING, _SILENT):
        came = _one(tried, reply)
        if came.error is not None:
            yield f"{reply.say!r} came to {came.error!r}"
            continue
        if len(came.whole) != 1:
            yield f"{reply.say!r} is said to be whole {len(came.whole)} times"
            continue
        [message] = came.whole
        if (came.said, message.text) != (reply.say, reply.say):
            yield f"{reply.say!r} came in pieces as {came.said!r}, whole as {message.text!r}"
        calls = [(call.name, call.args) for call in message.calls]
        if calls != [(call.tool, call.args) for call in reply.calls]:
            yield f"the calls {reply.calls} came as {calls}"
        if len({call.id for call in message.calls}) < len(calls):
            yield f"two of the calls {message.calls} have one id"


def nothing_comes_after_the_whole(tried: _Tried) -> Iterator[str]:
    """After the whole message no more text comes."""
    parts = _one(tried, _PLAIN).parts
    done = [at for at, part in enumerate(parts) if isinstance(part, ReplyDone)]
    after = parts[done[0] + 1 :] if done else []
    yield from [
        f"{part} comes after it" for part in after if isinstance(part, TextDelta | ThinkingDelta)
    ]


def usage_is_told_once(tried: _Tried) -> Iterator[str]:
    """What the provider counted is told, and told once."""
    told = [part.usage for part in _one(tried, _PLAIN).parts if isinstance(part, UsageReport)]
    if sum(told, Usage()) != _COUNTED:
        yield f"{_COUNTED} is told as {told}"


def requests_go_out_whole(tried: _Tried) -> Iterator[str]:
    """What is asked for reaches the provider: system prompt, messages with calls, tools."""
    [came], _ = _play(tried, (_ASKING,), (_all,))
    calls = came.whole[0].calls if came.whole else []
    results = [tool_result(call.id, "fine") for call in calls]
    history = (*_HISTORY, *came.whole, *results)

    async def again(model: Model) -> Came:
        await _all(model)
        async for _part in await model.generate(_request(history)):
            pass
        return Came()

    _, result = _play(tried, (_ASKING, _NEXT), (again,))
    for sent, asked in zip(result.trace.requests(), (_HISTORY, history), strict=True):
        if sent.system != "Be brief.":
            yield f"the system prompt 'Be brief.' went out as {sent.system!r}"
        if sent.tools != _TOOLS:
            yield f"the tools {_TOOLS} went out as {sent.tools}"
        if _spoken(sent.messages) != _spoken(asked):
            yield f"the messages {_spoken(asked)} went out as {_spoken(sent.messages)}"


def _spoken(messages: Sequence[Message]) -> list[tuple[object, ...]]:
    return [(each.role, each.text, each.calls, each.tool_call_id) for each in messages]


def each_request_has_its_own_reply(tried: _Tried) -> Iterator[str]:
    """Requests are answered one after another, each by one reply."""
    found, result = _play(tried, (_PLAIN, _NEXT), (_all, _all))
    said = [came.said for came in found]
    if said != [_SAID, _NEXT.say]:
        yield f"two requests were answered by {said}"
    if (reached := len(result.trace.requests())) != len(found):
        yield f"two requests reached the provider as {reached}"


def failures_are_told(tried: _Tried) -> Iterator[str]:
    """A failed request, and a stream that breaks, raise ProviderFailed or give ReplyFailed."""
    for fault in (GenerateFails("no"), StreamFails(1), StreamFails(1, reported=True)):
        came = _one(tried, Reply(_SAID, chunk=5, fault=fault))
        if came.whole or not came.told:
            yield f"{type(fault).__name__} came to {came.parts} and {came.error!r}"


def half_a_reply_is_none(tried: _Tried) -> Iterator[str]:
    """A reply that ends too early, or that the model was cut off in, is not said to be whole."""
    torn = _one(tried, Reply(_SAID, chunk=5, fault=Torn(2)))
    if torn.whole:
        yield f"a stream that was torn is said to be the whole reply {torn.whole[0]}"
    cut = _one(tried, Reply("It is", stop="length"))
    if cut.whole or not (cut.told or any(isinstance(p, ReplyInterrupted) for p in cut.parts)):
        yield f"a reply that was cut off by its length came to {cut.parts} and {cut.error!r}"


def who_stops_may_ask_again(tried: _Tried) -> Iterator[str]:
    """Who reads no further, or is cancelled, is let go, and the next request is answered."""
    left, _ = _play(tried, (_PLAIN, _NEXT), (_first, _all))
    if left[1].said != _NEXT.say:
        yield f"after a reply that nobody read to its end came {left[1]}"
    hung = Reply(_SAID, chunk=5, fault=Hang(1))
    cut, _ = _play(tried, (hung, _NEXT), (_cut, _all))
    if not isinstance(cut[0].error, asyncio.CancelledError):
        yield f"a cancel while a reply hangs came to {cut[0]}"
    if cut[1].said != _NEXT.say:
        yield f"after a cancelled request came {cut[1]}"


def nothing_is_left_running(tried: _Tried) -> Iterator[str]:
    """Once a reply has been read to its end, nothing of it goes on."""
    _, result = _play(tried, (_PLAIN,), (_all,))
    for violation in result.verdict.violations:
        if violation.invariant == Quiesce.id:
            yield violation.message


LAWS: tuple[Law[_Tried], ...] = (
    replies_are_whole,
    nothing_comes_after_the_whole,
    usage_is_told_once,
    requests_go_out_whole,
    each_request_has_its_own_reply,
    failures_are_told,
    half_a_reply_is_none,
    who_stops_may_ask_again,
    nothing_is_left_running,
)
"""What `check_model` holds a model against."""
