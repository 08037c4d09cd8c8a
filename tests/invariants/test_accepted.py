"""ACCEPTED: what a provider refuses by its own rules."""

from harness.core.events import Received
from harness.invariants.accepted import Accepted
from tests.invariants.traces import found, judged, sent, started


def test_a_request_that_breaks_a_rule_is_told_with_it() -> None:
    refused = Received("1.1", "anthropic", rule="A8", message="text must be non-empty")
    [violation] = found(Accepted, started(), sent(), refused)
    assert violation.message == "request 1.1 breaks A8 of anthropic: text must be non-empty"


def test_it_is_judged_only_where_requests_go_over_http() -> None:
    assert found(Accepted, started(), sent(), Received("1.1", "gemini", streamed=True)) == []
    assert judged(Accepted, started(), sent(), Received("1.1", "gemini"))
    assert not judged(Accepted, started(), sent())
