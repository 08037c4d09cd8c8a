"""The canonical text of a trace: line n is entry n, the same in every place, made to be compared.

It is what snapshots hold and what failure messages quote. Nothing is cut; what cannot be seen is
escaped. The digest of a request is left out, since it says nothing that the messages do not.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import assert_never

from harness.core.durations import format_duration
from harness.core.events import (
    AnyEvent,
    CancelDelivered,
    CancelRequested,
    Compacted,
    Delta,
    ErrorUnseen,
    Estimated,
    FaultInjected,
    GeneratorAbandoned,
    InsideEvent,
    InteractionUnused,
    LogRow,
    LoopEvent,
    Mismatch,
    NetworkReached,
    Received,
    ReplyEnded,
    RequestMissed,
    RequestSent,
    ResultSynthesized,
    RunStopped,
    Salvaged,
    StateEntered,
    TaskLeaked,
    ToolEffect,
    ToolEnded,
    ToolStarted,
    Trimmed,
    TurnEnded,
    TurnStarted,
    UsageCounted,
    event_kind,
)
from harness.core.trace import Entry, Trace
from harness.core.wording import counted
from harness.report.values import (
    call_text,
    head_texts,
    message_text,
    outcome_text,
    quote,
    row_text,
    usage_text,
    word,
)


def render(trace: Trace) -> str:
    """The whole text of a run; ends with a newline unless it is empty."""
    return "".join([f"{line}\n" for line in lines(trace)])


def lines(trace: Trace) -> list[str]:
    """The text of a run, one line an entry."""
    return [line(entry) for entry in trace]


def line(entry: Entry) -> str:
    """One entry: the time since the run's start, the task (- outside any), the kind, the facts."""
    kind = event_kind(type(entry.event))
    return f"{format_duration(entry.at):<8} {entry.task or '-':<6} {kind:<19} {facts(entry.event)}"


def brief(line: str) -> str:
    """A line of the text without its task and without columns, where there is little room."""
    at, _, *rest = line.split(maxsplit=3)
    return " ".join([at, *rest])


