"""Plan mode: nothing is changed but the plan, until the user has approved it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from harness.core.json_text import Json
from harness.loops.fsm.policy import Policy
from harness.loops.fsm.ports import Files
from harness.loops.fsm.prompts import Texts
from harness.loops.fsm.registry import Registry, Running, Tool

PLAN_EXIT = "PlanExit"


class PlanMode:
    """Whether plan mode is on, where its plan is, and what the model is to be told about it.

    `queue` holds prompts for the next request of the main loop; each switch replaces it. `ask` asks
    the user whether the plan is good; `approved` hears what the model is told if it is.
    """

    def __init__(
        self,
        files: Files,
        token: Callable[[], str],
        registry: Registry,
        texts: Texts,
        policy: Policy,
        *,
        ask: Callable[[], bool],
        approved: Callable[[str], None],
    ) -> None:
        self.on = False
        self.plan_file: str | None = None
        self.queue: list[str] = []
        self._files = files
        self._token = token
        self._registry = registry
        self._texts = texts
        self._policy = policy
        self._ask = ask
        self._approved = approved

    def enter(self) -> None:
        """Switch it on, with an empty plan; the model gets a tool to ask for its approval. OSError
        where the plan cannot be written; nothing is switched then.
        """
        path = self.path()
        self._files.write(path, "")
        self.on, self.plan_file = True, path
        self.queue = [_filled(self._texts.plan_entered, path), _filled(self._texts.plan_how, path)]
        self._registry.register(
            Tool(PLAN_EXIT, self._exit, "Ask the user to approve the plan.", interactive=True)
        )

    def leave(self) -> None:
        """Switch it off; what was queued is not said any more."""
        self.on = False
        self.queue = [self._texts.plan_left]
        self._registry.unregister(PLAN_EXIT)

    def path(self) -> str:
        """Where the plan is; a fresh place each time while there is none."""
        return self.plan_file or f"plans/{self._token()}.md"

    def reminder(self) -> str:
        """What a sub-agent is told while plan mode is on."""
        return _filled(self._texts.plan_reminder, self.path())

    def refusal(self, name: str, arguments: dict[str, Json]) -> str | None:
        """Why a call must not run in plan mode; None where it may, or plan mode is off."""
        texts = self._texts
        if not self.on:
            return None
        match name:
            case "Bash":
                return texts.plan_blocks_bash
            case "Write":
                target = _joined(arguments, "path", "filename")
            case "Mkdir":
                target = _joined(arguments, "parent", "name")
            case "Edit" | "Insert":
                target = _joined(arguments, "path")
            case _:
                return texts.plan_blocks_mcp if name.startswith("mcp__") else None
        if self._is_plan(target):
            return None
        patch = name == "Edit" and arguments.get("old_str") is None
        return texts.plan_blocks_diff if patch else texts.plan_blocks_write

    def _is_plan(self, target: str | None) -> bool:
        plan = self.plan_file
        if target is None or plan is None:
            return False
        if self._policy.resolve_plan_file:
            plan = self._files.resolve(plan)
        return self._files.resolve(target) == plan

    def _exit(self, _arguments: dict[str, Json], _running: Running) -> str:
        if not self._ask():
            return self._texts.plan_exit_declined
        self.leave()
        self._approved(_filled(self._texts.plan_approved, self.path()))
        return self._texts.plan_exit_approved


def _filled(text: str, path: str) -> str:
    return text.replace("%s", path)


def _joined(arguments: dict[str, Json], *names: str) -> str | None:
    """A path from the arguments that are its parts, joined as the tools do it: an absolute one
    stands alone. None where one is missing.
    """
    parts = [part for name in names if isinstance(part := arguments.get(name), str) and part]
    return str(PurePath(*parts)) if len(parts) == len(names) else None
