"""One entry of every kind, to be shown."""

from __future__ import annotations

from harness.core.events import (
    AnyEvent,
    CancelDelivered,
    CancelRequested,
    Compacted,
    Delta,
    ErrorUnseen,
    Estimated,
    FaultInjected,
    GeneratorAbandoned,
    InteractionUnused,
    LogRow,
    LoopEvent,
    Mismatch,
    NetworkReached,
    Received,
    ReplyEnded,
    RequestHead,
    RequestMissed,
    RequestSent,
    ResultSynthesized,
    RunStopped,
    Salvaged,
    StateEntered,
    TaskLeaked,
    ToolEffect,
    ToolEnded,
    ToolStarted,
    Trimmed,
    TurnEnded,
    TurnStarted,
    UsageCounted,
)
from harness.core.messages import (
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolSchema,
    Usage,
    assistant,
    tool_result,
    user,
)
from harness.core.outcome import CANCELLED, COMPLETED, INTERRUPTED, STEP_LIMIT, Error
from harness.core.rows import (
    AssistantRow,
    ThinkingRow,
    ToolCallRow,
    ToolResultRow,
    TurnEndRow,
    TurnStartRow,
    UserRow,
)
from harness.core.trace import Entry, Trace

CALL = ToolCall("call_1_1_1", "clock", {"zone": "Europe/Paris"})
RAW = ToolCall("call_1_1_2", "clock", None, "{bad")
PICTURE = Image("a b", "image/png", 10, 2.5)
HEAD = RequestHead(
    "test-model",
    "Be brief.",
    (ToolSchema("clock", "Tells the time.", {"type": "object"}),),
    64,
    0.5,
)
PLAIN_HEAD = RequestHead("test-model", "", (ToolSchema("clock"),))

EVENTS: tuple[AnyEvent, ...] = (
    TurnStarted(1, "What time is it?"),
    TurnStarted(2, None),
    TurnStarted(3, "Continue.", default=True),
    TurnEnded(1, COMPLETED),
    TurnEnded(2, CANCELLED),
    TurnEnded(3, Error("stream", "the line\nbroke")),
    TurnEnded(4, STEP_LIMIT),
    TurnEnded(5, INTERRUPTED),
    CancelRequested(1, "agent", "after tool_started clock"),
    CancelDelivered(1, "task"),
    TaskLeaked(1, "1.2", "agent.py:12 in fetch", "agent"),
    GeneratorAbandoned("stream"),
    NetworkReached("agent.py:12 used socket.connect()"),
    RequestMissed("nothing was recorded for\nPOST /v1/messages"),
    InteractionUnused(2, "POST /v1/messages (line 40)"),
    ErrorUnseen(1, "ValueError: no key"),
    RunStopped("deadlock", "nothing can go on", ("1.2: waits at agent.py:12 in fetch", "1: x")),
    Mismatch("UnrequestedTool", "clock was not asked for"),
    RequestSent("main", "1.1", 0, (user("What time is it?"),), "d1", HEAD, 12),
    RequestSent(
        "title",
        "2.1",
        3,
        (
            Message("assistant", (Thinking("hm", "s1"), Thinking("so"), Text("One"), CALL, RAW)),
            tool_result("call_1_1_1", "14:05"),
            tool_result("call_1_1_2", "no", is_error=True),
            Message("user", (Text("see"), PICTURE)),
            Message("system"),
        ),
        "d2",
    ),
    RequestSent("main", "2.2", 4, (), "d3", PLAIN_HEAD),
    Received("1.1", "anthropic", streamed=True),
    Received("1.2", "gemini", rule="G5", message="Function call is missing a thought_signature"),
    Delta("1.1", "text", "14:0"),
    Delta("1.1", "thinking", "a clock…"),
    ReplyEnded("1.1", "complete", assistant("", CALL), Usage(10, 5, 15, 4, 2)),
    ReplyEnded("1.2", "failed", None, Usage(1, 2, 3), "the connection was lost"),
    ReplyEnded("1.3", "torn"),
    FaultInjected("stream_fails", "1.2"),
    ToolStarted("call_1_1_1", "clock", {"zone": "Europe/Paris"}),
    ToolStarted("call_1_1_2", "clock", {}, inferred=True),
    ToolEffect("call_1_1_1", "clock"),
    ToolEnded("call_1_1_1", "clock", "returned", "14:05"),
    ToolEnded("call_1_1_1", "clock", "returned"),
    ToolEnded("call_1_1_1", "clock", "error", None, "no such zone"),
    ToolEnded("call_1_1_1", "clock", "cancelled"),
    LogRow(TurnStartRow("turn-1")),
    LogRow(UserRow("see", (PICTURE,))),
    LogRow(ThinkingRow("hm")),
    LogRow(AssistantRow("14:05")),
    LogRow(ToolCallRow("call_1_1_1", "clock", {"zone": "Europe/Paris"})),
    LogRow(ToolCallRow("call_1_1_2", "clock", None, "call_1", "{bad")),
    LogRow(ToolResultRow("call_1_1_1", {"time": "14:05"})),
    LogRow(ToolResultRow("call_1_1_2", None, "no", "call_1")),
    LogRow(TurnEndRow("turn-1", Error("generate", "down"))),
    LoopEvent("tool_started", {"id": "call_1_1_1"}),
    StateEntered("waiting for tools"),
    Estimated(96),
    Trimmed(3, 120, 5, 1000),
    Compacted(900, 120),
    Compacted(900, 900, "the summary is empty"),
    Salvaged(3, 2, ("call_1_1_1", "call_1_1_2")),
    UsageCounted(Usage(11, 7, 18)),
    ResultSynthesized("call_1_1_1", "clock", "cancelled before execution"),
)

TRACE = Trace(
    Entry(index * 1_500_000, "" if index == 0 else f"1.{index}", event)
    for index, event in enumerate(EVENTS)
)
