"""DETERMINISM, PARITY and MONOTONIC, rule by rule, on hand-made traces of several runs."""

from typing import Any

from harness.core.events import (
    AnyEvent,
    Delta,
    FaultInjected,
    Received,
    ReplyEnded,
    RequestSent,
    TaskLeaked,
    Trimmed,
)
from harness.core.messages import Message, Text, Thinking, ToolCall, assistant, tool_result, user
from harness.core.outcome import CANCELLED, COMPLETED, Error
from harness.core.verdict import Violation
from harness.invariants.relations import (
    Determinism,
    Monotonic,
    Parity,
    Relation,
    Replay,
    Variant,
)
from tests.invariants.traces import HEAD, ended, replied, sent, started, trace

GO, SO = user("Go."), user("So?")
CALL, RESULT = assistant("", ToolCall("c1", "pay", {})), tool_result("c1", "paid")
MORE = assistant("", ToolCall("c2", "look", {}))


def found(
    relation: type[Relation], *runs: list[AnyEvent], turn: int | None = 1
) -> Violation | None:
    variants = [Variant(f"as run {at}", trace(*run), turn) for at, run in enumerate(runs, 1)]
    return relation.judge(variants)


def says(relation: type[Relation], *runs: list[AnyEvent]) -> str:
    violation = found(relation, *runs)
    assert violation is not None
    assert violation.invariant == relation.id
    return violation.message


PLAIN = [started(), sent(GO), replied(), ended(COMPLETED)]


def test_two_runs_that_are_the_same_are_fine() -> None:
    assert found(Determinism, PLAIN, list(PLAIN)) is None


def test_where_two_runs_part_is_told() -> None:
    other = [started(), sent(user("Gone.")), replied(), ended(COMPLETED)]
    violation = found(Determinism, PLAIN, other)
    assert violation is not None
    assert (violation.entry, violation.turn) == (1, 1)
    assert violation.message.startswith("the second time entry 1, request_sent, has …")
    assert '"Gone."' in violation.message
    assert '"Go."' in violation.message


def replayed(
    reply: str, *pieces: str, streamed: bool = True, end: Any = "complete"
) -> list[AnyEvent]:
    said = [Delta(reply, "text", piece) for piece in pieces]
    return [
        sent(GO, reply=reply),
        Received(reply, "gemini", streamed),
        *said,
        ReplyEnded(reply, end),
    ]


def test_a_recording_plays_what_was_recorded() -> None:
    was = [started(), *replayed("1.1", "Go", "ne."), ended(COMPLETED)]
    assert found(Replay, was, list(was)) is None
    other = [started(), *replayed("1.1", "Gone."), ended(COMPLETED)]
    violation = found(Replay, was, other)
    assert violation is not None
    assert (violation.entry, violation.turn) == (3, 1)
    assert violation.message.startswith("played from the recording it has ")
    assert '"Gone."' in violation.message
    assert says(Replay, was, was[:-1]).startswith(
        "played from the recording it has no more entries"
    )
    assert says(Replay, was[:-1], was).endswith("where what was recorded has no more entries")


def at_once(*events: AnyEvent) -> list[Any]:
    return [(0, event) for event in (started(), *events, ended(COMPLETED))]


def test_what_no_recording_knows_is_not_compared() -> None:
    was = at_once(*replayed("1.1", "Gone.", streamed=False))
    fault = FaultInjected("http", "1.1")
    assert found(Replay, was, at_once(fault, *replayed("1.1", "G", "one.", streamed=False))) is None
    torn, failed, left = [
        at_once(*replayed("1.1", end=end)) for end in ("torn", "failed", "closed")
    ]
    assert found(Replay, torn, failed) is None
    assert found(Replay, torn, left) is not None


def test_a_run_that_is_longer_than_the_other_parts_where_that_ends() -> None:
    leaked = TaskLeaked(1, "1.2", "agent.py:3 in pump", "agent")
    assert says(Determinism, PLAIN, [*PLAIN, leaked]).endswith(
        "where the first time has no more entries"
    )
    violation = found(Determinism, [*PLAIN, leaked], PLAIN)
    assert violation is not None
    assert violation.entry == 4
    assert "entry 4, task_leaked, has no more entries" in violation.message


def test_pieces_change_nothing_but_the_pieces() -> None:
    assert found(Parity, PLAIN, [started(), sent(GO), ended(COMPLETED)]) is None


def test_an_outcome_that_depends_on_the_pieces_is_found() -> None:
    other = [started(), sent(GO), ended(Error("stream", "lost"))]
    assert says(Parity, PLAIN, other) == (
        "as run 2 turn 1 ended as error (stream: lost), as run 1 as completed"
    )


