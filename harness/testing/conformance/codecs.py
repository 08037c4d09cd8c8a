"""What every protocol's codec does, whoever wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from itertools import accumulate, zip_longest

from msgspec import Struct
from msgspec.structs import replace

from harness.core.messages import (
    ModelRequest,
    ToolCall,
    ToolSchema,
    Usage,
    assistant,
    tool_result,
    user,
)
from harness.core.reply import ReplyDone, ReplyPart, TextDelta, UsageReport
from harness.testing.conformance.laws import Law, expect, hold
from harness.wire.codec import (
    QUIET,
    Answer,
    Asked,
    Codec,
    Cut,
    Decoder,
    Failure,
    Garbled,
    Noise,
    ProviderError,
    Unreadable,
    whole,
)
from harness.wire.http import Request, Response

MODEL = "a-model"
KEY = "key-of-the-conformance-kit"
_CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
_TOOLS = (ToolSchema("clock", "Tells the time.", {"type": "object"}), ToolSchema("sky", "", _CITY))
_TWO = (ToolCall("call_1", "clock", {}), ToolCall("call_2", "sky", {"city": "Århus", "n": [1]}))
_HISTORY = (
    user("What time is it, and how is the sky?"),
    assistant("Let me see.", *_TWO),
    tool_result("call_1", "14:05"),
    tool_result("call_2", "grey"),
    assistant("It is 14:05 and grey 😀."),
    user("Thanks."),
)
REQUESTS = (
    ModelRequest(MODEL, "", (user("Hi."),), max_tokens=64),
    ModelRequest(MODEL, "Be brief.", (user("Hi."),), _TOOLS, 64, 0.5),
    ModelRequest(MODEL, "Be brief.", _HISTORY, _TOOLS, 64),
)
"""What every protocol can carry."""

_COUNTED = Usage(9, 5, 14)
ANSWERS = (
    Answer(assistant("It is 14:05\nand grey 😀."), _COUNTED, "end"),
    Answer(assistant("", _TWO[0]), _COUNTED, "calls"),
    Answer(assistant("Let me see.", *_TWO), _COUNTED, "calls"),
    Answer(assistant("It is"), _COUNTED, "length"),
)
_SHORT = 1
"""Which of them is cut and damaged at each of its bytes."""
_ASKED = Asked(REQUESTS[1], stream=True, options={"stream_options": {"include_usage": True}})
NOISES = (Noise(obfuscation=True), Noise(pings=True), Noise(unknown=True))
_CUTS: Sequence[Cut] = (whole, tuple, lambda text: [text[:3], text[3:]])
_REFUSALS = (Garbled, ProviderError)
"""By which a reader says that bytes are no reply; Truncated is a kind of the first."""
_PARTS = tuple([name for name in vars(Codec) if not name.startswith("_")])
_AFTER = ("retry-after", "7")
"""A header that comes with a failure."""


def check_codec(codec: Codec) -> None:
    """Hold a codec against what all of them do; NotConforming tells of all that does not hold.

    It is asked to write and read a few requests and replies, whole and as a stream, that is cut,
    mangled and broken off everywhere. UsageError for what is no codec.
    """
    fits = not isinstance(codec, type) and all(hasattr(codec, name) for name in _PARTS)
    expect(codec, f"a codec, an object with {', '.join(_PARTS)}", fits=fits)
    hold(f"the codec {codec.name}", codec, LAWS)


class _Read(Struct, frozen=True):
    """What a stream came to."""

    said: str
    counted: Usage
    answer: Answer


def _named(codec: Codec, index: int, answer: Answer) -> Answer:
    return replace(answer, id=f"{codec.prefix}{index}", model=MODEL, created=1_700_000_000)


def _answers(codec: Codec) -> Iterator[Answer]:
    for index, answer in enumerate(deepcopy(ANSWERS)):
        yield _named(codec, index, answer)


def _requests() -> tuple[ModelRequest, ...]:
    """The requests, made anew: who changes them does so for nobody else."""
    return deepcopy(REQUESTS)


def _frames(codec: Codec, answer: Answer, cut: Cut = whole, noise: Noise = QUIET) -> list[bytes]:
    """A reply as a stream; its text comes in two pieces."""
    encoder = codec.encoder(_ASKED, answer, cut=cut, noise=noise)
    text = answer.message.text
    pieces = [piece for piece in (text[:5], text[5:]) if piece]
    parts: list[ReplyPart] = [*map(TextDelta, pieces), ReplyDone(answer.message)]
    return [*[frame for part in parts for frame in encoder.part(part)], *encoder.end()]


def _read(codec: Codec, pieces: Sequence[bytes]) -> _Read:
    decoder = codec.decoder()
    return _come(decoder, [part for piece in pieces for part in decoder.feed(piece)])


def _come(decoder: Decoder, parts: Sequence[ReplyPart]) -> _Read:
    """What a decoder has read, which gave these parts."""
    said = "".join([part.text for part in parts if isinstance(part, TextDelta)])
    counted = sum([part.usage for part in parts if isinstance(part, UsageReport)], Usage())
    return _Read(said, counted, decoder.end())


def _differs(found: Answer, wanted: Answer) -> Iterator[str]:
    """What a reply says otherwise than another; when it was made is not told by all."""
    for name, one, other in (
        ("id", found.id, wanted.id),
        ("model", found.model, wanted.model),
        ("text", found.message.text, wanted.message.text),
        ("calls", found.message.calls, wanted.message.calls),
        ("stopped", found.stopped, wanted.stopped),
        ("usage", found.usage, wanted.usage),
    ):
        if one != other:
            yield f"{name} {one!r} came of {other!r}"


def is_named(codec: Codec) -> Iterator[str]:
    """It has a name that is one word, and says in lower case where its requests hide secrets."""
    if not codec.name.isidentifier():
        yield f"the name {codec.name!r} is no identifier, so no level can name it"
    secrets = codec.secrets.headers | codec.secrets.query | codec.secrets.body
    if not codec.secrets.headers | codec.secrets.query:
        yield "no header and no parameter is said to be secret; name where the key goes"
    yield from [
        f"the secret {each!r} is not in lower case"
        for each in sorted(secrets)
        if each != each.lower()
    ]


def knows_its_requests(codec: Codec) -> Iterator[str]:
    """It takes each request that it writes for its own, and no other."""
    for request in _requests():
        for stream in (False, True):
            written = codec.write(Asked(request, stream))
            if not codec.is_for(written):
                yield f"its own {written.method} {written.url} is not its own"
            if codec.is_for(replace(written, method="GET")):
                yield f"a GET of {written.url} is taken for its own"
    if codec.is_for(Request("POST", "/v1/nobody/knows")):
        yield "a POST to /v1/nobody/knows is taken for its own"


def requests_come_back(codec: Codec) -> Iterator[str]:
    """What a request asks for is read as it was written: model, system, history, tools, stream."""
    for request in _requests():
        for stream in (False, True):
            asked = codec.read(codec.write(Asked(request, stream)))
            found = asked.request
            if asked.stream != stream:
                yield f"a request with stream={stream} is read with stream={asked.stream}"
            for name in ("model", "system", "max_tokens", "temperature", "messages", "tools"):
                one, other = getattr(found, name), getattr(request, name)
                if one != other:
                    yield f"{name} {other!r} is read as {one!r}"


def the_key_is_where_secrets_are(codec: Codec) -> Iterator[str]:
    """The key that signs a request stands where the codec says that secrets are, and only there."""
    written = codec.write(Asked(REQUESTS[0]), base="http://provider.test", key=KEY)
    signed = [name for name, value in written.headers if KEY in value]
    signed += [name for name, value in written.query.items() if KEY in value]
    if not signed:
        yield "the key stands in no header and in no parameter"
    known = codec.secrets.headers | codec.secrets.query
    yield from [
        f"the key stands in {name!r}, which is no secret" for name in signed if name not in known
    ]
    if KEY.encode() in written.body or KEY in written.path:
        yield "the key stands in the body or in the path"


def replies_come_back(codec: Codec) -> Iterator[str]:
    """A whole reply is read as it was written."""
    for answer in _answers(codec):
        yield from _differs(codec.read_answer(codec.answer(_ASKED, answer)), answer)


def streams_say_the_same(codec: Codec) -> Iterator[str]:
    """A streamed reply comes to what the whole one does, its pieces to its text and its usage."""
    for answer in _answers(codec):
        for cut in _CUTS:
            read = _read(codec, _frames(codec, answer, cut))
            yield from _differs(read.answer, answer)
            if read.said != answer.message.text:
                yield f"the pieces say {read.said!r}, the reply {answer.message.text!r}"
            if read.counted != answer.usage:
                yield f"the pieces count {read.counted}, the reply {answer.usage}"


def pieces_do_not_matter(codec: Codec) -> Iterator[str]:
    """However the bytes of a stream are cut, the same is read."""
    for answer in _answers(codec):
        sent = b"".join(_frames(codec, answer))
        wanted = _read(codec, [sent])
        for size in (1, 2, 7, 64):
            found = _read(codec, [sent[at : at + size] for at in range(0, len(sent), size)])
            if found != wanted:
                yield f"in pieces of {size} bytes a reply is read as {found}, at once as {wanted}"


def streams_do_not_meet(codec: Codec) -> Iterator[str]:
    """Streams that are read at the same time are read as each of them alone."""
    sent = [_frames(codec, answer) for answer in _answers(codec)]
    decoders = [codec.decoder() for _ in sent]
    parts: list[list[ReplyPart]] = [[] for _ in sent]
    for frames in zip_longest(*sent, fillvalue=b""):
        for decoder, gathered, frame in zip(decoders, parts, frames, strict=True):
            gathered.extend(decoder.feed(frame))
    for decoder, gathered, whole_stream in zip(decoders, parts, sent, strict=True):
        found, alone = _come(decoder, gathered), _read(codec, whole_stream)
        if found != alone:
            yield f"beside others a reply is read as {found}, alone as {alone}"


def noise_changes_nothing(codec: Codec) -> Iterator[str]:
    """What live services send besides changes nothing of a reply."""
    for answer in _answers(codec):
        for noise in NOISES:
            found = _read(codec, _frames(codec, answer, noise=noise)).answer
            yield from [f"with {noise}: {each}" for each in _differs(found, answer)]
            at_once = codec.read_answer(codec.answer(_ASKED, answer, noise))
            yield from [f"whole, with {noise}: {each}" for each in _differs(at_once, answer)]
        frames = _frames(codec, answer)
        for at in range(len(frames) + 1):
            found = _read(codec, [*frames[:at], b": ping\n\n", *frames[at:]]).answer
            yield from [f"a comment before frame {at}: {each}" for each in _differs(found, answer)]


def a_cut_is_told(codec: Codec) -> Iterator[str]:
    """A stream that ends too early is no reply, unless only the rest of its end is missing."""
    for number, answer in enumerate(_answers(codec)):
        frames = _frames(codec, answer)
        sent = b"".join(frames)
        bounds = list(accumulate(map(len, frames), initial=0))
        near = {bound + by for bound in bounds for by in (-1, 0, 1)}
        ends = range(len(sent)) if number == _SHORT else sorted(near & set(range(len(sent))))
        for end in ends:
            try:
                found = _read(codec, [sent[:end]]).answer.message
            except _REFUSALS:
                continue
            if (found.text, found.calls) != (answer.message.text, answer.message.calls):
                yield f"{end} of {len(sent)} bytes are read as the whole reply {found}"


def failures_are_told(codec: Codec) -> Iterator[str]:
    """A failure is the provider's error to who reads it, whole and in the middle of a stream."""
    for status in (400, 401, 429, 500, 503):
        failure = Failure(status, f"No {status} today.", headers=(_AFTER,))
        response = codec.failure(failure)
        if response.status != status:
            yield f"a failure with status {status} is written with {response.status}"
        if _AFTER not in response.headers:
            yield f"a failure with the header {_AFTER} is written with {response.headers}"
        yield from _told(failure, partial(codec.read_answer, response), status)
    for before in (0, 1):
        failure = Failure(503, "Not now.")
        encoder = codec.encoder(_ASKED, _named(codec, 0, ANSWERS[0]))
        frames = [frame for _ in range(before) for frame in encoder.part(TextDelta("It is"))]
        sent = [*frames, *encoder.failure(failure)]
        yield from _told(failure, partial(_read, codec, sent))


