"""What the published agent asks its model with, and its own fixed words in ours."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from python_agent_harness import models, prompts

from harness.core.events import ResultSynthesized
from harness.core.messages import Usage
from harness.core.ports import Env
from harness.loops.fsm.agent_world import AgentWorld
from harness.loops.fsm.client import RequestOptions
from harness.loops.fsm.env_client import EnvClient
from harness.loops.fsm.messages import Message, ToolCall
from harness.loops.fsm.policy import REFERENCE
from harness.loops.fsm.prompts import TEXTS

RECORDED = Path(__file__).parents[1] / "vectors" / "texts.json"
PLAN_FILE = "plans/word-1.md"
"""How our own loop calls the first plan of a run."""
IN_PLACE = frozenset(
    [
        *("skipped_by_cancel", "crashed", "unknown_tool", "missing_arguments", "excluded"),
        *("plan_blocks_write", "plan_blocks_diff", "plan_blocks_bash", "plan_blocks_mcp"),
    ]
)
"""Texts that stand in the place of a result of a tool."""
MORE = {
    "plan_exit_approved": "User approved switching to build agent.  You are now in build mode; "
    "proceed to execute the approved plan.",
    "plan_exit_declined": "User rejected switching to build.  Remain in plan mode: keep planning "
    "and refining the plan file, and do NOT edit any other files.",
}
"""Texts of the package that the recorded ones lack."""


class Client:
    """The package's client contract on the env's model: several may ask at the same time."""

    def __init__(
        self, env: Env, model: str, world: AgentWorld, interrupted: Callable[[], None]
    ) -> None:
        self.words = Words(world)
        self.spent: list[Usage] = []
        """What each reply has reported."""
        self._make = lambda: EnvClient(env, model, interrupted, REFERENCE, self.spent)
        self._asking: list[EnvClient] = []

    def chat(
        self,
        messages: list[Any],
        tools: list[Any] | None = None,
        system: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        reasoning_effort: str | None = None,
        on_delta: Callable[[str], None] | None = None,
        cancel_check: Callable[[], bool] | None = None,
        on_retry: Callable[[], None] | None = None,
        **_more: Any,
    ) -> tuple[Any, Any]:
        """Ask for the next reply."""
        options = RequestOptions(
            temperature=temperature, max_tokens=max_tokens, reasoning_effort=reasoning_effort
        )
        with self._one() as asked:
            said, usage = asked.chat(
                [self.words.message(message) for message in messages],
                tools=None if tools is None else [tool.to_api() for tool in tools],
                system=self.words.system(system),
                options=options,
                on_delta=on_delta,
                cancel_check=cancel_check or (lambda: False),
                on_retry=on_retry,
            )
        return theirs(said), models.Usage(usage.input_tokens, usage.output_tokens)

    def chat_sync(
        self, messages: list[Any], system: str | None = None, **more: Any
    ) -> tuple[Any, Any]:
        """Ask once, without tools."""
        with self._one() as asked:
            said = asked.chat_sync(
                [self.words.message(message) for message in messages],
                system=self.words.system(system) or "",
                temperature=more.get("temperature"),
            )
        return theirs(said), models.Usage()

    def abort(self) -> None:
        """Break off all that is being asked."""
        for asked in list(self._asking):
            asked.abort()

    @contextmanager
    def _one(self) -> Iterator[EnvClient]:
        asked = self._make()
        self._asking.append(asked)
        try:
            yield asked
        finally:
            self._asking.remove(asked)


def theirs(said: Message) -> Any:
    """A reply as the package has it."""
    calls = [models.ToolCall(call.id, call.name, call.arguments) for call in said.tool_calls or ()]
    return models.Message(said.role, said.content, calls or None, reasoning=said.reasoning)


PACKAGED = {
    "compact.md": "compact_prompt",
    "title.md": "title_prompt",
    "plan.md": "plan_entered",
    "plan-mode.md": "plan_how",
    "build-switch.md": "plan_left",
}
"""Files of the package, and what our own loop says in their place."""


class Words:
    """What the package says in fixed words, in ours; results that it made up are told once."""

    def __init__(self, world: AgentWorld) -> None:
        self.plan_file = ""
        self._world = world
        self._told: list[Any] = []
        recorded = json.loads(RECORDED.read_text(encoding="utf-8"))["fsm"]
        fixed = {name: text for name, text in recorded.items() if text.startswith("Error: ")} | MORE
        self._rules = {name: _rule(text, getattr(TEXTS, name)) for name, text in fixed.items()}
        self._packaged = {_packaged(file): getattr(TEXTS, name) for file, name in PACKAGED.items()}

    def system(self, text: str | None) -> str | None:
        """A system prompt."""
        return None if text is None else self._packaged.get(text.strip(), text)

    def message(self, message: Any) -> Message:
        """A message of the package as one of our loop."""
        calls = [ToolCall(call.id, call.name, call.arguments) for call in message.tool_calls or ()]
        text, rule = message.content, None
        if isinstance(text, str):
            text, rule = self._said(text)
        if rule in IN_PLACE and not any(message is told for told in self._told):
            self._told.append(message)
            self._world.observe(ResultSynthesized(message.tool_call_id, message.name, text))
        return Message(
            message.role,
            text,
            calls or None,
            message.tool_call_id,
            message.reasoning,
            message.name,
            message.injected,
        )

    def _said(self, text: str) -> tuple[str, str | None]:
        """A text in our words, and the name of the rule by which it is put so."""
        text = text.replace(self.plan_file, PLAN_FILE)
        prompt = self._packaged.get(text.replace(PLAN_FILE, "${planInfo}").strip())
        if prompt is not None:
            return prompt.replace("%s", PLAN_FILE), None
        for name, (pattern, ours) in self._rules.items():
            found = pattern.fullmatch(text)
            if found is not None:
                return ours(found), name
        return text, None


def _packaged(file: str) -> str:
    return str(prompts.strip_frontmatter(prompts.read_prompt_file(file))).strip()


_FIELD = re.compile(r"\{(\w+)(!r)?\}")


def _rule(text: str, ours: str) -> tuple[re.Pattern[str], Callable[[re.Match[str]], str]]:
    """A pattern for what `text` gives with its fields filled in, and how to fill in `ours`."""
    parts = _FIELD.split(text)
    pattern = "".join(
        [
            f"(?P<{part}>.*)" if at % 3 == 1 else re.escape(part or "")
            for at, part in enumerate(parts)
            if at % 3 != 2
        ]
    )
    return re.compile(pattern, re.DOTALL), lambda found: _FIELD.sub(lambda f: found[f[1]], ours)
