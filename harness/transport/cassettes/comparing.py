"""What two cassettes differ in by meaning: what was asked, what a client heard, how it ended.

Times, ids, headers and how a body came in chunks do not count, nor what only a provider can read.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct, to_builtins

from harness.core.durations import format_duration
from harness.core.json_text import Json
from harness.core.messages import Message, Thinking
from harness.core.reply import TextDelta, ThinkingDelta
from harness.transport import redact, redact_bodies
from harness.transport.cassettes.differing import (
    HEAD,
    RECORDED,
    Difference,
    Words,
    between,
    differences,
)
from harness.transport.cassettes.form import Cassette, Interaction
from harness.transport.cassettes.likeness import likeness, profile
from harness.transport.cassettes.matching import reading_of
from harness.wire import codec_for
from harness.wire.canonical import Canonical, canonical, continued, normal
from harness.wire.codec import Answer, Codec, Garbled, ProviderError
from harness.wire.http import Request, Response, first
from harness.wire.reading import json_of

_PAIRED = 200
"""Among how many interactions that others do not equal the closest ones are looked for."""
_ALIKE = 0.5
"""How alike two requests must be to be taken for one that was changed."""

What: TypeAlias = Literal["removed", "added", "request", "reply"]
"""What has changed: an interaction was recorded only, or came only; what it asks; what is heard."""


class Change(Struct, frozen=True):
    """One change, in a sentence. `recorded` and `found` are the places of the interaction in both
    cassettes, from 0; None where it is not there.
    """

    what: What
    recorded: int | None
    found: int | None
    sentence: str


class Comparison(Struct, frozen=True):
    """What two cassettes differ in; `pairs` is how many interactions have been compared."""

    changes: tuple[Change, ...] = ()
    pairs: int = 0

    @property
    def text(self) -> str:
        """The changes, a line each; "" where there are none."""
        return "\n".join([each.sentence for each in self.changes])


def compare(
    recorded: Cassette,
    found: Cassette,
    *,
    usage: bool = False,
    timing: bool = False,
    words: Words = RECORDED,
) -> Comparison:
    """What `found` differs in from `recorded`, by the rules of that.

    Interactions that ask for the same belong together, in their order, then those that ask for
    almost the same. With `usage`, also what the provider counted is compared, with `timing` when
    the answer began and ended. `words` is what the sides are called. An interaction is told by its
    number in `recorded`, or in `found` where only that has it.
    """
    one = _Side(recorded, recorded, usage=usage, timing=timing)
    other = _Side(found, recorded, usage=usage, timing=timing)
    pairs = _paired(one.forms, other.forms)
    changes: list[Change] = []
    for old, new in pairs:
        if old is None or new is None:
            changes.append(_only(one, other, old, new, words))
            continue
        asked = between(one.forms[old], other.forms[new])
        heard = differences(one.replies[old], other.replies[new])
        changes += [_change("request", old, new, each, words) for each in asked]
        changes += [_change("reply", old, new, each, words) for each in heard]
    both = sum([None not in pair for pair in pairs])
    return Comparison(tuple(changes), both)


def _only(recorded: _Side, found: _Side, old: int | None, new: int | None, words: Words) -> Change:
    if old is None:
        side, place, whose, where = found, new or 0, f" {words.of_new}", words.only_new
    else:
        side, place, whose, where = recorded, old, "", words.only_old
    request = side.requests[place]
    called = f"interaction {place + 1}{whose} ({request.method} {redact.path(request)})"
    sentence = f"{called}: {where}"
    return Change("added" if old is None else "removed", old, new, sentence)


def _change(what: What, old: int, new: int, difference: Difference, words: Words) -> Change:
    head = "" if difference.path.startswith(HEAD) else f"{what}: "
    return Change(what, old, new, f"interaction {old + 1}: {head}{difference.said(words)}")


class _Side:
    """One of the cassettes, without its secrets: each request, its form, and what came of it."""

    def __init__(self, given: Cassette, ruling: Cassette, *, usage: bool, timing: bool) -> None:
        self.requests: list[Request] = []
        self.forms: list[Canonical] = []
        self.replies: list[Json] = []
        names: dict[str, str] = {}
        reading = reading_of(ruling.rules, unsealed=True)
        for n, each in enumerate(given.interactions):
            safe = redact_bodies.interaction(each, ruling.rules)
            if given.rules != ruling.rules:
                safe = redact_bodies.interaction(safe, given.rules)
            self.requests.append(safe.request)
            self.forms.append(continued(canonical(safe.request, reading), names))
            heard = _Heard(safe, usage=usage)
            if heard.answer is not None and heard.answer.id:
                names[heard.answer.id] = f"what interaction {n + 1} said"
            told = heard.told | (_times(each) if timing else {})
            self.replies.append(normal(told, reading))


class _Heard:
    """What a client hears of an interaction: `told` in words that all protocols share, `answer`
    where it is whole.
    """

    def __init__(self, given: Interaction, *, usage: bool) -> None:
        self.answer: Answer | None = None
        self.told: dict[str, Json] = {"status": given.status, "ended": given.ended}
        codec = codec_for(given.request)
        if given.status is None:
            return
        if codec is None:
            self.told["body"] = _body_of(given.body)
            return
        try:
            self.answer = self._answer(codec, given)
        except ProviderError as error:
            told = error.failure
            self.told["failure"] = {
                "message": told.message,
                "kind": told.kind,
                "code": told.code,
                "param": told.param,
            }
        except Garbled as error:
            if given.ended == "complete":
                self.told["garbled"] = str(error)
        if self.answer is not None:
            self._tell(self.answer, usage=usage)

    def _answer(self, codec: Codec, given: Interaction) -> Answer:
        kind = first(given.headers, "content-type") or ""
        assert given.status is not None, "there is an answer"
        if "json" in kind or not 200 <= given.status < 300:
            return codec.read_answer(Response(given.status, given.headers, given.body))
        decoder = codec.decoder()
        pieces: dict[str, list[str]] = {"text": [], "thinking": []}
        try:
            for chunk in given.chunks:
                for part in decoder.feed(chunk.data):
                    if isinstance(part, TextDelta):
                        pieces["text"].append(part.text)
                    elif isinstance(part, ThinkingDelta):
                        pieces["thinking"].append(part.text)
            return decoder.end()
        finally:
            self.told |= {name: "".join(each) for name, each in pieces.items()}

    def _tell(self, answer: Answer, *, usage: bool) -> None:
        self.told |= _said(answer.message) | {"stopped": answer.stopped, "refusal": answer.refusal}
        if usage:
            self.told["usage"] = to_builtins(answer.usage)


def _said(message: Message) -> dict[str, Json]:
    """What a model says, without the names of its calls and what only the provider can read."""
    thought = [block.text for block in message.content if isinstance(block, Thinking)]
    calls = [
        {"name": call.name, "arguments": call.args if call.raw is None else call.raw}
        for call in message.calls
    ]
    return {"text": message.text, "thinking": "".join(thought), "calls": calls}


def _body_of(data: bytes) -> Json:
    try:
        return json_of(data)
    except ValueError:
        return data.decode(errors="replace")


def _times(given: Interaction) -> dict[str, Json]:
    return {"began": format_duration(given.head_at), "took": format_duration(given.ended_at)}


def _paired(
    recorded: Sequence[Canonical], found: Sequence[Canonical]
) -> list[tuple[int | None, int | None]]:
    """Which requests belong together; those that only one side has stand behind the others."""
    waiting: dict[bytes, deque[int]] = defaultdict(deque)
    for n, form in enumerate(recorded):
        waiting[form.digest].append(n)
    pairs: list[tuple[int | None, int | None]] = []
    new = []
    for n, form in enumerate(found):
        if waiting[form.digest]:
            pairs.append((waiting[form.digest].popleft(), n))
        else:
            new.append(n)
    old = sorted([n for each in waiting.values() for n in each])
    if len(old) <= _PAIRED and len(new) <= _PAIRED:
        for pair in _closest(recorded, found, old, new):
            pairs.append(pair)
            old.remove(pair[0])
            new.remove(pair[1])
    pairs.sort(key=lambda pair: pair[0] or 0)
    return [*pairs, *[(n, None) for n in old], *[(None, n) for n in new]]


def _closest(
    recorded: Sequence[Canonical], found: Sequence[Canonical], old: list[int], new: list[int]
) -> list[tuple[int, int]]:
    """The pairs of requests that are almost the same, the closest first."""
    profiles = [
        {n: profile(side[n].body) for n in places}
        for side, places in ((recorded, old), (found, new))
    ]
    ranked = []
    for a in old:
        for b in new:
            if _place(recorded[a]) == _place(found[b]):
                alike = likeness(profiles[0][a], profiles[1][b])
                ranked += [(-alike, a, b)] if alike >= _ALIKE else []
    pairs: list[tuple[int, int]] = []
    taken: tuple[set[int], set[int]] = (set(), set())
    for _alike, a, b in sorted(ranked):
        if a not in taken[0] and b not in taken[1]:
            taken[0].add(a)
            taken[1].add(b)
            pairs.append((a, b))
    return pairs


def _place(form: Canonical) -> tuple[str, str]:
    return form.method, form.path
