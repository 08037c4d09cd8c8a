"""What breaks each rule of Gemini's."""

from __future__ import annotations

from hypothesis.strategies import DrawFn

from harness.core.json_text import Json
from harness.testing.invalid.fault import Fault, Faults, call_ids, some
from harness.testing.strategies_values import below, pick
from harness.wire.strict.rule import Issued

MODEL, SIGNS = "gemini-2.5-flash", ("gemini-3-pro-preview", "gemini-4-flash")


def user(*parts: Json) -> Json:
    """What the user says, or functions gave."""
    return {"role": "user", "parts": list(parts)}


def model(*parts: Json) -> Json:
    """What the model says."""
    return {"role": "model", "parts": list(parts)}


def call(name: str, **more: Json) -> Json:
    """A call of a function."""
    return {"functionCall": {"name": name, "args": {}}, **more}


def response(name: str) -> Json:
    """What a function gave."""
    return {"functionResponse": {"name": name, "response": {"output": "ok"}}}


GO = user({"text": "Go on."})
SAID = model({"text": "Well."})


def _nothing_said(draw: DrawFn) -> Fault:
    if draw(below(2)):
        return Fault((GO, pick(draw, (model(), {"role": "user"})), SAID))
    return Fault(place="alone")


def _wrong_role(draw: DrawFn) -> Fault:
    role = pick(draw, ("tool", "assistant", "system"))
    return Fault((SAID, {"role": role, "parts": [{"text": "Go on."}]}))


def _call_first(draw: DrawFn) -> Fault:
    names = call_ids(draw)
    return Fault((model(*map(call, names)), user(*map(response, names))), place="first")


def _response_without_call(draw: DrawFn) -> Fault:
    return Fault((GO, SAID, user(*map(response, call_ids(draw)))))


def _wrong_count(draw: DrawFn) -> Fault:
    names = call_ids(draw)
    given = [*names, "more"] if draw(below(2)) else some(draw, names)
    told: list[Json] = [*map(response, given)] or [{"text": "Stop."}]
    return Fault((GO, model(*map(call, names)), user(*told)))


def _unsigned(draw: DrawFn) -> Fault:
    names = call_ids(draw)
    parts = model(*map(call, names)), user(*map(response, names))
    return Fault((GO, *parts), place="last", model=pick(draw, SIGNS))


def _foreign_signature(draw: DrawFn) -> Fault:
    foreign = call("f", thoughtSignature=pick(draw, ("c2ln", "EqQB")))
    told = (GO, model(foreign), user(response("f")))
    return Fault(told, model=pick(draw, SIGNS), issued=Issued())


def _ends_with_model(draw: DrawFn) -> Fault:
    return Fault((GO, *[SAID] * (1 + draw(below(2)))), place="last")


FAULTS: Faults = {
    "G7": _nothing_said,
    "G4": _wrong_role,
    "G2": _call_first,
    "G3": _response_without_call,
    "G1": _wrong_count,
    "G5": _unsigned,
    "G6": _foreign_signature,
    "G8": _ends_with_model,
}
