"""A function as something to explore: every cancel, every order, judged."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from msgspec.structs import replace

from harness.core.choices import Choices, Picker, Tape
from harness.core.errors import UsageError
from harness.exploration.probe import Asked, Finding, Landing, Role, Run, Shot, Site, Waiting, Whom
from harness.runner.functions.allow import Allow
from harness.runner.functions.judge import Judge
from harness.runner.functions.kernel import MAIN, MAKING, FunctionKernel, QuickKernel, ToldKernel
from harness.runner.functions.landing import Landings
from harness.runner.functions.play import Play
from harness.runner.functions.subject import Factory, Function
from harness.runner.goals import Goals
from harness.runner.shots import Notes, site
from harness.sim.orders import Order
from harness.sim.sites import Suspension
from harness.sim.stop import OVER, Limits, Stop

LIMITS = Limits(steps_per_instant=10_000)
"""What a run may take. A function that spins is to be told of soon, and few make as many steps."""
_NOTHING = Allow()
_NOWHERE = Goals()


class FunctionProbe:
    """Runs one function again and again.

    `factory` is a function without arguments, asynchronous or not, or gives an object with `run`
    and perhaps `check`. `order` says which orders are choices. `goals` are places. `allow` says
    which classes of findings are tolerated. Lines of code are looked up in runs without cancels,
    where `places` is set; without, such a run has sites only where `sites` is set, which costs a
    tenth of it. With `keep_lines` the text of each run is kept.
    """

    whom: tuple[Whom, ...] = ("task",)

    def __init__(
        self,
        factory: Factory | Function,
        order: Order = "fifo",
        *,
        goals: Goals = _NOWHERE,
        allow: Allow = _NOTHING,
        limits: Limits = LIMITS,
        places: bool = True,
        sites: bool = False,
        keep_lines: bool = False,
    ) -> None:
        self.function = factory if isinstance(factory, Function) else Function(factory)
        self.order = order
        self._goals = goals
        self._allow = allow
        self._limits = limits
        self._places = places
        self._sites = sites
        self._keep_lines = keep_lines
        self._by_design: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """The function's module and name."""
        return self.function.name

    def run(
        self, tape: Tape = (), shots: tuple[Shot, ...] = (), picker: Picker | None = None
    ) -> Run:
        """Run the function once, with these choices and cancels."""
        self._learn()
        notes = Notes(tape, picker)
        choices = Choices(tape, notes.pick)
        places = self._keep_lines or (self._places and not shots)
        kernel = notes.kernel = self._kind(shots, places=places)(
            places=places, choices=choices, order=self.order
        )
        kernel.limits = self._limits
        landings = Landings(kernel, shots)
        play = Play(self.function, kernel, landings)
        try:
            play.play()
            lines = tuple(kernel.lines) if isinstance(kernel, ToldKernel) else ()
            left = _left(play) if self._keep_lines else ()
            told = landings.told()
        finally:
            play.tear_down()
            asked = notes.close()
        mistake = play.mistake()
        if mistake is not None:
            raise mistake
        choices.check_used()
        judge = Judge(
            play,
            landings.fired,
            told,
            landings.shielded,
            kernel if isinstance(kernel, ToldKernel) else None,
        )
        if play.stop.reason in OVER and not (tape or shots or picker):
            raise UsageError(
                f"{self.name} cannot be explored: the run that nobody cancels {_why(play.stop)}"
            )
        findings = list(judge.findings(self._outlives))
        tolerated = [each for each in findings if each in self._allow]
        begun = kernel.suspensions[: play.suspensions]  # what comes later is of the check
        return Run(
            digest=_digest(play, told, asked, findings),
            sites=_sites(play, begun, shots),
            steps=play.steps,
            asked=asked,
            landings=told,
            findings=tuple([each for each in findings if each not in tolerated]),
            tolerated=tuple(tolerated),
            unresolved=judge.unresolved(),
            reached=frozenset(self._goals.places(kernel.reached)),
            lines=lines,
            left=left,
        )

    def _kind(self, shots: Sequence[Shot], *, places: bool) -> type[FunctionKernel]:
        """The kernel that notes as much of a run as is asked for."""
        if self._keep_lines:
            return ToldKernel
        return FunctionKernel if shots or places or self._sites else QuickKernel

    def _learn(self) -> None:
        """Find out whether the function is itself what is run, by a call of it."""
        function = self.function
        if function.plain is None:
            kernel = QuickKernel()
            kernel.limits = self._limits
            play = Play(function, kernel, Landings(kernel, ()))
            try:
                function.plain = not play.gives()
            finally:
                play.tear_down()

    def _outlives(self) -> frozenset[str]:
        """The lines that make tasks which outlive the main task where nobody cancels any."""
        if self._by_design is None:
            kernel = FunctionKernel()
            kernel.limits = self._limits
            play = Play(self.function, kernel, Landings(kernel, ()))
            try:
                play.play()
            finally:
                play.tear_down()
            self._by_design = frozenset([each.created for each in play.outlive])
        return self._by_design


def _why(stop: Stop) -> str:
    if stop.reason == "out_of_simulation":
        return f"leaves the simulation; {stop.detail}"
    busy = "; ".join([stop.detail, *stop.waits[:3]])
    return f"does not end by itself; {busy}"


def _sites(play: Play, begun: Sequence[Suspension], shots: Sequence[Shot]) -> tuple[Site, ...]:
    """The places of the tasks that are the function's own.

    The code of a function that blocks can be interrupted before it begins, and where it waits; and
    once only, since nothing can be done against a second Ctrl-C while the first is cleaned up for.
    """
    sites = [site(each, _role(each)) for each in begun if each.path != MAKING]
    if play.plain:
        waits = {each.k for each in begun if each.path == MAIN and (each.label or not each.k)}
        sites = [
            replace(each, thread=True)
            if shots or (each.path == MAIN and each.k not in waits)
            else each
            for each in sites
        ]
    return tuple(sites)


def _role(each: Suspension) -> Role:
    if each.path == MAIN:
        return "turn"
    return "thread" if each.thread else "other"


def _left(play: Play) -> tuple[Waiting, ...]:
    """Who waits for ever, where that is why the run stopped."""
    if play.stop.reason != "deadlock":
        return ()
    return tuple([Waiting(each.path, each.where, each.awaits) for each in play.left])


def _digest(
    play: Play,
    landings: Sequence[Landing],
    asked: Sequence[Asked],
    findings: Sequence[Finding],
) -> str:
    """Of each step whose it was, of the choices, the cancels and what was found, and the time."""
    facts = [" ".join(play.order), f"{play.steps} {play.ended}"]
    facts += sorted([f"{each.source} {each.label} {each.value}" for each in asked if each.value])
    facts += [f"{each.shot} {each.came_to}" for each in landings]
    facts += [each.key for each in findings]
    text = "\n".join(facts).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=16).hexdigest()
