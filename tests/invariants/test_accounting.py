"""USAGE, rule by rule."""

import pytest

from harness.core.events import AnyEvent, ReplyEnded, UsageCounted
from harness.core.messages import Usage, assistant
from harness.core.outcome import COMPLETED
from harness.invariants.accounting import UsageTotals
from tests.invariants.traces import ended, found, judged, replied, sent, started

USED = Usage(10, 4, 14, 2, 1)


def used(usage: Usage | None = USED, reply: str = "1.1", end: str = "complete") -> AnyEvent:
    message = assistant("Gone.") if end == "complete" else None
    return ReplyEnded(reply, end, message, usage)  # type: ignore[arg-type]


def counted(*counts: int) -> UsageCounted:
    return UsageCounted(Usage(*counts))


def test_the_sum_of_all_reports_is_the_count() -> None:
    first = [started(), sent(), used(), counted(10, 4, 14, 2, 1), ended(COMPLETED)]
    again = [started(2), sent(reply="2.1"), used(reply="2.1"), counted(20, 8, 28, 4, 2)]
    assert found(UsageTotals, *first, *again) == []


@pytest.mark.parametrize("end", ["complete", "failed", "torn", "closed"])
def test_a_report_counts_however_its_reply_ended(end: str) -> None:
    assert found(UsageTotals, started(), sent(), used(end=end), counted(10, 4)) == []
    [violation] = found(UsageTotals, started(), sent(), used(end=end), counted(0, 0))
    assert violation.message == (
        "0 tokens were counted, and the replies reported 10 prompt_tokens, 4 completion_tokens, "
        "14 total_tokens, 2 cache_read, 1 reasoning_tokens"
    )
    assert (violation.entry, violation.turn) == (3, 1)


@pytest.mark.parametrize("wrong", [(20, 8, 28), (10, 5), (9, 4), (10, 4, 15), (10, 4, 14, 3)])
def test_any_other_count_is_found(wrong: tuple[int, ...]) -> None:
    assert len(found(UsageTotals, started(), sent(), used(), counted(*wrong))) == 1


def test_counts_that_a_loop_does_not_keep_may_be_0() -> None:
    assert found(UsageTotals, started(), sent(), used(), counted(10, 4, 0, 0, 0)) == []


def test_a_sum_that_a_script_leaves_out_may_be_added_up_or_not() -> None:
    for reported in (Usage(10, 4), Usage(10, 4, 9)):
        told = [started(), sent(), used(reported)]
        for total in (0, reported.total_tokens, 14):
            assert found(UsageTotals, *told, counted(10, 4, total)) == []
        assert len(found(UsageTotals, *told, counted(10, 4, 15))) == 1


def test_requests_beside_the_conversation_may_be_counted_or_not() -> None:
    title = [sent(reply="t.1", conversation="title"), used(Usage(1, 1), reply="t.1")]
    for count in ((10, 4), (11, 5)):
        assert found(UsageTotals, started(), sent(), used(), *title, counted(*count)) == []
    [violation] = found(UsageTotals, started(), sent(), used(), *title, counted(1, 1))
    assert violation.message.endswith("1 reasoning_tokens in the conversation")


def test_what_an_open_reply_has_reported_is_learned_when_it_ends() -> None:
    for beside in ("main", "title"):
        asked = [started(), sent(conversation=beside)]
        assert found(UsageTotals, *asked, counted(10, 4), used()) == []
    assert len(found(UsageTotals, started(), sent(), counted(10, 4), used(Usage(1, 1)))) == 1
    assert len(found(UsageTotals, started(), sent(), counted(10, 4))) == 1


def test_later_replies_do_not_count_for_an_earlier_claim() -> None:
    later = [sent(reply="1.2"), used(reply="1.2"), used()]
    assert found(UsageTotals, started(), sent(), counted(10, 4), *later) == []


def test_what_was_not_reported_is_unknown_and_not_0() -> None:
    [violation] = found(UsageTotals, started(), sent(), used(None), counted())
    assert (violation.severity, violation.message) == (
        "soft",
        "what no reply reported is counted as 0",
    )
    [violation] = found(UsageTotals, started(), sent(), used(None), counted(1))
    assert violation.severity == "hard"
    assert found(UsageTotals, started(), sent(), used(Usage()), counted()) == []


def test_it_is_not_judged_where_the_loop_does_not_say_what_it_counted() -> None:
    assert not judged(UsageTotals, started(), sent(), replied())
