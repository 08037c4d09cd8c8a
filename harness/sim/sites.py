"""A kernel that keeps account of every suspension, so that each can be a place to cancel."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from harness.core.choices import Choices
from harness.sim.kernel import Kernel
from harness.sim.orders import Order
from harness.sim.tasks import DTask


class Suspension(Struct):
    """One suspension of a task, or (`k` 0) the wait before its first step.

    `first` is the step of the run that led to it, `last` the number of steps by the time the task
    goes on (None: it never does). `waits` says whether it waits for something and does not only
    yield, `thread` whether the task stands for one. `label` is what the kernel was told to note of
    each.
    """

    path: str
    k: int
    where: str
    first: int
    waits: bool
    label: int
    thread: bool = False
    last: int | None = None


class SiteKernel(Kernel):
    """Counts the steps of tasks and jobs, and notes where each suspension begins and ends.

    Lines of code are looked up only where `places` is set: they cost more than all else. `label`
    is noted with each suspension.
    """

    def __init__(
        self,
        *,
        places: bool = False,
        label: Callable[[], int] = int,
        choices: Choices | None = None,
        order: Order = "fifo",
    ) -> None:
        super().__init__(choices=choices, order=order)
        self.label = label
        self.steps = 0
        self.suspensions: list[Suspension] = []
        self.reached: set[str] = set()
        """What the code under test says that it has come to (`goals.sometimes`)."""
        self.always = self.watched = True
        self._places = places
        self._at_step: dict[int, list[Callable[[], object]]] = {}

    def find(self, path: str) -> DTask | None:
        """The task at `path` that is not done, or None."""
        return next((task for task in self.living() if task.path == path), None)

    def after_step(self, step: int, action: Callable[[], object]) -> None:
        """Call `action` once, right after step number `step` of the run (from 1)."""
        self._at_step.setdefault(step, []).append(action)

    def note_resuming(self, task: DTask) -> None:
        """A task is about to make a step: its suspension is over."""
        begun = task.waiting
        if begun is None:
            begun = self._begin(task)
        begun.last = self.steps
        if self.armed:
            super().note_resuming(task)

    def note_stepped(self, task: DTask) -> None:
        """A task has made a step: if it is not done, a suspension begins."""
        self.steps += 1
        if not task.done():
            self._begin(task)
        if self.armed:
            super().note_stepped(task)
        if self._at_step:
            self._act()

    def note_other_step(self) -> None:
        """A job has started or finished: a task that waits may be cancelled here too."""
        self.steps += 1
        self._act()

    def unwatched(self) -> bool:
        """Whether nothing is to be done at a point, or after a step."""
        return not (self.armed or self._at_step)

    def _act(self) -> None:
        for action in self._at_step.pop(self.steps, ()):
            action()

    def _begin(self, task: DTask) -> Suspension:
        place = ""
        if self._places:
            place = self.place(task)
        waits = getattr(task, "_fut_waiter", None) is not None
        begun = Suspension(task.path, task.k, place, self.steps, waits, self.label(), task.thread)
        self.suspensions.append(begun)
        task.waiting = begun
        return begun