def damage_is_named(codec: Codec) -> Iterator[str]:
    """Bytes that are no reply are refused by name, and by no other error: Garbled, Unreadable."""
    written = codec.write(Asked(REQUESTS[0]))
    for body in (b"", b"nonsense", b"[]", b"null", b"\xff\xfe"):
        response, request = Response(200, (), body), replace(written, body=body)
        yield from _refused(f"the reply {body!r}", partial(codec.read_answer, response))
        yield from _refused(f"the request {body!r}", partial(codec.read, request))
    sent = b"".join(_frames(codec, _named(codec, _SHORT, ANSWERS[_SHORT])))
    for at in range(len(sent)):
        damaged = sent[:at] + b"\xff}\n"[at % 3 :][:1] + sent[at + 1 :]
        try:
            _read(codec, [damaged])
        except _REFUSALS:
            continue


def leaves_what_it_is_given(codec: Codec) -> Iterator[str]:
    """What it writes is as it was before."""
    for asked, request in zip(_requests(), _requests(), strict=True):
        codec.write(Asked(asked))
        if asked != request:
            yield f"the request {request} is {asked} when it is written"
    for told, answer in zip(_answers(codec), _answers(codec), strict=True):
        codec.answer(_ASKED, told)
        _frames(codec, told)
        if told != answer:
            yield f"the reply {answer} is {told} when it is written"


