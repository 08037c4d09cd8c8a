"""COMPACT-PROGRESS and COMPACT-HONEST, rule by rule."""

from __future__ import annotations

from itertools import pairwise

import pytest

from harness.core.events import (
    AnyEvent,
    Compacted,
    ReplyEnded,
    RequestHead,
    RequestSent,
    Salvaged,
    Trimmed,
)
from harness.core.messages import Message, ToolSchema, assistant, user
from harness.core.outcome import CANCELLED, COMPLETED, Error
from harness.invariants.compaction import MOST, TRIES, CompactHonest, CompactProgress
from tests.invariants.traces import ASK, ended, found, judged, replied, sent, started

FRAME = user("So far: a summary.")
HEAD = RequestHead("m", "", ())
WORKS = RequestHead("m", "", (ToolSchema("t", "", {}),))


def asks(
    number: int,
    *added: Message,
    name: str = "sum",
    digest: str = "d",
    kept: int = 0,
    head: RequestHead | None = HEAD,
) -> RequestSent:
    """A request beside the main conversation."""
    return RequestSent(name, f"{name}.{number}", kept, added or (user("Sum it up."),), digest, head)


def gives(number: int, text: str = "a summary", name: str = "sum") -> ReplyEnded:
    return ReplyEnded(f"{name}.{number}", "complete", assistant(text))


def sums(number: int, before: int, after: int, failed: str | None = None) -> list[AnyEvent]:
    """One compaction."""
    return [asks(number), gives(number), Compacted(before, after, failed)]


def row(*sizes: int) -> list[AnyEvent]:
    """Compactions, from size to size."""
    events: list[AnyEvent] = []
    for number, (before, after) in enumerate(pairwise(sizes), 1):
        events += sums(number, before, after)
    return events


# --- COMPACT-PROGRESS, by what the loop reports


def test_a_compaction_that_makes_the_conversation_smaller_may_follow_another() -> None:
    assert found(CompactProgress, started(), *row(*range(9, 8 - MOST, -1))) == []
    assert found(CompactProgress, started(), *row(5, 5)) == []  # the first one could not know


def test_one_that_makes_it_no_smaller_may_not() -> None:
    [violation] = found(CompactProgress, started(), *row(9, 5, 5, 5, 5))
    assert violation.message == (
        "the conversation was compacted again with no reply in between, and is no smaller: "
        "~5 tokens before and ~5 now"
    )
    assert (violation.entry, violation.severity) == (6, "hard")


def test_no_more_than_three_follow_one_another() -> None:
    [violation] = found(CompactProgress, started(), *row(*range(9, 3, -1)))
    assert violation.message == (
        "the conversation was compacted 4 times in a row, with no reply in between"
    )


def test_an_accepted_reply_and_a_turn_come_in_between() -> None:
    two = row(9, 5)
    assert found(CompactProgress, started(), *row(9, 9), sent(), replied(), *row(9, 9)) == []
    assert found(CompactProgress, started(), *row(9, 9), started(2), *row(9, 9)) == []
    other = [asks(1, name="helper"), gives(1, name="helper")]
    assert found(CompactProgress, started(), *two, *other, *row(9, 9)) == []
    torn = [sent(), replied("torn")]
    assert len(found(CompactProgress, started(), *row(9, 9), *torn, *row(9, 9))) == 1


def test_replies_come_in_between_where_no_model_sums_up() -> None:
    events: list[AnyEvent] = [started()]
    for number in range(MOST + 2):
        events += [sent(reply=f"1.{number}"), replied(reply=f"1.{number}"), Compacted(9, 8)]
    assert found(CompactProgress, *events) == []


def test_failed_compactions_may_be_tried_again_but_not_for_ever() -> None:
    failing = [event for n in range(TRIES) for event in sums(n, 9, 9, "no")]
    assert found(CompactProgress, started(), Compacted(9, 9, "no"), *failing[:-3]) == []
    summing = row(9, 8)
    [violation] = found(CompactProgress, started(), *summing, *failing, *failing)
    assert "compacted 11 times in a row" in violation.message


def test_a_loop_that_sums_up_by_itself_is_judged_too() -> None:
    assert len(found(CompactProgress, started(), Compacted(9, 8), Compacted(8, 8))) == 1
    assert judged(CompactProgress, started(), Compacted(9, 8))


# --- COMPACT-PROGRESS, of a loop that reports nothing


def again(
    times: int, *, same: bool = True, calls: int = 0, about: str = "Sum it up: a summary"
) -> list[AnyEvent]:
    """One aside after the other, each answered."""
    events: list[AnyEvent] = [started(), sent(), replied("complete", *[ASK] * calls)]
    for number in range(times):
        digest = "d" if same else f"d{number}"
        events += [asks(number, user(about), digest=digest), gives(number)]
    return events


@pytest.mark.parametrize("calls", [0, 2])
def test_the_same_is_not_asked_again_and_again(calls: int) -> None:
    assert found(CompactProgress, *again(MOST + calls, calls=calls)) == []
    [violation] = found(CompactProgress, *again(MOST + calls + 3, calls=calls))
    assert violation.severity == "soft"
    assert violation.message == (
        f"sum was asked the same {MOST + calls + 1} times in a row, and had answered each time"
    )


