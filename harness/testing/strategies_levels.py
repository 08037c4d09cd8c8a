"""What of a drawn script a level can carry: over HTTP there is less that a reply can be.

- A client has all that it waits for with the end signal, and reads no further: nothing goes wrong
  behind it. What a reply cost comes with it too, so a reply that is broken off or cut tells none.
- Anthropic and Gemini have calls with objects only, and no ids but such as they give themselves.
- Anthropic takes no text that says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from harness.fakes.script import Also, DoneTwice, LateThinking, Reply, ScriptedCall
from harness.runner.levels import MODEL, Level
from harness.testing.strategies_script import parts_before_end

_SAID = "Well."
_OF_OBJECTS = ("anthropic", "gemini")
"""Protocols in which arguments are an object, and not any text is an id."""
_MINDS_SILENCE = ("anthropic",)
"""Protocols whose providers refuse texts that say nothing."""


def spoken(text: str, level: Level) -> str:
    """What a user says, where it is to be played at `level`."""
    return text if level.protocol not in _MINDS_SILENCE or text.strip() else _SAID


def carried(reply: Reply, level: Level, *, cut: bool = False) -> Reply:
    """What of a reply there can be at `level`; `cut` says that its turn is cancelled."""
    if level == MODEL:
        return reply
    if level.protocol in _OF_OBJECTS:
        reply = replace(reply, calls=tuple(map(_by_object, reply.calls)))
    if level.protocol in _MINDS_SILENCE:
        silent = "" if reply.calls else _SAID
        say, think = reply.say, reply.think
        reply = replace(
            reply, say=say if say.strip() else silent, think=think if think.strip() else ""
        )
    if isinstance(reply.fault, DoneTwice | LateThinking):
        reply = replace(reply, fault=None)
    if cut or reply.fault is not None:
        reply = replace(reply, usage=None)
    after = getattr(reply.fault, "after", None)
    behind = isinstance(after, int) and after > parts_before_end(reply)
    return replace(reply, fault=None) if behind else reply


def carried_also(also: Sequence[Also], level: Level) -> tuple[Also, ...]:
    """The same of what is asked beside the turns; any of it may be cut."""
    return tuple(
        [
            replace(each, replies=tuple([carried(r, level, cut=True) for r in each.replies]))
            for each in also
        ]
    )


def _by_object(call: ScriptedCall) -> ScriptedCall:
    plain = isinstance(call.args, dict) and call.raw is None
    return ScriptedCall(call.tool, call.args if plain else {})
