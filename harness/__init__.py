"""A deterministic test harness and simulation toolkit for LLM agent loops.

The layout, from the ground up; a folder imports itself and what stands before it in this list:

    core                  what happened: frozen values and ports, no clock and no I/O
    sim                   when it happens: the kernel, virtual time, points of cancelling
    loops                 the reference loops, agents to test and to compare with
    fakes                 what a loop talks to: a scripted model, scripted tools
    wire                  how each provider spells it: bytes to values and back, and its rules
    invariants            what must hold in every run
    exploration           which cancels and choices to try next
    transport             the same over HTTP: clients, a server, cassettes, and what is secret
    report                how a run is shown
    runner                one run put together: scenario, env, fakes, kernel, verdict
    testing               for authors of tests: the pytest plugin, snapshots, generated inputs
    cli                   the command line, one file a command

What is named here is the public face. It is loaded when first used, so that `import harness` costs
next to nothing; each name's own home is in `_HOMES`.
"""

from __future__ import annotations

TYPE_CHECKING = False
"""What type checkers read as true; the `typing` module would cost more than all else here."""

__version__ = "0.1.0.dev0"

__all__ = [
    "Aborted",
    "Agent",
    "AgentConfig",
    "Bindings",
    "Build",
    "CancelSignal",
    "Cancelled",
    "CassetteMiss",
    "Choices",
    "Compacted",
    "Completed",
    "DiskLog",
    "Env",
    "Error",
    "Estimated",
    "Exploration",
    "FileInUse",
    "FunctionReplay",
    "HarnessError",
    "Image",
    "Interrupted",
    "LogRow",
    "LoopEvent",
    "MemoryLog",
    "Message",
    "ModelRequest",
    "NoPoints",
    "NotDeterministic",
    "ProviderFailed",
    "Replay",
    "ReplyDone",
    "ReplyFailed",
    "ReplyInterrupted",
    "Result",
    "ResultSynthesized",
    "Rules",
    "RunsNotApart",
    "Salvaged",
    "Scenario",
    "StateEntered",
    "StepLimit",
    "Sweep",
    "Text",
    "TextDelta",
    "Thinking",
    "ThinkingDelta",
    "ToolCall",
    "ToolFailed",
    "ToolRegistry",
    "Trace",
    "Trimmed",
    "Usage",
    "UsageCounted",
    "UsageReport",
    "Verdict",
    "Violation",
    "assistant",
    "cassette",
    "choose",
    "create_loop",
    "explore",
    "from_command",
    "from_function",
    "from_object",
    "load",
    "read_log",
    "replay",
    "run",
    "serve",
    "sometimes",
    "sweep",
    "tool_result",
    "user",
]

if TYPE_CHECKING:
    from harness.core.cancel_signal import CancelSignal as CancelSignal
    from harness.core.choices import Choices as Choices
    from harness.core.errors import CassetteMiss as CassetteMiss
    from harness.core.errors import FileInUse as FileInUse
    from harness.core.errors import HarnessError as HarnessError
    from harness.core.errors import NoPoints as NoPoints
    from harness.core.errors import NotDeterministic as NotDeterministic
    from harness.core.events import Compacted as Compacted
    from harness.core.events import Estimated as Estimated
    from harness.core.events import LogRow as LogRow
    from harness.core.events import LoopEvent as LoopEvent
    from harness.core.events import ResultSynthesized as ResultSynthesized
    from harness.core.events import Salvaged as Salvaged
    from harness.core.events import StateEntered as StateEntered
    from harness.core.events import Trimmed as Trimmed
    from harness.core.events import UsageCounted as UsageCounted
    from harness.core.messages import Image as Image
    from harness.core.messages import Message as Message
    from harness.core.messages import ModelRequest as ModelRequest
    from harness.core.messages import Text as Text
    from harness.core.messages import Thinking as Thinking
    from harness.core.messages import ToolCall as ToolCall
    from harness.core.messages import Usage as Usage
    from harness.core.messages import assistant as assistant
    from harness.core.messages import tool_result as tool_result
    from harness.core.messages import user as user
    from harness.core.outcome import Cancelled as Cancelled
    from harness.core.outcome import Completed as Completed
    from harness.core.outcome import Error as Error
    from harness.core.outcome import Interrupted as Interrupted
    from harness.core.outcome import StepLimit as StepLimit
    from harness.core.ports import Aborted as Aborted
    from harness.core.ports import Agent as Agent
    from harness.core.ports import Build as Build
    from harness.core.ports import Env as Env
    from harness.core.ports import ProviderFailed as ProviderFailed
    from harness.core.ports import ToolFailed as ToolFailed
    from harness.core.reply import ReplyDone as ReplyDone
    from harness.core.reply import ReplyFailed as ReplyFailed
    from harness.core.reply import ReplyInterrupted as ReplyInterrupted
    from harness.core.reply import TextDelta as TextDelta
    from harness.core.reply import ThinkingDelta as ThinkingDelta
    from harness.core.reply import UsageReport as UsageReport
    from harness.core.trace import Trace as Trace
    from harness.core.verdict import Verdict as Verdict
    from harness.core.verdict import Violation as Violation
    from harness.loops.turn.config import AgentConfig as AgentConfig
    from harness.loops.turn.disk_log import DiskLog as DiskLog
    from harness.loops.turn.disk_log import read_log as read_log
    from harness.loops.turn.log import MemoryLog as MemoryLog
    from harness.loops.turn.loop import Bindings as Bindings
    from harness.loops.turn.loop import create_loop as create_loop
    from harness.loops.turn.registry import ToolRegistry as ToolRegistry
    from harness.report.replay import FunctionReplay as FunctionReplay
    from harness.report.replay import Replay as Replay
    from harness.report.search import Exploration as Exploration
    from harness.report.sweep import Sweep as Sweep
    from harness.runner.adapters import from_command as from_command
    from harness.runner.adapters import from_function as from_function
    from harness.runner.adapters import from_object as from_object
    from harness.runner.apart import RunsNotApart as RunsNotApart
    from harness.runner.exploring import explore as explore
    from harness.runner.exploring import replay as replay
    from harness.runner.exploring import sweep as sweep
    from harness.runner.files.load import load as load
    from harness.runner.result import Result as Result
    from harness.runner.run import run as run
    from harness.runner.scenario import Scenario as Scenario
    from harness.runner.served import serve as serve
    from harness.sim.draws import choose as choose
    from harness.sim.goals import sometimes as sometimes
    from harness.transport.cassettes.use import cassette as cassette
    from harness.transport.rules import Rules as Rules