def test_a_request_that_depends_on_the_pieces_is_found() -> None:
    def then(*added: Message) -> list[AnyEvent]:
        return [*PLAIN, started(2, "So?"), sent(*added, kept=1, reply="2.1")]

    whole = then(assistant("Gone."), SO)
    assert found(Parity, whole, list(whole)) is None
    assert says(Parity, whole, then(assistant("Gon."), SO)) == (
        "request 2.1 is not the same as run 2 as as run 1: messages[1] of the assistant"
    )
    assert says(Parity, whole, then(SO)).endswith("messages[1] of the assistant")
    assert says(Parity, whole, then(assistant("Gone."))).endswith("2 messages, not 3")
    head = RequestSent("main", "2.1", 1, (assistant("Gone."), SO), "d", HEAD.__class__("n", "", ()))
    other = [*PLAIN, started(2, "So?"), head]
    assert says(Parity, whole, other).endswith("what stands beside the messages")


def test_a_request_more_or_less_is_found() -> None:
    title = sent(GO, reply="title.1", conversation="title")
    assert says(Parity, PLAIN, [*PLAIN, title]) == (
        "as run 2 there are 1 requests of title, as run 1 0"
    )


def cut(*added: Message, kept: int = 0) -> list[AnyEvent]:
    """A turn that was cancelled, and the request after it."""
    opening = [started(), sent(GO), ended(CANCELLED), started(2, "So?")]
    return [*opening, sent(*added, kept=kept, reply="2.1")]


EARLY, LATER = cut(SO, kept=1), cut(CALL, RESULT, SO, kept=1)


def test_a_later_cancel_may_leave_more() -> None:
    assert found(Monotonic, EARLY, LATER, cut(CALL, RESULT, MORE, SO, kept=1)) is None


def test_a_later_cancel_that_leaves_less_is_found() -> None:
    violation = found(Monotonic, EARLY, LATER, LATER, EARLY)
    assert violation == Violation(
        "MONOTONIC",
        "cancelled as run 4 the next request lacks the call c1, "
        "which it has when cancelled as run 3",
        turn=1,
    )


def test_what_the_user_said_is_not_lost_either() -> None:
    two = [started(), sent(GO), ended(COMPLETED), started(2, "So?")]
    kept = [*two, sent(SO, kept=1), ended(CANCELLED, 2), started(3, "And?")]
    whole = [*kept, sent(user("And?"), kept=2)]
    less = [*kept, sent(user("And?"), kept=1)]
    violation = found(Monotonic, whole, less, turn=2)
    assert violation is not None
    assert "lacks 'So?' of the user" in violation.message


def test_what_the_loop_says_itself_may_come_and_go() -> None:
    note = user("[the user stopped this]")
    assert found(Monotonic, cut(note, SO, kept=1), EARLY) is None


def test_a_history_that_was_cut_to_size_is_not_compared() -> None:
    trimmed = [*LATER[:-1], Trimmed(2, 20, 1, 10), LATER[-1]]
    assert found(Monotonic, LATER, [*EARLY[:-1], Trimmed(2, 20, 1, 10), EARLY[-1]]) is None
    assert found(Monotonic, trimmed, EARLY) is None
    system = Message("system", (Text("[left out]"),))
    assert found(Monotonic, LATER, cut(system, SO)) is None


def test_what_is_said_aside_is_not_the_conversation() -> None:
    aside = sent(user("Sum up."), conversation="summary", reply="s")
    assert found(Monotonic, LATER, [*LATER[:-1], aside, LATER[-1]]) is None


def test_a_cancelled_turn_that_no_request_follows_is_not_compared() -> None:
    unasked = [*LATER[:-1], ended(CANCELLED, 2), started(3, "And?"), sent(user("And?"), kept=1)]
    assert found(Monotonic, LATER, unasked) is None
    assert found(Monotonic, LATER, [started(), sent(GO), ended(CANCELLED)]) is None


def test_of_another_level_only_what_all_levels_have_is_compared() -> None:
    def judged(one: list[AnyEvent], other: list[AnyEvent]) -> Violation | None:
        runs = [
            Variant("at one", trace(*one)),
            Variant("at the other", trace(*other), neutral=True),
        ]
        return Parity.judge(runs)

    signed = Message("assistant", (Thinking("Hm.", "sig"), Text("So.")))
    plain = Message("assistant", (Thinking("Hm."), Text("So.")))
    one = [started(), sent(GO, signed), ended(Error("generate", "503"))]
    other = [started(), sent(GO, plain), ended(Error("stream", "the connection broke"))]
    assert judged(one, other) is None
    found = judged(one, [started(), sent(GO, assistant("No.")), ended(Error("generate", "503"))])
    assert found is not None
    assert found.message.endswith("at the other as at one: messages[1] of the assistant")
    assert judged(one, [started(), ended(COMPLETED)]) is not None
