"""The children of a run: who they are, and which of them somebody means."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from tests.simulation.policies.counting import Count, whole
from trioloop import Agent, Event, SessionId
from trioloop.events import AgentDelegated
from trioloop.testing import Answer, ToolCall

if TYPE_CHECKING:
    from tests.simulation.lives import Life
    from tests.simulation.world import World

PLACEHOLDER = "the last one"


class Children:
    """Whoever works for a call."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def take_up(self, agent: Agent) -> None:
        """Note that a child has come to life; of others, users see to that."""
        parent = self._parent(agent)
        if parent is not None:
            self._world.take_up(agent, parent.number, depth=parent.depth + 1)

    def _parent(self, agent: Agent) -> "Life | None":
        opened = agent.session.state.session
        if opened is None or opened.parent is None or opened.fork_seq is not None:
            return None
        lives = reversed(self._world.lives)
        return next(life for life in lives if life.agent.name == opened.parent)

    def at_work(self, life: "Life", pick: int) -> "Life | None":
        """A child of an agent, or a child's child, that is at work."""
        found = [
            one
            for one in self._world.lives
            if one.depth and one.number == life.number and one.agent.turn is not None
        ]
        return found[pick % len(found)] if found else None

    def root_of(self, life: "Life") -> str:
        """The session that all the work of a life is done for."""
        parent = self._parent(life.agent)
        return life.agent.name if parent is None else self.root_of(parent)

    def spent_by_tree(self, life: "Life") -> Count:
        """What an agent and all that it has delegated to have spent."""
        total = Count()
        waiting, seen = [life.agent.name], set[str]()
        while waiting:
            name = waiting.pop()
            log = self._log_of(name)
            count = whole(log)
            total.steps += count.steps
            total.calls += count.calls
            total.tokens += count.tokens
            seen.add(name)
            named = [event.data.child for event in log if isinstance(event.data, AgentDelegated)]
            waiting += [SessionId(one) for one in dict.fromkeys(named) if one not in seen]
        return total

    def _log_of(self, name: str) -> Sequence[Event]:
        lives = reversed(self._world.lives)
        return next(life.agent.session.events() for life in lives if life.agent.name == name)

    def named(self, answer: Answer, session: str) -> Answer:
        """An answer in which the last child of a session is called by its name."""
        own = (one for one in reversed(self._world.lives) if one.depth)
        names = [one.agent.name for one in own if self._is_child_of(one, session)]
        name = names[0] if names else "nobody"
        pieces = [
            ToolCall("delegate", task="go on", agent=name)
            if isinstance(piece, ToolCall) and PLACEHOLDER in piece.raw_arguments
            else piece
            for piece in answer.pieces
        ]
        return attrs.evolve(answer, pieces=tuple(pieces))

    def _is_child_of(self, life: "Life", session: str) -> bool:
        opened = life.agent.session.state.session
        return opened is not None and opened.parent == session
