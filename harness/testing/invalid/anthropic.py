"""What breaks each rule of Anthropic's."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from harness.core.json_text import Json
from harness.core.messages import Message, Text, Thinking
from harness.testing.invalid.fault import ODD, Fault, Faults, call_ids, long_name, some
from harness.testing.strategies_values import below, pick
from harness.wire.anthropic_words import NEWER
from harness.wire.strict.rule import Issued

OLD, MODEL, NEW = "claude-sonnet-4-5-20250929", "claude-opus-4-6", "claude-opus-5-5"
"""Models that let a client begin the reply, that do not, and that have no temperature."""
_BUDGET = 1024
_LARGEST = 200_000
_ENABLED: Json = {"type": "enabled", "budget_tokens": _BUDGET}


def text(words: str = "Well.", **more: Json) -> Json:
    """A block of text."""
    return {"type": "text", "text": words, **more}


def use(call_id: str) -> Json:
    """A call."""
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}}


def result(call_id: str) -> Json:
    """What a tool gave."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}


def thought(words: str = "why", signature: str = "s1") -> Json:
    """A piece of reasoning."""
    return {"type": "thinking", "thinking": words, "signature": signature}


def user(*blocks: Json) -> Json:
    """What the user says, or tools gave."""
    return {"role": "user", "content": list(blocks)}


def said(*blocks: Json) -> Json:
    """What the model says."""
    return {"role": "assistant", "content": list(blocks)}


GO, WELL = user(text("Go on.")), said(text())


def _exchange(*ids: str) -> tuple[Json, ...]:
    return said(*map(use, ids)), user(*map(result, ids))


def _no_messages(_draw: DrawFn) -> Fault:
    return Fault(place="alone")


def _empty(draw: DrawFn) -> Fault:
    content: Json = pick(draw, ([], ""))
    return Fault(({"role": pick(draw, ("user", "assistant")), "content": content}, GO))


def _blank(draw: DrawFn) -> Fault:
    say = pick(draw, (user, said))
    return Fault((GO, say(text(pick(draw, ("", " ", "\n")))), GO))


def _wrong_role(draw: DrawFn) -> Fault:
    if draw(st.booleans()):
        return Fault((GO, said(result("bad_1"), text()), GO))
    return Fault((user(text(), use("bad_1")),))


def _odd_id(draw: DrawFn) -> Fault:
    return Fault((GO, *_exchange(draw(ODD))))


def _repeated_id(draw: DrawFn) -> Fault:
    ids = call_ids(draw)
    return Fault((GO, *_exchange(*ids), *_exchange(pick(draw, ids))))


def _said_after_call(draw: DrawFn) -> Fault:
    ids = call_ids(draw)
    return Fault((GO, said(*map(use, ids), text()), user(*map(result, ids))))


def _unanswered(draw: DrawFn) -> Fault:
    ids = call_ids(draw)
    told = user(*map(result, some(draw, ids)), text("Stop."))
    return Fault((GO, said(*map(use, ids)), told))


def _result_not_first(draw: DrawFn) -> Fault:
    ids = call_ids(draw)
    results = [*map(result, ids)]
    results.insert(draw(below(len(ids))), text("Here."))
    return Fault((GO, said(*map(use, ids)), user(*results)))


def _unasked(draw: DrawFn) -> Fault:
    return Fault((GO, WELL, user(*map(result, call_ids(draw)))))


def _answered_twice(draw: DrawFn) -> Fault:
    ids = call_ids(draw)
    return Fault((GO, said(*map(use, ids)), user(*map(result, [*ids, pick(draw, ids)]))))


def _ends_with_thinking(draw: DrawFn) -> Fault:
    return Fault((GO, said(*pick(draw, ((text(),), ())), thought()), GO))


def _changed(draw: DrawFn) -> Fault:
    """Reasoning that the provider has not given so: other words, or a signature that is none."""
    issued = Issued()
    issued.remember(Message("assistant", (Thinking("why", "s1"), Text("Well."))))
    other = thought("Why?") if draw(st.booleans()) else thought("why", "forged")
    return Fault((GO, said(other, text()), GO), issued=issued)


def _outdated(_draw: DrawFn) -> Fault:
    return Fault((GO,), {"thinking": _ENABLED}, model=NEW)


def _loop_without_thinking(draw: DrawFn) -> Fault:
    loop = [_exchange(f"bad_{n}") for n in range(1 + draw(below(2)))]
    messages = [message for each in loop for message in each]
    return Fault((GO, *messages), {"thinking": _ENABLED}, "last")


def _budget(draw: DrawFn) -> Fault:
    return Fault((GO,), {"thinking": _ENABLED, "max_tokens": _BUDGET - draw(below(1000))})


def _forced_tool(draw: DrawFn) -> Fault:
    choice: Json = pick(draw, ({"type": "any"}, {"type": "tool", "name": "f"}))
    return Fault((GO,), {"thinking": _ENABLED, "tool_choice": choice})


def _thinking_while_disabled(_draw: DrawFn) -> Fault:
    return Fault((GO, said(thought(), text())), place="last", model=OLD)


def _prefilled(draw: DrawFn) -> Fault:
    return Fault((GO, WELL), place="last", model=pick(draw, (MODEL, NEW)))


def _trailing_space(draw: DrawFn) -> Fault:
    said_last = said(text("It is" + pick(draw, (" ", "\n"))))
    return Fault((GO, said_last), place="last", model=OLD)


def _given_up(draw: DrawFn) -> Fault:
    newer = (("anthropic-version", NEWER),)
    match draw(below(3)):
        case 0:
            key = pick(draw, ("top_p", "temperature"))
            return Fault((GO,), {key: 1}, headers=newer)
        case 1:
            return Fault((GO, said({"type": "document"}, text()), GO), headers=newer)
        case _:
            cited = user(text("Go on.", citations=[{"type": "char_location"}]))
            return Fault((cited,), headers=newer)


def _no_temperature(draw: DrawFn) -> Fault:
    return Fault((GO,), {"temperature": draw(below(4)) / 4}, model=NEW)


def _system_inside(draw: DrawFn) -> Fault:
    system: Json = {"role": "system", "content": "Be brief."}
    if draw(st.booleans()):
        return Fault((GO, WELL, system, GO), model=NEW)
    return Fault((GO, system, GO), model=OLD)


def _tool_names(draw: DrawFn) -> Fault:
    name = pick(draw, ("f", draw(ODD), long_name(draw, 128)))
    tools: list[Json] = [{"name": each, "input_schema": {"type": "object"}} for each in ("f", name)]
    return Fault((GO,), {"tools": tools})


def _too_long(draw: DrawFn) -> Fault:
    return Fault((GO,), {"max_tokens": _LARGEST + draw(below(100))}, model=OLD)


FAULTS: Faults = {
    "A10": _no_messages,
    "A9": _empty,
    "A8": _blank,
    "A23": _wrong_role,
    "A7": _odd_id,
    "A6": _repeated_id,
    "A3": _said_after_call,
    "A1": _unanswered,
    "A2": _result_not_first,
    "A4": _unasked,
    "A5": _answered_twice,
    "A15": _ends_with_thinking,
    "A14": _changed,
    "A17": _outdated,
    "A13": _loop_without_thinking,
    "A16": _budget,
    "A16.choice": _forced_tool,
    "A22": _thinking_while_disabled,
    "A11": _prefilled,
    "A12": _trailing_space,
    "A18": _given_up,
    "A18.model": _no_temperature,
    "A19": _system_inside,
    "A20": _tool_names,
    "A21": _too_long,
}
