"""What each policy promises of a run, read from its logs and ledgers; never by the policy's code.

A run whose policies are closed in the middle only shows that the contract holds.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.simulation.policies.checks_of_calls import of_plans, of_rules
from tests.simulation.policies.checks_of_children import of_children
from tests.simulation.policies.checks_of_limits import of_limits, of_trees
from tests.simulation.policies.checks_of_retries import of_retries
from trioloop.events import ToolResultLogged
from trioloop.messages import text_of

if TYPE_CHECKING:
    from tests.simulation.lives import Life
    from tests.simulation.world import World

EXCERPT_BYTES = 200  # of words around head and tail


def policy_violations(world: "World") -> list[str]:
    """Whatever broke a promise of a policy."""
    if world.policies.closed_early:
        return []
    found = [*of_trees(world), *of_children(world)]
    last = {life.agent.name: life for life in world.lives}
    for life in last.values():
        about = [
            *of_limits(world, life),
            *of_plans(world, life),
            *of_rules(world, life),
            *_of_spilling(world, life),
            *of_retries(world, life),
        ]
        found += [f"{life.agent.name}: {fault}" for fault in about]
    return found


def _of_spilling(world: "World", life: "Life") -> Iterator[str]:
    """No result is longer than it may be."""
    if not world.script.policies.spills:
        return
    for event in life.agent.session.events():
        if isinstance(event.data, ToolResultLogged):
            size = len(text_of(event.data.content).encode())
            if size > 1000 + EXCERPT_BYTES:
                yield f"the result {event.seq} has {size} bytes"
