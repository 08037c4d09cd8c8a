"""The named sets of behaviour of the state-machine loop: as recorded, and as it should be."""

from __future__ import annotations

from msgspec import Struct


class Policy(Struct, frozen=True, kw_only=True):
    """Where the recorded behaviour has a fault, which way the loop goes."""

    name: str

    max_compactions: int | None
    """How many compactions may follow one another with no reply in between; None: any number."""

    compaction_waits: bool
    """After a compaction that came to nothing, or left more than its trigger, the next one waits
    until half of the room that is left is used; else it follows the very next reply."""

    compaction_must_shrink: bool
    """A compaction that leaves the request no smaller counts as failed, and changes nothing."""

    nudges_end: bool
    """A compaction renews the nudges once, until a tool is used; else each one does, and a model
    whose answers fill the context is nudged without end."""

    summary_must_say_something: bool
    """A summary of nothing but white space counts as none, and changes nothing."""

    request_after_cancel: bool
    """A request that was being prepared is sent, and a tool that was announced begins, although the
    run was cancelled meanwhile."""

    title_after_cancel: bool
    """A run that is cancelled, or ended by Ctrl-C, still asks for a title, and no cancel breaks
    that request off."""

    stale_writes: bool
    """A run that a newer one has replaced may still write the mirror, the file and the title."""

    inherit_generation: bool
    """A sub-agent is as old as the run that asked for it, not as the moment when its thread began.
    """

    falsy_async_is_empty: bool
    """An asynchronous tool that gives none, 0, false or an empty list is answered with ""."""

    results_per_call: bool
    """A result belongs to its call by position; else calls with one id share the last result."""

    repair_history: bool
    """A round that was cut off keeps its place: before it is sent again, each call without a result
    is answered as such, and results that nobody asked for go. Else it is sent as it is, and then
    everything from that round on is dropped."""

    answer_cancelled_rounds: bool
    """A round that is cancelled, or breaks, is answered to the end: with the results that there
    are, and for the other calls with what became of them."""

    untold_is_done: bool
    """What a tool gave, and a compaction, stand although telling of them failed, which is logged;
    else the tool has crashed, and the compaction counts as failed."""

    limit_rounds: bool
    """A run of the main loop ends with its last request; else only a sub-agent's does."""

    cancel_before_budget: bool
    """A cancel with the rounds used up is a cancel, and not an answer."""

    supervise_sees_cancel: bool
    """A cancel that comes after the last reply ends the run as cancelled, without a nudge."""

    last_answer_counts: bool
    """The result of a nudged run is its last answer that is not blank, not its last reply."""

    waits_end_with_cancel: bool
    """Nobody waits for an asynchronous tool, or for a turn to ask the user, after a cancel."""

    cancel_stays: bool
    """A cancel that the run has seen stays one, even if the event is cleared again."""

    save_every_end: bool
    """The file is written at every end where it lacks something; else only after a cancel."""

    refuse_bad_replies: bool
    """A reply that is not a model's message with its usage, every part of its kind, is an error of
    the request."""

    refuse_bad_arguments: bool
    """A call whose arguments are not a JSON object is answered with an error, and does not run;
    else it runs without any. So is a call of Agent whose task is blank, or no text."""

    name_empty_results: bool
    """A result without a word is answered with a text that says so; else it goes back empty."""

    keep_empty_ids: bool
    """A result goes back under the id of its call even where that is empty; else under none."""

    keep_signed_thinking: bool
    """Reasoning that the provider signed goes back with its reply, unchanged."""

    prefix_once: bool
    """An error that already begins with ``Error: `` gets no second one."""

    portable_titles: bool
    """A title has no control characters, does not end with dots and is no device's name."""

    resolve_plan_file: bool
    """The plan file is compared by where its path leads, not by how it is written."""


REFERENCE = Policy(
    name="reference",
    max_compactions=None,
    compaction_waits=False,
    compaction_must_shrink=False,
    nudges_end=False,
    summary_must_say_something=False,
    request_after_cancel=True,
    title_after_cancel=True,
    stale_writes=True,
    inherit_generation=False,
    falsy_async_is_empty=True,
    results_per_call=False,
    repair_history=False,
    answer_cancelled_rounds=False,
    untold_is_done=False,
    limit_rounds=False,
    cancel_before_budget=False,
    supervise_sees_cancel=False,
    last_answer_counts=False,
    waits_end_with_cancel=False,
    cancel_stays=False,
    save_every_end=False,
    refuse_bad_replies=False,
    refuse_bad_arguments=False,
    name_empty_results=False,
    keep_empty_ids=False,
    keep_signed_thinking=False,
    prefix_once=False,
    portable_titles=False,
    resolve_plan_file=False,
)
"""Exact to the recorded behaviour, its faults included."""

SAFE = Policy(
    name="safe",
    max_compactions=1,
    compaction_waits=True,
    compaction_must_shrink=True,
    nudges_end=True,
    summary_must_say_something=True,
    request_after_cancel=False,
    title_after_cancel=False,
    stale_writes=False,
    inherit_generation=True,
    falsy_async_is_empty=False,
    results_per_call=True,
    repair_history=True,
    answer_cancelled_rounds=True,
    untold_is_done=True,
    limit_rounds=True,
    cancel_before_budget=True,
    supervise_sees_cancel=True,
    last_answer_counts=True,
    waits_end_with_cancel=True,
    cancel_stays=True,
    save_every_end=True,
    refuse_bad_replies=True,
    refuse_bad_arguments=True,
    name_empty_results=True,
    keep_empty_ids=True,
    keep_signed_thinking=True,
    prefix_once=True,
    portable_titles=True,
    resolve_plan_file=True,
)
"""Nothing is lost, nothing is paid for in vain, and a cancel ends what it can end."""

POLICIES: tuple[Policy, ...] = (SAFE, REFERENCE)
"""All policies, the default first."""
