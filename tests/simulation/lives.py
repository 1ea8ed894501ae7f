"""One life of an agent, and what was told of it."""

import attrs

from tests.simulation.deeds import CancelMark
from trioloop import Agent, Event, MessageId


@attrs.define(eq=False)
class Life:
    """An agent from its creation, or from a resumption, to its disposal.

    Attributes:
        agent: the handle.
        number: which one of the script it is.
        began: the events that its log began with.
        taken: the messages that it took.
        inserted: those that a notification called so.
        ended: those that one called claimed or discarded.
        cancels: what met an open turn of it.
        settled: the turns that a notification called so.
        failed: the turns that one told the failure of.
        statuses: what one told of its status.
        disposing: a disposal has begun.
        depth: how many delegations lead to it.
    """

    agent: Agent
    number: int
    began: tuple[Event, ...]
    taken: list[MessageId] = attrs.field(factory=list)
    inserted: list[str] = attrs.field(factory=list)
    ended: list[str] = attrs.field(factory=list)
    cancels: list[CancelMark] = attrs.field(factory=list)
    settled: list[int] = attrs.field(factory=list)
    failed: list[int] = attrs.field(factory=list)
    statuses: list[str] = attrs.field(factory=list)
    disposing: bool = False
    depth: int = 0

    def watch(self) -> None:
        """Take down what notifications tell."""
        self.agent.on("inserted", lambda one: self.inserted.append(one.message.id))
        self.agent.on("claimed", lambda one: self.ended.append(one.message))
        self.agent.on("discarded", lambda one: self.ended.append(one.message))
        self.agent.on("settled", lambda one: self.settled.extend(one.turns))
        self.agent.on("error", lambda one: self.failed.append(one.turn))
        self.agent.on("status", lambda one: self.statuses.append(one.status))
