"""What `subagents` promises: a child ends before its call, and its parent is told how."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trioloop.events import AgentDelegated, ToolResultLogged, TurnEnded
from trioloop.plugins.subagents import ChildSettled

if TYPE_CHECKING:
    from tests.simulation.world import World


def of_children(world: "World") -> Iterator[str]:
    """Over all agents, in the order in which they came."""
    delegates = world.script.policies.delegates
    if delegates is None:
        return
    yield from _of_order(world)
    for life in world.lives:
        if life.depth > delegates.depth_max:
            yield f"{life.agent.name} is {life.depth} delegations deep"
        if life.depth and life.agent.turn is not None:
            yield f"{life.agent.name} is left in a turn"
        for event in life.agent.session.events():
            if isinstance(event.data, ChildSettled):
                yield from _of_settlement(world, event.data)


def _of_order(world: "World") -> Iterator[str]:
    """A child writes nothing but while a call works with it."""
    working: dict[str, tuple[str, str]] = {}  # the parent and the call of each child
    for life, event in world.chronicle:
        name, data = life.agent.name, event.data
        if isinstance(data, AgentDelegated):
            working[data.child] = (name, data.call)
        elif isinstance(data, ToolResultLogged) and data.replaces is None:
            over = (name, data.call)
            working = {child: call for child, call in working.items() if call != over}
        elif life.depth and name not in working and event.seq > len(life.began):
            yield f"{name} wrote {event.type} {event.seq} while no call works with it"
    if working:
        yield f"the calls {working} have no result"


def _of_settlement(world: "World", told: ChildSettled) -> Iterator[str]:
    child = next(life for life in reversed(world.lives) if life.agent.name == told.child)
    ends = [event.data for event in child.agent.session.events()]
    found = next(one for one in ends if isinstance(one, TurnEnded) and one.turn == told.turn)
    if (found.reason, found.code) != (told.reason, told.code):
        yield f"{told.child} ended {found.reason}, and its parent was told {told.reason}"
