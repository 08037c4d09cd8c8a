"""Every sentence that the loop says itself, to the model or in a tool's place."""

from __future__ import annotations

from msgspec import Struct

REMINDER_TAG = "<system-reminder>"
"""How the texts begin that say which mode is on; a compaction tells them by it."""


class Texts(Struct, frozen=True, kw_only=True):
    """The loop's own sentences; `%s` is the plan file, `{}` fields are filled in."""

    nudge: str = (
        "If the task is not finished, go on with it now and use the tools for what is left. If it "
        "is finished, repeat your final answer in full."
    )
    """Said to a model that stopped without a tool call; told from a user's text by equality."""

    compact_header: str = "[earlier conversation]\n\n"
    """In front of a summary that stands for a conversation; recognised by this very start."""

    compact_separator: str = "\n\n[the user's own messages follow, in order]\n\n"
    """Behind the summary."""

    compact_prompt: str = (
        "Summarise the conversation below for somebody who has to carry it on: the goal, what was "
        "decided and done, which files and names matter, what failed, what is left to do."
    )
    """The system prompt of a compaction."""

    title_prompt: str = "Give this conversation a title of at most six words, and nothing else."
    """The system prompt of a title."""

    subagent_prompt: str = (
        "You work on one task for another agent. Do it with the tools that you have, ask nothing "
        "back, and end with a complete answer: it is all that the other agent will see."
    )
    """The system prompt of a sub-agent whose session has none for it."""

    plan_entered: str = (
        "<system-reminder>Plan mode is on: read, think and plan, but change nothing except the "
        "plan file %s.</system-reminder>"
    )
    """Queued where plan mode is entered."""

    plan_how: str = (
        "<system-reminder>Write the plan to %s and call PlanExit when it is ready for the user."
        "</system-reminder>"
    )
    """Queued behind `plan_entered`."""

    plan_left: str = (
        "<system-reminder>Plan mode is off: you may change files again.</system-reminder>"
    )
    """Queued where plan mode is left."""

    plan_reminder: str = (
        "<system-reminder>Plan mode is on: read and report, but change nothing. The one file that "
        "may be written is the plan, %s.</system-reminder>"
    )
    """Said once to a sub-agent in plan mode."""

    plan_approved: str = "The user approved the plan in %s: carry it out now."
    """Said after an approved PlanExit."""

    plan_exit_approved: str = "The plan was approved; plan mode is off."
    """The result of an approved PlanExit."""

    plan_exit_declined: str = "The plan was not approved; plan mode stays on."
    """The result of a declined PlanExit."""

    no_result: str = "Error: the tool gave no result; it may have been interrupted or have failed."
    """In place of a result that is None, and of one that a cut conversation lacks."""

    empty_result: str = "The tool ended and gave an empty result."
    """In place of a result without a word."""

    skipped_by_cancel: str = "Error: cancelled before execution: the user stopped the run."
    """The result of a call that never began."""

    given_up: str = "Error: interrupted while running; it may have taken effect."
    """The result of a call that was still running at the cancel."""

    crashed: str = "Error: {name!r} broke outside of the tool itself: {error}"
    """The result of a call that failed on its way to the tool or back."""

    tool_raised: str = "Error: {name} failed: {error}"
    """The result of a tool that raised."""

    unknown_tool: str = "Error: there is no tool {name!r}"
    """The result of a call of a tool that is not registered."""

    arguments_not_json: str = "Error: {name} was not executed: the arguments are not valid JSON"
    """The result of a call whose arguments could not be read."""

    arguments_no_object: str = "Error: {name} was not executed: the arguments are no JSON object"
    """The result of a call whose arguments are a list, a number or the like."""

    missing_arguments: str = "Error: {name} needs the argument(s) {missing}"
    """The result of a call without what its schema requires."""

    excluded: str = "Error: {name} is for the main agent only"
    """The result of a sub-agent's call of a tool that it must not use."""

    budget_exhausted: str = "Error: the sub-agent used up its rounds and gave no final answer"
    """The result of a sub-agent that ran out of rounds between tools."""

    rounds_exhausted: str = "Error: the run used up its rounds and gave no final answer"
    """The answer of a run of the main loop that ran out of rounds."""

    subagent_no_string: str = "Error: the task {description!r} ended without an answer ({result!r})"
    """The result of an Agent call whose run gave none."""

    subagent_raised: str = 'Error: the task "{description}" broke: {error}'
    """The result of an Agent call whose run raised."""

    agent_empty_prompt: str = "Error: the prompt is empty"
    """The result of an Agent call without a task."""

    agent_prompt_no_text: str = "Error: the prompt has to be a text that says something"
    """The result of an Agent call whose task is blank, or no text."""

    plan_blocks_write: str = "Error: plan mode is on; only the plan file may be changed"
    """The result of a write in plan mode."""

    plan_blocks_diff: str = (
        "Error: plan mode is on; a patch may touch the plan file only, by old_str and new_str"
    )
    """The result of a patch in plan mode."""

    plan_blocks_bash: str = "Error: plan mode is on; no commands are run, use tools that only read"
    """The result of a command in plan mode."""

    plan_blocks_mcp: str = "Error: plan mode is on; MCP tools may change things and are not run"
    """The result of an MCP tool in plan mode."""


TEXTS = Texts()