def the_same_bytes_every_time(codec: Codec) -> Iterator[str]:
    """It writes the same bytes for the same things."""
    for request in _requests():
        if codec.write(Asked(request)) != codec.write(Asked(request)):
            yield "a request is written in two ways"
    for answer in _answers(codec):
        if codec.answer(_ASKED, answer) != codec.answer(_ASKED, answer):
            yield "a whole reply is written in two ways"
        if _frames(codec, answer) != _frames(codec, answer):
            yield "a stream is written in two ways"


def _told(failure: Failure, read: Callable[[], object], status: int | None = None) -> Iterator[str]:
    """Whether who reads is told of a failure in the provider's words, and of its `status`."""
    try:
        found = read()
    except ProviderError as error:
        if failure.message not in error.failure.message:
            yield f"{failure.message!r} is told as {error.failure.message!r}"
        if status not in (None, error.failure.status):
            yield f"the status {status} is told as {error.failure.status}"
    else:
        yield f"{failure} is read as {found}"


def _refused(what: str, read: Callable[[], object]) -> Iterator[str]:
    """Whether something that is none is refused, by the right name."""
    try:
        found = read()
    except (*_REFUSALS, Unreadable):
        return
    yield f"{what} is read as {found}"


LAWS: tuple[Law[Codec], ...] = (
    is_named,
    knows_its_requests,
    requests_come_back,
    the_key_is_where_secrets_are,
    replies_come_back,
    streams_say_the_same,
    pieces_do_not_matter,
    streams_do_not_meet,
    noise_changes_nothing,
    a_cut_is_told,
    failures_are_told,
    damage_is_named,
    leaves_what_it_is_given,
    the_same_bytes_every_time,
)
"""What `check_codec` holds a codec against."""
