"""Whether a model that stopped is to be nudged once more."""

from __future__ import annotations

from harness.loops.fsm.session import Session


class Supervisor:
    """Counts the nudges since the last sign of work."""

    def __init__(self, session: Session, *, top_level: bool) -> None:
        self.nudges = 0
        self._session = session
        self._top_level = top_level

    def reset(self) -> None:
        """The model used a tool, or the conversation was compacted."""
        self.nudges = 0

    def wants_nudge(self) -> bool:
        """Whether a reply without calls is to be answered by a nudge; it counts as given."""
        session = self._session
        able = session.tools_enabled and session.alive and not session.compacting
        if not (self._top_level and able and self.nudges < session.settings.max_nudges):
            return False
        self.nudges += 1
        return True
