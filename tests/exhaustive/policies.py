"""Policies of scenes, with whoever selects a mode or answers questions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import trio

from trioloop.plugins import Approvals, Rule, approval, plan_mode
from trioloop.runtime.runtime import Runtime


@asynccontextmanager
async def planning(runtime: Runtime) -> AsyncIterator[None]:
    """Each agent begins in plan mode."""
    async with plan_mode(runtime) as mode:
        select = partial(mode.select, active=True)
        with runtime.on("created", lambda made: select(runtime.agents[made.agent])):
            yield


@asynccontextmanager
async def questioning(runtime: Runtime) -> AsyncIterator[None]:
    """A person answers each question in a quarter of a second, for all the turn."""
    approvals = Approvals(timeout_s=5, clock=lambda: round(trio.current_time() * 1000))

    async def answer() -> None:
        await trio.sleep(0.25)
        for one in approvals.open:
            approvals.answer(one.asked.approval, allow=True, remember="turn")

    async with (
        trio.open_nursery() as nursery,
        approval(runtime, Rule(tool="note"), approvals=approvals),
    ):
        with approvals.observe(lambda: nursery.start_soon(answer) if approvals.open else None):
            yield
        nursery.cancel_scope.cancel()
