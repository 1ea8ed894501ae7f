"""What trees of agents have spent: of an agent, its children and theirs.

A step costs what the tree has written since it was last asked about, however large it is: whoever
has written since then is known by an observer of its log, and each log is read once. What a single
session has spent is in `spending`.
"""

from functools import partial

import attrs

from trioloop import (
    AgentHandle,
    Event,
    Fold,
    Runtime,
    SessionHandle,
    SessionId,
    UnknownSessionError,
    events,
)
from trioloop.hooks import Registration
from trioloop.plugins.spending import NOTHING, Account, Spent


@attrs.define(eq=False)
class _Branch:
    """A session, with what is delegated from it.

    Attributes:
        name: of the session.
        parents: that have delegated to it: one, and their forks.
        children: that it has delegated to.
        read: the seq up to which its log has been counted; -1: nothing has.
        own: what it has spent itself.
        whole: the same together with its children and theirs.
    """

    name: str
    parents: "list[_Branch]" = attrs.Factory(list)
    children: "dict[str, _Branch]" = attrs.Factory(dict)
    read: int = -1
    own: Spent = NOTHING
    whole: Spent = NOTHING

    def grow(self, more: Spent) -> None:
        """Count some more spending, here and in all that it was delegated from."""
        self.whole += more
        for parent in self.parents:
            parent.grow(more)

    def adopt(self, child: "_Branch") -> None:
        """Count a child, and all that it has spent; not where it is this one's own ancestor.

        No runtime writes such a log, but a foreign one may say so.
        """
        if child.name not in self.children and not self.descends_from(child):
            self.children[child.name] = child
            child.parents.append(self)
            self.grow(child.whole)

    def descends_from(self, other: "_Branch") -> bool:
        """Whether the other is this one, or what it was delegated from."""
        return self is other or any(parent.descends_from(other) for parent in self.parents)


class Tree:
    """What trees of agents have spent.

    Args:
        runtime: whose agents.
        fold: gives accounts.
    """

    def __init__(self, runtime: Runtime, fold: Fold[Account]) -> None:
        self._runtime = runtime
        self._fold = fold
        self._branches: dict[str, _Branch] = {}
        self._changed: dict[str, SessionHandle] = {}
        self._unread: dict[str, None] = {}  # children that don't work, in order
        self._watched: dict[str, Registration] = {}
        for name in runtime.agents:
            self.watch(name)

    def watch(self, name: str) -> None:
        """Follow an agent that works from now on."""
        session = self._runtime.agents[SessionId(name)].session
        self._changed[name] = session
        self._watched[name] = session.observe(partial(self._note, session))

    def _note(self, session: SessionHandle, _: Event) -> None:
        self._changed[session.name] = session

    async def spent(self, agent: AgentHandle) -> Spent:
        """What the tree of an agent's root has spent; its seconds are the root's.

        A checkpoint where the log of a child is read.
        """
        self._count_changes()
        while self._unread:
            await self._read(next(iter(self._unread)))
            self._count_changes()
        root = self._root(agent.session)
        account = root.folded(self._fold).at(root.state.time)
        return attrs.evolve(self._branch(root.name).whole, seconds=account.session.seconds)

    def forget(self, name: str) -> None:
        """An agent works no more: it has spent what it has; of a root nothing is kept."""
        registration = self._watched.pop(name, None)
        if registration is not None:
            registration.close()
        self._count_changes()
        branch = self._branches.get(name)
        if branch is not None and not branch.parents:
            self._drop(branch)

    def close(self) -> None:
        """Follow nobody any more."""
        for registration in self._watched.values():
            registration.close()

    # Counting

    def _root(self, session: SessionHandle) -> SessionHandle:
        """The live session that all was delegated from; where logs name each other, one of them."""
        live, passed = self._runtime.agents, {session.name}
        while (name := _parent(session)) is not None and name in live and name not in passed:
            passed.add(name)
            session = live[name].session
        return session

    def _branch(self, name: str) -> _Branch:
        return self._branches.setdefault(name, _Branch(name))

    def _count_changes(self) -> None:
        while self._changed:
            name, session = self._changed.popitem()
            self._unread.pop(name, None)
            branch = self._branch(name)
            new = session.events(branch.read)
            self._count(branch, session.folded(self._fold), new)

    def _count(self, branch: _Branch, account: Account, new: tuple[Event, ...]) -> None:
        """Bring a branch up to date.

        Args:
            branch: of a session.
            account: what that has spent.
            new: its events that haven't been counted.
        """
        more = account.session - branch.own
        branch.own = account.session
        branch.grow(more)
        for event in new:
            if isinstance(event.data, events.AgentDelegated):
                self._adopt(branch, event.data.child)
        if new:
            branch.read = new[-1].seq

    def _adopt(self, branch: _Branch, name: str) -> None:
        child = self._branch(name)
        branch.adopt(child)
        if child.read < 0 and name not in self._watched:
            self._unread[name] = None

    async def _read(self, name: str) -> None:
        """Count a child that doesn't work any more, by its stored log."""
        try:
            stored = tuple(await self._runtime.events_of(name))
        except UnknownSessionError:  # it died before its first event was durable
            stored = ()
        branch = self._branches.get(name)
        if name in self._unread and branch is not None and branch.read < 0:
            self._count(branch, self._fold(stored), stored)
        self._unread.pop(name, None)

    def _drop(self, branch: _Branch) -> None:
        del self._branches[branch.name]
        self._unread.pop(branch.name, None)
        for child in branch.children.values():
            child.parents.remove(branch)
            if not child.parents and child.name not in self._watched:
                self._drop(child)


def _parent(session: SessionHandle) -> SessionId | None:
    """The session that delegated to it; None: nobody has."""
    opened = session.state.session
    if opened is None or opened.parent is None or opened.fork_seq is not None:
        return None
    return SessionId(opened.parent)
