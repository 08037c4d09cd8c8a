"""What Anthropic refuses of a request, by the numbers of dossier section 4.3; A22 and A23 are from
reports that are not in it.

Not refused, whatever is said of it: a first message of the model's, and roles that do not
alternate. Messages of one role that follow each other are one turn.
"""

from __future__ import annotations

from harness.wire.strict import anthropic_calls as calls
from harness.wire.strict import anthropic_content as content
from harness.wire.strict import anthropic_thinking as thinking
from harness.wire.strict.rule import Rule

RULES: tuple[Rule, ...] = (
    Rule("A10", "There is at least one message.", "reported", content.no_messages),
    Rule("A9", "Messages are not empty.", "reported", content.empty),
    Rule("A8", "Blocks of text say something.", "reported", content.blank),
    Rule("A23", "Models call, users give results.", "reported", calls.wrong_role),
    Rule("A7", "Ids of calls are of letters, digits, _ and -.", "reported", calls.odd_id),
    Rule("A6", "Ids of calls are unique.", "reported", calls.repeated_id),
    Rule("A3", "After a call there are only calls.", "recorded", calls.said_after_call),
    Rule("A1", "Every call has a result in the next turn.", "reported", calls.unanswered),
    Rule("A2", "Results stand before anything else.", "known", calls.result_not_first),
    Rule("A4", "Every result has a call in the turn before.", "reported", calls.unasked),
    Rule("A5", "A call has one result.", "known", calls.answered_twice),
    Rule("A15", "A reply does not end with reasoning.", "reported", thinking.ends_with_thinking),
    Rule("A14", "Reasoning comes back as it was given.", "reported", thinking.changed),
    Rule(
        "A17",
        "Newer models have no budget for reasoning.",
        "documented",
        thinking.outdated,
        applies=thinking.enabled,
    ),
    Rule(
        "A13",
        "With reasoning, a loop of calls begins with it.",
        "reported",
        thinking.loop_without_thinking,
        applies=thinking.enabled,
    ),
    Rule(
        "A16",
        "The budget for reasoning is less than the reply may have.",
        "documented",
        thinking.budget,
        applies=thinking.enabled,
    ),
    Rule(
        "A16.choice",
        "With reasoning, no call is forced.",
        "known",
        thinking.forced_tool,
        applies=thinking.enabled,
    ),
    Rule(
        "A22",
        "Without reasoning, the last message holds none.",
        "reported",
        thinking.thinking_while_disabled,
        applies=content.has_prefill,
    ),
    Rule(
        "A11",
        "Newer models end with a user's message.",
        "reported",
        content.prefilled,
        applies=lambda case: not content.has_prefill(case),
    ),
    Rule(
        "A12",
        "The model's last words do not end with white space.",
        "reported",
        content.trailing_space,
        applies=content.has_prefill,
    ),
    Rule(
        "A18",
        "The newer version has no sampling, documents of models, nor citations of users.",
        "documented",
        content.given_up,
        applies=content.newer_version,
    ),
    Rule("A18.model", "Newer models have no temperature.", "reported", content.no_temperature),
    Rule("A19", "Messages of the system follow a user's.", "documented", content.system_inside),
    Rule("A20", "Names of tools are unique and plain.", "reported", calls.tool_names),
    Rule("A21", "The model can hold it all.", "reported", content.too_long),
)
"""The rules, in the order in which they speak."""