_HOMES = {
    "Aborted": "harness.core.ports",
    "Agent": "harness.core.ports",
    "AgentConfig": "harness.loops.turn.config",
    "Bindings": "harness.loops.turn.loop",
    "Build": "harness.core.ports",
    "CancelSignal": "harness.core.cancel_signal",
    "Cancelled": "harness.core.outcome",
    "CassetteMiss": "harness.core.errors",
    "Choices": "harness.core.choices",
    "Compacted": "harness.core.events",
    "Completed": "harness.core.outcome",
    "DiskLog": "harness.loops.turn.disk_log",
    "Env": "harness.core.ports",
    "Error": "harness.core.outcome",
    "Estimated": "harness.core.events",
    "Exploration": "harness.report.search",
    "FileInUse": "harness.core.errors",
    "FunctionReplay": "harness.report.replay",
    "HarnessError": "harness.core.errors",
    "Image": "harness.core.messages",
    "Interrupted": "harness.core.outcome",
    "LogRow": "harness.core.events",
    "LoopEvent": "harness.core.events",
    "MemoryLog": "harness.loops.turn.log",
    "Message": "harness.core.messages",
    "ModelRequest": "harness.core.messages",
    "NoPoints": "harness.core.errors",
    "NotDeterministic": "harness.core.errors",
    "ProviderFailed": "harness.core.ports",
    "Replay": "harness.report.replay",
    "ReplyDone": "harness.core.reply",
    "ReplyFailed": "harness.core.reply",
    "ReplyInterrupted": "harness.core.reply",
    "Result": "harness.runner.result",
    "ResultSynthesized": "harness.core.events",
    "Rules": "harness.transport.rules",
    "RunsNotApart": "harness.runner.apart",
    "Salvaged": "harness.core.events",
    "Scenario": "harness.runner.scenario",
    "StateEntered": "harness.core.events",
    "StepLimit": "harness.core.outcome",
    "Sweep": "harness.report.sweep",
    "Text": "harness.core.messages",
    "TextDelta": "harness.core.reply",
    "Thinking": "harness.core.messages",
    "ThinkingDelta": "harness.core.reply",
    "ToolCall": "harness.core.messages",
    "ToolFailed": "harness.core.ports",
    "ToolRegistry": "harness.loops.turn.registry",
    "Trace": "harness.core.trace",
    "Trimmed": "harness.core.events",
    "Usage": "harness.core.messages",
    "UsageCounted": "harness.core.events",
    "UsageReport": "harness.core.reply",
    "Verdict": "harness.core.verdict",
    "Violation": "harness.core.verdict",
    "assistant": "harness.core.messages",
    "cassette": "harness.transport.cassettes.use",
    "choose": "harness.sim.draws",
    "create_loop": "harness.loops.turn.loop",
    "explore": "harness.runner.exploring",
    "from_command": "harness.runner.adapters",
    "from_function": "harness.runner.adapters",
    "from_object": "harness.runner.adapters",
    "load": "harness.runner.files.load",
    "read_log": "harness.loops.turn.disk_log",
    "replay": "harness.runner.exploring",
    "run": "harness.runner.run",
    "serve": "harness.runner.served",
    "sometimes": "harness.sim.goals",
    "sweep": "harness.runner.exploring",
    "tool_result": "harness.core.messages",
    "user": "harness.core.messages",
}

if not TYPE_CHECKING:  # hidden from type checkers, which would believe that any name is there

    def __getattr__(name: str) -> object:
        """Load a public name from its home, once."""
        import sys
        from importlib import import_module

        home = _HOMES.get(name)
        if home is None:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message, name=name, obj=sys.modules[__name__])
        value = globals()[name] = getattr(import_module(home), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
