"""The named sets of behaviour of the turn loop: as recorded, and as it should be."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Policy(Struct, frozen=True, kw_only=True):
    """Where the recorded behaviour has a fault, which way the loop goes."""

    name: str

    cancel_before_limit: bool
    """A cancel with the budget of steps spent is a cancel, not ``step_limit``."""

    keep_announced: bool
    """What a done event told the consumer is written down, its calls answered, even where the reply
    was cut or failed afterwards."""

    keep_text_beside_calls: bool
    """The text of a reply that also has calls is written down."""

    keep_signed_thinking: bool
    """Reasoning that the provider signed goes back with its reply, unchanged."""

    results_per_call: bool
    """Each call of an abandoned batch says what became of *it*: its own result, interrupted while
    running, or never started. A result belongs to the call that it was made for, by position, and
    not to whichever call has the id that the registry gave back."""

    begin_after_abort: bool
    """Work that was asked for begins, up to its first wait, even where the abort came before it."""

    last_done_counts: bool
    """Of several done parts the last one is the reply; else their texts and calls add up."""

    refuse_bad_arguments: bool
    """A call whose arguments are not a JSON object is answered with an error, not dispatched."""

    valid_history: bool
    """Derived messages are what a provider accepts: text and calls of one reply are one message,
    every call is answered, no result is without its call, no reply is empty, and an error with an
    empty text still shows as an error."""

    close_stopped_streams: bool
    """A stream that reported or raised a failure is closed like one that was cut."""

    known: Mapping[str, str] = {}
    """The invariants that are broken by some cancel at some moment, each with the reason."""


REFERENCE = Policy(
    name="reference",
    cancel_before_limit=False,
    keep_announced=False,
    keep_text_beside_calls=False,
    keep_signed_thinking=False,
    results_per_call=False,
    begin_after_abort=True,
    last_done_counts=False,
    refuse_bad_arguments=False,
    valid_history=False,
    close_stopped_streams=False,
    known={
        "CANCEL": "Calls that were announced are begun even after the cancel.",
        "DURABLE": "Text beside calls is not written down.",
        "LOG-HISTORY": (
            "What was announced is not written down where the reply is cut or fails after it."
        ),
        "OUTCOME-TRUTH": "Every call of a batch that is given up is said not to have run.",
        "RESUME": "Of calls with one id that were cut off, only the first is answered.",
        "TERMINAL-TRUTH": "The limit is looked at before the cancel.",
    },
)
"""Exact to the recorded behaviour, its faults included."""

SAFE = Policy(
    name="safe",
    cancel_before_limit=True,
    keep_announced=True,
    keep_text_beside_calls=True,
    keep_signed_thinking=True,
    results_per_call=True,
    begin_after_abort=False,
    last_done_counts=True,
    refuse_bad_arguments=True,
    valid_history=True,
    close_stopped_streams=True,
)
"""Nothing is lost, nothing is claimed that did not happen, and the next request is valid."""

POLICIES: tuple[Policy, ...] = (SAFE, REFERENCE)
"""All policies, the default first."""
