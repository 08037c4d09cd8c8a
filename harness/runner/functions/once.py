"""One run of an asynchronous function in virtual time, for who wants it run and not explored."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from harness.core.choices import Choices
from harness.exploration.probe import Finding
from harness.runner.functions.allow import Allow
from harness.runner.functions.judge import ERROR, Judge
from harness.runner.functions.kernel import FunctionKernel
from harness.runner.functions.landing import Landings
from harness.runner.functions.play import Play
from harness.runner.functions.probe import LIMITS
from harness.runner.functions.subject import Factory, Function
from harness.sim.stop import OVER


class Once(Struct, frozen=True):
    """What came of it: what it raised, why it was stopped before it was over ("": it was not), and
    what is wrong with what it left behind.
    """

    error: BaseException | None
    stopped: str
    findings: tuple[Finding, ...]


def once(function: Factory, allow: Allow) -> Once:
    """Run `function`, which is asynchronous, once: nothing is cancelled, and nothing is chosen.

    UsageError where it is no such function, or nothing is found of what `allow` tolerates.
    """
    kernel = FunctionKernel(places=True, choices=Choices(()), order="fifo")
    kernel.limits = LIMITS
    landings = Landings(kernel, ())
    play = Play(Function(function), kernel, landings)
    try:
        play.play()
    finally:
        play.tear_down()
    main = play.main
    assert main is not None, "it is asynchronous, so that a task is made of it"
    error = main.exception() if main.done() and not main.cancelled() else None
    found = Judge(play, (), (), landings.shielded, None).findings(_nothing)
    left = [each for each in found if each not in allow]
    if error is None:
        allow.check_needed()
    return Once(
        error,
        play.stop.detail if play.stop.reason in OVER else "",
        tuple([each for each in left if error is None or not each.key.startswith(ERROR)]),
    )


def _nothing() -> Collection[str]:
    """The tasks that may outlive a main task that was cancelled: here none is."""
    return ()
