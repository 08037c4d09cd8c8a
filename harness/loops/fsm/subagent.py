"""A run of its own for one task: the Agent tool, and what it starts."""

from __future__ import annotations

from typing import Any

from harness.core.json_text import Json
from harness.loops.fsm.client import Client
from harness.loops.fsm.loop import Loop
from harness.loops.fsm.messages import user
from harness.loops.fsm.pending import GivenUp, in_thread
from harness.loops.fsm.registry import Running, Stamp, Tool
from harness.loops.fsm.session import Session

AGENT = "Agent"
DESCRIPTION = (
    "Hand a task to another agent, which works on it with a fresh mind and gives back one answer. "
    "Several can work at the same time."
)
PARAMETERS: Json = {
    "type": "object",
    "properties": {
        "subagent_type": {"type": "string", "description": "Which kind of agent"},
        "description": {"type": "string", "description": "The task in three to five words"},
        "prompt": {"type": "string", "description": "The whole task; the agent knows nothing else"},
    },
    "required": ["subagent_type", "description", "prompt"],
}


class Subagents:
    """Starts sub-agents for a session; `make` builds their loops."""

    def __init__(self, session: Session, make: type[Loop] = Loop) -> None:
        self._session = session
        self._make = make

    def run(self, prompt: str, description: str, stamp: Stamp | None = None) -> str:
        """Let a sub-agent do a task, and give its answer, or a text that says why there is none.

        `stamp` is that of the run that asked, where the sub-agent is to stop with it; where it did
        and nobody waits for it then, GivenUp is raised.
        """
        session, texts = self._session, self._session.texts
        clone = getattr(session.subagent_client, "clone", None)
        client: Client = clone() if clone else session.subagent_client
        session.helpers.append(client)
        try:
            result = self._make(
                session,
                [user(prompt)],
                top_level=False,
                system=session.settings.subagent_system or texts.subagent_prompt,
                client=client,
                stamp=stamp,
            ).run()
        except Exception as error:
            return texts.subagent_raised.format(description=description, error=error)
        finally:
            session.helpers.remove(client)
            if clone:
                self._close(client)
        if result is None:
            if stamp and session.policy.waits_end_with_cancel and session.cancelled(stamp):
                raise GivenUp
            return texts.subagent_no_string.format(description=description, result=result)
        return result

    def _close(self, client: Any) -> None:
        """Close a sub-agent's own client, if that can be done; its answer stands all the same."""
        close = getattr(client, "close", None)
        try:
            if close:
                close()
        except Exception as error:
            self._session.ports.log(f"a sub-agent's client could not be closed: {error}")

    def tool(self, description: str = DESCRIPTION) -> Tool:
        """The Agent tool, which the main loop's model calls to start a sub-agent."""
        return Tool(AGENT, self.start, description, PARAMETERS)

    def start(self, arguments: dict[str, Json], running: Running) -> Any:
        """Start a sub-agent for a call of the Agent tool; gives the handle of its answer."""
        session = self._session
        prompt, description = arguments["prompt"], arguments["description"]
        if not prompt:
            return session.texts.agent_empty_prompt
        said = isinstance(prompt, str) and prompt.strip()
        if session.policy.refuse_bad_arguments and not said:
            return session.texts.agent_prompt_no_text
        stamp = running.stamp if session.policy.inherit_generation else None
        return in_thread(session.ports.threads, lambda: self.run(prompt, description, stamp))