def test_calls_of_an_earlier_turn_allow_nothing() -> None:
    before = [started(), sent(), replied("complete", ASK, ASK), started(2)]
    assert len(found(CompactProgress, *before, *again(MOST + 1)[3:])) == 1


def test_nor_is_anything_asked_without_end() -> None:
    assert found(CompactProgress, *again(TRIES, same=False)) == []
    [violation] = found(CompactProgress, *again(TRIES + 3, same=False))
    assert violation.severity == "hard"
    assert violation.message == f"sum was asked {TRIES + 1} times in a row"


def test_many_things_may_be_asked_that_are_not_about_one_another() -> None:
    """As a summary in parts, or one opinion on each of many texts."""
    [violation] = found(CompactProgress, *again(TRIES + 3, same=False, about="Part of it."))
    assert violation.severity == "soft"


def test_what_is_no_summary_may_be_asked() -> None:
    growing = [started(), sent(), replied()]
    working = [*growing]
    failing = [*growing]
    blank = [*growing]
    spread = [*growing]
    for number in range(2 * TRIES):
        said = user(f"No. {number}")
        growing += [asks(number, said, kept=number, digest=f"d{number}"), gives(number)]
        working += [asks(number, head=WORKS if number == 0 else None), gives(number)]
        failing += [asks(number), ReplyEnded(f"sum.{number}", "failed")]
        blank += [asks(number), gives(number, " ")]
        spread += [asks(number), gives(number), sent(reply=f"1.{number + 2}")]
    for events in (growing, working, failing, blank, spread):
        assert found(CompactProgress, *events) == []
        assert not judged(CompactProgress, *events)
    assert judged(CompactProgress, *again(2))


def test_a_reply_that_nobody_is_known_to_have_asked_for_is_of_the_main_conversation() -> None:
    assert found(CompactProgress, *again(MOST), gives(99), asks(7)) == []


# --- COMPACT-HONEST: one that succeeded


def compacted(*after: Message, head: RequestHead | None = None, text: str = "a summary") -> list:
    """A conversation that is summed up in its second turn, and then asked on with `after`."""
    return [
        started(),
        sent(user("Go.")),
        replied(),
        ended(COMPLETED),
        started(2, "On."),
        asks(1),
        gives(1, text),
        Compacted(9, 5),
        RequestSent("main", "2.1", 0, after, "d", head),
    ]


def test_the_summary_takes_the_place_of_the_conversation() -> None:
    assert found(CompactHonest, *compacted(FRAME, user("On."))) == []
    assert judged(CompactHonest, *compacted(FRAME, user("On.")))
    in_front = compacted(user("On."), head=RequestHead("m", "Known: a summary.", ()))
    assert found(CompactHonest, *in_front) == []
    [violation] = found(CompactHonest, *compacted(user("So far: nothing."), user("On.")))
    assert (
        violation.message == "request 2.1 was compacted, and does not have the summary 'a summary'"
    )
    assert (violation.entry, violation.turn) == (8, 2)


def test_only_the_next_request_is_held_against_it() -> None:
    later = RequestSent("main", "2.2", 0, (user("On."),), "d")
    assert found(CompactHonest, *compacted(FRAME, user("On.")), replied(reply="2.1"), later) == []
    of_its_own = Compacted(5, 3)  # no model was asked since
    events = [*compacted(FRAME, user("On.")), replied(reply="2.1"), of_its_own, later]
    assert found(CompactHonest, *events) == []


def test_the_same_summary_may_stand_there_already() -> None:
    first = compacted(FRAME, user("On."))
    more = [started(3, "More."), asks(2), gives(2), Compacted(9, 5)]
    third = RequestSent("main", "3.1", 2, (user("More."),), "d")
    assert found(CompactHonest, *first, *more, third) == []


def test_a_summary_says_something() -> None:
    [violation] = found(CompactHonest, *compacted(user("So far:"), user("On."), text=" \n"))
    assert violation.message == "request 2.1 was compacted, and the summary says nothing"


def test_what_the_user_said_last_stays() -> None:
    [violation] = found(CompactHonest, *compacted(FRAME, user("Go.")))
    assert violation.message == "request 2.1 was compacted, and has lost what the user said: 'On.'"


def test_a_summary_that_no_model_gave_cannot_be_looked_for() -> None:
    events = compacted(user("So far: something."))
    del events[5:7]
    assert found(CompactHonest, *events) == []


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (RequestHead("other", "", ()), "model went from m to other"),
        (RequestHead("m", "", (), 100), "max_tokens went from None to 100"),
        (RequestHead("m", "", (), None, 0.5), "temperature went from None to 0.5"),
    ],
)
def test_settings_stay(head: RequestHead, what: str) -> None:
    [violation] = found(CompactHonest, *compacted(FRAME, user("On."), head=head))
    assert violation.message == f"request 2.1 was compacted, and its {what}"
    assert found(CompactHonest, started(), Compacted(2, 1), sent(), sent(reply="1.2")) == []


