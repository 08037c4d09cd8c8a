"""Where in a conversation a recorded reply stands: turns and steps, as scripts have them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from harness.core.errors import NoPlace
from harness.core.messages import Message, ModelRequest
from harness.core.trace import Recorder
from harness.fakes.place import Placed, Stage
from harness.fakes.script import Also, Reply


class RecordedStage(Stage):
    """Names replies that come from elsewhere ``<turn>.<step>``, and knows the calls in them.

    A request beside the turns belongs to the `also` entry whose condition holds. Who asks after a
    reply that did not come whole asks for the same step again.
    """

    def __init__(self, also: Sequence[Also], recorder: Recorder) -> None:
        super().__init__([replace(each, replies=()) for each in also], recorder)

    def start_turn(self, turn: int, text: str | None, _replies: tuple[Reply, ...]) -> None:
        """From here on, requests are of this turn; the script's replies are not given."""
        super().start_turn(turn, text, ())

    def locate(self, request: ModelRequest) -> Placed:
        """The place of the next reply; NoPlace where no turn is played."""
        line = self._also_line(request) or self._turn
        if line is None:
            raise self.mismatch(NoPlace("no turn is played, and a request came; see what is left"))
        step = line.first_left()
        if step <= len(line.given) and _shows(request, line.given[step - 1].message):
            line.given[step - 1].complete = True  # it broke behind its end only, and was taken
            step = line.first_left()
        if step > len(line.replies):
            line.replies += (Reply(),)
        given = line.give(step)
        label = given.place if given.times == 1 else f"{given.place}~{given.times}"
        return Placed(line.conversation, label, given.reply, step, given)

    def expect(self, placed: Placed) -> None:
        """The reply will be whole: its calls may be run as soon as they are there."""
        self._calls.issue(placed.given, placed.given.message.calls)

    def delivered(self, placed: Placed) -> None:
        """The agent has got the reply's whole message."""
        placed.given.complete = True


def _shows(request: ModelRequest, reply: Message) -> bool:
    """Whether a history has a reply, by what it says and asks for."""
    if not reply.content:
        return False
    calls = [call.name for call in reply.calls]
    return any(
        message.role == "assistant"
        and message.text.strip() == reply.text.strip()
        and [call.name for call in message.calls] == calls
        for message in request.messages
    )
