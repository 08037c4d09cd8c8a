"""What an agent may spend, so that a run can tell whether it kept to it."""

from __future__ import annotations

from msgspec import Struct


class Budget(Struct, frozen=True):
    """Limits of one turn; None is no limit.

    `steps` counts requests to the model, `tool_calls` tool runs, `parallel_tools` tools that run at
    the same time, and `keep_messages` the messages that trimming leaves whatever they cost.
    """

    steps: int | None = None
    parallel_tools: int | None = None
    tool_calls: int | None = None
    keep_messages: int | None = None

    def over(self, other: Budget) -> Budget:
        """This budget where it says something, else the other one."""
        return Budget(
            other.steps if self.steps is None else self.steps,
            other.parallel_tools if self.parallel_tools is None else self.parallel_tools,
            other.tool_calls if self.tool_calls is None else self.tool_calls,
            other.keep_messages if self.keep_messages is None else self.keep_messages,
        )
