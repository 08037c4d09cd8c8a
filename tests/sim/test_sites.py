"""Every suspension is accounted for: where it is, when it begins, when it ends."""

import asyncio

from harness.sim.sites import SiteKernel


def played(main, **options):
    kernel = SiteKernel(**options)
    try:
        task = kernel.spawn(main(), "1")
        kernel.run_until(task.done)
        return kernel, [
            (each.path, each.k, each.first, each.last, each.waits) for each in kernel.suspensions
        ]
    finally:
        kernel.tear_down()


async def child():
    await asyncio.sleep(1)


async def two_children():
    first = asyncio.ensure_future(child())
    await asyncio.sleep(0)
    await asyncio.gather(first, child())


def test_suspensions_have_their_steps():
    kernel, seen = played(two_children)
    assert seen == [
        ("1", 0, 0, 0, False),
        ("1", 1, 1, 2, False),
        ("1.1", 0, 1, 1, False),
        ("1.1", 1, 2, 4, True),
        ("1", 2, 3, 6, True),
        ("1.2", 0, 3, 3, False),
        ("1.2", 1, 4, 5, True),
    ]
    assert kernel.steps == 7


def test_what_never_goes_on_has_no_end():
    async def waits():
        await asyncio.get_running_loop().create_future()

    _, seen = played(waits)
    assert seen[-1] == ("1", 1, 1, None, True)


def test_lines_are_looked_up_on_demand():
    kernel, _ = played(two_children, places=True)
    assert [each.where for each in kernel.suspensions if each.path == "1.1"][1].endswith("in child")


def test_an_action_comes_right_after_its_step():
    kernel = SiteKernel()
    seen = []
    kernel.after_step(2, lambda: seen.append((kernel.steps, kernel.suspensions[-1].path)))
    task = kernel.spawn(two_children(), "1")
    kernel.run_until(task.done)
    kernel.tear_down()
    assert seen == [(2, "1.1")]


def test_several_actions_may_come_after_one_step():
    kernel = SiteKernel()
    seen = []
    for name in "ab":
        kernel.after_step(2, lambda name=name: seen.append((kernel.steps, name)))
    task = kernel.spawn(two_children(), "1")
    kernel.run_until(task.done)
    kernel.tear_down()
    assert seen == [(2, "a"), (2, "b")]
