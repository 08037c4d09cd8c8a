"""What Anthropic's codec and its rules both go by."""

from __future__ import annotations

from harness.core.json_text import Json
from harness.core.messages import Thinking

OLDER = "2023-06-01"
"""The version of the protocol that is asked for where nobody names one."""
NEWER = "2026-10-21"
"""Since this version a key is sent as a bearer's, and some things are refused."""

REDACTED = "redacted_thinking:"
"""How the signature of reasoning begins that the provider has hidden: the rest is its data. No
signature of a provider's holds a colon.
"""

OTHERS = frozenset(
    [
        "bash_code_execution_tool_result",
        "code_execution_tool_result",
        "container_upload",
        "document",
        "search_result",
        "server_tool_use",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "web_fetch_tool_result",
        "web_search_tool_result",
    ]
)
"""Blocks that the provider knows and the neutral form has no room for: they are passed over."""


def redacted(data: str) -> Thinking:
    """Reasoning that the provider has hidden."""
    return Thinking("", REDACTED + data)


def is_own(tool: Json) -> bool:
    """Whether a tool is one of the client's, and not the provider's.

    >>> is_own({"name": "f"}), is_own({"type": "bash_20250124", "name": "bash"})
    (True, False)
    """
    return not isinstance(tool, dict) or tool.get("type") in (None, "custom")
