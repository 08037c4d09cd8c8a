"""A synchronous loop as people write it by hand, stopped by a flag or by Ctrl-C."""

from contextlib import closing
from typing import Any

from harness.core.messages import Message, ModelRequest, ToolCall, tool_result, user
from harness.core.outcome import CANCELLED, COMPLETED, Outcome
from harness.core.ports import Aborted, Env, ToolFailed
from harness.core.reply import ReplyDone


class BlockingLoop:
    """Ask, run the tools one after the other, ask again; calls are always answered."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self.messages: list[Message] = []
        self.stopped = False

    def turn(self, text: str | None) -> Outcome:
        self.stopped = False
        if text is not None:
            self.messages.append(user(text))
        try:
            while not self.stopped:
                reply = self.ask()
                if reply is None:
                    break
                self.messages.append(reply)
                if not reply.calls:
                    return COMPLETED
                self.messages += [self.answer(call) for call in reply.calls]
        except KeyboardInterrupt:
            return CANCELLED
        return CANCELLED

    def ask(self) -> Message | None:
        tools = tuple(self.env.tools.schemas())
        request = ModelRequest("some-model", "Be brief.", tuple(self.messages), tools)
        try:
            with closing(self.env.model_sync.generate(request)) as parts:
                while not self.stopped:
                    part = next(parts)
                    if isinstance(part, ReplyDone):
                        return part.message
        except Aborted:
            pass
        return None

    def answer(self, call: ToolCall) -> Message:
        if self.stopped:
            return tool_result(call.id, "not run", is_error=True)
        try:
            value: Any = self.env.tools.call_sync(call.name, call.args, call.id)
        except KeyboardInterrupt:
            self.stopped = True
            return tool_result(call.id, "stopped", is_error=True)
        except (ToolFailed, Aborted) as error:
            return tool_result(call.id, f"failed: {error}", is_error=True)
        return tool_result(call.id, str(value))

    def cancel(self) -> None:
        self.stopped = True
        self.env.abort()


def build(env: Env) -> BlockingLoop:
    return BlockingLoop(env)
