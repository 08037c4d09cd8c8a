"""Requests in the one form in which two that ask for the same are equal.

Port, scheme and headers do not count, nor the host of a provider, nor how JSON is spelled, which
names calls were given, or where a form in several parts is cut. All else does, unless it is known
to leave the answer as it is: what a protocol has of that is written in `FORMS`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from operator import itemgetter
from typing import Literal, TypeAlias
from urllib.parse import parse_qsl, unquote

from msgspec import Struct
from msgspec.structs import replace

from harness.core.errors import UsageError
from harness.core.json_plain import dumps_sorted
from harness.core.json_text import Json
from harness.wire import codec_for, multipart
from harness.wire.http import Request
from harness.wire.openai_responses.requests import PREVIOUS
from harness.wire.places import NOWHERE, Places, below, here, places
from harness.wire.reading import json_of

Kind: TypeAlias = Literal["none", "json", "form", "parts", "text", "bytes"]
"""What a body is: nothing, JSON, a form of names and values, a form in several parts, other text,
or bytes that are no text.
"""

VARIES = "[varies]"
"""What stands in place of what changes from run to run."""
IGNORED = "[ignored]"
"""What stands in place of an element that says nothing: those behind it keep their places."""
_LOCAL = re.compile(r"localhost|127\..*|::1|0\.0\.0\.0")
"""Names of this machine, where servers of tests are."""
_EITHER = zlib.MAX_WBITS | 32
"""Bytes of gzip or of deflate, whichever they are."""
_LARGEST = 256 * 1024 * 1024
"""How many bytes a body may have without its coding."""


class Form(Struct, frozen=True, kw_only=True):
    """What is particular about the requests of a protocol.

    `path` finds its own part of a path. The others are places in the body: `silent` says nothing
    that changes the answer, `ids` are names that somebody made up, `texts` hold JSON as text, and
    `sealed` is what only the provider can read, so that it is another in every session. Items of
    the types in `standing` are known to the provider by their ids alone, and so are those that
    say nothing else.
    """

    path: re.Pattern[str]
    silent: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    sealed: tuple[str, ...] = ()
    standing: frozenset[str] = frozenset()


_OPENAI = (
    "user",  # who asks: for the provider's statistics
    "safety_identifier",  # the same, for its watch over misuse
    "prompt_cache_key",  # where the beginning may be kept: a matter of price
    "prompt_cache_retention",  # and for how long
    "metadata",  # labels for the user's own searches
)

FORMS: dict[str, Form] = {
    "openai_chat": Form(
        # Azure has the model in the path.
        path=re.compile(r"(?:/deployments/[^/]+)?/chat/completions$"),
        silent=(*_OPENAI, "store"),  # whether it can be looked at later; no request refers to it
        ids=("messages[*].tool_calls[*].id", "messages[*].tool_call_id"),
        texts=(
            "messages[*].tool_calls[*].function.arguments",
            "messages[*].function_call.arguments",
        ),
    ),
    # `previous_response_id` and `conversation` are what was said before, and count; so does
    # `store`, since without it they cannot name this one later.
    "openai_responses": Form(
        path=re.compile(r"/responses$"),
        silent=_OPENAI,
        ids=("input[*].id", "input[*].call_id", "input[*].approval_request_id"),
        texts=("input[*].arguments",),
        sealed=("input[*].encrypted_content",),
        standing=frozenset({"item_reference", "reasoning"}),
    ),
    "anthropic": Form(
        path=re.compile(r"/v1/messages$"),
        silent=("metadata",),  # who asks
        ids=(
            "messages[*].content[*].id",
            "messages[*].content[*].tool_use_id",
            "messages[*].content[*].caller.tool_id",
        ),
        sealed=("messages[*].content[*].signature", "messages[*].content[*].data"),
    ),
    "gemini": Form(
        path=re.compile(r"/(?:models|tunedModels)/[^/]+:[A-Za-z]+$"),
        silent=("labels",),  # for the bill
        ids=tuple(
            [
                f"contents[*].parts[*].{name}.id"
                for name in (
                    "functionCall",
                    "function_call",
                    "functionResponse",
                    "function_response",
                )
            ]
        ),
        sealed=(
            "contents[*].parts[*].thoughtSignature",
            "contents[*].parts[*].thought_signature",
        ),
    ),
}
"""By the names of the codecs."""
_BARE = frozenset({"id", "type", "status"})
"""The members of an item that says nothing else than which it is."""
_NAMELESS: frozenset[str] = frozenset()
_NO_FORM = Form(path=re.compile(""))


class Canonical(Struct, frozen=True):
    """A request in its one form; two that ask for the same have one `digest`.

    `path` is the protocol's own part where the request is one of a protocol, and `host` nothing
    then: providers are reached in many ways. `query` is sorted and without secrets, `body` is JSON
    whatever its `kind`.
    """

    method: str
    host: str
    path: str
    query: tuple[tuple[str, str], ...]
    protocol: str
    kind: Kind
    body: Json
    digest: bytes = b""


class Reading(Struct, frozen=True):
    """How requests are read: places that say nothing, regular expressions for what varies, what
    stands in place of secrets: parameters of a query that are nothing but that do not count. With
    `unsealed`, also what only the provider can read says nothing. `homes` are the hosts of
    providers, for which stand-ins on this machine may answer.
    """

    ignore: tuple[str, ...] = ()
    volatile: tuple[str, ...] = ()
    placeholder: str | None = None
    unsealed: bool = False
    homes: frozenset[str] = frozenset()


PLAINLY = Reading()


def canonical(request: Request, reading: Reading = PLAINLY) -> Canonical:
    """The one form of a request; UsageError where a path or an expression of `reading` is none.

    >>> one = Request("POST", "https://a.test/v1/messages", (), b'{"a": 1.0, "b": 2}')
    >>> other = Request("POST", "http://127.0.0.1:9/proxy/v1/messages", (), b'{"b":2,"a":1}')
    >>> canonical(one) == canonical(other)
    True
    """
    codec = codec_for(request)
    form = FORMS[codec.name] if codec is not None else _NO_FORM
    hidden = codec.secrets.query if codec is not None else frozenset()
    walk = _Walk(form, reading)
    path = "/".join([_read(part) for part in request.path.split("/")]) or "/"
    own = form.path.search(path) if codec is not None else None
    query = [
        (name, walk.text(value))
        for name, value in request.parameters
        if name.lower() not in hidden and value != reading.placeholder
    ]
    kind, body = _body_of(request, of_codec=codec is not None)
    return _sealed(
        Canonical(
            request.method.upper(),
            "" if codec is not None else walk.host(request.host),
            walk.text(own[0] if own else path),
            tuple(sorted(query, key=itemgetter(0))),
            codec.name if codec is not None else "",
            kind,
            walk.value(body, walk.places),
        )
    )


def _read(part: str) -> str:
    """A part of a path, which may have a slash of its own."""
    return unquote(part).replace("%", "%25").replace("/", "%2F")


def at_once(form: Canonical) -> Canonical:
    """The same request for an answer that is not streamed."""
    body = form.body
    if isinstance(body, dict):
        body = {key: body[key] for key in body if key not in ("stream", "stream_options")}
    if form.protocol != "gemini":
        return _sealed(replace(form, body=body))
    path = form.path.replace(":streamGenerateContent", ":generateContent")
    query = tuple([each for each in form.query if each != ("alt", "sse")])
    return _sealed(replace(form, path=path, query=query, body=body))


def continued(form: Canonical, names: Mapping[str, str]) -> Canonical:
    """The same request with a name from `names` for the response that it goes on from."""
    body = form.body
    if not isinstance(body, dict) or (known := names.get(str(body.get(PREVIOUS)))) is None:
        return form
    return _sealed(replace(form, body=body | {PREVIOUS: known}))


def normal(given: Json, reading: Reading = PLAINLY) -> Json:
    """JSON of no protocol in its one form: numbers by value, texts without what varies."""
    return _Walk(_NO_FORM, Reading(volatile=reading.volatile)).value(given, NOWHERE)


def _sealed(form: Canonical) -> Canonical:
    """A form with its digest."""
    said = [form.method, form.host, form.path, form.query, form.protocol, form.kind, form.body]
    data = dumps_sorted(said).encode("utf-8", "surrogatepass")
    return replace(form, digest=blake2b(data, digest_size=16).digest())


def _body_of(request: Request, *, of_codec: bool) -> tuple[Kind, Json]:
    data = _inflated(request)
    if not data:
        return "none", None
    kind = request.header("content-type") or ""
    if "multipart/" in kind.lower() and (parts := multipart.parts_of(data, kind)) is not None:
        return "parts", [_part(part) for part in parts]
    text = _text_of(data)
    if text is None:
        return "bytes", _digest(data)
    if of_codec or "json" in kind or text.lstrip()[:1] in ("{", "["):
        with suppress(ValueError):  # curl and urllib say of JSON too that it is a form
            return "json", json_of(text)
    if "urlencoded" in kind:
        return "form", members(parse_qsl(text, keep_blank_values=True))
    return "text", text


def _part(part: multipart.Part) -> Json:
    """A part of a form; what is JSON in it is compared as such."""
    text = _text_of(part.data)
    content: Json = _digest(part.data) if text is None else text
    if text is not None and "json" in part.type:
        with suppress(ValueError):
            content = json_of(text)
    return {"name": part.name, "file": part.file, "type": part.type, "content": content}


def members(pairs: Iterable[tuple[str, str]]) -> dict[str, Json]:
    """The pairs of a form by name; the order counts among those of one name only."""
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _inflated(request: Request) -> bytes:
    """The body without its content coding, in which two of the same may differ; as it is where that
    cannot be undone.
    """
    if request.header("content-encoding") not in ("gzip", "deflate"):
        return request.body
    inflate = zlib.decompressobj(_EITHER)
    with suppress(zlib.error):
        data = inflate.decompress(request.body, _LARGEST)
        if inflate.eof:
            return data
    return request.body


def _text_of(data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _digest(data: bytes) -> Json:
    return {"bytes": len(data), "digest": blake2b(data, digest_size=16).hexdigest()}


class _Walk:
    """Goes through the body of one request, and knows the ids that it has met."""

    def __init__(self, form: Form, reading: Reading) -> None:
        self.places = _places_of(form, reading.ignore, unsealed=reading.unsealed)
        self._volatile = _compiled(reading.volatile)
        self._homes = reading.homes
        self._standing = frozenset() if reading.unsealed else form.standing
        self._ids: dict[str, str] = {}

    def value(self, given: Json, at: Places) -> Json:
        """A value in its one form. What is nested takes one call a level, since agents themselves
        may call from far down.
        """
        if isinstance(given, str):
            return self._string(given, at)
        if isinstance(given, dict):
            stands = self._stands(given)
            found: dict[str, Json] = {}
            for key in sorted(given):
                inner = below(at, key) if at else NOWHERE
                called = here(inner) if inner else _NAMELESS
                if "ignored" not in called:
                    inner = NOWHERE if stands and "id" in called else inner
                    found[key] = self.value(given[key], inner)
            return found
        if isinstance(given, list):
            items: list[Json] = []
            beyond = _beyond(at) if at else 0
            for n, each in enumerate(given):
                inner = below(at, min(n, beyond)) if at else NOWHERE
                ignored = bool(inner) and "ignored" in here(inner)
                items.append(IGNORED if ignored else self.value(each, inner))
            return items
        if isinstance(given, float) and given.is_integer():
            return int(given)
        return given

    def _stands(self, given: Mapping[str, Json]) -> bool:
        """Whether an item stands for what the provider knows by its id."""
        kind = given.get("type")
        return bool(self._standing) and (
            (isinstance(kind, str) and kind in self._standing) or given.keys() <= _BARE
        )

    def host(self, given: str) -> str:
        """A host; nothing where it is a provider's, or where what stands in for one is."""
        return "" if given in self._homes or _LOCAL.fullmatch(given) else given

    def text(self, given: str) -> str:
        """A text without what varies."""
        for each in self._volatile:
            given = each.sub(VARIES, given)
        return given

    def _string(self, given: str, at: Places) -> Json:
        called = here(at) if at else _NAMELESS
        if "id" in called and given:
            return self._ids.setdefault(given, f"id{len(self._ids) + 1}")
        if "text" in called:
            try:
                inner = json_of(given)
            except ValueError:
                inner = None
            if isinstance(inner, dict):
                return self.value(inner, at)
        return self.text(given)


@lru_cache(maxsize=4096)
def _beyond(given: Places) -> int:
    """The first place in a list that none of the paths names: all behind it are alike."""
    return 1 + max([s for _, steps in given for s in steps if isinstance(s, int)], default=-1)


@lru_cache(maxsize=64)
def _places_of(form: Form, ignore: Sequence[str], *, unsealed: bool) -> Places:
    return (
        places("ignored", [*form.silent, *ignore, *(form.sealed if unsealed else ())])
        | places("id", form.ids)
        | places("text", form.texts)
    )


@lru_cache(maxsize=64)
def _compiled(volatile: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    found = []
    for each in volatile:
        try:
            found.append(re.compile(each))
        except re.error as error:
            raise UsageError(f"{each!r} is no regular expression: {error}") from None
    return tuple(found)
