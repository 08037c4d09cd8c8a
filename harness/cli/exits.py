"""Exits that an agent asks for, which must not end a command as if it had done its work."""

from __future__ import annotations

from harness.core.errors import UsageError


def exit_asked(end: SystemExit) -> UsageError:
    """What is wrong where an agent, or the module that it is loaded from, has called sys.exit."""
    from harness.sim.where import raised

    return UsageError(
        f"sys.exit({end.code!r}) was called at {raised(end) or 'an unknown place'}; "
        "an agent, and the module that it is loaded from, must leave the process running"
    )
