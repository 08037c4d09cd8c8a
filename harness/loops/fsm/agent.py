"""The state-machine loop as an agent under test: a synchronous one, in the runner's own frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.core.budget import Budget
from harness.core.events import UsageCounted
from harness.core.json_text import Json
from harness.core.messages import Message as Neutral
from harness.core.messages import Usage
from harness.core.outcome import CANCELLED, COMPLETED, STEP_LIMIT, Error, Outcome
from harness.core.ports import Env
from harness.loops.fsm.agent_tools import AgentTools
from harness.loops.fsm.agent_world import AgentWorld
from harness.loops.fsm.client import Client, RequestOptions
from harness.loops.fsm.env_client import EnvClient, to_neutral
from harness.loops.fsm.loop import ABRT, ERRS, TABLE, TERMINAL, Loop
from harness.loops.fsm.messages import user
from harness.loops.fsm.policy import POLICIES, Policy
from harness.loops.fsm.ports import Clock
from harness.loops.fsm.session import Session, Settings
from harness.loops.fsm.subagent import Subagents
from harness.loops.kind import LoopKind

SYSTEM_PROMPT = "You are a helpful assistant that works with tools until the task is done."


class FsmAgent:
    """Plays each turn as a run of one session, which keeps the conversation; `make` builds it.

    `ask` makes the client, of the clock and of what a Ctrl-C calls; else it asks the run's model.
    """

    def __init__(
        self,
        env: Env,
        config: Mapping[str, Json],
        policy: Policy,
        make: type[Loop] = Loop,
        *,
        ask: Callable[[Clock, Callable[[], None]], Client] | None = None,
    ) -> None:
        self._env = env
        self._make = make
        self._policy = policy
        self._playing = False
        self._stopped = False
        """Whether a stop has come that the turn's own run may not have seen."""
        self._world = AgentWorld(env, self.cancel)
        self._spent: list[Usage] = []
        self.session = Session(
            EnvClient(env, config["model"], self.cancel, policy, self._spent)
            if ask is None
            else ask(self._world, self.cancel),
            self._world.ports(),
            settings=_settings(config),
            policy=policy,
            ask=lambda: bool(config["plan_is_approved"]),
        )
        if not config["titles"]:
            self.session.title = "untitled"
        self._tools = AgentTools(env, self.session, self._world)
        for schema in env.tools.schemas():
            self.session.registry.register(self._tools.tool(schema, config))
        if config["subagents"]:
            self.session.registry.register(Subagents(self.session, make).tool())
        if config["plan_mode"]:
            self.session.plan.enter()

    def turn(self, text: str | None) -> Outcome:
        """Play one user turn; None resumes."""
        session = self.session
        said = [] if text is None else [user(text)]
        self._playing, self._stopped = True, False
        try:
            session.begin_run()
            if self._stopped:  # before the run had begun, which took it for another one's
                session.cancel()
            loop = self._make(session, [*session.last_messages, *said])
            loop.run()
        finally:
            self._playing = False
            self._spent[:] = [sum(self._spent, Usage())]
            if self._spent != [Usage()]:
                self._world.observe(UsageCounted(*self._spent))
        match loop.machine.state:
            case state if state == ABRT:
                return CANCELLED
            case state if state == ERRS:
                return Error("generate", loop.result or "")
            case _ if loop.info.budget:
                return CANCELLED if loop.cancelled() else STEP_LIMIT
            case _:
                return COMPLETED

    def cancel(self) -> None:
        """Stop the turn that is running, from anywhere; between turns there is nothing to stop."""
        if not self._playing:
            return
        self._stopped = True
        self.session.cancel()
        if self._policy.waits_end_with_cancel:
            self._tools.stop()

    def history(self) -> tuple[Neutral, ...]:
        """The conversation as the next turn begins with it."""
        return tuple([to_neutral(message) for message in self.session.last_messages])


def _settings(config: Mapping[str, Json]) -> Settings:
    window = config["window_tokens"]
    own = Settings()
    return Settings(
        model=config["model"],
        main=RequestOptions(),
        system=config["system_prompt"] or None,
        windows=(("", window),) if window else own.windows,
        max_nudges=config["max_nudges"],
        context_trigger=config["context_trigger"],
        max_rounds=config["max_rounds"],
        subagent_max_rounds=config["subagent_max_rounds"],
    )


def build(env: Env, config: Mapping[str, Json], policy: str) -> FsmAgent:
    """The agent for one run."""
    chosen = next(known for known in POLICIES if known.name == policy)
    return FsmAgent(env, {**KIND.settings, **config}, chosen)


def budget(config: Mapping[str, Json]) -> Budget:
    """What the loop may spend with these settings: one tool at a time, where none of them runs in
    the background and no sub-agent runs others.
    """
    settings = {**KIND.settings, **config}
    beside = settings["async_tools"] or settings["subagents"]
    return Budget() if beside else Budget(parallel_tools=1)


KNOWN: Mapping[str, str] = {
    "CANCEL": "What was being prepared is still done: a request, a title, a tool.",
    "EFFECT-KEPT": "A round that is cancelled is dropped with all that its tools did.",
    "RESUME": "A round whose calls have one id counts as answered when one of them is.",
}
"""The invariants that some cancel breaks under the recorded policy, each with the reason."""

KIND = LoopKind(
    name="fsm",
    settings={
        "model": Settings().model,
        "system_prompt": SYSTEM_PROMPT,
        "max_nudges": 0,
        "window_tokens": 0,
        "context_trigger": Settings().context_trigger,
        "max_rounds": Settings().max_rounds,
        "subagent_max_rounds": Settings().subagent_max_rounds,
        "titles": False,
        "subagents": False,
        "plan_mode": False,
        "plan_is_approved": True,
        "async_tools": [],
        "interactive_tools": [],
    },
    policies=tuple([policy.name for policy in POLICIES]),
    build=build,
    budget=budget,
    events=(
        "context",
        "error",
        "compact",
        "tool_start",
        "tool_running",
        "tool",
        "tools",
        "saved",
    ),
    states=tuple(dict.fromkeys([*[row.source for row in TABLE], *TERMINAL])),
    known={"reference": KNOWN},
)
"""How the state-machine loop stands among the loops."""
