"""What OpenAI refuses of a Chat Completions request, by the numbers of dossier section 2.4, and
what DeepSeek does.

Not refused, whatever is said of it: results in another order than their calls (C4), who speaks
first, messages of one role in a row, empty texts, arguments that are no JSON, tools that nobody
calls.
"""

from __future__ import annotations

from msgspec.structs import replace

from harness.wire.strict import openai_chat_forms as forms
from harness.wire.strict import openai_chat_pairing as pairing
from harness.wire.strict.openai_chat_pairing import messages
from harness.wire.strict.rule import Breach, Case, Check, Rule

_LONG = "string_above_max_length"

RULES: tuple[Rule, ...] = (
    Rule("C1", "There is at least one message.", "known", forms.no_messages, code="empty_array"),
    Rule("C7", "A list of calls is not empty.", "reported", forms.no_calls, code="empty_array"),
    Rule("C8", "Only who calls or refuses says nothing.", "reported", forms.no_content),
    Rule("C9", "Ids of calls are short.", "reported", forms.long_id, code=_LONG),
    Rule(
        "C10",
        "Names of tools are of letters, digits, _ and -.",
        "reported",
        forms.odd_name,
        code="invalid_value",
    ),
    Rule("C10b", "Names of tools are short.", "reported", forms.long_name, code=_LONG),
    Rule("C11", "Descriptions of tools are short.", "reported", forms.long_description, code=_LONG),
    Rule("C12", "Who has no tools chooses none.", "known", forms.without_tools),
    Rule(
        "C13",
        "Models that reason take no temperature.",
        "reported",
        forms.temperature,
        code="unsupported_parameter",
        applies=forms.reasons,
    ),
    Rule(
        "C13b",
        "Models that reason take max_completion_tokens.",
        "known",
        forms.max_tokens,
        code="unsupported_parameter",
        applies=forms.reasons,
    ),
    Rule("C2", "Results follow the calls that they answer.", "reported", pairing.orphan),
    Rule("C6", "A result answers a call before it.", "known", pairing.unasked),
    Rule("C5", "A call has one result.", "reported", pairing.answered_twice),
    Rule("C3", "Every call has a result right after it.", "reported", pairing.unanswered),
)
"""What OpenAI refuses, in the order in which it looks."""


def _in_other_words(check: Check, message: str) -> Check:
    """A check whose breaches are told without a place, as `message`."""
    return lambda case: None if check(case) is None else Breach(message)


def _thinks(case: Case) -> bool:
    thinking = case.body.get("thinking")
    asked = isinstance(thinking, dict) and thinking.get("type") == "enabled"
    return asked or case.model == "deepseek-reasoner"


def _thought_missing(case: Case) -> Breach | None:
    """A message of the turn that is being played comes back without its reasoning."""
    for message in reversed(messages(case)):
        if message.get("role") == "user":
            break
        if message.get("role") == "assistant" and message.get("reasoning_content") is None:
            return Breach(
                "The `reasoning_content` in the thinking mode must be passed back to the API."
            )
    return None


_ORPHAN, _UNANSWERED = (rule for rule in RULES if rule.id in ("C2", "C3"))

DEEPSEEK: tuple[Rule, ...] = (
    replace(
        _ORPHAN,
        id="D2",
        check=_in_other_words(
            pairing.orphan,
            "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
        ),
        code="invalid_request_error",
    ),
    replace(
        _UNANSWERED,
        id="D3",
        check=_in_other_words(
            pairing.unanswered,
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. (insufficient tool messages following tool_calls message)",
        ),
        code="invalid_request_error",
    ),
    Rule(
        "D1",
        "Reasoning of the turn comes back.",
        "reported",
        _thought_missing,
        code="invalid_request_error",
        applies=_thinks,
    ),
)
"""What DeepSeek refuses, which speaks the same protocol."""