def test_the_compaction_of_a_helper_is_not_looked_for_in_the_main_conversation() -> None:
    events = compacted(user("Go."), user("On."))
    events.insert(8, asks(1, FRAME, name="helper"))
    assert found(CompactHonest, *events) == []


def test_a_second_summary_may_hold_the_first() -> None:
    events = compacted(user("So far: another."), user("On."))
    events[8:8] = [asks(2, user("Sum up: a summary.")), gives(2, "another"), Compacted(5, 4)]
    assert found(CompactHonest, *events) == []
    events[10] = Compacted(5, 5, "no shorter")
    [violation] = found(CompactHonest, *events)
    assert "does not have the summary 'a summary'" in violation.message


# --- COMPACT-HONEST: one that failed


def failing(kept: int, *after: Message, between: tuple[AnyEvent, ...] = ()) -> list[AnyEvent]:
    return [
        started(),
        sent(user("Go."), assistant("Gone."), user("On.")),
        replied(),
        *between,
        asks(1),
        ReplyEnded("sum.1", "failed"),
        Compacted(9, 9, "no answer"),
        RequestSent("main", "1.2", kept, after, "d"),
    ]


def test_a_compaction_that_fails_loses_nothing() -> None:
    assert found(CompactHonest, *failing(3, user("More."))) == []
    put_before_the_last = failing(2, user("a mode"), user("On."))
    assert found(CompactHonest, *put_before_the_last) == []
    [violation] = found(CompactHonest, *failing(1, user("On.")))
    assert violation.message == "request 1.2 has lost 1 message, by a compaction that failed"
    both = failing(1, user("On."))
    both.insert(-1, Compacted(9, 9, "no answer either"))
    assert len(found(CompactHonest, *both)) == 1


def test_what_is_gone_for_another_reason_is_not_its_loss() -> None:
    for between in (
        Salvaged(1, 2, ()),
        Trimmed(1, 5, 2, 10),
        ended(CANCELLED),
        ended(Error("m", "")),
    ):
        assert found(CompactHonest, *failing(1, user("On."), between=(between,))) == []
    assert len(found(CompactHonest, *failing(1, user("On."), between=(ended(COMPLETED),)))) == 1


def test_a_compaction_that_fails_leaves_the_size_as_it_was() -> None:
    [violation] = found(CompactHonest, started(), Compacted(9, 5, "no"))
    assert (
        violation.message
        == "a compaction failed and yet took the conversation from ~9 to ~5 tokens"
    )


# --- COMPACT-HONEST: of a loop that reports nothing


def unreported(end: ReplyEnded, *more: AnyEvent, asked: str = "Go.\nGone.\nOn.") -> list[AnyEvent]:
    return [
        started(1, ""),
        sent(user("Go."), assistant("Gone."), user("On.")),
        replied(),
        asks(1, user(asked)),
        end,
        *more,
        RequestSent("main", "1.2", 0, (user("On."),), "d"),
    ]


def test_what_could_not_be_summed_up_is_still_there() -> None:
    for end in (ReplyEnded("sum.1", "failed"), gives(1, " ")):
        [violation] = found(CompactHonest, *unreported(end))
        assert violation.severity == "soft"
        assert violation.message == (
            "request 1.2 has lost 2 messages that were to be summed up, which failed"
        )
    assert found(CompactHonest, *unreported(gives(1))) == []


def test_only_what_was_to_be_summed_up_counts() -> None:
    failed = ReplyEnded("sum.1", "failed")
    assert found(CompactHonest, *unreported(failed, asked="A title for: Go.")) == []
    assert found(CompactHonest, *unreported(failed, Trimmed(1, 5, 2, 10))) == []
    assert found(CompactHonest, *unreported(failed, ended(CANCELLED))) == []
    assert found(CompactHonest, *unreported(failed, asks(2), gives(2))) == []
    kept = RequestSent("main", "1.3", 3, (), "d")
    assert found(CompactHonest, *unreported(failed, kept, replied(reply="1.3"))) == []
    earlier = unreported(failed)
    earlier.insert(1, Trimmed(1, 5, 2, 10))
    assert len(found(CompactHonest, *earlier)) == 1
    twice = unreported(failed, asked="Go.\nOn.")
    twice[1] = sent(user("Go."), user("Go."), user("On."))
    assert found(CompactHonest, *twice) == []
    one_message = unreported(failed)
    one_message[1] = sent(user("Go."), user("On."))
    assert found(CompactHonest, *one_message) == []
    worked = [asks(1, user("Go.\nGone.\nOn."), head=WORKS), failed]
    assert found(CompactHonest, *unreported(failed)[:3], *worked, *unreported(failed)[-1:]) == []
    nothing_asked = [each for each in unreported(failed) if each is not failed]
    assert not judged(CompactHonest, *nothing_asked)
    assert judged(CompactHonest, *unreported(failed))
