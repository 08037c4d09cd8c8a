"""The loop as one call."""

from __future__ import annotations

from harness.loops.fsm.client import Client
from harness.loops.fsm.loop import Loop
from harness.loops.fsm.messages import Message
from harness.loops.fsm.session import Session


def run_loop(
    session: Session,
    messages: list[Message],
    *,
    top_level: bool = True,
    system: str | None = None,
    max_rounds: int | None = None,
    client: Client | None = None,
) -> str | None:
    """Run the loop over `messages`, which grows, and give the answer, an error's text, or None.

    `max_rounds` and `client` are a sub-agent's only.
    """
    return Loop(
        session,
        messages,
        top_level=top_level,
        system=system,
        max_rounds=max_rounds,
        client=client,
    ).run()
