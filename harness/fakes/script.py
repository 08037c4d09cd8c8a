"""What the fake model will say: data, as a scenario writes it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, field

from harness.core.json_text import Json
from harness.core.messages import Usage
from harness.fakes.wire_faults import WireFault

Stop: TypeAlias = Literal["end", "calls", "length", "filtered", "refused", "paused"]
"""Why the model stopped: it has said all, it wants its calls run, it came to a limit, a filter cut
it off, it will not answer, or it is to be asked again as it is.
"""


class ScriptedCall(Struct, frozen=True):
    """A tool call of a scripted reply; `raw` is what the model writes in place of JSON arguments,
    `id` the call's id where the ordinary ``call_<turn>_<step>_<i>`` will not do.
    """

    tool: str
    args: Json = field(default_factory=dict)
    raw: str | None = None
    id: str | None = None


class GenerateFails(Struct, frozen=True, tag="generate_fails"):
    """The request itself fails."""

    message: str = "the provider did not answer"


class StreamFails(Struct, frozen=True, tag="stream_fails"):
    """The stream breaks after `after` parts: it raises, or where `reported` says so itself."""

    after: int = 0
    message: str = "the connection was lost"
    reported: bool = False


class Torn(Struct, frozen=True, tag="torn"):
    """The stream ends after `after` parts, without an end signal and without an error: over HTTP a
    body that ends cleanly, so that most clients take what came for the whole reply.
    """

    after: int = 0


class Hang(Struct, frozen=True, tag="hang"):
    """Nothing more comes after `after` parts; None: the request itself is never answered."""

    after: int | None = None


class DoneTwice(Struct, frozen=True, tag="done_twice"):
    """The end signal comes twice."""


class LateThinking(Struct, frozen=True, tag="late_thinking"):
    """A piece of reasoning comes after the end signal."""

    text: str = "an afterthought"


Fault: TypeAlias = GenerateFails | StreamFails | Torn | Hang | DoneTwice | LateThinking | WireFault


class Reply(Struct, frozen=True):
    """One scripted reply; spans in virtual nanoseconds.

    It is given as thinking, then text, in deltas of `chunk` characters (None: 16), the first after
    `takes`, each later one after `each`; then the whole message with its calls. A fault happens
    `fault_times` times (None: always); where the agent then asks again, the reply comes whole.

    `stop` says why the model stopped (None: by its calls and its `refusal`, which is what it says
    where it will not answer, and counts before `stop`). One cut off, by `length` or `filtered`,
    ends as interrupted and has no whole message.
    """

    say: str = ""
    think: str = ""
    signature: str | None = None
    calls: tuple[ScriptedCall, ...] = ()
    usage: Usage | None = None
    chunk: int | None = None
    takes: int = 0
    each: int = 0
    fault: Fault | None = None
    optional: bool = False
    fault_times: int | None = 1
    stop: Stop | None = None
    refusal: str | None = None

    @property
    def stopped(self) -> Stop:
        """Why the model stopped, also where the script leaves that to the reply.

        >>> Reply("Sunny.").stopped, Reply(calls=(ScriptedCall("clock"),)).stopped
        ('end', 'calls')
        """
        if self.refusal is not None:
            return "refused"
        if self.stop is not None:
            return self.stop
        return "calls" if self.calls else "end"

    @property
    def cut_off(self) -> bool:
        """Whether the model had more to say."""
        return self.stopped in ("length", "filtered")


class AlsoWhen(Struct, frozen=True):
    """Which requests an `also` entry answers: all that is given must hold."""

    system_contains: str | None = None
    message_contains: str | None = None
    """Text that the last message must contain."""
    model: str | None = None
    user_contains: str | None = None
    """Text that some message of the user must contain, as the task of a sub-agent."""


class Also(Struct, frozen=True):
    """Replies for requests outside the main conversation: titles, summaries, sub-agents."""

    name: str
    when: AlsoWhen
    replies: tuple[Reply, ...] = ()