def untimed_diff(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """What is different in the lines `after`, whatever the time: the body of a unified diff."""
    found = difflib.unified_diff(
        [untimed(line) for line in before], [untimed(line) for line in after], n=1, lineterm=""
    )
    return list(found)[2:]


def untimed(line: str) -> str:
    """A line of the text without its time."""
    return line.partition(" ")[2].lstrip()


def facts(event: AnyEvent) -> str:  # noqa: C901, PLR0911, PLR0912 - one case a kind
    """What an event says beside its kind, on one line."""
    match event:
        case TurnStarted(turn=turn, text=text, default=default):
            said = "resume" if text is None else quote(text)
            return f"turn {turn} {said}" + (", added by the runner" if default else "")
        case TurnEnded(turn=turn, outcome=outcome):
            return f"turn {turn} {outcome_text(outcome)}"
        case CancelRequested(turn=turn, by=by, trigger=trigger):
            return f"turn {turn} by {by}: {quote(trigger)}"
        case CancelDelivered(turn=turn, by=by):
            return f"turn {turn} by {by}"
        case TaskLeaked(turn=turn, path=path, where=where, owner=owner, started=started):
            what, since = ("task", "") if started is None else ("thread", f", since {started}")
            if not where:
                what, since = "pool", f"made at {started}"
            return f"turn {turn} {what} {word(path)} of the {owner}: {quote(where + since)}"
        case GeneratorAbandoned(name=name):
            return word(name)
        case NetworkReached(message=message) | RequestMissed(message=message):
            return quote(message)
        case InteractionUnused(number=number, message=message):
            return f"interaction {number} {quote(message)}"
        case ErrorUnseen(turn=turn, message=message):
            return f"turn {turn} {quote(message)}"
        case RunStopped(reason=reason, detail=detail, waits=waits):
            return " ".join([reason, quote(detail), *[f"| {quote(wait)}" for wait in waits]])
        case Mismatch(error=error, message=message):
            return f"{word(error)} {quote(message)}"
        case RequestSent():
            return _request(event)
        case Received(reply=reply, protocol=protocol, streamed=streamed, rule=rule):
            how = f"{word(reply)} {word(protocol)}{', streamed' if streamed else ''}"
            return how if rule is None else f"{how}, breaks {rule}: {quote(event.message)}"
        case Delta(reply=reply, kind=kind, text=text):
            return f"{word(reply)} {kind} {quote(text)}"
        case ReplyEnded():
            return _reply(event)
        case FaultInjected():
            return _fault(event)
        case ToolStarted(call_id=call_id, name=name, args=args, inferred=inferred):
            return call_text(call_id, name, args) + (", id inferred" if inferred else "")
        case ToolEffect(call_id=call_id, name=name, told=told):
            return f"{word(name)} {word(call_id)}" + (", though told to stop" if told else "")
        case ToolEnded():
            return _tool_end(event)
        case (
            LogRow()
            | LoopEvent()
            | StateEntered()
            | Estimated()
            | Trimmed()
            | Compacted()
            | Salvaged()
            | ResultSynthesized()
            | UsageCounted()
        ):
            return _inside(event)
        case _:
            assert_never(event)


def _inside(event: InsideEvent) -> str:
    match event:
        case LogRow(row=row):
            return f"{event.subject} {row_text(row)}"
        case LoopEvent(name=name, payload=payload):
            return f"{word(name)} {quote(payload)}"
        case StateEntered(state=state):
            return word(state)
        case Estimated(tokens=tokens):
            return f"~{tokens} tokens"
        case UsageCounted(total=total):
            return usage_text(total)
        case Trimmed(
            removed_messages=messages, removed_tokens=tokens, kept_messages=kept, budget=budget
        ):
            return f"removed {messages} messages of ~{tokens} tokens, kept {kept}, budget {budget}"
        case Compacted(before=before, after=after, failed=failed):
            sizes = f"~{before} tokens, now ~{after}"
            return sizes if failed is None else f"{sizes}, failed: {quote(failed)}"
        case Salvaged(kept_messages=kept, removed_messages=messages, call_ids=ids):
            unanswered = ", ".join(map(word, ids))
            removed = counted(messages, "message")
            return f"removed {removed}, kept {kept}, unanswered {unanswered}"
        case ResultSynthesized(call_id=call_id, name=name, error=error):
            return f"{word(name)} {word(call_id)} {quote(error)}"
        case _:
            assert_never(event)


def _request(event: RequestSent) -> str:
    added = " ".join(map(message_text, event.added)) or "nothing"
    text = f"{word(event.reply)} {word(event.conversation)}: kept {event.kept}, added {added}"
    if event.tokens:
        text += f", ~{event.tokens} tokens"
    return text if event.head is None else f"{text}; {', '.join(head_texts(event.head))}"


def _reply(event: ReplyEnded) -> str:
    parts = [f"{word(event.reply)} {event.end}"]
    if event.message is not None:
        parts.append(message_text(event.message))
    if event.usage is not None:
        parts.append(usage_text(event.usage))
    if event.error is not None:
        parts.append(quote(event.error))
    return ", ".join(parts)


def _fault(event: FaultInjected) -> str:
    parts = [f"{word(event.fault)} at {word(event.place)}"]
    if event.status is not None:
        parts.append(f"status {event.status}")
    if event.retry_after is not None:
        parts.append(f"retry after {format_duration(event.retry_after)}")
    if event.should_retry is not None:
        parts.append("should retry" if event.should_retry else "should not retry")
    return ", ".join(parts)


def _tool_end(event: ToolEnded) -> str:
    text = f"{word(event.name)} {word(event.call_id)} {event.end}"
    if event.end == "returned" or event.value is not None:
        text += f" {quote(event.value)}"
    return text if event.error is None else f"{text} {quote(event.error)}"
