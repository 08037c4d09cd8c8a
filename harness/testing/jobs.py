"""Makes the runs of a sweep or a search in several processes, where they can find the agent too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec.structs import replace

from harness.exploration.attempts import Many
from harness.exploration.probe import Probe
from harness.runner.agents import Subject, agent_subject, at_level, find_loop, loop_subject
from harness.runner.explored import OnAgent
from harness.runner.processes import processes
from harness.runner.scenario import Scenario
from harness.sim.orders import Order


@contextmanager
def in_processes(
    jobs: int,
    scenario: Scenario,
    subject: Subject,
    order: Order = "fifo",
    *,
    goals: Sequence[str] = (),
    faults: bool = False,
    places: bool = True,
) -> Iterator[Many | None]:
    """What makes the runs of `scenario` on `subject` in `jobs` processes.

    None, so that they are made here, where one is enough or `subject` has no name by which another
    process could find it. The options are those of the probe.
    """
    if jobs == 1 or not subject.options:
        yield None
        return
    make = partial(_probe, scenario, subject.options, order, tuple(goals), faults, places)
    with processes(jobs, [make]) as (many,):
        yield many


def _probe(
    scenario: Scenario,
    options: Sequence[str],
    order: Order,
    goals: Sequence[str],
    faults: bool,  # noqa: FBT001 - one of a row that goes to another process
    places: bool,  # noqa: FBT001
) -> Probe:
    """What makes runs in a process that was given nothing but names."""
    said = dict(zip(options[::2], options[1::2], strict=True))
    if "--agent" in said:
        subject = agent_subject(said["--agent"])
    else:
        subject = loop_subject(find_loop(said["--loop"]), scenario, said.get("--policy"))
    subject = at_level(subject, said.get("--level", "model"))
    return OnAgent(scenario, replace(subject, faults=faults)).probe(
        order, goals=goals, places=places
    )
