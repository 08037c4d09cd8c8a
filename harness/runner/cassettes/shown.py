"""A recorded session as people read it, and one interaction of it whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from harness.core.durations import moment
from harness.core.json_text import dumps_indented
from harness.core.messages import Message, Thinking, Usage
from harness.core.wording import counted
from harness.report.conversation import Said, Section
from harness.report.values import quote
from harness.runner.cassettes.heard import Heard, Unheard, cancelled
from harness.runner.cassettes.session import Step, Told, session, turns_of
from harness.transport.cassettes.form import Cassette, Interaction
from harness.wire.http import Headers, first
from harness.wire.reading import json_of

_ENDS = {
    "complete": "the answer is no whole reply",
    "torn": "the connection was closed before the body had ended",
    "reset": "the connection was reset",
    "timeout": "the client waited no longer",
    "cancelled": "the client wanted no more",
    "refused": "no connection was made",
    "dropped": "the connection was closed without an answer",
}
"""What went wrong, by how an interaction ended."""


def title_of(cassette: Cassette) -> str:
    """What a cassette is, in a line."""
    given = cassette.interactions
    protocols = dict.fromkeys(each.protocol or "no protocol" for each in given)
    words = [cassette.path or "a cassette", counted(len(given), "interaction")]
    words += [", ".join(protocols)] if protocols else []
    if _timed(cassette):
        words.append(moment(max([each.begun + each.ended_at for each in given])))
    words += [f"from {cassette.source}"] if cassette.source else []
    return " · ".join(words)


def sections_of(cassette: Cassette) -> list[Section]:
    """The turns of a session, what was asked beside them, and what nobody could read."""
    recorded = session(cassette)
    sections = [*_turns(recorded.turns, "turn")]
    for aside in recorded.asides:
        sections += _turns(turns_of(aside), "beside the conversation, turn")
    if recorded.unheard:
        sections.append(Section("not read", tuple([_unheard(each) for each in recorded.unheard])))
    return sections if _timed(cassette) else [_timeless(each) for each in sections]


def _timed(cassette: Cassette) -> bool:
    """Whether the times are known; files of vcrpy have none."""
    return any(each.begun or each.ended_at for each in cassette.interactions)


def _timeless(section: Section) -> Section:
    return Section(section.title, tuple([replace(each, at=None) for each in section.said]))


def _turns(turns: Sequence[Told], name: str) -> Iterator[Section]:
    for at, turn in enumerate(turns, 1):
        before = ", before the recording" if turn.earlier else ""
        yield Section(f"{name} {at}{before}", tuple(_turn(turn)))


def _turn(turn: Told) -> Iterator[Said]:
    attempts = [each for step in turn.steps for each in step.attempts]
    begun = attempts[0].interaction.begun if attempts else None
    yield Said("user", "(goes on)" if turn.user is None else turn.user, begun)
    if turn.pictures:
        yield Said("user", f"({counted(turn.pictures, 'picture')})", begun)
    for step, following in zip(turn.steps, [*turn.steps[1:], None][: len(turn.steps)], strict=True):
        yield from _step(step)
        first = None if following is None else following.first
        later = None if first is None else first.interaction.begun
        for call, result in zip(step.message.calls, step.results, strict=False):
            if result is not None:
                yield Said("gives", f"{call.name}: {_result(result)}", later, call.name)


def _result(result: Message) -> str:
    failed = result.is_error and not result.text.lower().startswith("error")
    return f"(error) {result.text}" if failed else result.text


def _step(step: Step) -> Iterator[Said]:
    for each in step.attempts:
        given = each.interaction
        yield Said("asks", f"{each.place}: {_figures(each)}", given.begun)
        yield from _reply(each.message, each)
        if each.answer is None:
            yield Said("wrong", _wrong(each), given.begun + given.ended_at)
        elif each.answer.stopped not in ("end", "calls"):
            yield Said("wrong", f"stopped: {each.answer.stopped}", given.begun + given.ended_at)
        if each.answer is not None and each.answer.refusal:
            yield Said("wrong", each.answer.refusal, given.begun + given.ended_at)
    if not step.attempts:
        yield from _reply(step.message, None)


def _reply(message: Message, heard: Heard | None) -> Iterator[Said]:
    given = None if heard is None else heard.interaction
    over = None if given is None else given.begun + given.ended_at
    thought = "".join([block.text for block in message.content if isinstance(block, Thinking)])
    if thought:
        yield Said("thinks", thought, _first(heard, "thinking", over))
    if message.text:
        yield Said("says", message.text, _first(heard, "text", over))
    for call in message.calls:
        asked = quote(call.args) if call.raw is None else f"{call.raw} (no JSON)"
        yield Said("calls", f"{call.name} {asked}", over, call.name)


def _first(heard: Heard | None, kind: str, over: int | None) -> int | None:
    """When the first piece of a kind came."""
    if heard is None:
        return None
    begun = heard.interaction.begun
    return next((begun + piece.at for piece in heard.pieces if piece.kind == kind), over)


def _figures(heard: Heard) -> str:
    given = heard.interaction
    words = [f"{heard.request.model}, {counted(len(heard.request.messages), 'message')}"]
    if given.status is not None:
        after = f" after {moment(given.head_at)}" if given.ended_at else ""
        words.append(f"{given.status}{after}")
    if given.ended_at:
        words.append(f"took {moment(given.ended_at)}")
    if heard.usage is not None and heard.usage != Usage():
        words.append(f"{heard.usage.prompt_tokens} + {heard.usage.completion_tokens} tokens")
    return ", ".join(words)


def _wrong(heard: Heard) -> str:
    """What went wrong with an answer, and what the client was told."""
    given = heard.interaction
    if heard.failure is not None and heard.failure.message != f"status {given.status}":
        words = [word for word in (heard.failure.kind, heard.failure.code) if word]
        named = " ".join([str(given.status), *words])
        after = first(given.headers, "retry-after-ms") or first(given.headers, "retry-after")
        again = f" (ask again after {after})" if after else ""
        return f"{named}: {heard.failure.message}{again}"
    if heard.garbled:
        return f"{given.status}: {heard.garbled}"
    if given.status is not None and not 200 <= given.status < 300:
        return f"{given.status} {given.reason}".strip()
    seen = f" after {counted(len(heard.pieces), 'piece')}" if given.status is not None else ""
    return f"{_ENDS[given.ended]}{seen}" + (", so the turn was cut" if cancelled(heard) else "")


def _unheard(unheard: Unheard) -> Said:
    given = unheard.interaction
    status = "" if given.status is None else f"; it was answered {given.status}"
    return Said("note", f"{unheard.place}: {unheard.why}{status}", given.begun)


# --- one interaction


def whole(interaction: Interaction, number: int) -> list[Section]:
    """One interaction as it went over the wire: the request, the answer's head, its chunks."""
    request = interaction.request
    asked = [
        Said("asks", f"{request.method} {request.url}", interaction.begun),
        *_headers(request.headers),
        Said("note", _readable(request.body)),
    ]
    sections = [Section(f"request {number}", tuple(asked))]
    heard: list[Said] = []
    begun = interaction.begun
    if interaction.status is not None:
        head = f"{interaction.status} {interaction.reason}".strip()
        heard = [Said("says", head, begun + interaction.head_at), *_headers(interaction.headers)]
        heard += [
            Said("says", each.data.decode(errors="backslashreplace"), begun + each.at)
            for each in interaction.chunks
        ]
    end = interaction.ended
    over = Said("note", "complete") if end == "complete" else Said("wrong", f"{end}: {_ENDS[end]}")
    heard.append(Said(over.who, over.text, begun + interaction.ended_at))
    return [*sections, Section("answer", tuple(heard))]


def _headers(headers: Headers) -> list[Said]:
    return [Said("note", f"{name}: {value}") for name, value in headers]


def _readable(body: bytes) -> str:
    try:
        return dumps_indented(json_of(body))
    except ValueError:
        return body.decode(errors="backslashreplace")
