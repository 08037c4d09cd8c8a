"""Whether a model that stopped is to be nudged once more."""

from __future__ import annotations

from harness.loops.fsm.session import Session


class Supervisor:
    """Counts the nudges since the last sign of work."""

    def __init__(self, session: Session, *, top_level: bool) -> None:
        self.nudges = 0
        self._session = session
        self._top_level = top_level
        self._renewed = False

    def reset(self) -> None:
        """The model used a tool."""
        self.nudges = 0
        self._renewed = False

    def renew(self) -> None:
        """The conversation was compacted, and the nudges are not in it any more."""
        if not (self._renewed and self._session.policy.nudges_end):
            self.nudges = 0
        self._renewed = True

    def wants_nudge(self) -> bool:
        """Whether a reply without calls is to be answered by a nudge; it counts as given."""
        session = self._session
        able = session.tools_enabled and session.alive and not session.compacting
        if not (self._top_level and able and self.nudges < session.settings.max_nudges):
            return False
        self.nudges += 1
        return True
