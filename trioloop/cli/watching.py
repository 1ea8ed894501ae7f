"""From an agent to a display: what is seen, in the order in which it happened."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import attrs
import trio

from trioloop.agent.agent import Agent
from trioloop.cli.display import Seen

_TICK_S = 0.1


class Display(Protocol):
    """What shows things as they are seen."""

    def feed(self, seen: Seen, at: float) -> None:
        """Show something that was seen at a time."""
        ...

    def tick(self, now: float) -> None:
        """Show that time has passed."""
        ...

    async def flush(self) -> None:
        """Carry out what was shown."""
        ...


@attrs.define(eq=False)
class _Seen:
    """What was seen and isn't shown yet, with the time at which it was."""

    waiting: list[tuple[Seen, float]] = attrs.field(factory=list)
    arrived: trio.Event = attrs.field(factory=trio.Event)
    over: bool = False

    def see(self, seen: Seen) -> None:
        self.waiting.append((seen, trio.current_time()))
        self.arrived.set()

    def take(self) -> list[tuple[Seen, float]]:
        taken, self.waiting = self.waiting, []
        self.arrived = trio.Event()
        return taken


@asynccontextmanager
async def shown(agent: Agent, display: Display, *, animated: bool) -> AsyncIterator[None]:
    """Show what an agent does inside the block; all of it is shown when the block is left.

    Args:
        agent: whose log and notifications are shown.
        display: shows them.
        animated: the display is told, ten times a second, that time passes.
    """
    seen = _Seen()
    if agent.session.state.turns == 0:  # a session that was just made is shown from its beginning
        for event in agent.session.events():
            seen.see(event)
    observing = agent.session.observe(seen.see)
    listening = agent.on("*", seen.see)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_draw, seen, display, _TICK_S if animated else math.inf)
        try:
            yield
        finally:
            listening.close()
            observing.close()
            seen.over = True
            seen.arrived.set()


async def _draw(seen: _Seen, display: Display, tick_s: float) -> None:
    while seen.waiting or not seen.over:
        with trio.move_on_after(tick_s):
            await seen.arrived.wait()
        for one, at in seen.take():
            display.feed(one, at)
        display.tick(trio.current_time())
        await display.flush()
