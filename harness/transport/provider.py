"""A provider whose replies are scripted: requests as bytes in, answers as bytes out."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from msgspec.structs import replace

from harness.core.errors import NoPlace, RequestRefused, ScriptError
from harness.core.events import Received
from harness.core.messages import Thinking
from harness.core.ports import ProviderFailed
from harness.core.reply import ReplyDone, ReplyFailed, ReplyInterrupted, ReplyPart
from harness.fakes.model import FakeModel, ReplyStream, RequestFailed
from harness.fakes.place import Stage
from harness.fakes.wire_faults import CutAt, CutLine, Dropped, Http, JsonError, Refused
from harness.transport import redact
from harness.transport.exchange import Breaking, Broken, Exchange, Whole
from harness.transport.faults import (
    broken_by,
    ends_cleanly,
    failure_of,
    response_of,
    spoiled_body,
)
from harness.transport.framing import PLAIN, SPLITS, Framing
from harness.transport.reading import signed_before_calls
from harness.transport.streamed import Streamed
from harness.wire import CODECS, asked_by, codec_for, refused_by, remember
from harness.wire.codec import Answer, Asked, Codec, Failure, Unreadable
from harness.wire.http import Headers, Request, Response, json_response, should_retry
from harness.wire.strict.rule import Issued


class Provider:
    """Answers requests of every protocol from one script, as a real provider would.

    `model` gives the replies and records what happens; it must not refuse anything by itself.
    `now` gives seconds since 1970. With `strict`, a history that the provider would refuse gets
    the provider's own error; with `pedantic`, also by rules for which there is little evidence.
    """

    def __init__(
        self,
        stage: Stage,
        model: FakeModel,
        now: Callable[[], float],
        *,
        strict: bool = True,
        pedantic: bool = False,
        framing: Framing = PLAIN,
    ) -> None:
        self._stage = stage
        self._model = model
        self._now = now
        self._strict = strict
        self._pedantic = pedantic
        self._framing = framing
        self._issued = {codec.name: Issued() for codec in CODECS}
        self._count = 0

    async def answer(self, request: Request) -> Exchange:
        """Answer a request; Broken where the connection breaks before there is an answer."""
        self._count += 1
        codec = codec_for(request)
        if codec is None:
            return Whole(self._unknown(request))
        issued = self._issued[codec.name]
        try:
            asked = asked_by(codec, request, issued)
        except Unreadable as error:
            return self._whole(codec, _told(codec, error.failure))
        refused = None
        if self._strict:
            refused = refused_by(codec.name, request, issued, pedantic=self._pedantic)
        came = Received("", codec.name, asked.stream)
        if refused is not None:
            came = replace(came, rule=refused.rule.id, message=refused.failure.message)
        try:
            stream = await self._model.generate(asked.request, came)
        except RequestRefused:
            assert refused is not None, "nothing but a rule of the provider refuses"
            return self._whole(codec, _told(codec, refused.failure), rule=refused.rule.id)
        except ScriptError as error:
            # Who asks again gets the same error.
            failure = Failure(400, str(error), headers=should_retry(flag=False))
            return self._whole(codec, _told(codec, failure))
        except RequestFailed as error:
            return self._failed(codec, error)
        placed = stream.placed
        answer = self._answer_of(codec, asked, stream)
        stream.sign(remember(codec, request, asked, answer, issued))
        if asked.stream and not isinstance(placed.fault, JsonError):
            framing = self._framing_of(placed.label)
            return Streamed(self._headers(codec), codec, asked, answer, stream, framing)
        return await self._at_once(codec, asked, answer, stream)

    def _answer_of(self, codec: Codec, asked: Asked, stream: ReplyStream) -> Answer:
        placed = stream.placed
        reply = placed.reply
        name = f"{codec.prefix}{_short(placed.label)}"
        message = stream.message
        if _thinks(asked) and not any(isinstance(each, Thinking) for each in message.content):
            # A model that is to think does, whether the script says what or not.
            thought = Thinking("", f"sig_{_short(name)}")
            stream.message = replace(message, content=(thought, *message.content))
        return Answer(
            signed_before_calls(stream.message) if codec.name == "gemini" else stream.message,
            reply.usage,
            reply.stopped,
            reply.refusal,
            id=name,
            model=asked.request.model,
            created=int(self._now()),
        )

    async def _at_once(
        self, codec: Codec, asked: Asked, answer: Answer, stream: ReplyStream
    ) -> Exchange:
        """The whole reply, when all of it is there, with what goes wrong with it on the wire."""
        place, fault = stream.placed.label, stream.placed.fault
        response = codec.answer(asked, answer, self._framing.noise)
        counted = isinstance(fault, CutAt) and fault.byte < len(response.body)
        end: ReplyPart | ProviderFailed | None
        try:
            end = await _end_of(stream, before=counted)
        except ProviderFailed as error:
            end = error
        if isinstance(fault, JsonError):
            return self._whole(codec, response_of(codec, fault, self._now()), place)
        if isinstance(end, ReplyFailed):
            return self._whole(codec, codec.failure(failure_of(fault, end.message)), place)
        if isinstance(end, ReplyDone | ReplyInterrupted):
            return self._whole(codec, response, place)
        if end is None and not counted and not isinstance(fault, CutLine):
            raise Broken("dropped", "the reply broke off")
        if counted:
            stream.break_off("torn" if ends_cleanly(fault) else "failed")
        rest = self._whole(codec, replace(response, body=spoiled_body(fault, response.body)), place)
        if ends_cleanly(fault):
            return rest
        return Breaking(rest, broken_by(fault, f"the connection broke: {end}"))

    def _failed(self, codec: Codec, error: RequestFailed) -> Exchange:
        """The answer to a request that the script makes fail; Broken where it gets none."""
        match error.placed.fault:
            case Http() as fault:
                response = response_of(codec, fault, self._now())
            case Refused() | Dropped() as fault:
                raise broken_by(fault, str(error)) from error
            case _:
                failure = Failure(500, str(error), headers=should_retry(flag=False))
                response = codec.failure(failure)
        return self._whole(codec, response, error.placed.label)

    def _framing_of(self, label: str) -> Framing:
        """How the frames of a reply are cut, where a search has it otherwise too."""
        choices = self._model.choices
        if choices.plain:
            return self._framing
        chosen = choices.choose("chunking", f"wire {label}", 1 + len(SPLITS))
        return replace(self._framing, size=SPLITS[chosen - 1]) if chosen else self._framing

    def _whole(self, codec: Codec, response: Response, place: str = "", rule: str = "") -> Whole:
        more = self._headers(codec)
        had = {name for name, _value in response.headers}
        headers = (*response.headers, *[each for each in more if each[0] not in had])
        return Whole(replace(response, headers=headers), place, rule)

    def _headers(self, codec: Codec) -> Headers:
        return codec.headers(f"req_{self._count:06}", now=self._now())

    def _unknown(self, request: Request) -> Response:
        known = ", ".join([codec.name for codec in CODECS])
        error = NoPlace(
            f"{request.method} {redact.path(request)} is no request of a protocol that is "
            f"known ({known}); see the address that the client was given"
        )
        self._stage.mismatch(error)
        return json_response(404, {"error": {"message": str(error)}}, should_retry(flag=False))


def _told(codec: Codec, failure: Failure) -> Response:
    """A failure that quotes the request, without secrets: clients write down what they are told."""
    return codec.failure(replace(failure, message=redact.text(failure.message)))


async def _end_of(stream: ReplyStream, *, before: bool) -> ReplyPart | None:
    """What a reply ends with: its end signal, its failure, or nothing; `before` stops there."""
    end: ReplyPart | None = None
    while not (before and isinstance(stream.next_part(), ReplyDone | ReplyInterrupted)):
        part = await anext(stream, None)
        if part is None:
            break
        if isinstance(part, ReplyDone | ReplyInterrupted | ReplyFailed):
            end = part
        if isinstance(part, ReplyFailed):
            await stream.aclose()
            break
    return end


def _thinks(asked: Asked) -> bool:
    """Whether a request asks Anthropic's model to think."""
    given = asked.options.get("thinking")
    return isinstance(given, dict) and given.get("type") in ("enabled", "adaptive")


def _short(text: str) -> str:
    return blake2b(text.encode(), digest_size=9).hexdigest()
